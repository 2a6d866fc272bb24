package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MCPServerStatus is what was observed of an MCPServer.
type MCPServerStatus struct {
	// observedGeneration is the generation that was last reconciled; -1 before the first time.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase sums the conditions up in one word: Pending, Ready, Degraded, Failed or ScaledToZero.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Ready;Degraded;Failed;ScaledToZero
	Phase Phase `json:"phase,omitempty"`

	// endpoint is the address to use inside the cluster. It appears once the server was verified and stays while a pod is ready.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Endpoint string `json:"endpoint,omitempty"`

	// replicas is how many pods there are.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is how many pods are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// selector is the label selector of the pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Selector string `json:"selector,omitempty"`

	// sessions is what the prober saw: Stateful when the server hands out session ids, else Stateless.
	// +optional
	// +kubebuilder:validation:Enum=Stateful;Stateless
	Sessions SessionMode `json:"sessions,omitempty"`

	// serverInfo is what the server told of itself in the last handshake.
	// +optional
	ServerInfo *MCPServerInfo `json:"serverInfo,omitempty"`

	// tools are the tools that the server offers, sorted by name, at most 512.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	Tools []ToolStatus `json:"tools,omitempty"`

	// toolCount is how many tools the server offers; absent when it offers none by its capabilities.
	// +optional
	ToolCount *int32 `json:"toolCount,omitempty"`

	// promptCount is how many prompts the server offers; absent when it offers none by its capabilities.
	// +optional
	PromptCount *int32 `json:"promptCount,omitempty"`

	// resourceCount is how many resources the server offers; absent when it offers none by its capabilities.
	// +optional
	ResourceCount *int32 `json:"resourceCount,omitempty"`

	// gatewayImage is the image of the bridge in the pods of a Stdio server. An upgrade of the operator does not change it; it
	// is chosen anew when the pods are replaced for another reason, or on request (annotation mcp.operator/upgrade-gateway).
	// +optional
	// +kubebuilder:validation:MaxLength=512
	GatewayImage string `json:"gatewayImage,omitempty"`

	// gatewayRevision is a digest of what the pods were asked to be when gatewayImage was chosen.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	GatewayRevision string `json:"gatewayRevision,omitempty"`

	// conditions are Accepted, Applied, Available, Verified, Progressing, Ready and, while it is so, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Phase sums conditions up in one word.
type Phase string

// The phases.
const (
	// PhasePending means that nothing is wrong and something is still under way.
	PhasePending Phase = "Pending"
	// PhaseReady means that clients can use the server and nothing is wrong.
	PhaseReady Phase = "Ready"
	// PhaseDegraded means that something serves and something needs attention.
	PhaseDegraded Phase = "Degraded"
	// PhaseFailed means that nothing serves and something needs attention.
	PhaseFailed Phase = "Failed"
	// PhaseScaledToZero means that zero replicas are asked for.
	PhaseScaledToZero Phase = "ScaledToZero"
)

// MCPServerInfo is what a server tells of itself in the MCP handshake.
type MCPServerInfo struct {
	// name of the server's implementation, at most 256 bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// version of the server's implementation, at most 256 bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// protocolVersion is the MCP revision that was spoken, for example 2025-11-25.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ProtocolVersion string `json:"protocolVersion,omitempty"`

	// protocolVersions are the MCP revisions that the server says it speaks, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	ProtocolVersions []string `json:"protocolVersions,omitempty"`

	// instructions are the server's hints for models, cut at 4096 bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Instructions string `json:"instructions,omitempty"`

	// capabilities are the optional parts of MCP that the server offers.
	// +optional
	Capabilities *MCPServerCapabilities `json:"capabilities,omitempty"`
}

// MCPServerCapabilities are the optional parts of MCP that a server offers.
type MCPServerCapabilities struct {
	// tools says whether the server offers tools.
	// +optional
	Tools bool `json:"tools,omitempty"`

	// resources says whether the server offers resources.
	// +optional
	Resources bool `json:"resources,omitempty"`

	// prompts says whether the server offers prompts.
	// +optional
	Prompts bool `json:"prompts,omitempty"`

	// logging says whether the server sends log messages.
	// +optional
	Logging bool `json:"logging,omitempty"`

	// completions says whether the server completes arguments.
	// +optional
	Completions bool `json:"completions,omitempty"`
}

// ToolStatus is one tool of a server.
type ToolStatus struct {
	// name of the tool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// digest is the SHA-256 of the tool's canonical definition (name, title, description, schemas, annotations).
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Digest string `json:"digest,omitempty"`
}

// GetConditions returns the conditions, to be changed in place.
func (s *MCPServer) GetConditions() *[]metav1.Condition { return &s.Status.Conditions }

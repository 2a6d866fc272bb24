package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MCPAgentStatus is what was observed of an MCPAgent.
type MCPAgentStatus struct {
	// observedGeneration is the generation that was last reconciled; -1 before the first time.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase sums the conditions up in one word: Pending, Ready, Degraded or Failed.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Ready;Degraded;Failed
	Phase Phase `json:"phase,omitempty"`

	// endpoint is the address of the agent's MCP endpoint inside the cluster. It appears once a gateway serves it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Endpoint string `json:"endpoint,omitempty"`

	// effectiveTools are the tools of everything that is granted, by the name that the agent sees or would see, at most 512, and whether
	// each is served.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	EffectiveTools []EffectiveTool `json:"effectiveTools,omitempty"`

	// toolCount is how many tools are served, those that effectiveTools has no room for included.
	// +optional
	ToolCount *int32 `json:"toolCount,omitempty"`

	// replicas is how many pods of the gateway there are.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// readyReplicas is how many of them are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// tableRevision is the routing table that was last written.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TableRevision string `json:"tableRevision,omitempty"`

	// gatewayImage is the image of the gateway. An upgrade of the operator does not change it; it is chosen anew when the pods are replaced
	// for another reason, or on request (annotation mcp.operator/upgrade-gateway).
	// +optional
	// +kubebuilder:validation:MaxLength=512
	GatewayImage string `json:"gatewayImage,omitempty"`

	// gatewayRevision is a digest of what the pods were asked to be when gatewayImage was chosen.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	GatewayRevision string `json:"gatewayRevision,omitempty"`

	// conditions are Accepted, Applied, Routed, Available, Progressing, Ready and, while it is so, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ToolVerdict is what became of a tool.
type ToolVerdict string

// The verdicts.
const (
	// VerdictServed is shown and can be called.
	VerdictServed ToolVerdict = "Served"
	// VerdictDenied is held back by a rule of the grant.
	VerdictDenied ToolVerdict = "Denied"
	// VerdictConflict has a name that another one has too: neither is served.
	VerdictConflict ToolVerdict = "Conflict"
	// VerdictMissing is granted and does not exist.
	VerdictMissing ToolVerdict = "Missing"
	// VerdictInvalid breaks the rules for names or schemas, or belongs to an MCPTool that is not accepted.
	VerdictInvalid ToolVerdict = "Invalid"
	// VerdictUnavailable is shown from memory, if at all, while what it belongs to does not answer.
	VerdictUnavailable ToolVerdict = "Unavailable"
	// VerdictPending is not known yet.
	VerdictPending ToolVerdict = "Pending"
)

// EffectiveTool is a tool of something that is granted, and what became of it.
type EffectiveTool struct {
	// name is what the agent sees, or would see. Empty: this is about all tools of source.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// source is what it belongs to: server/<name> or tool/<name>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Source string `json:"source,omitempty"`

	// sourceGeneration is the generation of the MCPTool that this is about; absent for MCPServers.
	// +optional
	SourceGeneration int64 `json:"sourceGeneration,omitempty"`

	// verdict is Served, Denied, Conflict, Missing, Invalid, Unavailable or Pending.
	// +required
	// +kubebuilder:validation:Enum=Served;Denied;Conflict;Missing;Invalid;Unavailable;Pending
	Verdict ToolVerdict `json:"verdict,omitempty"`

	// digest is the SHA-256 of the tool's definition as the gateways have it, as in status.tools of an MCPServer; absent while it is not
	// known, and where gateways have different ones.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Digest string `json:"digest,omitempty"`

	// reason says why it is not served.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
}

// GetConditions returns the conditions, to be changed in place.
func (a *MCPAgent) GetConditions() *[]metav1.Condition { return &a.Status.Conditions }

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MCPToolStatus is what was observed of an MCPTool.
type MCPToolStatus struct {
	// observedGeneration is the generation that was last reconciled; -1 before the first time.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase sums the conditions up in one word: Pending, Ready, Degraded or Failed.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Ready;Degraded;Failed
	Phase Phase `json:"phase,omitempty"`

	// tools are the tools that it becomes, sorted by name, at most 512. Those of a remote MCP server are known once a gateway asked it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	Tools []ToolStatus `json:"tools,omitempty"`

	// toolCount is how many tools it becomes. Absent while it is not known, or while not all tools are.
	// +optional
	ToolCount *int32 `json:"toolCount,omitempty"`

	// agents is how many MCPAgents are granted it.
	// +optional
	Agents int32 `json:"agents"`

	// definitions is where the tools of an OpenAPI document are kept for the gateways.
	// +optional
	Definitions *ToolDefinitions `json:"definitions,omitempty"`

	// documentDigest is the SHA-256 of the OpenAPI document that definitions were made of.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	DocumentDigest string `json:"documentDigest,omitempty"`

	// conditions are Accepted, Applied (openapi only), Reachable, Verified and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ToolDefinitions is an immutable ConfigMap that holds definitions of tools.
type ToolDefinitions struct {
	ObjectName `json:",inline"`

	// key in it.
	// +required
	Key DataKey `json:"key,omitempty"`

	// sha256 is that of its content, uncompressed, in hexadecimal.
	// +required
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`

	// endpoint is the base URL of the operations.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint,omitempty"`
}

// GetConditions returns the conditions, to be changed in place.
func (t *MCPTool) GetConditions() *[]metav1.Condition { return &t.Status.Conditions }

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MCPServerStatus is what was observed of an MCPServer.
type MCPServerStatus struct {
	// observedGeneration is the generation that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deploymentName is the name of the Deployment.
	// +optional
	DeploymentName string `json:"deploymentName,omitempty"`

	// serviceName is the name of the Service.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// address is where the server is reached inside the cluster, once it answered.
	// +optional
	Address *Address `json:"address,omitempty"`

	// serverInfo is what the server told of itself in the MCP handshake; empty when it asks callers for credentials.
	// +optional
	ServerInfo *ServerInfo `json:"serverInfo,omitempty"`

	// handshakeRetryCount is how many handshakes failed in a row, while Ready is False for that reason.
	// +optional
	HandshakeRetryCount int32 `json:"handshakeRetryCount,omitempty"`

	// replicas is how many pods the Deployment asks for.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// readyReplicas is how many pods are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// conditions are Accepted and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Address is where a server is reached.
type Address struct {
	// url is the URL of the MCP endpoint.
	// +optional
	URL string `json:"url,omitempty"`
}

// ServerInfo is what a server tells of itself in the MCP handshake.
type ServerInfo struct {
	// name of the server's implementation.
	// +optional
	Name string `json:"name,omitempty"`

	// version of the server's implementation.
	// +optional
	Version string `json:"version,omitempty"`

	// protocolVersion is the MCP revision that was spoken, for example 2025-11-25.
	// +optional
	ProtocolVersion string `json:"protocolVersion,omitempty"`

	// instructions are the server's hints for models.
	// +optional
	Instructions string `json:"instructions,omitempty"`

	// capabilities are the optional parts of MCP that the server offers.
	// +optional
	Capabilities *Capabilities `json:"capabilities,omitempty"`
}

// Capabilities are the optional parts of MCP that a server offers.
type Capabilities struct {
	// tools says whether the server offers tools.
	// +optional
	Tools bool `json:"tools,omitempty"`

	// resources says whether the server offers resources.
	// +optional
	Resources bool `json:"resources,omitempty"`

	// prompts says whether the server offers prompts.
	// +optional
	Prompts bool `json:"prompts,omitempty"`

	// logging says whether the server sends log messages. MCP 2026-07-28 deprecates it (SEP-2577).
	// +optional
	Logging bool `json:"logging,omitempty"`

	// completions says whether the server completes arguments.
	// +optional
	Completions bool `json:"completions,omitempty"`
}

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MCPAgent is one MCP endpoint that shows exactly the tools it was granted, of MCPServers and MCPTools of its namespace: a gateway of its
// own, which holds their credentials, and, when runtime.image is given, the agent's own workload, which can reach nothing else.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=mcp-operator
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Tools",type=integer,JSONPath=`.status.toolCount`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 54",message="metadata.name must have at most 54 characters: the names of the Service and the other children are derived from it and must fit into 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and consist of lower-case letters, digits and '-': it becomes the name of a Service (DNS-1035 label)"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('-(svc|config|gateway|pods|session)$')",message="metadata.name must not end in -svc, -config, -gateway, -pods or -session: children of other objects have such names"
// +genclient
type MCPAgent struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked for.
	// +required
	Spec MCPAgentSpec `json:"spec,omitzero"`

	// status is what was observed. Before anything was, its observedGeneration is -1: tools that wait for an object by it, such as those that
	// follow kstatus, then wait.
	// +optional
	// +default={"observedGeneration":-1}
	Status MCPAgentStatus `json:"status,omitzero"`
}

// MCPAgentList is a list of MCPAgents.
//
// +kubebuilder:object:root=true
type MCPAgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []MCPAgent `json:"items"`
}

// MCPAgentSpec is what is asked of an MCPAgent.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serverRef) || !has(self.servers) || size(self.servers) == 0",message="serverRef and servers are mutually exclusive"
// +kubebuilder:validation:XValidation:rule="has(self.serverRef) || (has(self.servers) && size(self.servers) > 0) || (has(self.tools) && size(self.tools) > 0)",message="an agent must be granted something: serverRef, servers or tools"
// +kubebuilder:validation:XValidation:rule="self.auth.type != 'Tokens' || (has(self.auth.serviceAccounts) && size(self.auth.serviceAccounts) > 0) || (has(self.auth.oidc) && size(self.auth.oidc) > 0) || (has(self.runtime) && has(self.runtime.image))",message="auth.type Tokens needs serviceAccounts, oidc or runtime.image: nobody could call otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.gateway) || !has(self.gateway.replicas) || (has(self.runtime) && has(self.runtime.image))",message="gateway.replicas must not be set together with scaling, unless runtime.image is given: scaling sets the replicas of the gateway"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || ((has(self.runtime) && has(self.runtime.image)) ? (!has(self.runtime.resources) || (has(self.runtime.resources.requests) && 'cpu' in self.runtime.resources.requests) || (has(self.runtime.resources.limits) && 'cpu' in self.runtime.resources.limits)) : (!has(self.gateway) || !has(self.gateway.resources) || (has(self.gateway.resources.requests) && 'cpu' in self.gateway.resources.requests) || (has(self.gateway.resources.limits) && 'cpu' in self.gateway.resources.limits)))",message="scaling needs a request or limit of cpu in resources, where they are given: of runtime, or of gateway if there is no runtime.image"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || self.rollout.type != 'Recreate' || (has(self.runtime) && has(self.runtime.image))",message="rollout.type must not be Recreate without runtime.image: while all pods of the gateway are replaced, no client is served"
// +kubebuilder:validation:XValidation:rule="!has(self.network) || ((!has(self.network.egressTo) || size(self.network.egressTo) == 0) && (!has(self.network.egressPorts) || size(self.network.egressPorts) == 0)) || (has(self.runtime) && has(self.runtime.image))",message="network.egressTo and egressPorts need runtime.image: they are about the agent's own workload"
type MCPAgentSpec struct {
	// serverRef is the one MCPServer that the agent uses, with all its tools under their own names. Not together with servers.
	// +optional
	ServerRef *ObjectName `json:"serverRef,omitempty"`

	// servers are the MCPServers that the agent uses. Not together with serverRef.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Servers []AgentServer `json:"servers,omitempty"`

	// tools are the MCPTools that the agent uses.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Tools []ObjectName `json:"tools,omitempty"`

	// auth is who may call the endpoint. It has no default: anonymous access is said aloud.
	// +required
	Auth AgentAuth `json:"auth,omitzero"`

	// scaling scales the agent's workload, that is runtime if its image is given and else the gateway, by its CPU. Default: it is not scaled.
	// +optional
	Scaling *Scaling `json:"scaling,omitempty"`

	// rollout is how the pods of that workload are replaced after a change. Default: RollingUpdate with maxSurge 1 and maxUnavailable 0.
	// +optional
	Rollout *UpdateStrategy `json:"rollout,omitempty"`

	// runtime is the agent's own workload.
	// +optional
	Runtime *AgentRuntime `json:"runtime,omitempty"`

	// gateway is the endpoint.
	// +optional
	Gateway *AgentGateway `json:"gateway,omitempty"`

	// network is who may connect to the endpoint, and what the agent's workload may connect to beside it. It is enforced by NetworkPolicies.
	// +optional
	Network *AgentNetwork `json:"network,omitempty"`
}

// AgentServer is an MCPServer, and which of its tools are granted under which names.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tools) || (has(self.trusted) && self.trusted) || ((!has(self.tools.readOnly) || !self.tools.readOnly) && (!has(self.tools.denyDestructive) || !self.tools.denyDestructive))",message="tools.readOnly and denyDestructive need trusted: they believe what the server says of its own tools"
type AgentServer struct {
	ObjectName `json:",inline"`

	// prefix is put before the names of its tools and prompts, separator included, such as "web_". Default: none.
	// +optional
	Prefix NamePrefix `json:"prefix,omitempty"`

	// tools says which tools are granted. Default: all.
	// +optional
	Tools *ToolPolicy `json:"tools,omitempty"`

	// timeoutSeconds is how long one call of a tool of the server may take, in seconds. Default: 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// trusted lets the server's own tool annotations count: readOnly and denyDestructive need it. Default: false.
	// +optional
	Trusted bool `json:"trusted,omitempty"`
}

// ToolPolicy says which tools of a server are granted. Patterns match the server's own names, '*' is any run of characters. Deny wins
// over allow; a tool that is not granted is neither shown nor can it be called.
type ToolPolicy struct {
	// allow are patterns of tools that are granted. Default: all. To grant none, deny "*".
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.matches('^[A-Za-z0-9_./:@*-]+$'))",message="allow[] must consist of letters, digits, _-./:@ and '*', which is any run of characters"
	Allow []string `json:"allow,omitempty"`

	// deny are patterns of tools that are not granted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.matches('^[A-Za-z0-9_./:@*-]+$'))",message="deny[] must consist of letters, digits, _-./:@ and '*', which is any run of characters"
	Deny []string `json:"deny,omitempty"`

	// readOnly grants only tools that say readOnlyHint.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// denyDestructive grants no tools but those that say destructiveHint false or readOnlyHint true.
	// +optional
	DenyDestructive bool `json:"denyDestructive,omitempty"`

	// rename gives tools other names: the server's own name, and the whole name that the agent sees, to which prefix is not added.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && size(k) <= 128 && !k.contains('*') && k.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]+$') && !k.matches('[\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]'))",message="the keys of rename must be names of tools: 1 to 128 characters, none of them invisible, no '*'"
	// +kubebuilder:validation:XValidation:rule="[self.map(k, self[k])].all(names, names.all(a, names.exists_one(b, a == b)))",message="rename must not give two tools one name"
	Rename map[string]ToolName `json:"rename,omitempty"`
}

// ToolName is the name of an MCP tool.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.-]+$')",message="the name of a tool must consist of letters, digits, '_', '-' and '.'"
type ToolName string

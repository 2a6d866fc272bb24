package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Scaling scales a workload by its CPU.
//
// +kubebuilder:validation:XValidation:rule="self.maxReplicas >= (has(self.minReplicas) ? self.minReplicas : 2)",message="scaling.maxReplicas must not be less than minReplicas (default 2)"
type Scaling struct {
	// minReplicas is how many pods there are at least.
	// +optional
	// +default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// maxReplicas is how many pods there are at most.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// targetCPUUtilizationPercentage is how much of their requested CPU the pods should use on average.
	// +optional
	// +default=70
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	TargetCPUUtilizationPercentage int32 `json:"targetCPUUtilizationPercentage,omitempty"`
}

// AgentRuntime is the agent's own workload. It finds the address of its endpoint in MCP_SERVER_URL and, if auth.type is Tokens, the file
// with its token, which is replaced every few minutes, in MCP_TOKEN_FILE.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || [has(self.imagePullPolicy), has(self.imagePullSecrets), has(self.command), has(self.args), has(self.env), has(self.resources), has(self.podSecurity)].all(given, !given)",message="runtime.image is required when anything else of runtime is given"
type AgentRuntime struct {
	// image is the container image of the agent. Default: there is no such workload; what it needs is run elsewhere.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,5})?/)?[a-z0-9]+(([.]|__?|-+)[a-z0-9]+)*(/[a-z0-9]+(([.]|__?|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,128})?$')",message="image must be an image reference such as registry.example.com/team/server:1.2.3 or name@sha256:<digest>, the repository in lower case"
	Image string `json:"image,omitempty"`

	// imagePullPolicy is when the image is pulled: Always, IfNotPresent or Never. Default: IfNotPresent, or Always for
	// the tag "latest" or no tag.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// imagePullSecrets are Secrets of this namespace that hold registry credentials.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []ObjectName `json:"imagePullSecrets,omitempty"`

	// command replaces the image's entry point. It is passed as it is; no shell sees it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command,omitempty"`

	// args are the arguments of the entry point. They are passed as they are; no shell sees them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=4096
	Args []string `json:"args,omitempty"`

	// env are environment variables. valueFrom may refer to keys of ConfigMaps, to fields and to resources, not to Secrets: an agent holds no
	// credential, its gateway does.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="!self.exists(e, has(e.valueFrom) && (has(e.valueFrom.secretKeyRef) || has(e.valueFrom.fileKeyRef)))",message="env[].valueFrom.secretKeyRef and fileKeyRef are not supported: an agent holds no credential, its gateway does"
	// +kubebuilder:validation:XValidation:rule="!self.exists(e, e.name in ['MCP_SERVER_URL', 'MCP_TOKEN_FILE'])",message="env must not set MCP_SERVER_URL and MCP_TOKEN_FILE: the operator sets them"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || has(e.valueFrom.secretKeyRef) || has(e.valueFrom.fileKeyRef) || [has(e.valueFrom.configMapKeyRef), has(e.valueFrom.fieldRef), has(e.valueFrom.resourceFieldRef)].exists_one(given, given))",message="env[].valueFrom must have exactly one of configMapKeyRef, fieldRef and resourceFieldRef"
	// +kubebuilder:validation:XValidation:rule="self.all(e, size(e.name) > 0 && size(e.name) <= 253)",message="env[].name must have 1 to 253 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.value) || size(e.value) <= 32768)",message="env[].value must have at most 32768 characters: Linux starts no process with a longer one"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || !has(e.value) || e.value == '')",message="env[] must not have both value and valueFrom"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || [has(e.valueFrom.secretKeyRef), has(e.valueFrom.configMapKeyRef), has(e.valueFrom.fieldRef), has(e.valueFrom.resourceFieldRef)].exists_one(given, given))",message="env[].valueFrom must have exactly one of secretKeyRef, configMapKeyRef, fieldRef and resourceFieldRef"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || !has(e.valueFrom.configMapKeyRef) || (has(e.valueFrom.configMapKeyRef.name) && e.valueFrom.configMapKeyRef.name != '' && e.valueFrom.configMapKeyRef.key != ''))",message="env[].valueFrom.configMapKeyRef must have a name and a key"
	Env []corev1.EnvVar `json:"env,omitempty"`

	// resources are what the container may use.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// podSecurity is the security settings of the pods. serviceAccountName and automountServiceAccountToken must not be set: the agent has an
	// account of its own, named after it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountName) && (!has(self.automountServiceAccountToken) || !self.automountServiceAccountToken)",message="podSecurity.serviceAccountName and automountServiceAccountToken must not be set: the agent has an account of its own, without rights, named after it"
	PodSecurity *PodSecurity `json:"podSecurity,omitempty"`
}

// AgentGateway is the endpoint of an agent.
type AgentGateway struct {
	// replicas is how many pods serve the endpoint. Not together with scaling, unless runtime has an image. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas int32 `json:"replicas,omitempty"`

	// resources are what a pod of the gateway may use. Default: 50m CPU and 64Mi memory requested, 1 CPU and 256Mi at most.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// imagePullSecrets are Secrets of this namespace that hold credentials for the registry of the gateway's image.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []ObjectName `json:"imagePullSecrets,omitempty"`

	// tls serves the endpoint by HTTPS.
	// +optional
	TLS *GatewayTLS `json:"tls,omitempty"`

	// publicURL is the address that clients outside the cluster use, through an Ingress or HTTPRoute of yours, such as
	// https://mcp.example.com/team. Tokens may be made out to it, and requests for its host are served.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(http|https)://[^/?#@]+(/[^?#]*)?$')",message="publicURL must be a URL such as https://mcp.example.com/team, beginning with http:// or https://: no user, password, query or fragment"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+://([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*[.]?|[[][0-9A-Fa-f.]*:[0-9A-Fa-f:.]+[]])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?([/?]|$)') && size(self.find('://[^/?:]+')) <= 256 && (!self.matches('^[a-z]+://([^/?:]*[.])?([0-9]+|0[xX][0-9A-Fa-f]*)[.]?(:|/|[?]|$)') || isIP(self.find('://[^/?:]+').substring(3))) && (!self.contains('://[') || isIP(self.find('://[[][^]]*').substring(4)))",message="publicURL must have a host name or an IP address (a.b.c.d or [a:b::c]), and a port from 1 to 65535 if any"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+://[^/]*(/([A-Za-z0-9._~!$&()*+,;=:@/\\x27-]|%[0-9A-Fa-f]{2})*)?$') && !self.matches('%(2[eEfF5]|5[cC]|7[fF]|[01][0-9A-Fa-f])') && !self.matches('^[a-z]+://[^/]*(/.*)?(//|/[.]{1,2}(/|$))')",message="the path of publicURL must consist of letters, digits, -._~!$&'()*+,;=:@/ and percent escapes, without '//', without '.' or '..' as a part, and without escapes of '.', '/', '%', backslash and control characters"
	PublicURL string `json:"publicURL,omitempty"`

	// allowedHosts are the hosts, without port, that requests may be for beside that of publicURL, the names of the Service and localhost: further
	// names that an Ingress, HTTPRoute or Service of yours has, such as mcp.example.com, or *.example.com for all names under it. Others are refused.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(h, isIP(h) || (h.matches('^([*][.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?[.])?[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*$') && !h.matches('(^|[.])([0-9]+|0[xX][0-9A-Fa-f]*)$')))",message="allowedHosts[] must be a host name or an IP address (a.b.c.d or a:b::c), without port, or '*.' and a name of two parts or more such as *.example.com"
	AllowedHosts []string `json:"allowedHosts,omitempty"`

	// allowedOrigins are the Origin headers of browsers' requests that are served, beside that of publicURL, such as https://app.example.com.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=5
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.all(o, o.matches('^[a-z][a-z0-9+.-]{0,31}://([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*[.]?|[[][0-9A-Fa-f.]*:[0-9A-Fa-f:.]+[]])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$') && o.lowerAscii() == o && !o.matches('^(http://.*:80|https://.*:443)$'))",message="allowedOrigins[] must be an origin as browsers write it, such as https://app.example.com: a scheme, a host in lower case and a port if it is not the scheme's own; no path, no wildcard"
	// +kubebuilder:validation:XValidation:rule="self.all(o, (!o.matches('://([^:]*[.])?([0-9]+|0x[0-9a-f]*)[.]?(:|$)') || isIP(o.find('://[^:]+').substring(3))) && (!o.contains('://[') || isIP(o.find('://[[][^]]*').substring(4))))",message="allowedOrigins[] must have a host name or an IP address (a.b.c.d or [a:b::c])"
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`

	// lenientHeaders serves requests of protocol version 2026-07-28 whose headers do not repeat what is in their body, as they must, for clients
	// that get it wrong. The body decides in any case. Default: false, which refuses them.
	// +optional
	LenientHeaders bool `json:"lenientHeaders,omitempty"`

	// instructions are told to clients, for their models. Default: the server's own, if there is one server and no tool.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 16384 && self.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} \\t\\n]+$') && !self.matches('[\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="instructions must have at most 16384 bytes, and no invisible characters but spaces, tabs and line feeds"
	Instructions string `json:"instructions,omitempty"`
}

// GatewayTLS is the certificate of an endpoint.
type GatewayTLS struct {
	// secretName is a Secret of this namespace with tls.crt and tls.key, as cert-manager makes it. It is read again when it changes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="secretName must be the name of a Secret in the same namespace"
	SecretName string `json:"secretName,omitempty"`
}

// AgentNetwork is who may connect to the endpoint, and what the agent's workload may connect to.
//
// +kubebuilder:validation:XValidation:rule="!has(self.egressPorts) || size(self.egressPorts) == 0 || (has(self.egressTo) && size(self.egressTo) > 0)",message="egressPorts needs egressTo: it says at which ports"
type AgentNetwork struct {
	// ingress is who may connect to the endpoint beside the agent's own workload. Namespace: pods of its own namespace, and ingressFrom.
	// Listed: ingressFrom alone.
	// +optional
	// +default="Namespace"
	// +kubebuilder:validation:Enum=Namespace;Listed
	Ingress IngressMode `json:"ingress,omitempty"`

	// ingressFrom are further callers, such as an ingress controller.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(p, has(p.ipBlock) != (has(p.podSelector) || has(p.namespaceSelector)))",message="ingressFrom[] must have either ipBlock, or podSelector and/or namespaceSelector"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.ipBlock) || isCIDR(p.ipBlock.cidr))",message="ingressFrom[].ipBlock.cidr must be a CIDR such as 10.0.0.0/8"
	IngressFrom []networkingv1.NetworkPolicyPeer `json:"ingressFrom,omitempty"`

	// egressTo is where the agent's workload may connect to beside its endpoint. Default: nowhere, not even to DNS.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(p, has(p.ipBlock) != (has(p.podSelector) || has(p.namespaceSelector)))",message="egressTo[] must have either ipBlock, or podSelector and/or namespaceSelector"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.ipBlock) || isCIDR(p.ipBlock.cidr))",message="egressTo[].ipBlock.cidr must be a CIDR such as 10.0.0.0/8"
	EgressTo []networkingv1.NetworkPolicyPeer `json:"egressTo,omitempty"`

	// egressPorts are the ports that egressTo is about. Default: all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	EgressPorts []NetworkPort `json:"egressPorts,omitempty"`
}

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPServer runs an MCP server: a Deployment, a Service, a NetworkPolicy and, for inline configuration, a ConfigMap.
// It becomes Ready only when the server answered a real MCP handshake.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:categories=mcp-operator
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 54",message="metadata.name must have at most 54 characters: the names of the Service and the other children are derived from it and must fit into 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and consist of lower-case letters, digits and '-': it becomes the name of a Service (DNS-1035 label)"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('-(svc|config|gateway|pods|session)$')",message="metadata.name must not end in -svc, -config, -gateway, -pods or -session: children of other objects have such names"
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
type MCPServer struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked for.
	// +required
	Spec MCPServerSpec `json:"spec,omitzero"`

	// status is what was observed. Before anything was, its observedGeneration is -1: tools that wait for an object by it, such as those that
	// follow kstatus, then wait.
	// +optional
	// +default={"observedGeneration":-1}
	Status MCPServerStatus `json:"status,omitzero"`
}

// MCPServerList is a list of MCPServers.
//
// +kubebuilder:object:root=true
type MCPServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []MCPServer `json:"items"`
}

// MCPServerSpec is what is asked of an MCPServer.
//
// +kubebuilder:validation:XValidation:rule="!has(self.config) || !has(self.env) || !self.env.exists(e, e.name == 'MCP_CONFIG')",message="env must not set MCP_CONFIG when config is given: it is set to the folder that config is mounted at"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRefs) || !has(self.config) || !self.secretRefs.exists(s, (has(s.mountPath) ? s.mountPath : '/etc/mcp/secrets/' + s.name) == (has(self.config.mountPath) ? self.config.mountPath : '/etc/mcp/config'))",message="secretRefs[].mountPath must differ from config.mountPath (by default /etc/mcp/config)"
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || !has(self.config) || [has(self.config.mountPath) ? self.config.mountPath : '/etc/mcp/config'].all(c, self.storage.all(m, !(m.mountPath + '/').startsWith(c + '/') && ((has(m.access) ? m.access == 'ReadWrite' : has(m.emptyDir)) || !c.startsWith(m.mountPath + '/'))))",message="storage[].mountPath must not be, or lie in, config.mountPath (by default /etc/mcp/config), nor hold it unless the storage is writable"
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || !has(self.secretRefs) || self.secretRefs.all(s, [has(s.mountPath) ? s.mountPath : '/etc/mcp/secrets/' + s.name].all(p, self.storage.all(m, !(m.mountPath + '/').startsWith(p + '/') && ((has(m.access) ? m.access == 'ReadWrite' : has(m.emptyDir)) || !p.startsWith(m.mountPath + '/')))))",message="storage[].mountPath must not be, or lie in, secretRefs[].mountPath, nor hold one unless the storage is writable"
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || self.transport != 'Stdio' || (has(self.command) && size(self.command) > 0 && size(self.command[0]) > 0)",message="command is required when transport is Stdio: it is run as a child process, and the image's entry point is not used"
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || self.transport != 'Stdio' || !has(self.port) || self.port != 8088",message="port must not be 8088 when transport is Stdio: there the bridge answers health checks"
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || self.transport != 'Stdio' || !has(self.path) || (self.path.matches('^/([A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*)?$') && !self.path.matches('^/[.]well-known(/|$)'))",message="path of transport Stdio must consist of letters, digits and ._~-/, without '/' at the end, and not be under /.well-known: the bridge serves it"
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || self.transport != 'Stdio' || (!has(self.hostHeader) && !has(self.tls))",message="hostHeader and tls must not be set when transport is Stdio: the bridge takes the Service's name, and speaks plain HTTP inside the cluster"
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || self.transport != 'Stdio' || !has(self.probes) || ((!has(self.probes.startup) || !has(self.probes.startup.path)) && (!has(self.probes.readiness) || !has(self.probes.readiness.path)) && (!has(self.probes.liveness) || !has(self.probes.liveness.path)))",message="probes[].path must not be set when transport is Stdio: the bridge has health checks of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || self.transport != 'SSE' || !has(self.probes) || [has(self.path) ? self.path : '/sse'].all(p, (!has(self.probes.startup) || !has(self.probes.startup.path) || (self.probes.startup.path != p && !self.probes.startup.path.startsWith(p + '?'))) && (!has(self.probes.readiness) || !has(self.probes.readiness.path) || (self.probes.readiness.path != p && !self.probes.readiness.path.startsWith(p + '?'))) && (!has(self.probes.liveness) || !has(self.probes.liveness.path) || (self.probes.liveness.path != p && !self.probes.liveness.path.startsWith(p + '?'))))",message="probes[].path must not be that of the event stream when transport is SSE: the stream does not end, so such a probe would always fail"
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || self.transport != 'SSE' || !has(self.sessions) || self.sessions != 'Stateless'",message="sessions must not be Stateless when transport is SSE: what a client posts must reach the pod that holds its event stream"
type MCPServerSpec struct {
	// image is the container image of the server, with a tag or digest, for example
	// "registry.example.com/team/server:1.2.3".
	// +required
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

	// transport is how the server speaks MCP. StreamableHTTP: over HTTP, at port and path. SSE: over HTTP with an event
	// stream, as MCP 2024-11-05 says. Stdio: over its standard input and output; a bridge runs command and serves
	// StreamableHTTP at port and path.
	// +optional
	// +default="StreamableHTTP"
	// +kubebuilder:validation:Enum=StreamableHTTP;SSE;Stdio
	Transport Transport `json:"transport,omitempty"`

	// port is the TCP port that the container listens on, and the port of the Service. Stdio: where the bridge listens.
	// +optional
	// +default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// path is the HTTP path of the MCP endpoint, of an SSE server that of its event stream. Default: /mcp, for SSE /sse.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[A-Za-z0-9._~!$&()*+,;=:@/-]*$')",message="path must start with '/' and consist of letters, digits and ._~!$&()*+,;=:@/-: no query, fragment, space or percent sign"
	// +kubebuilder:validation:XValidation:rule="!self.contains('//') && !self.matches('/[.]{1,2}(/|$)')",message="path must not hold '//', '/./' or '/../': servers redirect from such paths, and redirects are not followed"
	Path string `json:"path,omitempty"`

	// hostHeader is the Host header that callers must send, for servers that refuse the Service's name (DNS rebinding
	// guards), for example "localhost:8080". Default: the Service's name and port.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*|[[][0-9A-Fa-f:.]+[]])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$')",message="hostHeader must be a host name or address, optionally with a port, for example localhost:8080"
	HostHeader string `json:"hostHeader,omitempty"`

	// replicas is how many pods to run; 0 stops the server. It is also the scale subresource: kubectl scale and
	// autoscalers write it.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// sessions says whether requests of one client must reach one pod. Stateful and Auto: the Service keeps a client's
	// address on one pod for three hours. Stateless: it does not. What the server really does is told in status.sessions.
	// +optional
	// +default="Auto"
	// +kubebuilder:validation:Enum=Auto;Stateful;Stateless
	Sessions SessionMode `json:"sessions,omitempty"`

	// command replaces the image's entry point. It is passed as it is; no shell sees it. Required for Stdio.
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

	// env are environment variables of the container; valueFrom may refer to ConfigMaps and Secrets of this namespace.
	// A change of a referred object rolls the pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="!self.exists(e, has(e.valueFrom) && has(e.valueFrom.fileKeyRef))",message="env[].valueFrom.fileKeyRef is not supported: use secretKeyRef or configMapKeyRef"
	// +kubebuilder:validation:XValidation:rule="self.all(e, size(e.name) > 0 && size(e.name) <= 253)",message="env[].name must have 1 to 253 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.value) || size(e.value) <= 32768)",message="env[].value must have at most 32768 characters: Linux starts no process with a longer one"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || !has(e.value) || e.value == '')",message="env[] must not have both value and valueFrom"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || [has(e.valueFrom.secretKeyRef), has(e.valueFrom.configMapKeyRef), has(e.valueFrom.fieldRef), has(e.valueFrom.resourceFieldRef)].exists_one(given, given))",message="env[].valueFrom must have exactly one of secretKeyRef, configMapKeyRef, fieldRef and resourceFieldRef"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || !has(e.valueFrom.secretKeyRef) || (has(e.valueFrom.secretKeyRef.name) && e.valueFrom.secretKeyRef.name != '' && e.valueFrom.secretKeyRef.key != ''))",message="env[].valueFrom.secretKeyRef must have a name and a key"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || !has(e.valueFrom.configMapKeyRef) || (has(e.valueFrom.configMapKeyRef.name) && e.valueFrom.configMapKeyRef.name != '' && e.valueFrom.configMapKeyRef.key != ''))",message="env[].valueFrom.configMapKeyRef must have a name and a key"
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom adds all keys of ConfigMaps and Secrets of this namespace as environment variables. A change of a referred
	// object rolls the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(e, has(e.configMapRef) != has(e.secretRef))",message="envFrom[] must have exactly one of configMapRef and secretRef"
	// +kubebuilder:validation:XValidation:rule="self.all(e, (!has(e.configMapRef) || (has(e.configMapRef.name) && e.configMapRef.name != '')) && (!has(e.secretRef) || (has(e.secretRef.name) && e.secretRef.name != '')))",message="envFrom[] must name the ConfigMap or Secret"
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// config is a configuration that is mounted into the container as files.
	// +optional
	Config *ServerConfig `json:"config,omitempty"`

	// secretRefs are Secrets of this namespace, each mounted read-only as a folder of files. A change of one rolls the pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, (has(a.mountPath) ? a.mountPath : '/etc/mcp/secrets/' + a.name) == (has(b.mountPath) ? b.mountPath : '/etc/mcp/secrets/' + b.name)))",message="secretRefs[].mountPath must be different for each Secret"
	SecretRefs []SecretMount `json:"secretRefs,omitempty"`

	// storage are further volumes: empty folders, ConfigMaps, Secrets and PersistentVolumeClaims.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, (has(a.access) ? a.access == 'ReadWrite' : has(a.emptyDir)) || !self.exists(b, b.mountPath.startsWith(a.mountPath + '/')))",message="storage[].mountPath must not lie in a folder of other storage that is read-only: it could not be mounted there"
	Storage []StorageMount `json:"storage,omitempty"`

	// tls says that the server speaks HTTPS itself, and how its certificate is verified. Default: plain HTTP inside the cluster.
	// +optional
	TLS *ServerTLS `json:"tls,omitempty"`

	// podSecurity relaxes or tightens the security settings of the pods. By default they meet the Pod Security standard
	// "restricted": not root, read-only root file system, no capabilities, no service-account token.
	// +optional
	PodSecurity *PodSecurity `json:"podSecurity,omitempty"`

	// resources are the compute resources of the container. Default: requests 50m CPU and 64Mi memory, limits 500m and
	// 256Mi. What is given is used as it is and not merged with the default.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// probes are health checks by the kubelet. By default readiness is a TCP connection to port, and there is no liveness
	// or startup probe. Whether the server speaks MCP is checked by the operator in any case.
	// +optional
	Probes *Probes `json:"probes,omitempty"`

	// labels are added to every child object and to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['app', 'mcp-server', 'pod-template-hash', 'app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']) && !k.startsWith('mcp.operator/'))",message="labels must not set app, mcp-server, pod-template-hash, app.kubernetes.io/name, instance or managed-by, or keys under mcp.operator/: the operator sets them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k).hasValue())",message="labels keys must be qualified names such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="labels values must be label values: at most 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are added to every child object and to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('mcp.operator/') && !k.startsWith('deployment.kubernetes.io/') && !k.startsWith('kubectl.kubernetes.io/'))",message="annotations must not set keys under mcp.operator/, deployment.kubernetes.io/ or kubectl.kubernetes.io/: others write them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k.lowerAscii()).hasValue())",message="annotations keys must be qualified names such as example.com/team"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`

	// podLabels are added to the pods alone; of one key, this value counts there.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['app', 'mcp-server', 'pod-template-hash', 'app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']) && !k.startsWith('mcp.operator/'))",message="podLabels must not set app, mcp-server, pod-template-hash, app.kubernetes.io/name, instance or managed-by, or keys under mcp.operator/: the operator sets them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k).hasValue())",message="podLabels keys must be qualified names such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="podLabels values must be label values: at most 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit"
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// podAnnotations are added to the pods alone; of one key, this value counts there.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('mcp.operator/'))",message="podAnnotations must not set keys under mcp.operator/: the operator sets them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k.lowerAscii()).hasValue())",message="podAnnotations keys must be qualified names such as example.com/team"
	PodAnnotations map[string]AnnotationValue `json:"podAnnotations,omitempty"`

	// scheduling chooses the nodes that the pods may run on.
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`

	// terminationGracePeriodSeconds is how long a pod may take to end its work, in seconds. Default: 30. Of that, a pod of a server over
	// HTTP goes on serving for half, but at most 15 s, before its process is told to end (SIGTERM): time for clients to leave it. That
	// does not hold for the updateStrategy Recreate, where nobody else could serve them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// updateStrategy is how pods are replaced after a change. Default: RollingUpdate with maxSurge 1 and maxUnavailable 0,
	// so that clients always find a ready pod.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// network is who may call the server, and what the server may call. It is enforced by a NetworkPolicy.
	// +optional
	Network *Network `json:"network,omitempty"`
}

// Transport is how a server speaks MCP.
type Transport string

// The transports.
const (
	// TransportStreamableHTTP is MCP over HTTP with one endpoint (MCP 2025-03-26 and newer).
	TransportStreamableHTTP Transport = "StreamableHTTP"
	// TransportSSE is MCP over HTTP with an event stream and an endpoint to post to (MCP 2024-11-05).
	TransportSSE Transport = "SSE"
	// TransportStdio is MCP over standard input and output.
	TransportStdio Transport = "Stdio"
)

// SessionMode says whether requests of one client must reach one pod.
type SessionMode string

// The session modes.
const (
	SessionsAuto      SessionMode = "Auto"
	SessionsStateful  SessionMode = "Stateful"
	SessionsStateless SessionMode = "Stateless"
)

// LabelValue is a label value (at most 63 characters).
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// AnnotationValue is an annotation value (at most 4096 characters).
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// ObjectName names an object in the same namespace.
type ObjectName struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be the name of an object in the same namespace: lower-case letters, digits, '-' and '.'"
	Name string `json:"name,omitempty"`
}

// ServerConfig is a configuration that is mounted as files. The environment variable MCP_CONFIG names the folder.
// It is replaced as a whole by server-side apply.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="has(dyn(self).inline) != has(self.configMapRef)",message="config must have exactly one of inline and configMapRef"
type ServerConfig struct {
	// inline is any JSON. It becomes the file config.json, through the ConfigMap <name>-config.
	// +optional
	Inline *apiextensionsv1.JSON `json:"inline,omitempty"`

	// configMapRef is a ConfigMap of this namespace; each key becomes a file. A change of it rolls the pods.
	// +optional
	ConfigMapRef *ObjectName `json:"configMapRef,omitempty"`

	// mountPath is the folder that the configuration is mounted at. Default: /etc/mcp/config.
	// +optional
	MountPath MountPath `json:"mountPath,omitempty"`
}

// MountPath is an absolute path in the container.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^(/[A-Za-z0-9._@+-]+)+$') && !self.matches('/[.]{1,2}(/|$)')",message="mountPath must be an absolute path of letters, digits and ._@+-, without '.' and '..' as a part and without a trailing '/'"
// +kubebuilder:validation:XValidation:rule="!(self in ['/bin', '/etc', '/lib', '/lib64', '/run', '/sbin', '/tmp', '/usr', '/var', '/var/run']) && !self.matches('^/(dev|mcp-bridge|proc|sys|(var/)?run/secrets/kubernetes[.]io)(/|$)')",message="mountPath must not hide a folder of the system: it must not be /bin, /etc, /lib, /lib64, /run, /sbin, /tmp, /usr, /var or /var/run, nor lie in /dev, /mcp-bridge, /proc, /sys or /run/secrets/kubernetes.io"
type MountPath string

// SecretMount is a Secret that is mounted as a folder of files.
type SecretMount struct {
	ObjectName `json:",inline"`

	// mountPath is the folder that the Secret is mounted at. Default: /etc/mcp/secrets/<name>.
	// +optional
	MountPath MountPath `json:"mountPath,omitempty"`

	// optional says that pods may start while the Secret does not exist. Default: false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

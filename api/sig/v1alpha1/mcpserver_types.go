package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPServer runs an MCP server: a Deployment, a Service and a NetworkPolicy, each of its own name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.source.containerImage.ref`
// +kubebuilder:printcolumn:name="Port",type=integer,JSONPath=`.spec.config.port`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MCPServer struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked of the server.
	// +required
	Spec MCPServerSpec `json:"spec,omitzero"`

	// status is what was observed of the server.
	// +optional
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
type MCPServerSpec struct {
	// source is where the server comes from.
	// +required
	Source Source `json:"source,omitzero"`

	// config is how the server is started and reached.
	// +required
	Config Config `json:"config,omitzero"`

	// runtime is how the server's pods are run.
	// +optional
	Runtime *Runtime `json:"runtime,omitempty"`

	// mcp is how the server speaks MCP.
	// +optional
	MCP *MCP `json:"mcp,omitempty"`

	// extraLabels are added to the Deployment, its pods, the Service and the NetworkPolicy. The keys app and mcp-server, and
	// those of mcp.operator, are left out.
	// +optional
	ExtraLabels map[string]string `json:"extraLabels,omitempty"`

	// extraAnnotations are added to the Deployment, its pods, the Service and the NetworkPolicy. Keys of mcp.x-k8s.io and of
	// mcp.operator are left out.
	// +optional
	ExtraAnnotations map[string]string `json:"extraAnnotations,omitempty"`

	// network is who may call the server, and what the server may call.
	// +optional
	Network *Network `json:"network,omitempty"`

	// transport is how the operator connects to the server.
	// +optional
	Transport *Transport `json:"transport,omitempty"`
}

// SourceType is a kind of source.
type SourceType string

// SourceContainerImage is a container image.
const SourceContainerImage SourceType = "ContainerImage"

// Source is where a server comes from.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'ContainerImage' ? has(self.containerImage) : !has(self.containerImage)",message="containerImage must be set when type is ContainerImage, and must not be set otherwise"
type Source struct {
	// type is the kind of source: ContainerImage.
	// +required
	// +kubebuilder:validation:Enum=ContainerImage
	Type SourceType `json:"type,omitempty"`

	// containerImage is the image, when type is ContainerImage.
	// +optional
	ContainerImage *ContainerImage `json:"containerImage,omitempty"`
}

// ContainerImage is a container image.
type ContainerImage struct {
	// ref is the image with its registry and a tag or a digest, for example registry.example.com/team/server:1.2.3.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:[0-9]+)?\\\\b')",message="must start with a valid domain: labels of letters, digits and '-', separated by '.', and optionally a port"
	// +kubebuilder:validation:XValidation:rule="self.find('/[a-z0-9]+((([._]|__|-*)[a-z0-9]+)+)?((/[a-z0-9]+((([._]|__|-*)[a-z0-9]+)+)?)+)?') != ''",message="a valid name is required: after the first '/', lower-case letters and digits, separated by '.', '_', '__' or '-'"
	// +kubebuilder:validation:XValidation:rule="self.find('(@.*:)') != '' || self.find(':.*$') != ''",message="must end with a digest or a tag"
	// +kubebuilder:validation:XValidation:rule="self.find('(@.*:)') != '' || self.find(':.*$') == '' || self.find(':.*$').substring(1).size() <= 127",message="tag is invalid: it must not have more than 127 characters"
	// +kubebuilder:validation:XValidation:rule="self.find('(@.*:)') != '' || self.find(':.*$') == '' || self.find(':.*$').matches(':[\\\\w][\\\\w.-]*$')",message="tag is invalid: it must begin with a letter, a digit or '_', followed by these, '.' and '-'"
	// +kubebuilder:validation:XValidation:rule="self.find('(@.*:)') == '' || self.find('(@.*:)').matches('(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*[:])')",message="digest algorithm is not valid: it must begin with a letter and consist of letters and digits, separated by '-', '_', '+' or '.'"
	// +kubebuilder:validation:XValidation:rule="self.find('(@.*:)') == '' || self.find(':.*$').substring(1).size() >= 32",message="digest is not valid: the encoded string must have at least 32 characters"
	// +kubebuilder:validation:XValidation:rule="self.find('(@.*:)') == '' || self.find(':.*$').matches(':[0-9A-Fa-f]*$')",message="digest is not valid: the encoded string must consist of hexadecimal digits"
	Ref string `json:"ref,omitempty"`
}

// Config is how a server is started and reached.
type Config struct {
	// port is the TCP port that the server listens on, and the port of the Service.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// path is the HTTP path of the MCP endpoint.
	// +optional
	// +default="/mcp"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains(' ') && !self.contains('?') && !self.contains('#') && !self.contains('\\n') && !self.contains('\\r') && !self.contains('\\t')",message="path must start with '/' and must not contain spaces, tabs, line breaks, '?' or '#'"
	Path string `json:"path,omitempty"`

	// arguments are the arguments of the image's entry point.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(argument, size(argument) > 0)",message="arguments must not contain empty strings"
	Arguments []string `json:"arguments,omitempty"`

	// env are environment variables of the container.
	// +optional
	// +listType=atomic
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom adds all keys of ConfigMaps and Secrets as environment variables.
	// +optional
	// +listType=atomic
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// storage are volumes of the container.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Storage []StorageMount `json:"storage,omitempty"`
}

// Permissions is how a volume is mounted.
type Permissions string

// The ways to mount a volume.
const (
	PermissionsReadOnly          Permissions = "ReadOnly"
	PermissionsReadWrite         Permissions = "ReadWrite"
	PermissionsRecursiveReadOnly Permissions = "RecursiveReadOnly"
)

// StorageMount is a volume of the container.
type StorageMount struct {
	// path is where the volume is mounted.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="path must be an absolute path"
	// +kubebuilder:validation:XValidation:rule="!self.contains(':')",message="path must not contain ':'"
	Path string `json:"path,omitempty"`

	// permissions is ReadOnly, ReadWrite or RecursiveReadOnly.
	// +optional
	// +default="ReadOnly"
	// +kubebuilder:validation:Enum=ReadOnly;ReadWrite;RecursiveReadOnly
	Permissions Permissions `json:"permissions,omitempty"`

	// source is what is mounted.
	// +required
	Source StorageSource `json:"source,omitzero"`
}

// StorageType is a kind of volume.
type StorageType string

// The kinds of volumes.
const (
	StorageConfigMap StorageType = "ConfigMap"
	StorageSecret    StorageType = "Secret"
	StorageEmptyDir  StorageType = "EmptyDir"
)

// StorageSource is what is mounted.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'ConfigMap' ? has(self.configMap) : !has(self.configMap)",message="configMap must be set when type is ConfigMap, and must not be set otherwise"
// +kubebuilder:validation:XValidation:rule="self.type == 'Secret' ? has(self.secret) : !has(self.secret)",message="secret must be set when type is Secret, and must not be set otherwise"
// +kubebuilder:validation:XValidation:rule="self.type == 'EmptyDir' ? has(self.emptyDir) : !has(self.emptyDir)",message="emptyDir must be set when type is EmptyDir, and must not be set otherwise"
type StorageSource struct {
	// type is ConfigMap, Secret or EmptyDir.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret;EmptyDir
	Type StorageType `json:"type,omitempty"`

	// configMap is a ConfigMap, when type is ConfigMap.
	// +optional
	ConfigMap *corev1.ConfigMapVolumeSource `json:"configMap,omitempty"`

	// secret is a Secret, when type is Secret.
	// +optional
	Secret *corev1.SecretVolumeSource `json:"secret,omitempty"`

	// emptyDir is an empty folder, when type is EmptyDir.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`
}

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// StorageMount is a volume in the container: exactly one of emptyDir, configMap, secret and persistentVolumeClaim.
//
// +kubebuilder:validation:XValidation:rule="[has(self.emptyDir), has(self.configMap), has(self.secret), has(self.persistentVolumeClaim)].exists_one(given, given)",message="storage[] must have exactly one of emptyDir, configMap, secret and persistentVolumeClaim"
// +kubebuilder:validation:XValidation:rule="!has(self.access) || self.access != 'ReadWrite' || (!has(self.configMap) && !has(self.secret))",message="access must not be ReadWrite for a configMap or secret: Kubernetes mounts them read-only in any case"
type StorageMount struct {
	// mountPath is the folder in the container, different for each entry.
	// +required
	MountPath MountPath `json:"mountPath,omitempty"`

	// access is ReadOnly, ReadWrite, or RecursiveReadOnly, which makes what is mounted below read-only too and needs a
	// node that can do it. Default: ReadWrite for emptyDir, else ReadOnly.
	// +optional
	// +kubebuilder:validation:Enum=ReadOnly;ReadWrite;RecursiveReadOnly
	Access StorageAccess `json:"access,omitempty"`

	// emptyDir is a folder that lives as long as the pod.
	// +optional
	EmptyDir *EmptyDirStorage `json:"emptyDir,omitempty"`

	// configMap is a ConfigMap of this namespace; each key becomes a file. A change of it rolls the pods.
	// +optional
	ConfigMap *ObjectStorage `json:"configMap,omitempty"`

	// secret is a Secret of this namespace; each key becomes a file. A change of it rolls the pods.
	// +optional
	Secret *ObjectStorage `json:"secret,omitempty"`

	// persistentVolumeClaim is a PersistentVolumeClaim of this namespace.
	// +optional
	PersistentVolumeClaim *ClaimStorage `json:"persistentVolumeClaim,omitempty"`
}

// StorageAccess is what a container may do with a volume.
type StorageAccess string

// The ways to access storage.
const (
	AccessReadOnly          StorageAccess = "ReadOnly"
	AccessReadWrite         StorageAccess = "ReadWrite"
	AccessRecursiveReadOnly StorageAccess = "RecursiveReadOnly"
)

// EmptyDirStorage is a folder that is empty when a pod starts and gone when it ends.
type EmptyDirStorage struct {
	// medium is Memory for a file system in memory, which counts against the container's memory limit. Default: the node's disk.
	// +optional
	// +kubebuilder:validation:Enum=Memory
	Medium corev1.StorageMedium `json:"medium,omitempty"`

	// sizeLimit is how much may be in it, for example 100Mi; a pod that exceeds it on disk is evicted. Default: no limit
	// of its own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,15}([KMGT]i|[kMGT])?$')",message="sizeLimit must be a whole number of bytes above 0, such as 100Mi"
	SizeLimit string `json:"sizeLimit,omitempty"`
}

// ObjectStorage is the content of a ConfigMap or a Secret as files.
type ObjectStorage struct {
	ObjectName `json:",inline"`

	// items are the keys to mount, and where. Default: every key, as a file of its name.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	Items []KeyFile `json:"items,omitempty"`

	// optional says that pods may start while the object, or a key of items, does not exist. Default: false.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// defaultMode is the permission bits of the files, 0 to 511 (octal 0777). Default: 420 (octal 0644).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// KeyFile is one key of a ConfigMap or a Secret as a file.
type KeyFile struct {
	// key of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && !self.startsWith('..') && self != '.'",message="key must be a key of a ConfigMap or Secret: letters, digits, '-', '_' and '.'"
	Key string `json:"key,omitempty"`

	// path of the file below mountPath, different for each item.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._@+-]+(/[A-Za-z0-9._@+-]+)*$') && !self.startsWith('..') && !self.matches('(^|/)[.]{1,2}(/|$)')",message="path must be a relative path of letters, digits and ._@+-, without '.' and '..' as a part and without '..' at its begin"
	Path string `json:"path,omitempty"`

	// mode is the permission bits of the file, 0 to 511 (octal 0777). Default: defaultMode.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	Mode *int32 `json:"mode,omitempty"`
}

// ClaimStorage is a PersistentVolumeClaim of the same namespace.
type ClaimStorage struct {
	// claimName is the name of the PersistentVolumeClaim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="claimName must be the name of a PersistentVolumeClaim in the same namespace"
	ClaimName string `json:"claimName,omitempty"`
}

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// PodSecurity is the security settings of the pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.runAsUser) || self.runAsUser != 0 || (has(self.runAsNonRoot) && !self.runAsNonRoot)",message="runAsUser 0 is root and requires runAsNonRoot: false"
type PodSecurity struct {
	// serviceAccountName is the ServiceAccount of the pods, for example for a cloud identity. Default: the namespace's default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="serviceAccountName must be the name of a ServiceAccount in the same namespace"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// automountServiceAccountToken mounts a token of that ServiceAccount for the Kubernetes API. Default: false.
	// +optional
	AutomountServiceAccountToken bool `json:"automountServiceAccountToken,omitempty"`

	// runAsNonRoot refuses to start as root. Default: true.
	// +optional
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty"`

	// runAsUser is the numeric user. Default: the image's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the numeric primary group. Default: the image's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// fsGroup is the numeric group that owns the mounted volumes. Default: none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	FSGroup *int64 `json:"fsGroup,omitempty"`

	// readOnlyRootFilesystem makes the image's file system read-only; /tmp stays writable, and HOME points to it.
	// Default: true.
	// +optional
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty"`

	// seccompProfile is the filter of system calls. Default: RuntimeDefault.
	// +optional
	SeccompProfile *SeccompProfile `json:"seccompProfile,omitempty"`
}

// SeccompProfile is a filter of system calls.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Localhost') == has(self.localhostProfile)",message="localhostProfile must be set if, and only if, type is Localhost"
type SeccompProfile struct {
	// type is RuntimeDefault, or Localhost for a profile on the node.
	// +required
	// +kubebuilder:validation:Enum=RuntimeDefault;Localhost
	Type corev1.SeccompProfileType `json:"type,omitempty"`

	// localhostProfile is the profile's path below the kubelet's seccomp folder.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$')",message="localhostProfile must be a relative path without '..'"
	LocalhostProfile string `json:"localhostProfile,omitempty"`
}

// Resources are the compute resources of a container.
//
// +kubebuilder:validation:XValidation:rule="['cpu', 'memory', 'ephemeral-storage'].all(k, !has(self.requests) || !has(self.limits) || !(k in self.requests) || !(k in self.limits) || quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)",message="requests must not exceed limits"
type Resources struct {
	// requests is what the scheduler reserves.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || k.startsWith('hugepages-') || k.contains('/'))",message="requests must be of cpu, memory, ephemeral-storage, hugepages-<size> or an extended resource such as example.com/gpu"
	// +kubebuilder:validation:XValidation:rule="['cpu', 'memory', 'ephemeral-storage'].all(k, !(k in self) || quantity(string(self[k])).compareTo(quantity('0')) >= 0)",message="requests must not be negative"
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// limits is what the container may use at most.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || k.startsWith('hugepages-') || k.contains('/'))",message="limits must be of cpu, memory, ephemeral-storage, hugepages-<size> or an extended resource such as example.com/gpu"
	// +kubebuilder:validation:XValidation:rule="['cpu', 'memory', 'ephemeral-storage'].all(k, !(k in self) || quantity(string(self[k])).compareTo(quantity('0')) >= 0)",message="limits must not be negative"
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// Probes are health checks by the kubelet.
type Probes struct {
	// startup holds the other probes back until it succeeded once.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.successThreshold) || self.successThreshold == 1",message="successThreshold must be 1 for a startup probe"
	Startup *Probe `json:"startup,omitempty"`

	// readiness takes a pod out of the Service while it fails.
	// +optional
	Readiness *Probe `json:"readiness,omitempty"`

	// liveness restarts the container when it fails.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.successThreshold) || self.successThreshold == 1",message="successThreshold must be 1 for a liveness probe"
	Liveness *Probe `json:"liveness,omitempty"`
}

// Probe is one health check: an HTTP GET when path is given, else a TCP connection, always to the pod itself at spec.port.
type Probe struct {
	// path is what is fetched; any status from 200 to 399 is a success. Default: only connect.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^/(([A-Za-z0-9._~!$&()*+,;=:@?-]|%[0-9A-Fa-f]{2})+(/([A-Za-z0-9._~!$&()*+,;=:@?-]|%[0-9A-Fa-f]{2})+)*/?)?$')",message="path must be an absolute path, optionally with a query, for example /healthz?full=1"
	Path string `json:"path,omitempty"`

	// initialDelaySeconds is how long to wait before the first check. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`

	// periodSeconds is the interval. Default: 2 for readiness and startup, 10 for liveness.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// timeoutSeconds is how long one check may take. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// successThreshold is how many successes in a row count as healthy again. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	SuccessThreshold int32 `json:"successThreshold,omitempty"`

	// failureThreshold is how many failures in a row count as unhealthy. Default: 3, for startup 150.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
}

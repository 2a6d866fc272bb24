package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Runtime is how a server's pods are run.
//
// +kubebuilder:validation:MinProperties=1
type Runtime struct {
	// replicas is how many pods to run; 0 stops the server. Not given, the Deployment begins with one, and whoever scales the
	// Deployment is let.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// security is the security settings of the pods.
	// +optional
	Security *Security `json:"security,omitempty"`

	// resources are the compute resources of the container. Default: requests 50m CPU and 64Mi memory, limits 500m and 256Mi.
	// What is given is used as it is and not merged with the default.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// health is health checks by the kubelet.
	// +optional
	Health *Health `json:"health,omitempty"`
}

// Security is the security settings of pods.
type Security struct {
	// serviceAccountName is the ServiceAccount of the pods. Default: the namespace's default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.dns1123Subdomain().validate(self).hasValue()",message="serviceAccountName must be a valid DNS subdomain name, or empty"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// podSecurityContext is used for the pods as it is. Default: empty.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// securityContext is used for the container as it is. Default: not root, read-only root file system, no capabilities, no
	// privilege escalation, the seccomp profile RuntimeDefault.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}

// Health is health checks by the kubelet.
//
// +kubebuilder:validation:MinProperties=1
type Health struct {
	// livenessProbe restarts the container when it fails. Default: none.
	// +optional
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// readinessProbe takes a pod out of the Service while it fails. Default: a TCP connection to the port.
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`
}

// MCP is how a server speaks MCP.
type MCP struct {
	// stateless says that requests of one client may reach any pod. Default: false: the Service keeps a client's address on one
	// pod for three hours.
	// +optional
	Stateless *bool `json:"stateless,omitempty"`
}

// Network is who may call a server, and what the server may call. Default: anybody, and anything.
type Network struct {
	// ingressFrom are the callers that are let in. Default: everybody.
	// +optional
	// +listType=atomic
	IngressFrom []networkingv1.NetworkPolicyPeer `json:"ingressFrom,omitempty"`

	// egressTo is where the server may connect to, beside DNS. Default: anywhere.
	// +optional
	// +listType=atomic
	EgressTo []networkingv1.NetworkPolicyPeer `json:"egressTo,omitempty"`

	// egressPorts are the ports that the server may connect to, beside DNS. Default: all.
	// +optional
	// +listType=atomic
	EgressPorts []networkingv1.NetworkPolicyPort `json:"egressPorts,omitempty"`
}

// Transport is how the operator connects to a server.
type Transport struct {
	// tls is the TLS settings.
	// +optional
	TLS *TLS `json:"tls,omitempty"`
}

// TLS is how the operator connects to a server that speaks TLS.
type TLS struct {
	// enabled says that the server speaks TLS. Default: false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// caBundleSecret holds, under the key ca.crt, the certificates to trust. Default: those of the system.
	// +optional
	CABundleSecret *SecretReference `json:"caBundleSecret,omitempty"`

	// insecureSkipVerify accepts any certificate. It excludes caBundleSecret. Default: false.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// SecretReference names a Secret of the same namespace.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name,omitempty"`
}

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Scheduling chooses the nodes that pods may run on.
type Scheduling struct {
	// nodeSelector are labels that a node must have.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k).hasValue())",message="nodeSelector keys must be qualified names such as topology.kubernetes.io/zone"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="nodeSelector values must be label values: at most 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit"
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// tolerations let pods run on nodes with matching taints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator in ['', 'Equal', 'Exists', 'Lt', 'Gt'])",message="tolerations[].operator must be Equal, Exists, Lt or Gt"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.effect) || t.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="tolerations[].effect must be NoSchedule, PreferNoSchedule or NoExecute"
	// +kubebuilder:validation:XValidation:rule="self.all(t, (has(t.key) && t.key != '') || (has(t.operator) && t.operator == 'Exists'))",message="tolerations[] without a key must have the operator Exists"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator != 'Exists' || !has(t.value) || t.value == '')",message="tolerations[] with the operator Exists must have no value"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.tolerationSeconds) || (has(t.effect) && t.effect == 'NoExecute'))",message="tolerations[] with tolerationSeconds must have the effect NoExecute"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity prefers or demands nodes by their labels or by the pods that run there.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints spread the pods, for example over zones. A constraint without labelSelector counts the
	// pods of this server.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.maxSkew >= 1)",message="topologySpreadConstraints[].maxSkew must be at least 1"
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.topologyKey != '')",message="topologySpreadConstraints[].topologyKey must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.whenUnsatisfiable in ['DoNotSchedule', 'ScheduleAnyway'])",message="topologySpreadConstraints[].whenUnsatisfiable must be DoNotSchedule or ScheduleAnyway"
	// +kubebuilder:validation:XValidation:rule="self.all(c, !has(c.minDomains) || (c.minDomains >= 1 && c.whenUnsatisfiable == 'DoNotSchedule'))",message="topologySpreadConstraints[].minDomains must be at least 1, and needs whenUnsatisfiable: DoNotSchedule"
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the priority class of the pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="priorityClassName must be the name of a PriorityClass"
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// UpdateStrategy is how pods are replaced after a change.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'Recreate' || (!has(self.maxSurge) && !has(self.maxUnavailable))",message="maxSurge and maxUnavailable must not be set when type is Recreate"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSurge) || !(string(self.maxSurge) in ['0', '0%']) || (has(self.maxUnavailable) && !(string(self.maxUnavailable) in ['0', '0%']))",message="maxSurge and maxUnavailable (by default 0) must not both be 0: no pod could be replaced"
type UpdateStrategy struct {
	// type is RollingUpdate, or Recreate to stop all old pods before a new one starts.
	// +optional
	// +default="RollingUpdate"
	// +kubebuilder:validation:Enum=RollingUpdate;Recreate
	Type UpdateStrategyType `json:"type,omitempty"`

	// maxSurge is how many pods there may be above replicas, a number or a percentage. Default: 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || (self >= 0 && self <= 1000)",message="maxSurge must be a number from 0 to 1000 or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// maxUnavailable is how many pods may be missing, a number or a percentage. Default: 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || (self >= 0 && self <= 1000)",message="maxUnavailable must be a number from 0 to 1000 or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// UpdateStrategyType is a way to replace pods.
type UpdateStrategyType string

// The update strategies.
const (
	UpdateRolling  UpdateStrategyType = "RollingUpdate"
	UpdateRecreate UpdateStrategyType = "Recreate"
)

// Network is who may call the server, and what the server may call.
type Network struct {
	// ingress is who may call the server beside the operator. Namespace: pods of its own namespace, and ingressFrom.
	// Gateways: the gateways of MCPAgents that are granted the server, and ingressFrom. Listed: ingressFrom alone.
	// +optional
	// +default="Namespace"
	// +kubebuilder:validation:Enum=Namespace;Gateways;Listed
	Ingress IngressMode `json:"ingress,omitempty"`

	// ingressFrom are further callers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(p, has(p.ipBlock) != (has(p.podSelector) || has(p.namespaceSelector)))",message="ingressFrom[] must have either ipBlock, or podSelector and/or namespaceSelector"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.ipBlock) || isCIDR(p.ipBlock.cidr))",message="ingressFrom[].ipBlock.cidr must be a CIDR such as 10.0.0.0/8"
	IngressFrom []networkingv1.NetworkPolicyPeer `json:"ingressFrom,omitempty"`

	// egressTo is where the server may connect to, beside DNS. Default: anywhere but link-local and cloud metadata addresses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(p, has(p.ipBlock) != (has(p.podSelector) || has(p.namespaceSelector)))",message="egressTo[] must have either ipBlock, or podSelector and/or namespaceSelector"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.ipBlock) || isCIDR(p.ipBlock.cidr))",message="egressTo[].ipBlock.cidr must be a CIDR such as 10.0.0.0/8"
	EgressTo []networkingv1.NetworkPolicyPeer `json:"egressTo,omitempty"`

	// egressPorts are the ports that the server may connect to, beside DNS. Default: all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	EgressPorts []NetworkPort `json:"egressPorts,omitempty"`
}

// IngressMode is who may call a server.
type IngressMode string

// The ingress modes.
const (
	IngressNamespace IngressMode = "Namespace"
	IngressGateways  IngressMode = "Gateways"
	IngressListed    IngressMode = "Listed"
)

// NetworkPort is a port, or a range of ports.
//
// +kubebuilder:validation:XValidation:rule="!has(self.endPort) || self.endPort >= self.port",message="endPort must not be less than port"
type NetworkPort struct {
	// protocol is TCP, UDP or SCTP.
	// +optional
	// +default="TCP"
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// port is the port, or the first of a range.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// endPort is the last port of a range. Default: port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	EndPort *int32 `json:"endPort,omitempty"`
}

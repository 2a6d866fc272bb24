package desired

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// OperatorLabels are the labels of the operator's own pods, by which NetworkPolicies let it in.
func OperatorLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "mcp-operator"}
}

func networkPolicy(server *mcpv1alpha1.MCPServer, env Environment) *networkingv1.NetworkPolicy {
	var asked mcpv1alpha1.Network
	if server.Spec.Network != nil {
		asked = *server.Spec.Network
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: objectMeta(server, NetworkPolicyName(server.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: Selector(server.Name)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{ingress(asked, env)},
			Egress:      egress(asked),
		},
	}
}

// operatorPeer is the operator, which runs in that namespace.
func operatorPeer(namespace string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: OperatorLabels()},
	}
}

// ingress always names at least one peer, the operator: a rule without peers would let everybody in.
func ingress(asked mcpv1alpha1.Network, env Environment) networkingv1.NetworkPolicyIngressRule {
	from := []networkingv1.NetworkPolicyPeer{operatorPeer(env.OperatorNamespace)}
	// Gateways: each MCPAgent that is granted the server adds a policy of its own for its gateway.
	if asked.Ingress == "" || asked.Ingress == mcpv1alpha1.IngressNamespace {
		from = append(from, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}})
	}
	return networkingv1.NetworkPolicyIngressRule{
		From: append(from, asked.IngressFrom...),
		// By name, since during a rollout old pods still listen on their own number.
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromString(portName))}},
	}
}

func dnsRule() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{Ports: []networkingv1.NetworkPolicyPort{
		networkPort(corev1.ProtocolUDP, 53, nil), networkPort(corev1.ProtocolTCP, 53, nil),
	}}
}

func egress(asked mcpv1alpha1.Network) []networkingv1.NetworkPolicyEgressRule {
	rule := networkingv1.NetworkPolicyEgressRule{To: asked.EgressTo}
	if len(asked.EgressTo) == 0 {
		rule.To = anywhere()
	}
	for _, port := range asked.EgressPorts {
		rule.Ports = append(rule.Ports, networkPort(port.Protocol, port.Port, port.EndPort))
	}
	return []networkingv1.NetworkPolicyEgressRule{dnsRule(), rule}
}

// anywhere is every pod, and every address that is neither link-local nor a known metadata service of a cloud. Pods are
// named beside the addresses, since some network plugins do not count pods as addresses.
func anywhere() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{
			"169.254.0.0/16",     // link-local, with the metadata services of most clouds
			"100.100.100.200/32", // metadata at Alibaba Cloud
			"168.63.129.16/32",   // the platform's own address at Azure
			"192.0.0.192/32",     // metadata at Oracle Cloud
		}}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: []string{
			"fe80::/10",         // link-local
			"fd00:ec2::254/128", // metadata at AWS
			"fd20:ce::254/128",  // metadata at Google Cloud
		}}},
	}
}

func networkPort(protocol corev1.Protocol, port int32, end *int32) networkingv1.NetworkPolicyPort {
	if protocol == "" {
		protocol = corev1.ProtocolTCP
	}
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(port)), EndPort: end}
}

package desired

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// gatewayPolicy lets in who may call the agent, and the operator at the port that tells of the gateway; and out where its backends are.
func gatewayPolicy(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) *networkingv1.NetworkPolicy {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: agentMeta(agent, GatewayName(agent.Name), ComponentGateway),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: AgentSelector(agent.Name, ComponentGateway)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress:      gatewayEgress(env),
		},
	}
	if callers := gatewayCallers(agent); len(callers) > 0 { // a rule without peers would let everybody in
		policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: callers, Ports: tcp(GatewayPort)})
	}
	policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{
		From: []networkingv1.NetworkPolicyPeer{operatorPeer(env.OperatorNamespace)}, Ports: tcp(GatewayHealthPort),
	})
	return policy
}

func gatewayCallers(agent *mcpv1alpha1.MCPAgent) []networkingv1.NetworkPolicyPeer {
	var callers []networkingv1.NetworkPolicyPeer
	if HasRuntime(agent) {
		callers = append(callers, podsPeer(agent, ComponentRuntime))
	}
	asked := agent.Spec.Network
	if asked == nil || asked.Ingress != mcpv1alpha1.IngressListed {
		callers = append(callers, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}})
	}
	if asked != nil {
		callers = append(callers, asked.IngressFrom...)
	}
	return callers
}

func gatewayEgress(env AgentEnvironment) []networkingv1.NetworkPolicyEgressRule {
	rules := []networkingv1.NetworkPolicyEgressRule{agentDNSRule(env)}
	rules = append(rules, apiServerRules(env.APIServer)...)
	reach := env.Reach
	if len(reach.Servers) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To: []networkingv1.NetworkPolicyPeer{{PodSelector: serversSelector(reach.Servers)}}, Ports: byName(),
		})
	}
	if len(reach.PublicPorts) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: internet(), Ports: tcp(reach.PublicPorts...)})
	}
	if len(reach.PrivatePorts) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: privateNetworks(), Ports: tcp(reach.PrivatePorts...)})
	}
	return rules
}

func agentDNSRule(env AgentEnvironment) networkingv1.NetworkPolicyEgressRule {
	rule := dnsRule()
	for _, peer := range env.DNS {
		rule.To = append(rule.To, *peer.DeepCopy())
	}
	if len(env.DNS) > 0 { // where the pods that answer listen as an ordinary user, behind port 53 of their Service
		rule.Ports = append(rule.Ports, networkPort(corev1.ProtocolUDP, 5353, nil), networkPort(corev1.ProtocolTCP, 5353, nil))
	}
	return rule
}

// apiServerRules are one for each port: which address has which port is then not mixed up.
func apiServerRules(addresses []netip.AddrPort) []networkingv1.NetworkPolicyEgressRule {
	addresses = slices.Clone(addresses)
	slices.SortFunc(addresses, func(a, b netip.AddrPort) int {
		return cmp.Or(cmp.Compare(a.Port(), b.Port()), a.Addr().Compare(b.Addr()))
	})
	addresses = slices.Compact(addresses)
	var rules []networkingv1.NetworkPolicyEgressRule
	for i, address := range addresses {
		addr := address.Addr().Unmap()
		if i == 0 || addresses[i-1].Port() != address.Port() {
			rules = append(rules, networkingv1.NetworkPolicyEgressRule{Ports: tcp(int32(address.Port()))})
		}
		rule := &rules[len(rules)-1]
		rule.To = append(rule.To, block(netip.PrefixFrom(addr, addr.BitLen()).String()))
	}
	return rules
}

// serversPolicy is a second policy of the pods of servers that let in gateways alone: what policies allow adds up.
func serversPolicy(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) *networkingv1.NetworkPolicy {
	if len(env.Reach.Closed) == 0 {
		return nil
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: agentMeta(agent, ServersPolicyName(agent.Name), ComponentGateway),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *serversSelector(env.Reach.Closed),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{podsPeer(agent, ComponentGateway)}, Ports: byName(),
			}},
		},
	}
}

// LetIn are the names of the servers that such a policy is about.
func LetIn(policy *networkingv1.NetworkPolicy) []string {
	var servers []string
	for _, expression := range policy.Spec.PodSelector.MatchExpressions {
		if expression.Key == LabelServer && expression.Operator == metav1.LabelSelectorOpIn {
			servers = append(servers, expression.Values...)
		}
	}
	return servers
}

// runtimePolicy lets nobody in, and out to the agent's endpoint alone, unless more is asked for: not even to DNS.
func runtimePolicy(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) *networkingv1.NetworkPolicy {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: agentMeta(agent, RuntimeName(agent.Name), ComponentRuntime),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: AgentSelector(agent.Name, ComponentRuntime)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{
				To: []networkingv1.NetworkPolicyPeer{podsPeer(agent, ComponentGateway)}, Ports: tcp(GatewayPort),
			}},
		},
	}
	if asked := agent.Spec.Network; asked != nil && len(asked.EgressTo) > 0 {
		rule := networkingv1.NetworkPolicyEgressRule{To: asked.EgressTo}
		for _, port := range asked.EgressPorts {
			rule.Ports = append(rule.Ports, networkPort(port.Protocol, port.Port, port.EndPort))
		}
		policy.Spec.Egress = append(policy.Spec.Egress, agentDNSRule(env), rule)
	}
	return policy
}

func podsPeer(agent *mcpv1alpha1.MCPAgent, component string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: AgentSelector(agent.Name, component)}}
}

func serversSelector(servers []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: LabelServer, Operator: metav1.LabelSelectorOpIn, Values: slices.Clone(servers)},
	}}
}

// byName is the port of an MCP server, whatever its number, which differs between servers and during a rollout.
func byName() []networkingv1.NetworkPolicyPort {
	return []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromString(portName))}}
}

func tcp(ports ...int32) []networkingv1.NetworkPolicyPort {
	var list []networkingv1.NetworkPolicyPort
	for _, port := range ports {
		list = append(list, networkPort(corev1.ProtocolTCP, port, nil))
	}
	return list
}

func block(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

// internet is every address that is public. The gateway's own guard, which sees each address before it connects, knows some more that
// are not; this is what holds if it fails.
func internet() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{
		block("0.0.0.0/0",
			"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16",
			"198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
			"168.63.129.16/32", // the platform's own address at Azure
		),
		block("::/0",
			"::/96", // loopback, unspecified, and IPv4 in IPv6
			"64:ff9b:1::/48", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
			// What NAT64 translates to addresses of this host, of its links and of private networks.
			"64:ff9b::/104", "64:ff9b::a00:0/104", "64:ff9b::6440:0/106", "64:ff9b::7f00:0/104", "64:ff9b::a9fe:0/112",
			"64:ff9b::ac10:0/108", "64:ff9b::c0a8:0/112", "64:ff9b::a83f:8110/128",
		),
	}
}

// privateNetworks is every pod, and every private address but those of metadata services. Pods are named beside the addresses, since
// some network plugins do not count pods as addresses.
func privateNetworks() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{}},
		block("10.0.0.0/8"), block("172.16.0.0/12"), block("192.168.0.0/16"),
		block("100.64.0.0/10", "100.100.100.200/32"),
		block("fc00::/7", "fd00:ec2::/32", "fd20:ce::254/128"),
	}
}

package desired

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

const (
	// SIGAnnotationPrefix is what the annotations that the compatibility API gives meaning to begin with.
	SIGAnnotationPrefix = "mcp.x-k8s.io/"

	// SIGAnnotationConfigHash is the pod template's hash through the compatibility API.
	SIGAnnotationConfigHash = SIGAnnotationPrefix + "config-hash"

	// ownPrefix is what our own labels and annotations begin with. Nobody else sets them: by one of them our own kind selects pods.
	ownPrefix = "mcp.operator/"
)

// SIGSelector returns the labels that select the pods of a server of the compatibility API. Pods of our own kind carry this label
// too, so a Deployment of one kind is never made where the other has one of its name (internal/apply, Claim).
func SIGSelector(server string) map[string]string {
	return map[string]string{LabelMCPServer: server}
}

// ForSIGServer returns the children of an MCPServer of the compatibility API; each bears the server's own name. They share no memory
// with server or env, which may be a cache's.
func ForSIGServer(server *sigv1alpha1.MCPServer, env Environment, configHash string) Server {
	server = &sigv1alpha1.MCPServer{ObjectMeta: server.ObjectMeta, Spec: *server.Spec.DeepCopy()}
	env.ExtraEnv = copyEnv(env.ExtraEnv)
	return Server{
		Deployment: &appsv1.Deployment{
			ObjectMeta: sigObjectMeta(server),
			Spec: appsv1.DeploymentSpec{
				Replicas: sigReplicas(server),
				Selector: &metav1.LabelSelector{MatchLabels: SIGSelector(server.Name)},
				Template: sigPodTemplate(server, env, configHash),
			},
		},
		Service:       sigService(server),
		NetworkPolicy: sigNetworkPolicy(server, env),
	}
}

// sigReplicas is what is asked for; nil leaves it to who scales the Deployment: this API has no scale subresource.
func sigReplicas(server *sigv1alpha1.MCPServer) *int32 {
	if server.Spec.Runtime == nil {
		return nil
	}
	return server.Spec.Runtime.Replicas
}

func sigObjectMeta(server *sigv1alpha1.MCPServer) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: server.Name, Namespace: server.Namespace, Labels: sigLabels(server), Annotations: sigAnnotations(server)}
}

// sigLabels returns the user's labels without those that have a meaning, and ours.
func sigLabels(server *sigv1alpha1.MCPServer) map[string]string {
	l := map[string]string{}
	for key, value := range server.Spec.ExtraLabels {
		if !strings.HasPrefix(key, ownPrefix) {
			l[key] = value
		}
	}
	l[LabelApp] = WorkloadName
	maps.Copy(l, SIGSelector(server.Name))
	return l
}

// sigAnnotations returns the user's annotations without those that have a meaning.
func sigAnnotations(server *sigv1alpha1.MCPServer) map[string]string {
	a := map[string]string{}
	for key, value := range server.Spec.ExtraAnnotations {
		if !strings.HasPrefix(key, SIGAnnotationPrefix) && !strings.HasPrefix(key, ownPrefix) {
			a[key] = value
		}
	}
	return a
}

func sigService(server *sigv1alpha1.MCPServer) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: sigObjectMeta(server),
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			Selector:        SIGSelector(server.Name),
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: server.Spec.Config.Port, TargetPort: intstr.FromString(portName),
			}},
		},
	}
	if server.Spec.MCP == nil || server.Spec.MCP.Stateless == nil || !*server.Spec.MCP.Stateless {
		seconds := corev1.DefaultClientIPServiceAffinitySeconds
		svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		svc.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
	return svc
}

// sigNetworkPolicy is open in both directions unless the server asks for less, as users of that API know it.
func sigNetworkPolicy(server *sigv1alpha1.MCPServer, env Environment) *networkingv1.NetworkPolicy {
	var asked sigv1alpha1.Network
	if server.Spec.Network != nil {
		asked = *server.Spec.Network
	}
	ingress := networkingv1.NetworkPolicyIngressRule{
		Ports: []networkingv1.NetworkPolicyPort{networkPort(corev1.ProtocolTCP, server.Spec.Config.Port, nil)},
	}
	if len(asked.IngressFrom) > 0 {
		// The operator is let in too: locked out, it would tell of a server that nobody can use.
		ingress.From = append([]networkingv1.NetworkPolicyPeer{operatorPeer(env.OperatorNamespace)}, asked.IngressFrom...)
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: sigObjectMeta(server),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: SIGSelector(server.Name)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{ingress},
			Egress:      sigEgress(asked),
		},
	}
}

func sigEgress(asked sigv1alpha1.Network) []networkingv1.NetworkPolicyEgressRule {
	if len(asked.EgressTo) == 0 && len(asked.EgressPorts) == 0 {
		return []networkingv1.NetworkPolicyEgressRule{{}}
	}
	rule := networkingv1.NetworkPolicyEgressRule{To: asked.EgressTo, Ports: slices.Clone(asked.EgressPorts)}
	for i := range rule.Ports {
		if rule.Ports[i].Protocol == nil { // said, since the list is replaced as a whole
			rule.Ports[i].Protocol = new(corev1.ProtocolTCP)
		}
	}
	return []networkingv1.NetworkPolicyEgressRule{dnsRule(), rule}
}

package desired

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// Object is a child.
type Object interface {
	metav1.Object
	runtime.Object
}

// Agent is the children of an MCPAgent, each as it is applied, in the order in which they are.
type Agent struct {
	// Table is the ConfigMap with the routing table. It comes first: what is no longer granted is gone with it.
	Table          *corev1.ConfigMap
	ServiceAccount *corev1.ServiceAccount
	Role           *rbacv1.Role
	RoleBinding    *rbacv1.RoleBinding
	Secret         *corev1.Secret
	NetworkPolicy  *networkingv1.NetworkPolicy
	// ServersPolicy lets the gateway in at servers that let in gateways alone; nil if it uses none.
	ServersPolicy *networkingv1.NetworkPolicy
	Service       *corev1.Service
	// Deployment is the gateway. Without replicas they are an autoscaler's.
	Deployment *appsv1.Deployment
	// DisruptionBudget is nil for a gateway of one pod that is not scaled to more.
	DisruptionBudget *policyv1.PodDisruptionBudget
	// Autoscaler is nil if nothing is scaled. Its target is RuntimeDeployment or Deployment.
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler

	// The agent's own workload; nil if it has none. RuntimeDeployment is nil as well while the address of the Service is not known.
	RuntimeServiceAccount *corev1.ServiceAccount
	RuntimePolicy         *networkingv1.NetworkPolicy
	RuntimeDeployment     *appsv1.Deployment

	// Unwanted are, by kind and name, the children that the agent has had, maybe, and asks for no more, and that do what is not asked for
	// while they are there. They go before Deployments are applied: an autoscaler that is left would insist on its number of replicas, a
	// workload or a policy would keep its access.
	Unwanted []Object
	// Spare are likewise those that harm nobody while they are there.
	Spare []Object
	// Outlived are likewise the children that protect the pods of the agent's own workload. They go when the last of these pods is gone.
	Outlived []Object
}

// ForAgent returns the children of an MCPAgent. They share no memory with agent or env, which may be a cache's.
func ForAgent(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) Agent {
	agent = &mcpv1alpha1.MCPAgent{ObjectMeta: agent.ObjectMeta, Spec: *agent.Spec.DeepCopy()}
	children := Agent{
		Table:            AgentTable(agent, env.Table),
		ServiceAccount:   serviceAccount(agent, GatewayName(agent.Name), ComponentGateway),
		Role:             gatewayRole(agent, env),
		RoleBinding:      gatewayRoleBinding(agent),
		Secret:           sessionSecret(agent, env),
		NetworkPolicy:    gatewayPolicy(agent, env),
		ServersPolicy:    serversPolicy(agent, env),
		Service:          gatewayService(agent),
		Deployment:       gatewayDeployment(agent, env),
		DisruptionBudget: disruptionBudget(agent),
		Autoscaler:       autoscaler(agent),
	}
	if HasRuntime(agent) {
		children.RuntimeServiceAccount = serviceAccount(agent, RuntimeName(agent.Name), ComponentRuntime)
		children.RuntimePolicy = runtimePolicy(agent, env)
		children.RuntimeDeployment = runtimeDeployment(agent, env)
	}
	children.Unwanted, children.Spare, children.Outlived = unwanted(agent, children)
	return children
}

// AgentTable is the ConfigMap with the routing table of an MCPAgent.
func AgentTable(agent *mcpv1alpha1.MCPAgent, table []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: agentMeta(agent, GatewayName(agent.Name), ComponentGateway),
		Data:       map[string]string{TableKey: string(table)},
	}
}

// Objects returns the children that there are, in the order in which they are applied.
func (a Agent) Objects() []Object {
	var list []Object
	for _, child := range []struct {
		obj     Object
		isThere bool
	}{
		{a.Table, a.Table != nil},
		{a.ServiceAccount, a.ServiceAccount != nil},
		{a.Role, a.Role != nil},
		{a.RoleBinding, a.RoleBinding != nil},
		{a.Secret, a.Secret != nil},
		{a.NetworkPolicy, a.NetworkPolicy != nil},
		{a.ServersPolicy, a.ServersPolicy != nil},
		{a.Service, a.Service != nil},
		{a.Deployment, a.Deployment != nil},
		{a.DisruptionBudget, a.DisruptionBudget != nil},
		{a.RuntimeServiceAccount, a.RuntimeServiceAccount != nil},
		{a.RuntimePolicy, a.RuntimePolicy != nil},
		{a.RuntimeDeployment, a.RuntimeDeployment != nil},
		{a.Autoscaler, a.Autoscaler != nil},
	} {
		if child.isThere {
			list = append(list, child.obj)
		}
	}
	return list
}

// unwanted names what a child of this agent may be and is not. A workload that only waits for the address of its Service is none of it.
func unwanted(agent *mcpv1alpha1.MCPAgent, children Agent) (list, spare, outlived []Object) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: agent.Namespace} }
	gateway, own := GatewayName(agent.Name), RuntimeName(agent.Name)
	for _, target := range []string{gateway, own} {
		if children.Autoscaler == nil || children.Autoscaler.Name != target {
			list = append(list, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta(target)})
		}
	}
	if children.DisruptionBudget == nil {
		spare = append(spare, &policyv1.PodDisruptionBudget{ObjectMeta: meta(gateway)})
	}
	if children.ServersPolicy == nil {
		list = append(list, &networkingv1.NetworkPolicy{ObjectMeta: meta(ServersPolicyName(agent.Name))})
	}
	if !HasRuntime(agent) {
		list = append(list, &appsv1.Deployment{ObjectMeta: meta(own)})
		outlived = []Object{&networkingv1.NetworkPolicy{ObjectMeta: meta(own)}, &corev1.ServiceAccount{ObjectMeta: meta(own)}}
	}
	return list, spare, outlived
}

func agentMeta(agent *mcpv1alpha1.MCPAgent, name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: agent.Namespace, Labels: agentLabels(agent.Name, component)}
}

// serviceAccount is mounted nowhere by itself: what a pod needs of it is projected there.
func serviceAccount(agent *mcpv1alpha1.MCPAgent, name, component string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: agentMeta(agent, name, component), AutomountServiceAccountToken: new(false)}
}

// gatewayRole allows the gateway to read its table as it changes, and the definitions that the table names.
func gatewayRole(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) *rbacv1.Role {
	name := GatewayName(agent.Name)
	rule := func(names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names, Verbs: verbs}
	}
	role := &rbacv1.Role{ObjectMeta: agentMeta(agent, name, ComponentGateway), Rules: []rbacv1.PolicyRule{rule([]string{name}, "get", "list", "watch")}}
	if len(env.Definitions) > 0 {
		role.Rules = append(role.Rules, rule(slices.Clone(env.Definitions), "get"))
	}
	return role
}

func gatewayRoleBinding(agent *mcpv1alpha1.MCPAgent) *rbacv1.RoleBinding {
	name := GatewayName(agent.Name)
	return &rbacv1.RoleBinding{
		ObjectMeta: agentMeta(agent, name, ComponentGateway),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: agent.Namespace}},
	}
}

func sessionSecret(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: agentMeta(agent, SessionSecretName(agent.Name), ComponentGateway),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			sessionKeyID: slices.Clone(env.SessionKey), sessionKeyCurrent: []byte(sessionKeyID), statusTokenKey: slices.Clone(env.StatusToken),
		},
	}
}

// gatewayService keeps nobody on a pod: any of them serves every session.
func gatewayService(agent *mcpv1alpha1.MCPAgent) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: agentMeta(agent, GatewayName(agent.Name), ComponentGateway),
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			Selector:        AgentSelector(agent.Name, ComponentGateway),
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: GatewayPort, TargetPort: intstr.FromString(portName),
			}},
		},
	}
}

func disruptionBudget(agent *mcpv1alpha1.MCPAgent) *policyv1.PodDisruptionBudget {
	most, scaled := GatewayReplicas(agent)
	if scaled { // a budget that comes only once there are more pods would come too late
		most = max(most, agent.Spec.Scaling.MaxReplicas)
	}
	if most < 2 {
		return nil // one at a time is what there is
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: agentMeta(agent, GatewayName(agent.Name), ComponentGateway),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: AgentSelector(agent.Name, ComponentGateway)},
			// A pod that is not ready serves nobody, and keeps no node.
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}

func autoscaler(agent *mcpv1alpha1.MCPAgent) *autoscalingv2.HorizontalPodAutoscaler {
	scaling := agent.Spec.Scaling
	if scaling == nil {
		return nil
	}
	name, component := GatewayName(agent.Name), ComponentGateway
	if HasRuntime(agent) {
		name, component = RuntimeName(agent.Name), ComponentRuntime
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: agentMeta(agent, name, component),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: name},
			MinReplicas:    new(minReplicas(scaling)),
			MaxReplicas:    scaling.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(cmp.Or(scaling.TargetCPUUtilizationPercentage, 70)),
				}},
			}},
		},
	}
}

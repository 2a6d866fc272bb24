// Package desired turns our kinds into the child objects that they ask for. It is pure: objects in, objects out; no client,
// context, logger, clock or randomness. What it returns is, byte for byte, what is applied (testdata/ shows it).
package desired

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// Environment is what children depend on beside the object itself.
type Environment struct {
	// OperatorNamespace is the namespace of the operator's pods, which NetworkPolicies let in.
	OperatorNamespace string

	// ExtraEnv is added to every MCP server container and wins over a user's variable of the same name.
	ExtraEnv []corev1.EnvVar

	// GatewayImage is the image that the bridge of a Stdio server is copied from.
	GatewayImage string
}

// Server is the children of an MCPServer, each as it is applied.
type Server struct {
	// ConfigMap holds the inline configuration; nil if there is none.
	ConfigMap  *corev1.ConfigMap
	Deployment *appsv1.Deployment
	Service    *corev1.Service
	// Pods is the headless Service by which gateways find the pod that a session lives on; nil if there are no sessions.
	Pods          *corev1.Service
	NetworkPolicy *networkingv1.NetworkPolicy
}

// ForServer returns the children of an MCPServer. configHash goes into the pod template, so that a change of what the pods
// read rolls them; empty means that they read nothing. The children share no memory with server or env, which may be a
// cache's.
func ForServer(server *mcpv1alpha1.MCPServer, env Environment, configHash string) Server {
	server = &mcpv1alpha1.MCPServer{ObjectMeta: server.ObjectMeta, Spec: *server.Spec.DeepCopy()}
	env.ExtraEnv = copyEnv(env.ExtraEnv)
	return Server{
		ConfigMap:     configMap(server),
		Deployment:    deployment(server, env, configHash),
		Service:       service(server),
		Pods:          podsService(server),
		NetworkPolicy: networkPolicy(server, env),
	}
}

func copyEnv(vars []corev1.EnvVar) []corev1.EnvVar {
	list := make([]corev1.EnvVar, 0, len(vars))
	for _, v := range vars {
		list = append(list, *v.DeepCopy())
	}
	return list
}

func objectMeta(server *mcpv1alpha1.MCPServer, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: server.Namespace, Labels: childLabels(server), Annotations: childAnnotations(server)}
}

func configMap(server *mcpv1alpha1.MCPServer) *corev1.ConfigMap {
	config := server.Spec.Config
	if config == nil || config.Inline == nil {
		return nil
	}
	return &corev1.ConfigMap{
		ObjectMeta: objectMeta(server, ConfigMapName(server.Name)),
		Data:       map[string]string{inlineConfigKey: string(config.Inline.Raw)},
	}
}

func deployment(server *mcpv1alpha1.MCPServer, env Environment, configHash string) *appsv1.Deployment {
	replicas, history := Replicas(server), int32(3)
	return &appsv1.Deployment{
		ObjectMeta: objectMeta(server, DeploymentName(server.Name)),
		Spec: appsv1.DeploymentSpec{
			Replicas:             &replicas,
			RevisionHistoryLimit: &history,
			Selector:             &metav1.LabelSelector{MatchLabels: Selector(server.Name)},
			Strategy:             strategy(server.Spec.UpdateStrategy),
			Template:             podTemplate(server, env, configHash),
		},
	}
}

func strategy(asked *mcpv1alpha1.UpdateStrategy) appsv1.DeploymentStrategy {
	if asked != nil && asked.Type == mcpv1alpha1.UpdateRecreate {
		return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	surge, unavailable := intstr.FromInt32(1), intstr.FromInt32(0)
	if asked != nil && asked.MaxSurge != nil {
		surge = *asked.MaxSurge
	}
	if asked != nil && asked.MaxUnavailable != nil {
		unavailable = *asked.MaxUnavailable
	}
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
}

func service(server *mcpv1alpha1.MCPServer) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: objectMeta(server, ServiceName(server.Name)),
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			Selector:        Selector(server.Name),
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: Port(server), TargetPort: intstr.FromString(portName),
			}},
		},
	}
	if server.Spec.Sessions != mcpv1alpha1.SessionsStateless {
		seconds := corev1.DefaultClientIPServiceAffinitySeconds
		svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		svc.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
	return svc
}

func podsService(server *mcpv1alpha1.MCPServer) *corev1.Service {
	if !HasPodsService(server) {
		return nil
	}
	return &corev1.Service{
		ObjectMeta: objectMeta(server, PodsServiceName(server.Name)),
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			ClusterIP:       corev1.ClusterIPNone,
			Selector:        Selector(server.Name),
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: Port(server), TargetPort: intstr.FromString(portName),
			}},
		},
	}
}

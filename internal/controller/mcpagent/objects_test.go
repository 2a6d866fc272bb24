package mcpagent

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/cluster"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/observer"
	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// makeAgent returns an MCPAgent of generation 2 that is granted the MCPServer web, changed as asked.
func makeAgent(changes ...func(*mcpv1alpha1.MCPAgent)) *mcpv1alpha1.MCPAgent {
	agent := &mcpv1alpha1.MCPAgent{
		ObjectMeta: metav1.ObjectMeta{Name: "helper", Namespace: "team", UID: "uid-agent", Generation: 2},
		Spec: mcpv1alpha1.MCPAgentSpec{
			Servers: []mcpv1alpha1.AgentServer{{ObjectName: mcpv1alpha1.ObjectName{Name: "web"}}},
			Auth:    mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthNone},
		},
	}
	for _, change := range changes {
		change(agent)
	}
	return agent
}

func makeServer() *mcpv1alpha1.MCPServer {
	return &mcpv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team", UID: "uid-web", Generation: 1},
		Spec:       mcpv1alpha1.MCPServerSpec{Image: "registry.example.com/web:1"},
	}
}

// makeGateway returns the Deployment of makeAgent's gateway, rolled out with one ready pod of one, changed as asked.
func makeGateway(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "helper-gateway", Namespace: "team", Generation: 3,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "mcp.operator/v1alpha1", Kind: "MCPAgent", Name: "helper", UID: "uid-agent", Controller: new(true),
			}},
		},
		Spec:   appsv1.DeploymentSpec{Replicas: new(int32(1))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

// makePod returns a ready pod of makeGateway, changed as asked.
func makePod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "team", UID: types.UID(name),
			Labels:          map[string]string{"mcp.operator/agent": "helper", "mcp.operator/component": "gateway", "pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "helper-gateway-abc", Controller: new(true)}},
		},
		Status: corev1.PodStatus{PodIP: "192.0.2.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func makeScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, mcpv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// gateways are what gateways say, by the name of their pod, and what was asked of them.
type gateways struct {
	answers map[types.UID]observer.Answer
	asked   observer.Agent
}

func (g *gateways) Observe(agent observer.Agent) { g.asked = agent }

func (g *gateways) Answers(types.UID) []observer.Answer {
	var list []observer.Answer
	for _, pod := range g.asked.Pods {
		answer := g.answers[pod.UID]
		answer.Pod = pod
		list = append(list, answer)
	}
	return list
}

func (*gateways) Forget(types.NamespacedName) {}

// makeReconciler returns one over objects in memory. What is applied is not kept: that the API server does.
func makeReconciler(t *testing.T, objects ...client.Object) (*Reconciler, *gateways) {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(makeScheme(t))
	for _, object := range objects { // copies: the builder writes to what it gets, which cases that run at once may share
		builder.WithObjects(object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of one
	}
	c := builder.WithStatusSubresource(&mcpv1alpha1.MCPAgent{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if patch.Type() == types.ApplyPatchType {
					return nil
				}
				return c.Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	r := New(Options{
		Client: c, APIReader: c, GatewayImage: "registry.example.com/gateway:2", MasterKey: []byte("a key for tests of 32 bytes....."),
		ReadPath:  func(context.Context, string) ([]byte, error) { return []byte(`{}`), nil },
		Addresses: func(context.Context) ([]netip.AddrPort, error) { return nil, nil },
	})
	r.prepare()
	g := &gateways{answers: map[types.UID]observer.Answer{}}
	r.observer = g
	return r, g
}

// known are facts of a cluster that is fully known.
var known = cluster.Facts{
	Asked: true, Issuer: "https://kubernetes.default.svc", Keys: json.RawMessage(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a",` +
		`"x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`),
	APIServer: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:443")},
}

// makeScope returns the scope of a pass, in which everything was read.
func makeScope(t *testing.T, r *Reconciler, agent *mcpv1alpha1.MCPAgent) *scope {
	t.Helper()
	s := newScope(r, agent, known)
	if err := s.gather(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// serving is the answer of a gateway that serves a table whose one backend is web.
func serving(revision string, change ...func(*table.Status)) observer.Answer {
	status := table.Status{Revision: revision, Backends: []table.BackendStatus{{
		Name: "server-web", State: table.BackendReady, Tools: []table.ToolStatus{{Name: "ask", Original: "ask", Verdict: table.ToolServed}},
	}}}
	for _, c := range change {
		c(&status)
	}
	return observer.Answer{Known: true, Status: &route.Heard{Status: status}}
}

// condition returns a condition of the generation 2.
func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: 2}
}

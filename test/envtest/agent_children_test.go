package envtest

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// children applies the children of an agent to a real API server, without a controller.
type children struct {
	t       *testing.T
	client  client.Client // of the test itself
	counter *counter
	content *atomic.Int32 // how many requests for the content of Secrets the applier made
	ours    client.Client // of the applier
	applier *apply.Applier
	agent   *mcpv1alpha1.MCPAgent
	env     desired.AgentEnvironment
}

func applyChildren(t *testing.T) *children {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, mcpv1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(apiConfig, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	counted, content, config := &counter{}, &atomic.Int32{}, rest.CopyConfig(apiConfig)
	config.Wrap(counted.wrap)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/secrets/") && !strings.Contains(req.Header.Get("Accept"), "PartialObjectMetadata") {
				content.Add(1)
			}
			return next.RoundTrip(req)
		})
	})
	ours, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "children-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &children{
		t: t, client: c, counter: counted, content: content, ours: ours, applier: apply.New(ours, ours, apply.FieldManager),
		agent: &mcpv1alpha1.MCPAgent{
			ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: ns.Name, UID: "uid-demo"},
			Spec: mcpv1alpha1.MCPAgentSpec{
				Auth:    mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens},
				Gateway: &mcpv1alpha1.AgentGateway{TLS: &mcpv1alpha1.GatewayTLS{SecretName: "certificate"}},
				Runtime: &mcpv1alpha1.AgentRuntime{Image: "registry.example.com/agent:1", Env: []corev1.EnvVar{
					{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				}},
				Scaling: &mcpv1alpha1.Scaling{MaxReplicas: 5},
			},
		},
		env: desired.AgentEnvironment{
			OperatorNamespace: operatorNamespace, ClusterDomain: "cluster.local", GatewayImage: "registry.example.com/gateway:1",
			Table: []byte("{}"), SessionKey: []byte("a key for tests of 32 bytes....."), StatusToken: []byte("token"),
			Mounts: []desired.Mount{
				{Kind: desired.MountConfigMap, Name: "authority", Keys: []string{"ca.crt"}},
				{Kind: desired.MountSecret, Name: "keys", Keys: []string{"password", "username"}},
			},
			Definitions: []string{"petstore-0123456789"},
			Reach: desired.Reach{
				Servers: []string{"closed", "open"}, Closed: []string{"closed"}, PublicPorts: []int32{443}, PrivatePorts: []int32{443, 5432},
			},
			ServiceIP: "10.0.0.77",
			APIServer: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:443"), netip.MustParseAddrPort("[2001:db8::1]:6443")},
		},
	}
}

// apply applies the children that are asked for, removes the others, and checks which resources were written.
func (c *children) apply(what string, want map[string]int) {
	c.t.Helper()
	asked := desired.ForAgent(c.agent, c.env)
	c.counter.take()
	for _, obj := range slices.Concat(asked.Unwanted, asked.Outlived) {
		if err := c.applier.Remove(c.t.Context(), c.agent, obj); err != nil {
			c.t.Fatalf("%s: %v", what, err)
		}
	}
	for _, obj := range asked.Objects() {
		if _, err := c.applier.Apply(c.t.Context(), c.agent, obj); err != nil {
			c.t.Fatalf("%s: %v", what, err)
		}
	}
	taken := c.counter.take()
	written, _ := split(taken.writes)
	if diff := cmp.Diff(want, written); diff != "" {
		c.t.Errorf("%s: writes (-want +got)\n%s", what, diff)
	}
}

func (c *children) get(obj client.Object, name string) {
	c.t.Helper()
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: c.agent.Namespace, Name: name}, obj); err != nil {
		c.t.Fatal(err)
	}
}

// What the API server adds to a child, or keeps otherwise than it was sent, would show here as a write at rest.
func TestTheChildrenOfAnAgentAreWrittenOnceAndAsTheAPIServerKeepsThem(t *testing.T) {
	c := applyChildren(t)
	c.apply("a create", map[string]int{
		"configmaps": 1, "serviceaccounts": 2, "roles": 1, "rolebindings": 1, "secrets": 1, "networkpolicies": 3, "services": 1, "deployments": 2,
		"poddisruptionbudgets": 1, "horizontalpodautoscalers": 1,
	})
	c.apply("at rest", map[string]int{})
	c.applier = apply.New(c.ours, c.ours, apply.FieldManager)
	c.apply("after a restart of the operator", map[string]int{})

	c.env.Table = []byte(`{"another": "table"}`)
	c.apply("another table", map[string]int{"configmaps": 1})
	c.env.Definitions = nil
	c.apply("no definitions", map[string]int{"roles": 1})
	c.env.Reach.Closed = nil
	c.apply("no closed server", map[string]int{"networkpolicies": 1})
	c.env.StatusToken = []byte("another")
	c.apply("another token", map[string]int{"secrets": 1})
	c.agent.Spec.Rollout = &mcpv1alpha1.UpdateStrategy{Type: mcpv1alpha1.UpdateRecreate}
	c.apply("another rollout", map[string]int{"deployments": 1})
	c.agent.Spec.Runtime, c.agent.Spec.Rollout = nil, nil
	// The gateway is scaled now: what it has of replicas is handed over by a write of its own.
	c.apply("no runtime", map[string]int{
		"deployments": 3, "horizontalpodautoscalers": 2, "networkpolicies": 2, "serviceaccounts": 1,
	})
	c.apply("at rest again", map[string]int{})
}

func TestReplicasAreHandedOverToAnAutoscalerAsTheyAre(t *testing.T) {
	c := applyChildren(t)
	c.agent.Spec.Runtime, c.agent.Spec.Scaling, c.agent.Spec.Gateway = nil, nil, &mcpv1alpha1.AgentGateway{Replicas: 4}
	c.apply("four replicas", map[string]int{
		"configmaps": 1, "serviceaccounts": 1, "roles": 1, "rolebindings": 1, "secrets": 1, "networkpolicies": 2, "services": 1, "deployments": 1,
		"poddisruptionbudgets": 1,
	})
	c.agent.Spec.Scaling, c.agent.Spec.Gateway = &mcpv1alpha1.Scaling{MaxReplicas: 9}, nil
	c.apply("an autoscaler", map[string]int{"deployments": 2, "horizontalpodautoscalers": 1})
	d := &appsv1.Deployment{}
	if c.get(d, "demo-gateway"); *d.Spec.Replicas != 4 {
		t.Errorf("%d replicas, want still 4", *d.Spec.Replicas)
	}
	d.Spec.Replicas = new(int32(7))
	if err := c.client.Update(t.Context(), d, client.FieldOwner("autoscaler")); err != nil {
		t.Fatal(err)
	}
	c.env.Mounts = nil
	c.apply("other pods", map[string]int{"deployments": 1})
	if c.get(d, "demo-gateway"); *d.Spec.Replicas != 7 {
		t.Errorf("%d replicas, want still the autoscaler's 7", *d.Spec.Replicas)
	}
	c.agent.Spec.Scaling = nil
	c.apply("no autoscaler", map[string]int{"deployments": 1, "horizontalpodautoscalers": 1})
	if c.get(d, "demo-gateway"); *d.Spec.Replicas != 2 {
		t.Errorf("%d replicas, want 2", *d.Spec.Replicas)
	}
}

func TestTheSecretOfAnAgentIsPutBackWithoutBeingRead(t *testing.T) {
	c := applyChildren(t)
	secret := desired.ForAgent(c.agent, c.env).Secret
	step := func(what string, want int) {
		t.Helper()
		c.counter.take()
		if _, err := c.applier.Apply(t.Context(), c.agent, secret); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if writes := c.counter.take().writes; len(writes) != want {
			t.Errorf("%s: writes %v, want %d", what, writes, want)
		}
	}
	step("a create", 1)
	edit := func(change func(*corev1.Secret)) {
		t.Helper()
		live := &corev1.Secret{}
		c.get(live, secret.Name)
		change(live)
		if err := c.client.Update(t.Context(), live, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(s *corev1.Secret) { s.Data["theirs"] = []byte("x") })
	step("a key of somebody else", 0)
	edit(func(s *corev1.Secret) { s.Data["k1"] = []byte("x") })
	step("a key of ours is changed", 1)
	live := &corev1.Secret{}
	if c.get(live, secret.Name); string(live.Data["k1"]) != string(c.env.SessionKey) || string(live.Data["theirs"]) != "x" {
		t.Errorf("the data is %q", live.Data)
	}
	c.applier = apply.New(c.ours, c.ours, apply.FieldManager)
	edit(func(s *corev1.Secret) { delete(s.Labels, desired.LabelAgent) })
	step("a label of ours is taken away", 1)
	step("at rest", 0)

	rotated := secret.DeepCopy()
	delete(rotated.Data, "k1")
	secret = rotated
	step("a key of ours is no longer asked for", 1)
	if c.get(live, secret.Name); live.Data["k1"] != nil || live.Data["theirs"] == nil {
		t.Errorf("the data is %q", live.Data)
	}
	if n := c.content.Load(); n != 0 {
		t.Errorf("the content of the Secret was asked for %d times", n)
	}
}

func TestAKeyOfASecretThatWasNeverChangedCanBeGivenUp(t *testing.T) {
	c := applyChildren(t)
	secret := desired.ForAgent(c.agent, c.env).Secret
	if _, err := c.applier.Apply(t.Context(), c.agent, secret); err != nil {
		t.Fatal(err)
	}
	delete(secret.Data, "k1")
	if _, err := c.applier.Apply(t.Context(), c.agent, secret); err != nil {
		t.Fatal(err)
	}
	live := &corev1.Secret{}
	if c.get(live, secret.Name); live.Data["k1"] != nil || live.Data["current"] == nil {
		t.Errorf("the data is %q", live.Data)
	}
}

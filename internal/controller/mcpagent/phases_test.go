package mcpagent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/cluster"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// conditionFrom is the condition that an outcome becomes.
func conditionFrom(t *testing.T, out reconcile.Outcome) metav1.Condition {
	t.Helper()
	c, recorded := out.Condition("Any", 2)
	if !recorded {
		return metav1.Condition{}
	}
	return c
}

func withRuntime(env ...corev1.EnvVar) func(*mcpv1alpha1.MCPAgent) {
	return func(agent *mcpv1alpha1.MCPAgent) {
		agent.Spec.Runtime = &mcpv1alpha1.AgentRuntime{Image: "registry.example.com/agent:1", Env: env}
	}
}

func fromSettings(key string, optional bool) corev1.EnvVar {
	return corev1.EnvVar{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: key, Optional: &optional,
	}}}
}

func TestWhatAnAgentAsksForIsJudged(t *testing.T) {
	t.Parallel()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "team"}, Data: map[string]string{"level": "debug"}}
	settings.BinaryData = map[string][]byte{"binary": {1}}
	tokens := func(agent *mcpv1alpha1.MCPAgent) {
		agent.Spec.Auth = mcpv1alpha1.AgentAuth{
			Type: mcpv1alpha1.AgentAuthTokens, ServiceAccounts: []mcpv1alpha1.ObjectName{{Name: "caller"}},
		}
	}
	tests := map[string]struct {
		change  func(*mcpv1alpha1.MCPAgent)
		facts   cluster.Facts
		objects []client.Object
		status  metav1.ConditionStatus
		want    string
	}{
		"a sound agent": {status: "True", want: "Configuration is valid"},
		"what is granted need not exist": {
			change: func(agent *mcpv1alpha1.MCPAgent) { agent.Spec.Servers[0].Name = "nobody" }, status: "True", want: "Configuration is valid",
		},
		"the operator's own namespace": {
			change: func(agent *mcpv1alpha1.MCPAgent) { agent.Namespace = "mcp-operator-system" }, status: "False",
			want: `MCPAgents are not run in the operator's own namespace "mcp-operator-system"`,
		},
		"a ConfigMap that is not there": {
			change: withRuntime(fromSettings("level", false)), status: "False",
			want: `ConfigMap 'settings' (runtime.env "LEVEL") not found: create it, and the agent goes on by itself`,
		},
		"a key that is not there": {
			change: withRuntime(fromSettings("colour", false)), objects: []client.Object{settings}, status: "False",
			want: `ConfigMap 'settings' (runtime.env "LEVEL") has no key 'colour': add it, and the agent goes on by itself`,
		},
		"a key of binary data, of which no variable can be made": {
			change: withRuntime(fromSettings("binary", false)), objects: []client.Object{settings}, status: "False",
			want: `ConfigMap 'settings' (runtime.env "LEVEL") has no key 'binary': add it, and the agent goes on by itself`,
		},
		"an optional key that is not there": {
			change: withRuntime(fromSettings("colour", true)), objects: []client.Object{settings}, status: "True",
			want: "Configuration is valid",
		},
		"what the table cannot express": {
			change: func(agent *mcpv1alpha1.MCPAgent) { agent.Spec.ServerRef = &mcpv1alpha1.ObjectName{Name: "web"} }, status: "False",
			want: "serverRef and servers must not both be given",
		},
		"tokens, with the keys of the cluster": {change: tokens, facts: known, status: "True", want: "Configuration is valid"},
		"tokens, without the keys of the cluster": {
			change: tokens, facts: cluster.Facts{Asked: true, IssuerError: "forbidden"}, status: "Unknown",
			want: "The keys by which tokens of ServiceAccounts are verified are not known: forbidden",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := makeAgent()
			if tt.change != nil {
				tt.change(agent)
			}
			r, _ := makeReconciler(t, append([]client.Object{makeServer()}, copies(tt.objects)...)...)
			s := newScope(r, agent, tt.facts)
			if err := s.gather(t.Context()); err != nil {
				t.Fatal(err)
			}
			out := s.validate(t.Context())
			if out.IsDone() {
				out = s.requireReferences(t.Context())
			}
			got := conditionFrom(t, out)
			if got.Status != tt.status || !strings.HasPrefix(got.Message, tt.want) {
				t.Errorf("%s: %q, want %s: %q", got.Status, got.Message, tt.status, tt.want)
			}
		})
	}
}

func copies(objects []client.Object) []client.Object {
	var list []client.Object
	for _, obj := range objects {
		list = append(list, obj.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of a client.Object is one
	}
	return list
}

func TestAnEditThatIsNotAcceptedSaysWhoMayCallMeanwhile(t *testing.T) {
	t.Parallel()
	callers := func(names ...string) mcpv1alpha1.AgentAuth {
		auth := mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens}
		for _, name := range names {
			auth.ServiceAccounts = append(auth.ServiceAccounts, mcpv1alpha1.ObjectName{Name: name})
		}
		return auth
	}
	refused := func(names ...string) mcpv1alpha1.AgentAuth {
		auth := callers(names...)
		auth.Audiences = []string{known.Issuer}
		return auth
	}
	const (
		some   = "; until then what was granted before is served, as far as it still is granted and there, to callers whom both specifications let in"
		no     = "the gateway lets in whom both the last accepted specification and this one let in, and knows of no such caller"
		nobody = "; nobody may call until it is mended: " + no
	)
	everybody, unknown := mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthNone}, cluster.Facts{Asked: true, IssuerError: "asked in vain"}
	for name, tt := range map[string]struct {
		was, is mcpv1alpha1.AgentAuth
		facts   cluster.Facts
		status  metav1.ConditionStatus
		end     string
	}{
		"callers in common":               {callers("alice", "bob"), refused("bob"), known, "False", some},
		"another caller":                  {callers("alice"), refused("bob"), known, "False", nobody},
		"tokens instead of everybody":     {everybody, refused("alice"), known, "False", nobody},
		"keys that are not known":         {everybody, callers("alice"), unknown, "Unknown", "not known: asked in vain; nobody may call until they are: " + no},
		"keys that are not known for all": {callers("alice"), everybody, unknown, "True", valid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := makeReconciler(t, makeServer())
			agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) { agent.Spec.Auth = tt.was })
			pass(t, r, agent, known)
			agent.Spec.Auth = tt.is
			accepted, _ := pass(t, r, agent, tt.facts)
			if accepted.Status != tt.status || !strings.HasSuffix(accepted.Message, tt.end) {
				t.Errorf("Accepted %+v", accepted)
			}
		})
	}
}

func TestAGatewayKeepsItsImageUntilItsPodsAreReplacedInAnyCase(t *testing.T) {
	t.Parallel()
	const old, current = "registry.example.com/gateway:1", "registry.example.com/gateway:2"
	r, _ := makeReconciler(t, makeServer())
	image := func(agent *mcpv1alpha1.MCPAgent) string {
		s := makeScope(t, r, agent)
		if out := s.validate(t.Context()); !out.IsDone() {
			t.Fatalf("outcome %+v", out)
		}
		agent.Status = s.agent.Status
		return s.agent.Status.GatewayImage
	}
	agent := makeAgent()
	if got := image(agent); got != current {
		t.Errorf("a new agent gets %q", got)
	}
	agent.Status.GatewayImage = old // an operator before this one chose it
	if got := image(agent); got != old {
		t.Errorf("an upgrade of the operator alone gives it %q", got)
	}
	agent.Spec.Servers[0].Prefix = "web_"
	if got := image(agent); got != old {
		t.Errorf("another table gives it %q", got)
	}
	agent.Annotations = map[string]string{mcpv1alpha1.AnnotationUpgradeGateway: "please"}
	if got := image(agent); got != current {
		t.Errorf("a request gives it %q", got)
	}
	agent.Status.GatewayImage = old
	agent.Spec.Gateway = &mcpv1alpha1.AgentGateway{TLS: &mcpv1alpha1.GatewayTLS{SecretName: "certificate"}}
	if got := image(agent); got != current {
		t.Errorf("an edit that replaces the pods gives it %q", got)
	}
	r.GatewayImage = ""
	agent.Spec.Gateway = nil
	if got := image(agent); got != current {
		t.Errorf("an operator that knows no image gives it %q", got)
	}
	s := makeScope(t, r, makeAgent())
	s.validate(t.Context())
	if got := conditionFrom(t, s.applyGateway(t.Context())); got.Reason != "GatewayImageMissing" || got.Status != "False" {
		t.Errorf("without any image: %+v", got)
	}
}

func TestKeysOfAgentsDifferAndStayTheSame(t *testing.T) {
	t.Parallel()
	key := func(master, purpose string, agent *mcpv1alpha1.MCPAgent) string {
		derived, err := derive([]byte(master), purpose, agent.UID)
		if err != nil || len(derived) != 32 {
			t.Fatalf("%d bytes, %v", len(derived), err)
		}
		return string(derived)
	}
	first, second := makeAgent(), makeAgent(func(agent *mcpv1alpha1.MCPAgent) { agent.UID = "another" })
	keys := map[string]bool{
		key("master", "session", first): true, key("master", "session", second): true, key("master", "status", first): true,
		key("other", "session", first): true, key("master", "session", first): true,
	}
	if len(keys) != 4 {
		t.Errorf("%d different keys, want 4", len(keys))
	}
}

func TestTheTableIsWrittenFirstAndRemembered(t *testing.T) {
	t.Parallel()
	agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) { agent.Status.TableRevision = "before" })
	r, _ := makeReconciler(t, makeServer())
	s := makeScope(t, r, agent)
	if out := s.validate(t.Context()); !out.IsDone() {
		t.Fatalf("outcome %+v", out)
	}
	if out := s.applyTable(t.Context()); !out.IsDone() || !s.revised || s.agent.Status.TableRevision != s.route.Table.Revision {
		t.Errorf("outcome %+v, revised %t, status %q, table %q", out, s.revised, s.agent.Status.TableRevision, s.route.Table.Revision)
	}
	if got := r.recall(s.key()).before; len(got) != 1 || got[0].revision != "before" {
		t.Errorf("the table before is remembered as %+v", got)
	}
	written := &corev1.ConfigMap{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "helper-gateway"}, written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(s.route.JSON), written.Data["table.json"]); diff != "" {
		t.Errorf("table (-want +got)\n%s", diff)
	}
	if phases[0].Name != PhaseWithdrawal || phases[2].Name != PhaseTable {
		t.Errorf("the first phases that write are %q and %q", phases[0].Name, phases[2].Name)
	}
	s.facts.APIServer, s.facts.APIServerError = nil, "not reachable"
	if got := conditionFrom(t, s.applyPolicies(t.Context())); got.Status != "Unknown" || !strings.HasSuffix(got.Message, ": not reachable") {
		t.Errorf("without the addresses of the API server: %+v", got)
	}
}

func TestAServerThatIsBeingDeletedIsWithdrawnAndSaidToBe(t *testing.T) {
	t.Parallel()
	going := makeServer()
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"example.com/wait"}
	r, _ := makeReconciler(t, going)
	s := makeScope(t, r, makeAgent())
	want := []mcpv1alpha1.EffectiveTool{{Source: "server/web", Verdict: mcpv1alpha1.VerdictMissing, Reason: "the MCPServer is being deleted"}}
	if diff := cmp.Diff(want, s.route.Verdicts); diff != "" || len(s.route.Table.Backends) > 0 {
		t.Errorf("%d backends, verdicts (-want +got)\n%s", len(s.route.Table.Backends), diff)
	}
}

func TestAnOwnWorkloadWaitsForTheAddressOfItsEndpoint(t *testing.T) {
	t.Parallel()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "helper-gateway", Namespace: "team", OwnerReferences: makeGateway().OwnerReferences},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.7"},
	}
	foreign := service.DeepCopy()
	foreign.OwnerReferences = nil
	for name, tt := range map[string]struct {
		service *corev1.Service
		status  metav1.ConditionStatus
	}{
		"its Service has one":        {service, metav1.ConditionTrue},
		"the Service is not its own": {foreign, metav1.ConditionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := makeReconciler(t, makeServer(), tt.service.DeepCopy())
			s := makeScope(t, r, makeAgent(withRuntime()))
			if out := s.validate(t.Context()); !out.IsDone() {
				t.Fatalf("outcome %+v", out)
			}
			got := conditionFrom(t, s.applyRuntime(t.Context()))
			if got.Status != tt.status || s.applied != (tt.status == metav1.ConditionTrue) {
				t.Errorf("%+v, applied %t", got, s.applied)
			}
		})
	}
}

// TestAnOwnWorkloadIsProtectedUntilItsLastPodIsGone: a pod that is told to end may go on until its grace period is over.
func TestAnOwnWorkloadIsProtectedUntilItsLastPodIsGone(t *testing.T) {
	t.Parallel()
	owners := makeGateway().OwnerReferences
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "helper", Namespace: "team", OwnerReferences: owners}}
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		return makePod("one", func(pod *corev1.Pod) { pod.Labels["mcp.operator/component"] = "runtime" }, change)
	}
	tests := map[string]struct {
		objects []client.Object
		stays   bool
	}{
		"its Deployment is there": {
			objects: []client.Object{makeGateway(func(d *appsv1.Deployment) { d.Name = "helper" })}, stays: true,
		},
		"a pod runs": {objects: []client.Object{pod(func(*corev1.Pod) {})}, stays: true},
		"a pod is told to end": {
			objects: []client.Object{pod(func(pod *corev1.Pod) {
				pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"example.com/wait"}
			})}, stays: true,
		},
		"a pod has ended":      {objects: []client.Object{pod(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })}},
		"no pod is left":       {},
		"a pod of the gateway": {objects: []client.Object{makePod("one")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := makeReconciler(t, append(tt.objects, makeServer(), policy.DeepCopy())...)
			s := makeScope(t, r, makeAgent())
			if out := s.validate(t.Context()); !out.IsDone() {
				t.Fatalf("outcome %+v", out)
			}
			s.observePods(t.Context())
			if out := s.removeSpare(t.Context()); !out.IsDone() {
				t.Fatalf("outcome %+v", out)
			}
			err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(policy), &networkingv1.NetworkPolicy{})
			if client.IgnoreNotFound(err) != nil || (err == nil) != tt.stays {
				t.Errorf("its policy: %v, want it to stay: %t", err, tt.stays)
			}
		})
	}
}

func TestTheHashTellsWhatWasReadApart(t *testing.T) {
	t.Parallel()
	refs := []reference{{Name: "a", Key: "k", field: "env"}, {Name: "b", Key: "k", field: "env", optional: true}}
	of := func(key string, values map[string]map[string]value) string {
		sum, err := hash([]byte(key), refs, values)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	sums := map[string]bool{
		of("key", map[string]map[string]value{"a": {"k": {text: "1"}}}):                           true,
		of("key", map[string]map[string]value{"a": {"k": {text: "2"}}}):                           true,
		of("other", map[string]map[string]value{"a": {"k": {text: "1"}}}):                         true,
		of("key", map[string]map[string]value{"a": {"k": {text: "1"}}, "b": {"k": {text: "1"}}}):  true,
		of("key", map[string]map[string]value{"a": {"k": {text: "1"}}, "b": {"x": {text: "no"}}}): true, // as the first
	}
	if len(sums) != 4 {
		t.Errorf("%d different hashes, want 4", len(sums))
	}
	if _, err := hash(nil, refs, nil); err == nil {
		t.Errorf("what is missing is not told: %v", err)
	}
	if sum, err := hash(nil, nil, nil); sum != "" || err != nil {
		t.Errorf("a hash over nothing: %q, %v", sum, err)
	}
}

package e2e

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// readySoon is what is promised from the create of a server whose image is there to Ready: two seconds on an idle cluster,
// and these tests run several at once.
const readySoon = 5 * time.Second

func imageOf(name string) string { return "mcp-operator/" + name + ":dev" }

// builder makes an MCPServer; a test names only what it is about.
type builder struct{ object *mcpv1alpha1.MCPServer }

// server is one that becomes Ready: the conformance server of the Go SDK.
func server(name string) builder {
	return builder{&mcpv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       mcpv1alpha1.MCPServerSpec{Image: imageOf("everything")},
	}}
}

func (b builder) image(name string) builder {
	b.object.Spec.Image = imageOf(name)
	return b
}

// echo makes it the image echo, with these arguments: it answers no MCP, and one can execute commands in it.
func (b builder) echo(args ...string) builder {
	b.object.Spec.Args = args
	return b.image("echo")
}

func (b builder) replicas(n int32) builder {
	b.object.Spec.Replicas = &n
	return b
}

func (b builder) with(change func(*mcpv1alpha1.MCPServerSpec)) builder {
	change(&b.object.Spec)
	return b
}

// running is a server in the cluster, with every state that it ever had.
type running struct {
	*fixture

	name    string
	created time.Time
	history *history
}

// run creates a server.
func (f *fixture) run(b builder) *running {
	f.t.Helper()
	s := &running{fixture: f, name: b.object.Name}
	s.history = record(f.t, &mcpv1alpha1.MCPServerList{}, client.InNamespace(f.namespace), client.MatchingFields{"metadata.name": s.name})
	f.t.Cleanup(s.checkEveryState)
	s.created = time.Now()
	f.create(b.object)
	return s
}

// edit changes the specification and returns the new generation.
func (s *running) edit(change func(*mcpv1alpha1.MCPServerSpec)) int64 {
	s.t.Helper()
	object := &mcpv1alpha1.MCPServer{}
	s.patch(s.name, object, func() { change(&object.Spec) })
	return object.Generation
}

// check returns what is not as it should be, or nothing.
type check func(*mcpv1alpha1.MCPServer) string

// await waits until the server's newest state passes all checks, counting from now.
func (s *running) await(what string, promised time.Duration, checks ...check) *mcpv1alpha1.MCPServer {
	s.t.Helper()
	return s.awaitOf(newest, time.Now(), what, promised, checks)
}

// awaitSince is await, counting from begin, and of any state since then.
func (s *running) awaitSince(begin time.Time, what string, promised time.Duration, checks ...check) *mcpv1alpha1.MCPServer {
	s.t.Helper()
	return s.awaitOf(since(begin), begin, what, promised, checks)
}

func (s *running) awaitOf(which choice, begin time.Time, what string, promised time.Duration, checks []check) *mcpv1alpha1.MCPServer {
	s.t.Helper()
	var found *mcpv1alpha1.MCPServer
	s.history.await(s.t, s.name+" "+what, begin, promised, func(states []state) string {
		object, instead := passing[*mcpv1alpha1.MCPServer](which(states), checks)
		found = object
		return instead
	})
	return found
}

// awaitReady waits until the server is Ready at its first generation, counting from its create.
func (s *running) awaitReady(promised time.Duration) *mcpv1alpha1.MCPServer {
	s.t.Helper()
	return s.awaitSince(s.created, "create -> Ready", promised, readyAt(1))
}

// readyAt asks for Ready at a generation: that is, that pods of it were verified, and that no other is left.
func readyAt(generation int64) check {
	return func(server *mcpv1alpha1.MCPServer) string {
		c := condition(server, mcpv1alpha1.ConditionReady)
		if c.Status != metav1.ConditionTrue || c.ObservedGeneration != generation {
			return fmt.Sprintf("Ready is %s at generation %d of %d: %s: %s", c.Status, c.ObservedGeneration, generation, c.Reason, c.Message)
		}
		return has(mcpv1alpha1.ConditionProgressing, metav1.ConditionFalse, mcpv1alpha1.ReasonSettled)(server)
	}
}

// has asks for a condition whose message contains all of the words.
func has(conditionType string, status metav1.ConditionStatus, reason string, words ...string) check {
	return func(server *mcpv1alpha1.MCPServer) string {
		c := condition(server, conditionType)
		if c.Status != status || c.Reason != reason || missing(c.Message, words) != nil {
			return fmt.Sprintf("%s is %s: %s: %s; wanted is %s: %s with %q", conditionType, c.Status, c.Reason, c.Message, status, reason, words)
		}
		return ""
	}
}

func phaseIs(phase mcpv1alpha1.Phase) check {
	return func(server *mcpv1alpha1.MCPServer) string {
		if server.Status.Phase != phase {
			return fmt.Sprintf("the phase is %q, not %q", server.Status.Phase, phase)
		}
		return ""
	}
}

func condition(server *mcpv1alpha1.MCPServer, conditionType string) metav1.Condition {
	if c := apimeta.FindStatusCondition(server.Status.Conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown, Reason: "NotThere"}
}

// states returns every state that the server had, from the n-th on.
func (s *running) states(n int) []*mcpv1alpha1.MCPServer {
	s.t.Helper()
	all, err := s.history.snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	var list []*mcpv1alpha1.MCPServer
	for _, st := range all[n:] {
		if server, ok := st.object.(*mcpv1alpha1.MCPServer); ok {
			list = append(list, server)
		}
	}
	return list
}

// mark returns how many states there are by now, for states and stayedReady.
func (s *running) mark() int {
	s.t.Helper()
	return len(s.states(0))
}

// stayedReady reports each state since mark in which Ready was not True.
func (s *running) stayedReady(mark int) {
	s.t.Helper()
	for _, server := range s.states(mark) {
		if c := condition(server, mcpv1alpha1.ConditionReady); c.Status != metav1.ConditionTrue {
			s.t.Errorf("%s flickered: Ready became %s: %s: %s", s.name, c.Status, c.Reason, c.Message)
		}
	}
	s.t.Logf("%s: Ready stayed True over %d states", s.name, len(s.states(mark)))
}

// neverReady reports each state in which Ready was True or an endpoint was published.
func (s *running) neverReady() {
	s.t.Helper()
	for _, server := range s.states(0) {
		if condition(server, mcpv1alpha1.ConditionReady).Status == metav1.ConditionTrue || server.Status.Endpoint != "" {
			s.t.Errorf("%s was Ready, or had an endpoint: %+v", s.name, server.Status)
		}
	}
}

// checkEveryState holds the server to what is true of every state of every server.
func (s *running) checkEveryState() {
	for _, server := range s.states(0) {
		ready := condition(server, mcpv1alpha1.ConditionReady)
		if ready.Status != metav1.ConditionTrue {
			continue
		}
		if server.Status.ReadyReplicas == 0 || server.Status.Endpoint == "" || condition(server, mcpv1alpha1.ConditionVerified).Status != metav1.ConditionTrue {
			s.t.Errorf("%s was Ready without a ready pod, an endpoint and a handshake: %+v", s.name, server.Status)
		}
	}
}

// pods returns the server's pods that are not ending.
func (s *running) pods() []corev1.Pod {
	s.t.Helper()
	list := &corev1.PodList{}
	if err := cluster.client.List(s.t.Context(), list, client.InNamespace(s.namespace), client.MatchingLabels{"mcp.operator/server": s.name}); err != nil {
		s.t.Fatalf("list the pods of %s: %v", s.name, err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp.IsZero() {
			pods = append(pods, pod)
		}
	}
	return pods
}

// podNames returns the names of the server's pods that are not ending.
func (s *running) podNames() map[string]bool {
	s.t.Helper()
	names := map[string]bool{}
	for _, pod := range s.pods() {
		names[pod.Name] = true
	}
	return names
}

// runningPod waits for the only pod to run, whether or not it becomes ready, and returns it.
func (s *running) runningPod() client.ObjectKey {
	s.t.Helper()
	var key client.ObjectKey
	await(s.t, s.name+" has a pod that runs", podStart, func() string {
		pods := s.pods()
		if len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("it has %d pods", len(pods))
		}
		key = client.ObjectKeyFromObject(&pods[0])
		return ""
	})
	return key
}

func (s *running) deployment() *appsv1.Deployment {
	s.t.Helper()
	d := &appsv1.Deployment{}
	s.read(s.name, d)
	return d
}

// address is the address of the server's Service.
func (s *running) address() string {
	return fmt.Sprintf("http://%s-svc.%s.svc.cluster.local:8080", s.name, s.namespace)
}

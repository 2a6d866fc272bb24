package mcpagent

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	crevent "sigs.k8s.io/controller-runtime/pkg/event"
	crreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/cluster"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/urgent"
)

// queue is a priority queue that only remembers.
type queue struct {
	priorityqueue.PriorityQueue[crreconcile.Request]

	priorities []int
	names      []string
}

func (q *queue) Add(request crreconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

func (q *queue) AddWithOpts(opts priorityqueue.AddOpts, requests ...crreconcile.Request) {
	priority := 0
	if opts.Priority != nil {
		priority = *opts.Priority
	}
	for _, request := range requests {
		q.priorities, q.names = append(q.priorities, priority), append(q.names, request.Name)
	}
}

func TestWhatMayWithdrawAGrantOvertakesEverythingThatWaits(t *testing.T) {
	t.Parallel()
	const ahead = 100
	version := func(version string, generation int64) *mcpv1alpha1.MCPAgent {
		return makeAgent(func(agent *mcpv1alpha1.MCPAgent) { agent.ResourceVersion, agent.Generation = version, generation })
	}
	going := version("3", 2)
	going.DeletionTimestamp = new(metav1.Now())
	later := going.DeepCopy()
	later.ResourceVersion = "4"
	tool := func(kind string, status metav1.ConditionStatus, reason string) *mcpv1alpha1.MCPTool {
		return &mcpv1alpha1.MCPTool{
			ObjectMeta: metav1.ObjectMeta{Name: "helper", ResourceVersion: string(status) + reason},
			Status:     mcpv1alpha1.MCPToolStatus{Conditions: []metav1.Condition{{Type: kind, Status: status, Reason: reason}}},
		}
	}
	server := func(status metav1.ConditionStatus) *mcpv1alpha1.MCPServer {
		s := makeServer()
		s.ResourceVersion, s.Status.Conditions = string(status), []metav1.Condition{{Type: "Accepted", Status: status}}
		return s
	}
	handler := urgent.Handler(urgent.Itself, withdraws)
	turns := func(was, is client.Object) func(*queue) {
		return func(q *queue) { handler.Update(t.Context(), update(was, is), q) }
	}
	tests := map[string]struct {
		do   func(*queue)
		want int
	}{
		"an edit":                     {turns(version("1", 1), version("2", 2)), ahead},
		"a status":                    {turns(version("1", 2), version("2", 2)), 0},
		"a resync":                    {turns(version("1", 2), version("1", 2)), -100},
		"a deletion":                  {func(q *queue) { handler.Delete(t.Context(), crevent.DeleteEvent{Object: version("1", 1)}, q) }, ahead},
		"a deletion that waits":       {turns(version("2", 2), going), ahead},
		"what is told while it waits": {turns(going, later), 0},
		"a tool that may not send its credential": {turns(tool("Accepted", "True", ""), tool("Accepted", "False", "SecretNotAllowed")), ahead},
		"a tool that is judged again":             {turns(tool("Accepted", "True", ""), tool("Accepted", "Unknown", "")), ahead},
		"a tool that lost its definitions":        {turns(tool("Applied", "True", ""), tool("Applied", "False", "")), ahead},
		"a tool whose address is denied":          {turns(tool("Reachable", "True", ""), tool("Reachable", "False", "AddressDenied")), ahead},
		"a tool that does not answer":             {turns(tool("Reachable", "True", ""), tool("Reachable", "False", "ConnectFailed")), 0},
		"a tool that is accepted":                 {turns(tool("Accepted", "False", "Invalid"), tool("Accepted", "True", "")), 0},
		"a server that is not accepted any more":  {turns(server("True"), server("False")), ahead},
		"a new agent":                             {func(q *queue) { handler.Create(t.Context(), crevent.CreateEvent{Object: version("1", 1)}, q) }, 0},
		"the beginning": {func(q *queue) {
			handler.Create(t.Context(), crevent.CreateEvent{Object: version("1", 1), IsInInitialList: true}, q)
		}, -100},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &queue{}
			tt.do(q)
			if diff := cmp.Diff([]int{tt.want}, q.priorities); diff != "" {
				t.Errorf("priority (-want +got)\n%s", diff)
			}
		})
	}
}

func update(was, is client.Object) crevent.UpdateEvent {
	return crevent.UpdateEvent{ObjectOld: was, ObjectNew: is}
}

func TestOnlyChangesThatTellSomethingWakeAnAgent(t *testing.T) {
	t.Parallel()
	server := func(change func(*mcpv1alpha1.MCPServer)) *mcpv1alpha1.MCPServer {
		s := makeServer()
		change(s)
		return s
	}
	scaler := func(change func(*autoscalingv2.HorizontalPodAutoscaler)) *autoscalingv2.HorizontalPodAutoscaler {
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "helper", ResourceVersion: "1"}}
		change(h)
		return h
	}
	same := func(*autoscalingv2.HorizontalPodAutoscaler) {}
	tests := map[string]struct {
		passes bool
		want   bool
	}{
		"a label of a server": {beyondMetadata().Update(update(makeServer(), server(func(s *mcpv1alpha1.MCPServer) {
			s.Labels, s.ResourceVersion = map[string]string{"a": "b"}, "9"
		}))), false},
		"an edit of a server": {beyondMetadata().Update(update(makeServer(), server(func(s *mcpv1alpha1.MCPServer) { s.Generation = 9 }))), true},
		"the status of a server": {beyondMetadata().Update(update(makeServer(), server(func(s *mcpv1alpha1.MCPServer) {
			s.Status.Conditions = []metav1.Condition{accepted}
		}))), true},
		"another server of its name": {beyondMetadata().Update(update(makeServer(), server(func(s *mcpv1alpha1.MCPServer) { s.UID = "other" }))), true},
		"the status of an autoscaler": {beyondStatus().Update(update(scaler(same), scaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Status.CurrentReplicas, h.ResourceVersion = 3, "2"
		}))), false},
		"an edit of an autoscaler": {beyondStatus().Update(update(scaler(same), scaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.MaxReplicas = 3
		}))), true},
		"another owner of an autoscaler": {beyondStatus().Update(update(scaler(same), scaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.OwnerReferences = makeGateway().OwnerReferences
		}))), true},
	}
	for name, tt := range tests {
		if tt.passes != tt.want {
			t.Errorf("%s wakes: %t, want %t", name, tt.passes, tt.want)
		}
	}
}

func TestAnObjectWakesTheAgentsThatItsNameOrUseTells(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t, makeAgent(), makeAgent(func(agent *mcpv1alpha1.MCPAgent) { agent.Name, agent.UID = "helper-gateway", "uid-2" }))
	of := func(name string, suffixes ...string) []string {
		q := &queue{}
		obj := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"}}
		r.byName(suffixes...).Create(t.Context(), crevent.CreateEvent{Object: obj}, q)
		return q.names
	}
	tests := map[string]struct{ got, want []string }{
		"a Service of a gateway": {of("helper-gateway", "-gateway"), []string{"helper"}},
		// No such agent can be made, but the cache does not know that.
		"a name that may be of two": {of("helper-gateway", "-gateway", ""), []string{"helper", "helper-gateway"}},
		"a name of no agent":        {of("nobody-gateway", "-gateway"), nil},
		"a name without the suffix": {of("helper", "-gateway"), nil},
		"an own workload's":         {of("helper", ""), []string{"helper"}},
		"a pod":                     {namesOf(agentOfPod(t.Context(), makePod("one"))), []string{"helper"}},
		"a pod of something else":   {namesOf(agentOfPod(t.Context(), &corev1.Pod{})), nil},
		"grants of servers, once each": {grantedServers(makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
			agent.Spec.ServerRef = &mcpv1alpha1.ObjectName{Name: "web"}
		})), []string{"web"}},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func namesOf(requests []crreconcile.Request) []string {
	var names []string
	for _, request := range requests {
		names = append(names, request.Name)
	}
	return names
}

func TestNewsOfTheClusterWakeEveryAgent(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t, makeAgent(), makeAgent(func(agent *mcpv1alpha1.MCPAgent) { agent.Name, agent.UID = "other", "uid-2" }))
	r.wakeAll(t.Context())
	got := map[types.NamespacedName]bool{(<-r.woken).Object: true, (<-r.woken).Object: true}
	want := map[types.NamespacedName]bool{{Namespace: "team", Name: "helper"}: true, {Namespace: "team", Name: "other"}: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("woken (-want +got)\n%s", diff)
	}
}

// TestNothingIsDoneBeforeTheClusterIsKnown: the conditions of an agent would else tell of a problem that passes in a moment.
func TestNothingIsDoneBeforeTheClusterIsKnown(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t, makeAgent(), makeServer())
	request := crreconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "helper"}}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	agent := &mcpv1alpha1.MCPAgent{}
	if err := r.Client.Get(t.Context(), request.NamespacedName, agent); err != nil || len(agent.Status.Conditions) > 0 {
		t.Errorf("conditions %+v, %v", agent.Status.Conditions, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cluster = cluster.New(cluster.Options{ReadPath: r.ReadPath, Addresses: r.Addresses, Changed: func(context.Context) { cancel() }})
	if err := r.cluster.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	err := r.Client.Get(t.Context(), request.NamespacedName, agent)
	if err != nil || reconcile.ConditionOf(agent.Status.Conditions, "Accepted").Status != "True" {
		t.Errorf("conditions %+v, %v", agent.Status.Conditions, err)
	}
	if got := reconcile.ConditionOf(agent.Status.Conditions, "Applied"); got.Status != "Unknown" {
		t.Errorf("the addresses of the API server are not known, and Applied is %+v", got)
	}
	if left := r.patience(request.NamespacedName); left <= 0 {
		t.Errorf("what is stored counted until %s ago, and the operator has only just begun", -left)
	}
}

func TestAnAgentThatIsGoneLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t)
	key := types.NamespacedName{Namespace: "team", Name: "gone"}
	r.remember(key, func(m *memory) { m.revision = "x" })
	recordConditions(makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
		agent.Name, agent.Status.Conditions = "gone", []metav1.Condition{accepted}
	}))
	if _, err := r.Reconcile(t.Context(), crreconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	recorded.Lock()
	defer recorded.Unlock()
	if len(r.memories) > 0 || len(recorded.series[key]) > 0 {
		t.Errorf("kept: %v, %v", r.memories, recorded.series[key])
	}
}

package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestOnlyChangesOfPodsThatTellSomethingWakeAServer(t *testing.T) {
	t.Parallel()
	container := func(change func(*corev1.ContainerStatus)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { change(&pod.Status.ContainerStatuses[0]) }
	}
	state := func(state corev1.ContainerState) *corev1.Pod {
		return makePod(container(func(c *corev1.ContainerStatus) { c.State = state }))
	}
	tests := map[string]struct {
		was, is *corev1.Pod
		want    bool
	}{
		"nothing":                     {makePod(), makePod(), false},
		"another resource version":    {makePod(), makePod(func(pod *corev1.Pod) { pod.ResourceVersion = "9" }), false},
		"a heartbeat of a condition":  {makePod(ready), makePod(ready, func(pod *corev1.Pod) { pod.Status.Conditions[0].LastProbeTime = ago(0) }), false},
		"a label":                     {makePod(), makePod(func(pod *corev1.Pod) { pod.Labels["team"] = "a" }), false},
		"it becomes ready":            {makePod(), makePod(ready), true},
		"it is no longer ready":       {makePod(ready), makePod(), true},
		"it is being deleted":         {makePod(), makePod(func(pod *corev1.Pod) { pod.DeletionTimestamp = new(ago(0)) }), true},
		"it gets an address":          {makePod(func(pod *corev1.Pod) { pod.Status.PodIP = "" }), makePod(), true},
		"its image cannot be pulled":  {makePod(), state(waiting("ErrImagePull", "not found")), true},
		"it crashes once more":        {makePod(container(crashed(1))), makePod(container(crashed(2))), true},
		"it starts after it was made": {state(waiting("ContainerCreating", "")), makePod(), false},
		"it runs, and says so again":  {state(running(time.Hour)), state(running(time.Minute)), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := podTellsSomething().Update(event.UpdateEvent{ObjectOld: tt.was, ObjectNew: tt.is}); got != tt.want {
				t.Errorf("wakes: %t, want %t", got, tt.want)
			}
		})
	}
	p := podTellsSomething()
	if !p.Create(event.CreateEvent{Object: makePod()}) || !p.Delete(event.DeleteEvent{Object: makePod()}) {
		t.Error("a pod that comes or goes does not wake its server")
	}
}

func crashed(restarts int32) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		c.State, c.LastTerminationState, c.RestartCount = waiting("CrashLoopBackOff", ""), ended(1, "Error"), restarts
	}
}

func TestAPodWakesTheServerThatItsLabelNames(t *testing.T) {
	t.Parallel()
	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "team", Name: "demo"}}}
	if diff := cmp.Diff(want, (&Reconciler{}).serverOfPod(t.Context(), makePod())); diff != "" {
		t.Errorf("requests (-want +got)\n%s", diff)
	}
	foreign := makePod(func(pod *corev1.Pod) { pod.Labels = map[string]string{"mcp-server": "demo"} })
	if got := (&Reconciler{}).serverOfPod(t.Context(), foreign); got != nil {
		t.Errorf("a pod of another kind wakes %v", got)
	}
}

// added is a queue that only remembers.
type added struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	requests []reconcile.Request
}

func (q *added) Add(request reconcile.Request) { q.requests = append(q.requests, request) }

func TestAChildWakesTheServerOfItsName(t *testing.T) {
	t.Parallel()
	r := &Reconciler{Client: makeStore(t, makeServer())}
	tests := map[string]struct {
		suffix, name, namespace string
		want                    int
	}{
		"a Deployment":                      {"", "demo", "team", 1},
		"a Service":                         {"-svc", "demo-svc", "team", 1},
		"a Service of another name":         {"-svc", "demo", "team", 0},
		"a Deployment of no server":         {"", "web", "team", 0},
		"a Deployment of another namespace": {"", "demo", "other", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := &added{}
			obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tt.name, Namespace: tt.namespace}}
			r.byName(tt.suffix).Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: obj}, queue)
			if len(queue.requests) != tt.want {
				t.Errorf("woken: %v, want %d", queue.requests, tt.want)
			}
		})
	}
}

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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
			r, queue := &Reconciler{Client: makeStore(t, makeServer())}, &added{} // the store notes reads of one test
			obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tt.name, Namespace: tt.namespace}}
			r.byName(tt.suffix).Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: obj}, queue)
			if len(queue.requests) != tt.want {
				t.Errorf("woken: %v, want %d", queue.requests, tt.want)
			}
		})
	}
}

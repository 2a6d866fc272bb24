package urgent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// makeSecret returns a Secret, changed as asked.
func makeSecret(changes ...func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo", UID: "uid-demo", Generation: 1}}
	for _, change := range changes {
		change(secret)
	}
	return secret
}

func going(s *corev1.Secret)   { s.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }
func edited(s *corev1.Secret)  { s.Generation++ }
func another(s *corev1.Secret) { s.UID = "uid-another" }
func told(s *corev1.Secret)    { s.Labels = map[string]string{"a": "b"} }

// tell passes an event on, to a queue in which somebody else waits, and returns who comes first.
func tell(t *testing.T, e any) string {
	t.Helper()
	handler := Handler(Itself, IsEdited)
	queue := priorityqueue.New[reconcile.Request](t.Name())
	defer queue.ShutDown()
	waiting := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "waiting"}}
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority / 2)}, waiting)
	switch e := e.(type) {
	case event.CreateEvent:
		handler.Create(t.Context(), e, queue)
	case event.UpdateEvent:
		handler.Update(t.Context(), e, queue)
	case event.DeleteEvent:
		handler.Delete(t.Context(), e, queue)
	}
	first, _ := queue.Get()
	second, _ := queue.Get()
	if first == second {
		t.Errorf("it woke nobody: %v", first)
	}
	return first.Name
}

func TestWhatMayWithdrawSomethingOvertakesWhatWaits(t *testing.T) {
	t.Parallel()
	update := func(was, is client.Object) any { return event.UpdateEvent{ObjectOld: was, ObjectNew: is} }
	tests := map[string]struct {
		event any
		want  string
	}{
		"a new object":                       {event.CreateEvent{Object: makeSecret()}, "waiting"},
		"what withdraws nothing":             {update(makeSecret(), makeSecret(told)), "waiting"},
		"what withdraws":                     {update(makeSecret(), makeSecret(edited)), "demo"},
		"an object that begins to go":        {update(makeSecret(), makeSecret(going)), "demo"},
		"one that goes, again":               {update(makeSecret(going), makeSecret(going, told)), "waiting"},
		"another object of the name":         {update(makeSecret(), makeSecret(another)), "demo"},
		"an object that is gone":             {event.DeleteEvent{Object: makeSecret()}, "demo"},
		"one that is gone after it was told": {event.DeleteEvent{Object: makeSecret(going)}, "demo"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tell(t, tt.event); got != tt.want {
				t.Errorf("%s comes first, want %s", got, tt.want)
			}
		})
	}
}

func TestAQueueWithoutPrioritiesIsServedToo(t *testing.T) {
	t.Parallel()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	Handler(Itself, IsEdited).Delete(t.Context(), event.DeleteEvent{Object: makeSecret()}, queue)
	if got, _ := queue.Get(); got.Name != "demo" {
		t.Errorf("it woke %v", got)
	}
}

// Package urgent puts what may withdraw something before everything else that a controller has waiting: a tool, a grant, a permission to
// send a credential. It knows no kind.
package urgent

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// priority overtakes everything that waits; what is usual has 0, and what is of the first list less.
const priority = 100

type queueOf = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Handler wakes what find finds by an object that was made, changed or deleted. That is urgent when the object goes, or is another one of
// its name, or when withdraws says so of an update. Further updates of an object that waits for its finalizers are not: it went before.
func Handler(find handler.MapFunc, withdraws func(was, is client.Object) bool) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue queueOf) {
			add(queue, find(ctx, e.Object), nil) // of the first list low, by handler.Funcs
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queueOf) {
			var is *int
			goes := e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
			if goes || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || withdraws(e.ObjectOld, e.ObjectNew) {
				is = new(priority)
			}
			add(queue, find(ctx, e.ObjectNew), is)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queueOf) {
			add(queue, find(ctx, e.Object), new(priority))
		},
	}
}

func add(queue queueOf, requests []reconcile.Request, priority *int) {
	for _, request := range requests {
		if prioritised, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			prioritised.AddWithOpts(priorityqueue.AddOpts{Priority: priority}, request)
			continue
		}
		queue.Add(request)
	}
}

// Itself finds an object by itself.
func Itself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// IsEdited says whether a specification changed, or an object began to be deleted.
func IsEdited(was, is client.Object) bool { return was.GetGeneration() != is.GetGeneration() }

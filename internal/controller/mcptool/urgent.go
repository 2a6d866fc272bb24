package mcptool

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// urgent is the priority of what may withdraw a tool: it overtakes everything that waits.
const urgent = 100

type queueOf = workqueue.TypedRateLimitingInterface[reconcile.Request]

// urgently puts tools before everything else when what they are found by goes, or changes so that they may have to be withdrawn.
func urgently(find handler.MapFunc, withdraws func(was, is client.Object) bool) handler.EventHandler {
	add := func(ctx context.Context, obj client.Object, priority *int, queue queueOf) {
		for _, request := range find(ctx, obj) {
			if prioritised, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
				prioritised.AddWithOpts(priorityqueue.AddOpts{Priority: priority}, request)
				continue
			}
			queue.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue queueOf) {
			add(ctx, e.Object, nil, queue) // of the first list low, by handler.Funcs
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queueOf) {
			var priority *int
			goes := e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
			if goes || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || withdraws(e.ObjectOld, e.ObjectNew) {
				priority = new(urgent)
			}
			add(ctx, e.ObjectNew, priority, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queueOf) {
			add(ctx, e.Object, new(urgent), queue)
		},
	}
}

func itself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// isEdited: a specification that is not accepted any more has to be told of.
func isEdited(was, is client.Object) bool { return was.GetGeneration() != is.GetGeneration() }

// isRestricted: a Secret that says otherwise where it may be sent.
func isRestricted(was, is client.Object) bool {
	before, restricted := was.GetAnnotations()[mcpv1alpha1.AnnotationAllowedHosts]
	now, isRestricted := is.GetAnnotations()[mcpv1alpha1.AnnotationAllowedHosts]
	return restricted != isRestricted || before != now
}

// never: a change of content may be anything, and comes as often as its author likes.
func never(client.Object, client.Object) bool { return false }

package probe

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// lane is a queue with workers of its own, so that those in it wait for nobody in another one.
type lane int

const (
	// fresh is for those somebody waits for: new servers, new generations, and servers that only just began to fail.
	fresh lane = iota
	// healthy is for those that answered the last time, and quickly.
	healthy
	// failing is for those that have failed for a while, or that kept a worker waiting, whatever came of it.
	failing

	lanes
)

const (
	// A server with so many failures in a row goes to the failing lane.
	freshFailures = 5

	// One that took so long to fail goes there at once: a few of them would keep all workers of the fresh lane busy.
	slowFailure = time.Second
)

// laneOf returns the lane of an address that does not answer, or was never asked.
func laneOf(s *streak) lane {
	if s.failures >= freshFailures || s.slow {
		return failing
	}
	return fresh
}

// queue returns an empty queue. In the fresh lane the last to come is served first: so however many of those before it are
// dead, a new server waits only until one worker is free.
func (l lane) queue() workqueue.TypedDelayingInterface[types.UID] {
	var order workqueue.Queue[types.UID] // nil: first come, first served
	if l == fresh {
		order = &lastFirst{}
	}
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.UID]{Queue: order}),
	})
}

// lastFirst is a stack.
type lastFirst struct{ items []types.UID }

// Touch does nothing: an item that is added again keeps its place.
func (*lastFirst) Touch(types.UID) {}

// Push adds an item.
func (q *lastFirst) Push(item types.UID) { q.items = append(q.items, item) }

// Len is the number of items.
func (q *lastFirst) Len() int { return len(q.items) }

// Pop takes the item that was added last.
func (q *lastFirst) Pop() types.UID {
	last := len(q.items) - 1
	item := q.items[last]
	q.items = q.items[:last]
	return item
}

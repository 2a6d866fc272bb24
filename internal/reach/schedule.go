// Package reach finds out, away from the reconcile workers, whether the endpoints of tools can be connected to, and fetches the documents
// that tools are made of.
//
// It guarantees that no address is dialled that the guard denies, that a dead endpoint delays nobody else (what is new, what
// works and what fails have workers of their own, and what fails is tried less and less often), and that an answer for what is not asked
// for any more is dropped. It makes no request to the Kubernetes API.
package reach

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// Subject is the object for which something is found out.
type Subject struct {
	UID types.UID
	Key types.NamespacedName
}

// task is something to do for a subject again and again. What came of one holds for those that are the same, whatever else changed in
// the object.
type task interface {
	subject() Subject
	same(other task) bool
}

// lane is a queue with workers of its own.
type lane int

const (
	// fresh is for what was never tried. The last to come is served first: however many before it are dead, somebody waits for it.
	fresh lane = iota
	// working is for what went well the last time.
	working
	// failing is for what failed the last time.
	failing

	lanes
)

// pace is how often something is done.
type pace struct {
	interval    time.Duration // after a success, spread by a tenth
	first, last time.Duration // after the first failure in a row, and at most
}

func (p pace) after(failures int) time.Duration {
	if failures == 0 {
		return time.Duration(float64(p.interval) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // G404: spreads load, guards nothing
	}
	return min(p.first<<min(failures-1, 16), p.last)
}

// entry is what is known for one subject.
type entry[T task, R any] struct {
	task     T
	result   R
	tried    bool
	failures int // in a row
	next     time.Time
	running  bool
}

// scheduler does tasks, by workers of its own.
type scheduler[T task, R any] struct {
	pace    pace
	workers int

	// do does a task once. last is its result before, the zero one at first. It says whether that went well.
	do func(ctx context.Context, task T, last R) (result R, ok bool)
	// equal says whether two results tell the same.
	equal func(a, b R) bool
	// notify is called when the result for a subject changed. It may block until ctx ends.
	notify func(ctx context.Context, key types.NamespacedName)

	queues [lanes]workqueue.TypedDelayingInterface[types.UID]

	mu      sync.Mutex
	entries map[types.UID]*entry[T, R]
	uids    map[types.NamespacedName]types.UID // of the entries
}

// init makes the queues; the fields above are set.
func (s *scheduler[T, R]) init() *scheduler[T, R] {
	for l := range s.queues {
		var order workqueue.Queue[types.UID] // nil: first come, first served
		if lane(l) == fresh {
			order = &lastFirst{}
		}
		s.queues[l] = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.UID]{Queue: order}),
		})
	}
	s.entries, s.uids = map[types.UID]*entry[T, R]{}, map[types.NamespacedName]types.UID{}
	return s
}

// Start runs the workers until ctx ends, and returns when all have stopped.
func (s *scheduler[T, R]) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for l := range s.queues {
		for range s.workers {
			workers.Go(func() { s.work(ctx, lane(l)) })
		}
	}
	<-ctx.Done()
	for _, queue := range s.queues {
		queue.ShutDown()
	}
	workers.Wait()
	return nil
}

// NeedLeaderElection says that only the leader does this.
func (*scheduler[T, R]) NeedLeaderElection() bool { return true }

// observe tells of a task as it is now, and returns what is known of exactly that.
func (s *scheduler[T, R]) observe(t T) R {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := t.subject()
	e := s.entries[who.UID]
	if e == nil {
		e = &entry[T, R]{}
		delete(s.entries, s.uids[who.Key]) // an object of this name that was deleted and created again
		s.entries[who.UID], s.uids[who.Key] = e, who.UID
	} else if e.task.same(t) {
		e.task = t
		return e.result
	}
	*e = entry[T, R]{task: t, running: e.running}
	s.schedule(e)
	return e.result
}

// Forget drops what is known for an object that is gone, or that asks for nothing.
func (s *scheduler[T, R]) Forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, s.uids[key])
	delete(s.uids, key)
}

// schedule puts an entry into its lane. The caller holds the lock.
func (s *scheduler[T, R]) schedule(e *entry[T, R]) {
	if !e.running { // else the worker does when it is done
		s.queues[e.lane()].AddAfter(e.task.subject().UID, time.Until(e.next))
	}
}

func (e *entry[T, R]) lane() lane {
	switch {
	case e.failures > 0:
		return failing
	case e.tried:
		return working
	}
	return fresh
}

func (s *scheduler[T, R]) work(ctx context.Context, l lane) {
	for {
		uid, shutdown := s.queues[l].Get()
		if shutdown {
			return
		}
		s.runOne(ctx, l, uid)
		s.queues[l].Done(uid)
	}
}

func (s *scheduler[T, R]) runOne(ctx context.Context, l lane, uid types.UID) {
	s.mu.Lock()
	e := s.entries[uid]
	if e == nil || e.running || e.lane() != l {
		s.mu.Unlock()
		return
	}
	if e.next.After(time.Now()) {
		s.schedule(e)
		s.mu.Unlock()
		return
	}
	asked, last := e.task, e.result
	e.running = true
	s.mu.Unlock()

	result, ok := s.do(ctx, asked, last)

	s.mu.Lock()
	e.running = false
	if s.entries[uid] != e || ctx.Err() != nil { // forgotten meanwhile, or at the end
		s.mu.Unlock()
		return
	}
	changed := false
	if e.task.same(asked) {
		changed = !s.equal(e.result, result)
		e.result, e.tried = result, true
		e.failures++
		if ok {
			e.failures = 0
		}
		e.next = time.Now().Add(s.pace.after(e.failures))
	}
	s.schedule(e)
	s.mu.Unlock()
	if changed {
		s.notify(ctx, asked.subject().Key)
	}
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

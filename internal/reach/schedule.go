// Package reach does for tools, away from the reconcile workers, what takes time: a Checker finds out whether endpoints can be connected to, a
// Fetcher fetches the documents that tools are made of, and a Maker makes something of what the cluster holds.
//
// It guarantees that no address is dialled that the guard denies, that a dead endpoint delays nobody else (what is new, what
// works and what fails have workers of their own, and what fails is tried less and less often), that namespaces come in turn and one of
// them keeps at most half of the workers busy, that an answer for what is not asked for any more is dropped, and that a panic is a failed
// attempt. It makes no request to the Kubernetes API; what a Maker or a Fetcher is given to make may.
package reach

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/fair"
	"github.com/mcp-operator/mcp-operator/internal/fault"
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
	// fresh is for what was never tried.
	fresh lane = iota
	// working is for what went well the last time.
	working
	// failing is for what failed the last time.
	failing

	lanes
)

// pace is how often something is done.
type pace struct {
	once        bool          // not again after a success
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

	timer  *time.Timer // until next; nil if there is none
	queued bool        // in its lane
	in     lane        // that one
	cancel func()      // of the attempt that is under way; nil if there is none
}

// stop ends what is under way, of which nobody wants to know any more.
func (e *entry[T, R]) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
	if e.cancel != nil {
		e.cancel()
	}
}

// scheduler does tasks, by workers of its own.
type scheduler[T task, R any] struct {
	pace    pace
	workers int // of each lane

	// do does a task once, and returns soon after ctx ended. last is its result before, the zero one at first. It says whether that went
	// well.
	do func(ctx context.Context, task T, last R) (result R, ok bool)
	// failed is the result of an attempt that ended in a panic, which became err.
	failed func(last R, err error) R
	// equal says whether two results tell the same.
	equal func(a, b R) bool
	// notify is called when the result for a subject changed. It may block until ctx ends.
	notify func(ctx context.Context, key types.NamespacedName)

	mu      sync.Mutex
	queues  [lanes]*fair.Lane[types.UID]
	entries map[types.UID]*entry[T, R]
	uids    map[types.NamespacedName]types.UID // of the entries
}

// init makes the queues; the fields above are set.
func (s *scheduler[T, R]) init() *scheduler[T, R] {
	for l := range s.queues {
		s.queues[l] = fair.NewLane[types.UID](&s.mu, s.workers, fair.Alternating)
	}
	s.entries, s.uids = map[types.UID]*entry[T, R]{}, map[types.NamespacedName]types.UID{}
	return s
}

// Start runs the workers until ctx ends, and returns when all have stopped.
func (s *scheduler[T, R]) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for l, queue := range s.queues {
		for range s.workers {
			workers.Go(func() { queue.Work(func(uid types.UID) { s.runOne(ctx, lane(l), uid) }) })
		}
	}
	<-ctx.Done()
	for _, queue := range s.queues {
		queue.Stop()
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
		s.drop(who.Key) // an object of this name that was deleted and created again
		s.entries[who.UID], s.uids[who.Key] = e, who.UID
	} else if e.task.same(t) {
		e.task = t
		return e.result
	}
	e.stop()
	*e = entry[T, R]{task: t, queued: e.queued, in: e.in, cancel: e.cancel}
	s.schedule(e)
	return e.result
}

// Forget drops what is known for an object that is gone, or that asks for nothing.
func (s *scheduler[T, R]) Forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

// drop forgets an object. The caller holds the lock.
func (s *scheduler[T, R]) drop(key types.NamespacedName) {
	uid, known := s.uids[key]
	if !known {
		return
	}
	s.entries[uid].stop()
	delete(s.entries, uid)
	delete(s.uids, key)
}

// schedule puts an entry into its lane when it is time. The caller holds the lock.
func (s *scheduler[T, R]) schedule(e *entry[T, R]) {
	if e.cancel != nil {
		return // the worker does when it is done
	}
	uid := e.task.subject().UID
	if wait := time.Until(e.next); wait > 0 {
		e.timer = time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.entries[uid] == e && e.cancel == nil && !e.next.After(time.Now()) {
				s.enqueue(uid, e)
			}
		})
		return
	}
	s.enqueue(uid, e)
}

// enqueue puts an entry into its lane. The caller holds the lock.
func (s *scheduler[T, R]) enqueue(uid types.UID, e *entry[T, R]) {
	l := e.lane()
	if e.queued && e.in == l {
		return
	}
	e.queued, e.in = true, l // in a lane that it left it is passed over
	s.queues[l].Push(e.task.subject().Key.Namespace, uid)
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

// attempt is one at a task.
type attempt[T task, R any] struct {
	entry *entry[T, R]
	task  T
	last  R
}

// begin begins an attempt for a subject, if it is of the lane and its time has come. cancel is called when nobody asks for it any more.
func (s *scheduler[T, R]) begin(l lane, uid types.UID, cancel func()) (a attempt[T, R], ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[uid]
	if e == nil || !e.queued || e.in != l {
		return a, false
	}
	e.queued = false
	if e.cancel != nil || e.lane() != l || e.next.After(time.Now()) {
		return a, false
	}
	e.cancel = cancel
	return attempt[T, R]{entry: e, task: e.task, last: e.result}, true
}

func (s *scheduler[T, R]) runOne(ctx context.Context, l lane, uid types.UID) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	a, ok := s.begin(l, uid, cancel)
	if !ok {
		return
	}
	result, ok := s.try(own, a)
	if ctx.Err() == nil && s.end(own, a, result, ok) {
		s.notify(ctx, a.task.subject().Key)
	}
}

// try does what the attempt is at.
func (s *scheduler[T, R]) try(ctx context.Context, a attempt[T, R]) (result R, ok bool) {
	err := func() (err error) {
		defer fault.Catch(a.task.subject().Key.String(), &err)
		result, ok = s.do(ctx, a.task, a.last)
		return nil
	}()
	if err != nil {
		return s.failed(a.last, err), false
	}
	return result, ok
}

// end notes the result of an attempt, and says whether it tells something new. ctx is that of the attempt.
func (s *scheduler[T, R]) end(ctx context.Context, a attempt[T, R], result R, ok bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := a.entry
	e.cancel = nil
	isWanted := ctx.Err() == nil && e.task.same(a.task)
	if s.entries[e.task.subject().UID] != e {
		return false // forgotten
	}
	if isWanted {
		changed = !s.equal(e.result, result)
		e.result, e.tried = result, true
		e.failures++
		if ok {
			e.failures = 0
		}
		if ok && s.pace.once {
			return changed
		}
		e.next = time.Now().Add(s.pace.after(e.failures))
	}
	s.schedule(e)
	return changed
}

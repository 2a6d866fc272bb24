package fair

import "sync"

// Lane is a Queue and what its workers wait at. Make it with NewLane. It is guarded by the lock of whoever has it: that is held for Push and
// all that a Queue does, and not for Work and Stop.
type Lane[T any] struct {
	Queue[T]

	news    *sync.Cond // something may be taken, or it is the end
	stopped bool
}

// NewLane returns an empty Lane for so many workers, of which one namespace keeps at most half busy, and at least one.
func NewLane[T any](lock sync.Locker, workers int, order Order) *Lane[T] {
	return &Lane[T]{Queue: Queue[T]{Most: max(1, workers/2), Order: order}, news: sync.NewCond(lock)}
}

// Push adds an item.
func (l *Lane[T]) Push(namespace string, item T) {
	l.Queue.Push(namespace, item)
	l.news.Signal()
}

// Work is what a worker does: one item after the other, each when it is its turn, until Stop. The lock is not held meanwhile.
func (l *Lane[T]) Work(do func(item T)) {
	l.news.L.Lock()
	defer l.news.L.Unlock()
	for !l.stopped {
		namespace, item, ok := l.Pop()
		if !ok {
			l.news.Wait()
			continue
		}
		l.news.L.Unlock()
		do(item)
		l.news.L.Lock()
		l.Done(namespace)
		l.news.Signal() // what waits of that namespace may go on
	}
}

// Stop ends the workers when each is done with its item. What waits is given up.
func (l *Lane[T]) Stop() {
	l.news.L.Lock()
	defer l.news.L.Unlock()
	l.stopped = true
	l.news.Broadcast()
}

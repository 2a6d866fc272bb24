package fair

import (
	"context"
	"sync"
)

// Gate lets one through at a time, namespaces in turn. The zero value is open. It is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	taken   bool
	waiting Queue[*waiter]
}

// waiter waits at a gate.
type waiter struct {
	admitted chan struct{} // closed when it is let through
	left     bool          // it does not wait any more
}

// Do does something for a namespace when it is let through. If ctx ends before, it returns its error and does nothing.
func (g *Gate) Do(ctx context.Context, namespace string, do func()) error {
	w := &waiter{admitted: make(chan struct{})}
	g.mu.Lock()
	g.waiting.Push(namespace, w)
	g.admit()
	g.mu.Unlock()
	select {
	case <-w.admitted:
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		w.left = true
		select {
		case <-w.admitted: // at the same moment
			g.leave(namespace)
		default:
		}
		return ctx.Err()
	}
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.leave(namespace)
	}()
	do()
	return nil
}

// leave makes room. The caller holds the lock.
func (g *Gate) leave(namespace string) {
	g.taken = false
	g.waiting.Done(namespace)
	g.admit()
}

// admit lets the next one through, if there is room. The caller holds the lock.
func (g *Gate) admit() {
	for !g.taken {
		namespace, w, ok := g.waiting.Pop()
		switch {
		case !ok:
			return
		case w.left:
			g.waiting.Done(namespace)
		default:
			g.taken = true
			close(w.admitted)
		}
	}
}

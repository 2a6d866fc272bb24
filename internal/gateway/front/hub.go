package front

import (
	"context"
	"sync"

	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
)

// hub tells event streams what changed. A stream that is slow is told once of what happened meanwhile.
type hub struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
}

// listener is an event stream's end of the hub.
type listener struct {
	hub *hub
	// end ends the stream.
	end context.CancelCauseFunc
	// mayStay says whether the stream would be let in under another table.
	mayStay func(*State) bool
	// wake gets an element when there is something to take.
	wake chan struct{}

	// The rest is guarded by the hub's lock.

	// hears says that the stream hears of changes from the lone backend itself, at the moment.
	hears bool
	// pending is what changed, and anew says that there is another table, catalog or description of a backend.
	pending catalog.Changes
	anew    bool
}

func newHub() *hub { return &hub{listeners: map[*listener]struct{}{}} }

func (h *hub) join(end context.CancelCauseFunc, mayStay func(*State) bool) *listener {
	l := &listener{hub: h, end: end, mayStay: mayStay, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[l] = struct{}{}
	return l
}

func (l *listener) leave() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	delete(l.hub.listeners, l)
}

// hear says whether the stream hears of changes from the lone backend itself from now on, unless ctx has ended: then it is not for the
// caller to say any more.
func (l *listener) hear(ctx context.Context, hears bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if ctx.Err() == nil {
		l.hears = hears
	}
}

// take returns what happened since the last time, and whether the stream hears the lone backend itself.
func (l *listener) take() (changed catalog.Changes, anew, hears bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	changed, anew = l.pending, l.anew
	l.pending, l.anew = catalog.Changes{}, false
	return changed, anew, l.hears
}

// publish tells of changes, or of none: that there is something else to look at, all the same. Relayed says that who hears the backend
// itself has been told of the changes.
func (h *hub) publish(c catalog.Changes, relayed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.anew = true
		if !relayed || !l.hears {
			l.pending = l.pending.And(c)
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// stir has all streams look at what is served now.
func (h *hub) stir() { h.publish(catalog.Changes{}, false) }

// recheck ends the streams that would not be let in any more.
func (h *hub) recheck(s *State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		go func() { // asking for an issuer's keys may take its time
			if !l.mayStay(s) {
				l.end(errWithdrawn)
			}
		}()
	}
}

func (h *hub) endStreams(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.end(cause)
	}
}

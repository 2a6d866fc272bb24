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
	// hears says that the stream hears of changes from the lone backend itself.
	hears bool
	// end ends the stream.
	end context.CancelCauseFunc
	// wake gets an element when pending is not empty.
	wake    chan struct{}
	pending catalog.Changes // guarded by the hub's lock
}

func newHub() *hub { return &hub{listeners: map[*listener]struct{}{}} }

func (h *hub) join(hears bool, end context.CancelCauseFunc) *listener {
	l := &listener{hub: h, hears: hears, end: end, wake: make(chan struct{}, 1)}
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

// take returns what changed since the last time.
func (l *listener) take() catalog.Changes {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	c := l.pending
	l.pending = catalog.Changes{}
	return c
}

// publish tells of changes; relayed says that who hears the backend itself has been told.
func (h *hub) publish(c catalog.Changes, relayed bool) {
	if c == (catalog.Changes{}) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if relayed && l.hears {
			continue
		}
		l.pending.Tools = l.pending.Tools || c.Tools
		l.pending.Prompts = l.pending.Prompts || c.Prompts
		l.pending.Resources = l.pending.Resources || c.Resources
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func (h *hub) endStreams(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.end(cause)
	}
}

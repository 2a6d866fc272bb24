package front

import (
	"context"
	"slices"
	"sync"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// ears are what a stream listens for at backends, so that who subscribes can wait until it is heard.
type ears struct {
	mu sync.Mutex
	// heard are the resources that are listened for, by backend.
	heard map[string][]string
	// deaf are the backends that offer no stream.
	deaf map[string]bool
	// changed is closed, and made anew, when any of it changes.
	changed chan struct{}
}

func newEars() *ears { return &ears{changed: make(chan struct{})} }

// hear notes the resources that are listened for at a backend, unless ctx has ended: then it is not for the caller to say any more.
func (e *ears) hear(ctx context.Context, name string, uris []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if e.heard == nil {
		e.heard = map[string][]string{}
	}
	e.heard[name] = uris
	delete(e.deaf, name)
	e.tell()
}

// deafen notes that a backend offers no stream, unless ctx has ended: where the backend is now there may be one.
func (e *ears) deafen(ctx context.Context, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if e.deaf == nil {
		e.deaf = map[string]bool{}
	}
	e.deaf[name] = true
	e.tell()
}

// tell wakes those who wait. The caller holds the lock.
func (e *ears) tell() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// await waits until a resource is listened for at a backend, or never will be, or ctx ends.
func (e *ears) await(ctx context.Context, name, uri string) {
	for {
		e.mu.Lock()
		done, changed := e.deaf[name] || slices.Contains(e.heard[name], uri), e.changed
		e.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// await waits, for as long as a listing may take, until all that a subscription asks of backends is listened for.
func (st *stream) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, st.limits.Listing)
	defer cancel()
	s := st.Front.state.Load()
	for _, b := range s.Backends {
		for _, uri := range st.servedBy(s, b, st.filter.URIs) {
			st.ears.await(ctx, b.Config.Name, uri)
		}
	}
}

// listens says by which ears the session's stream hears, until the function it returns is called.
func (s *session) listens(e *ears) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ears = e
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ears == e {
			s.ears = nil
		}
	}
}

// awaitHeard waits, for as long as a listing may take, until the session's stream hears of a resource of a backend, if it has one that
// listens at the backend by subscriptions. A backend that speaks the client's own protocol version is mostly told by a request.
func (x *exchange) awaitHeard(b *Backend, d *backend.Description, uri string) {
	x.session.mu.Lock()
	e := x.session.ears
	x.session.mu.Unlock()
	if e == nil || d.Legacy && !e.follows(b.Config.Name) {
		return
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), x.limits.Listing)
	defer cancel()
	e.await(ctx, b.Config.Name, uri)
}

// follows says whether subscriptions are listened by at a backend.
func (e *ears) follows(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.heard[name]
	return ok
}

// isSubscribed says whether an update is one of a resource that the session is subscribed to.
func (s *session) isSubscribed(update *wire.Message) bool {
	uri, _ := update.StringParam("uri")
	s.mu.Lock()
	defer s.mu.Unlock()
	for subscribed := range s.subscriptions {
		if translate.Concerns(uri, subscribed) {
			return true
		}
	}
	return false
}

package front

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
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

// deafen notes that a backend offers no stream.
func (e *ears) deafen(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
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

// unseen returns which lists are others than those that the client was told of last, and notes that it is told now. What it knew at
// initialize is in its id, so that another replica can tell.
func (s *session) unseen(now catalog.Mark) catalog.Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := catalog.ReadMark(s.Seen)
	if s.seen != nil {
		before, known = *s.seen, true
	}
	s.seen = &now
	if !known {
		return catalog.Changes{}
	}
	return now.Since(before)
}

// seen is the mark of the lists that a session begins with; nil if that is not known: of a lone backend it has the list itself, before
// there may be a catalog.
func (v *visit) seen() []byte {
	if b := v.lone(v.state); b != nil && b.source().Catalog == nil {
		return nil
	}
	return v.view.Load().Mark().Bytes()
}

// hearing is a subscription of the gateway's at a backend of 2026-07-28.
type hearing struct {
	filter translate.Filter
	stop   context.CancelFunc
	ended  chan error
}

var errUnacknowledged = errors.New("the backend ended the stream before it acknowledged it")

// follow listens at a backend of 2026-07-28 for the resources subscribed to, and for changes of its lists if they are relayed. When the
// session subscribes to something else it opens another stream before it ends the one it has, so that nothing falls between the two.
func (r *relay) follow(ctx context.Context) error {
	name := r.backend.Config.Name
	defer r.ears.hear(ctx, name, nil)
	var now *hearing
	defer func() {
		if now != nil {
			now.stop()
		}
	}()
	for pause := firstRelayPause; ; {
		filter, changed := r.wanted()
		var retry <-chan time.Time
		if now == nil || !isSameFilter(now.filter, filter) {
			next, err := r.hear(ctx, filter)
			switch {
			case err != nil && now == nil:
				return err
			case err != nil:
				retry = time.After(pause)
				pause = min(2*pause, lastRelayPause)
			default:
				if now != nil {
					now.stop()
				}
				now, pause = next, firstRelayPause
			}
		}
		r.ears.hear(ctx, name, now.filter.URIs)
		if r.hears {
			r.news.hear(ctx, true)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-now.ended:
			return err
		case <-changed:
		case <-r.anew:
		case <-retry:
		}
	}
}

// wanted is what there is to listen for at a backend of 2026-07-28, and what is closed when that changes.
func (r *relay) wanted() (f translate.Filter, changed <-chan struct{}) {
	f.URIs = r.filter.URIs
	if r.session != nil {
		var subscribed map[string]struct{}
		subscribed, changed = r.session.subscribed()
		f.URIs = nil
		for uri := range subscribed {
			f.URIs = append(f.URIs, uri)
		}
	}
	f.URIs = r.servedBy(r.Front.state.Load(), r.backend, f.URIs)
	slices.Sort(f.URIs)
	f.Tools, f.Prompts, f.Resources = r.hears, r.hears, r.hears
	return f, changed
}

func isSameFilter(a, b translate.Filter) bool {
	return a.Tools == b.Tools && a.Prompts == b.Prompts && a.Resources == b.Resources && slices.Equal(a.URIs, b.URIs)
}

// hear opens a subscription at the backend, and returns when it is acknowledged. A backend that says nothing for a while is taken at
// its silence. Where there is nothing to listen for nothing is opened.
func (r *relay) hear(ctx context.Context, filter translate.Filter) (*hearing, error) {
	h := &hearing{filter: filter, stop: func() {}, ended: make(chan error, 1)}
	if filter.Empty() {
		return h, nil
	}
	sink := &relay{stream: r.stream, backend: r.backend, hears: r.hears, begun: make(chan struct{}, 1)}
	var err error
	if sink.channel, err = r.backend.Server.Modern(ctx); err != nil {
		return nil, err
	}
	var self backend.Client
	if r.session != nil {
		self.Info = r.session.Info
	}
	id := json.RawMessage(`"gateway-listen-` + strconv.FormatInt(r.requests.Add(1), 10) + `"`)
	request := &backend.Call{Message: filter.Listen(id, self, wire.Version20260728)}
	ctx, h.stop = context.WithCancel(ctx)
	go func() { h.ended <- r.listenAt(ctx, r.backend, sink.channel, request, sink) }()
	patience := time.NewTimer(r.limits.Listing)
	defer patience.Stop()
	select {
	case <-sink.begun:
	case <-patience.C:
	case err = <-h.ended:
		if err == nil {
			err = errUnacknowledged
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

package front

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// stream is an event stream that a client holds open: the GET stream of a legacy session, or a subscription. It outlives tables: what is
// relayed to it is what the table of the moment says.
type stream struct {
	*visit

	reply *reply
	// session is the client's; nil for a subscription.
	session *session
	// id is the subscription's; nil for a GET stream.
	id json.RawMessage
	// filter is what the subscription agreed to; a GET stream takes everything.
	filter translate.Filter
	// news tells what changes while the stream is open, and ends it.
	news *listener
	// relays are what is relayed, by backend. They belong to the goroutine that serves the stream.
	relays map[string]*running
	// ears are what is listened for at backends.
	ears *ears
	// opened is closed when the client knows what it will be told; nothing is sent before.
	opened chan struct{}
	// over is closed when the stream ends.
	over <-chan struct{}
}

func newStream(v *visit, r *reply, s *session) *stream {
	return &stream{visit: v, reply: r, session: s, ears: newEars(), opened: make(chan struct{})}
}

// get opens the GET stream of a session.
func (v *visit) get() {
	reply := &reply{w: v.w, rc: *http.NewResponseController(v.w), limits: &v.limits}
	defer reply.stop()
	if reply.stream = accepts(v.r.Header.Values("Accept")).stream; !reply.stream {
		http.Error(v.w, "the client must accept text/event-stream", http.StatusNotAcceptable)
		return
	}
	s, status, why := v.enter()
	if s == nil && status == 0 {
		status, why = http.StatusMethodNotAllowed, "without a session there is no stream"
		v.w.Header().Set("Allow", "POST")
	}
	if status != 0 {
		http.Error(v.w, why, status)
		return
	}
	defer v.sessions.leave(s)
	st := newStream(v, reply, s)
	st.run(func(ctx context.Context) {
		// A client that opens another stream has lost the one before.
		defer s.replaceStream(ctx)()
		defer s.listens(st.ears)()
		reply.open()
		close(st.opened)
		st.attend(ctx)
		lists := st.view.Load().Mark()
		if st.announce(s.unseen(lists)) == nil {
			s.told(ctx, lists)
			st.tell(ctx)
		}
	})
}

// run holds a stream open: it counts it, ends it at its age, and when it is told to.
func (st *stream) run(serve func(ctx context.Context)) {
	if status, why := st.take(st.streams, 1); status != 0 {
		st.w.Header().Set("Retry-After", "5")
		st.refuse(status, wire.NewError(st.id, wire.CodeInternal, why, nil))
		return
	}
	defer st.streams.give(st.caller, 1)
	st.options.Telemetry.AddStreams(1)
	defer st.options.Telemetry.AddStreams(-1)
	ctx, cancel := context.WithCancelCause(st.r.Context())
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, st.limits.StreamAge, errReplaced)
	defer stop()
	st.over = ctx.Done()
	// Joined first, and looked after that: whatever ends streams from now on finds this one.
	st.news = st.hub.join(cancel, st.isLetIn)
	defer st.news.leave()
	select {
	case <-st.draining:
		cancel(errDraining)
	default:
	}
	if now := st.Front.state.Load(); now != st.state && admitsOthers(st.state.Table, now.Table) && !st.isLetIn(now) {
		cancel(errWithdrawn)
	}
	serve(context.WithValue(ctx, endStream{}, cancel))
}

// isRelayed says whether what a lone backend tells is for this client alone: in a session of the client's, or in the one that the
// gateway keeps for it, the lists may be others than in the gateway's own. Where there are no sessions the catalogs tell of changes,
// which is cheaper, and loses nothing when it is listened for something else.
func (st *stream) isRelayed(s *State) bool {
	b := st.lone(s)
	if b == nil {
		return false
	}
	d := b.known()
	if st.session == nil {
		return d != nil && !d.Modern
	}
	return d == nil || d.Legacy
}

// endStream is the context's key of the function that ends the stream.
type endStream struct{}

// tell sends the changes of lists until the stream ends, and has it follow the table.
func (st *stream) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-st.news.wake:
		}
		changed, anew, hears := st.news.take()
		if anew {
			st.attend(ctx)
		}
		lists, isNews := st.view.Load().Mark(), st.session != nil && (hears || changed != catalog.Changes{})
		if isNews && !hears { // else the backend itself has told of it
			changed = changed.And(st.session.unseen(lists))
		}
		if st.announce(changed) != nil {
			return
		}
		if isNews {
			st.session.told(ctx, lists)
		}
	}
}

// announce sends what the client wants to know of changes of lists.
func (st *stream) announce(changed catalog.Changes) error {
	for _, kind := range []struct {
		changed, wanted bool
		method          string
	}{
		{changed.Tools, st.filter.Tools, translate.ToolsListChanged},
		{changed.Prompts, st.filter.Prompts, translate.PromptsListChanged},
		{changed.Resources, st.filter.Resources, translate.ResourcesListChanged},
	} {
		if !kind.changed || !kind.wanted && st.id != nil {
			continue
		}
		if err := st.notify(wire.NewNotification(kind.method, nil)); err != nil {
			return err
		}
	}
	return nil
}

// notify sends a notification on the stream.
func (st *stream) notify(m *wire.Message) error {
	if st.id != nil {
		m = translate.ToSubscription(m, st.id)
	}
	return st.reply.message(m)
}

// maxListen bounds a request for a stream, in bytes: what a caller's streams hold of its budget for bodies, they hold for as long as they live.
const maxListen = 64 << 10

// listenModern opens a subscription (2026-07-28): acknowledged first, ended by a result.
func (x *exchange) listenModern() {
	if !x.reply.stream {
		_ = x.reply.send(wire.NewError(x.request.ID, wire.CodeInvalidRequest, "the client must accept text/event-stream", nil))
		return
	}
	filter, err := translate.ParseFilter(x.request)
	if len(x.request.Raw) > maxListen {
		err = fmt.Errorf("a subscription has at most %d bytes", maxListen)
	}
	if err != nil {
		_ = x.reply.send(wire.NewError(x.request.ID, wire.CodeInvalidParams, err.Error(), nil))
		return
	}
	st := newStream(x.visit, x.reply, nil)
	st.id = x.request.ID
	offer, err := x.offer(x.r.Context())
	if err != nil {
		x.fail(x.r.Context(), err, false)
		return
	}
	st.filter = wishes(filter, offer)
	x.endCall() // a stream has a quota of its own
	st.run(func(ctx context.Context) {
		x.reply.open()
		if !st.filter.Empty() {
			st.attend(ctx)
			st.await(ctx)
		}
		if st.reply.message(st.filter.Acknowledge(st.id)) != nil {
			return
		}
		close(st.opened)
		if !st.filter.Empty() {
			st.tell(ctx)
		}
		_ = x.reply.send(translate.EndSubscription(st.id))
	})
}

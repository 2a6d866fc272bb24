package front

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// stream is an event stream that a client holds open: the GET stream of a legacy session, or a subscription.
type stream struct {
	*visit

	reply *reply
	// session is the client's; nil for a subscription.
	session *session
	// id is the subscription's; nil for a GET stream.
	id json.RawMessage
	// filter is what the subscription agreed to; a GET stream takes everything.
	filter translate.Filter
	// hears says that changes of the lists of a lone backend are relayed to this stream. Otherwise it is told of them by the
	// catalogs, which is cheaper: nothing is open for it at the backend.
	hears bool
	// news tells what changes while the stream is open, and ends it.
	news *listener
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
	st := &stream{visit: v, reply: reply, session: s}
	st.run(func(ctx context.Context) {
		// A client that opens another stream has lost the one before.
		defer s.replaceStream(ctx)()
		reply.open()
		st.relayAll(ctx)
		st.tell(ctx)
	})
}

// run holds a stream open: it counts it, ends it at its age, and when it is told to.
func (st *stream) run(serve func(ctx context.Context)) {
	if status, why := st.take(st.streams); status != 0 {
		st.w.Header().Set("Retry-After", "5")
		st.refuse(status, wire.NewError(st.id, wire.CodeInternal, why, nil))
		return
	}
	defer st.streams.give(st.caller)
	st.options.Telemetry.AddStreams(1)
	defer st.options.Telemetry.AddStreams(-1)
	ctx, cancel := context.WithCancelCause(st.r.Context())
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, st.limits.StreamAge, errReplaced)
	defer stop()
	// Joined first, and looked after that: whatever ends streams from now on finds this one.
	st.hears = st.isRelayed()
	st.news = st.hub.join(st.hears, cancel)
	defer st.news.leave()
	select {
	case <-st.draining:
		cancel(errDraining)
	default:
	}
	if st.Front.state.Load() != st.state {
		cancel(errWithdrawn)
	}
	serve(context.WithValue(ctx, endStream{}, cancel))
}

// isRelayed says whether what a lone backend tells is for this client alone: in a session of the client's, or in the one that the
// gateway keeps for it, the lists may be others than in the gateway's own.
func (st *stream) isRelayed() bool {
	b := st.lone(st.state)
	if b == nil {
		return false
	}
	d := b.known()
	return st.session != nil || d != nil && !d.Modern
}

// endStream is the context's key of the function that ends the stream.
type endStream struct{}

// tell sends the changes of lists until the stream ends.
func (st *stream) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-st.news.wake:
		}
		changed := st.news.take()
		for _, kind := range []struct {
			changed, wanted bool
			method          string
		}{
			{changed.Tools, st.filter.Tools, translate.ToolsListChanged},
			{changed.Prompts, st.filter.Prompts, translate.PromptsListChanged},
			{changed.Resources, st.filter.Resources, translate.ResourcesListChanged},
		} {
			if kind.changed && (kind.wanted || st.id == nil) && st.notify(wire.NewNotification(kind.method, nil)) != nil {
				return
			}
		}
	}
}

// notify sends a notification on the stream.
func (st *stream) notify(m *wire.Message) error {
	if st.id != nil {
		m = translate.ToSubscription(m, st.id)
	}
	return st.reply.message(m)
}

// relayAll passes on what the backends send outside of calls, until ctx ends. A subscription that the catalogs tell all it wants to
// know opens nothing.
func (st *stream) relayAll(ctx context.Context) {
	for _, b := range st.state.Backends {
		if st.session != nil || st.hears || len(st.servedBy(b, st.filter.URIs)) > 0 {
			go st.relay(ctx, b)
		}
	}
}

const (
	firstRelayPause = 200 * time.Millisecond
	lastRelayPause  = 15 * time.Second
)

// relay passes on what one backend sends outside of calls. When the backend hangs up it listens again, less and less often
// while that fails; a backend that offers no stream is left alone.
func (st *stream) relay(ctx context.Context, b *Backend) {
	for pause := firstRelayPause; ctx.Err() == nil; {
		begun := time.Now()
		again, err := st.relayOnce(ctx, b)
		switch {
		case ctx.Err() != nil || errors.Is(err, backend.ErrNoStream) || !again:
			return
		case err != nil:
			b.kick()
			pause = min(2*pause, lastRelayPause)
		case time.Since(begun) < leastStream:
			pause = min(2*pause, lastRelayPause)
		default:
			pause = firstRelayPause
		}
		backend.Pause(ctx, pause)
	}
}

// relayOnce listens once; again says whether there is anything to listen for.
func (st *stream) relayOnce(ctx context.Context, b *Backend) (again bool, err error) {
	d, err := b.Server.Describe(ctx)
	if err != nil {
		return true, err
	}
	r := &relay{stream: st, backend: b}
	switch {
	case st.session == nil && d.Legacy && !d.Modern:
		return st.relaySubscriptions(ctx, b, r)
	case st.session == nil || !d.Legacy:
		return st.relayModern(ctx, b, r)
	}
	if l := st.session.linkTo(b.Config.Name); st.lone(st.state) == nil && l.isIdle() {
		select { // its session is opened when it is called, and heard from then
		case <-l.used:
		case <-ctx.Done():
		}
		return true, nil
	}
	if r.channel, err = st.channelOf(ctx, st.session, b); err != nil {
		return !errors.Is(err, errOver), err
	}
	err = r.channel.Listen(ctx, nil, r)
	switch {
	case errors.Is(err, backend.ErrSession):
		err = st.reopen(ctx, st.session, b, r.channel)
	case errors.Is(err, backend.ErrNoStream) && d.Modern:
		// A server without sessions has no stream for this client's protocol version, but one for the other.
		return st.relayModern(ctx, b, r)
	}
	return true, err
}

// relayModern listens at a backend of 2026-07-28 for the resources subscribed to, and for changes of its lists if they are
// relayed. It listens anew when the session subscribes to something else.
func (st *stream) relayModern(ctx context.Context, b *Backend, r *relay) (again bool, err error) {
	filter := translate.Filter{URIs: st.filter.URIs}
	if st.session != nil {
		subscribed, changed := st.session.subscribed()
		filter.URIs = nil
		for uri := range subscribed {
			filter.URIs = append(filter.URIs, uri)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-changed:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	filter.URIs = st.servedBy(b, filter.URIs)
	if st.hears {
		filter.Tools, filter.Prompts, filter.Resources = true, true, true
	}
	if filter.Empty() {
		<-ctx.Done()
		return st.session != nil, nil
	}
	if r.channel, err = b.Server.Modern(ctx); err != nil {
		return true, err
	}
	var self backend.Client
	if st.session != nil {
		self.Info = st.session.Info
	}
	request := filter.Listen(json.RawMessage(`"gateway-listen"`), self, wire.Version20260728)
	return true, r.channel.Listen(ctx, &backend.Call{Message: request}, r)
}

// relaySubscriptions subscribes, in the session that the gateway keeps for the caller, to the resources of a legacy backend
// that a client of 2026-07-28 asked for.
func (st *stream) relaySubscriptions(ctx context.Context, b *Backend, r *relay) (again bool, err error) {
	uris := st.servedBy(b, st.filter.URIs)
	if len(uris) == 0 && !st.hears {
		return false, nil
	}
	if r.channel, err = b.shared(ctx, st.caller); err != nil {
		return true, err
	}
	for _, uri := range uris {
		st.request(ctx, r.channel, "resources/subscribe", map[string]string{"uri": uri})
	}
	return true, r.channel.Listen(ctx, nil, r)
}

// servedBy returns the resources that the backend serves.
func (st *stream) servedBy(b *Backend, uris []string) []string {
	var served []string
	for _, uri := range uris {
		if owner, ok := st.ownerOf(st.state, uri); ok && owner == b {
			served = append(served, uri)
		}
	}
	return served
}

// relay is the sink of what a backend sends outside of calls.
type relay struct {
	*stream

	backend *Backend
	channel backend.Channel
}

// Message passes on what is for this client. Changes of lists that are not relayed are told by the catalogs.
func (r *relay) Message(m *wire.Message) error {
	if m.Kind == wire.Request {
		if r.session == nil || r.channel.Era() == backend.Modern {
			return r.channel.Send(context.Background(), translate.AnswerServer(m))
		}
		x := &exchange{visit: r.visit, backend: r.backend}
		return r.reply.message(m.With(wire.SetID(x.askID(m.ID))))
	}
	switch m.Method {
	case translate.ToolsListChanged, translate.PromptsListChanged, translate.ResourcesListChanged:
		if !r.hears {
			return nil
		}
	case translate.Acknowledged:
		return nil
	case translate.LogMessage:
		if level := r.logLevel(); level != "" && !translate.ForCaller(m, backend.Legacy, level) {
			return nil
		}
	}
	if r.id != nil {
		if !r.filter.Passes(m) {
			return nil
		}
		return r.notify(m)
	}
	if r.channel.Era() == backend.Modern {
		m = translate.FromSubscription(m)
	}
	return r.reply.message(m)
}

func (r *relay) logLevel() string {
	if r.session == nil {
		return ""
	}
	return r.session.logLevel()
}

// Response ends a subscription at a backend; it is opened again.
func (r *relay) Response(from io.Reader) error {
	_, err := io.Copy(io.Discard, io.LimitReader(from, maxCollected))
	return err
}

// listenModern opens a subscription (2026-07-28): acknowledged first, ended by a result.
func (x *exchange) listenModern() {
	if !x.reply.stream {
		_ = x.reply.send(wire.NewError(x.request.ID, wire.CodeInvalidRequest, "the client must accept text/event-stream", nil))
		return
	}
	filter, err := translate.ParseFilter(x.request)
	if err != nil {
		_ = x.reply.send(wire.NewError(x.request.ID, wire.CodeInvalidParams, err.Error(), nil))
		return
	}
	st := &stream{visit: x.visit, reply: x.reply, id: x.request.ID}
	offer, err := x.offer(x.r.Context())
	if err != nil {
		x.fail(x.r.Context(), err, false)
		return
	}
	st.filter = filter.Within(offer.Capabilities)
	x.endCall() // a stream has a quota of its own
	st.run(func(ctx context.Context) {
		x.reply.open()
		if st.reply.message(st.filter.Acknowledge(st.id)) != nil {
			return
		}
		if !st.filter.Empty() {
			st.relayAll(ctx)
			st.tell(ctx)
		}
		_ = x.reply.send(translate.EndSubscription(st.id))
	})
}

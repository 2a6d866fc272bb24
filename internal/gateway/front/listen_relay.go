package front

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// source is what is relayed to a stream of one backend.
type source struct {
	name   string
	server backend.Backend
	// hears says that changes of the lists are relayed too. Otherwise the catalogs tell of them.
	hears bool
	// described, legacy and modern are what the backend is known to speak, since it is listened to by that.
	described, legacy, modern bool
}

// isStill says whether a relay of a source does as one of another. That a backend is described for the first time changes nothing: who
// listens to it has asked.
func (s source) isStill(now source) bool {
	isSame := s.name == now.name && s.server == now.server && s.hears == now.hears
	return isSame && (!s.described || !now.described || s.legacy == now.legacy && s.modern == now.modern)
}

// running is a relay and its end.
type running struct {
	source source
	stop   context.CancelFunc
	// anew gets an element when there is another table or catalog.
	anew chan struct{}
}

// attend has the relays be those of the table and the catalogs of now. A subscription that the catalogs tell all it wants to know opens
// nothing.
func (st *stream) attend(ctx context.Context) {
	s := st.Front.state.Load()
	hears := st.isRelayed(s)
	if !hears { // before the relay ends, so that one of the two tells of each change
		st.news.hear(ctx, false)
	}
	wanted := map[string]source{}
	for _, b := range s.Backends {
		if st.session == nil && !hears && len(st.servedBy(s, b, st.filter.URIs)) == 0 {
			continue
		}
		from := source{name: b.Config.Name, server: b.Server, hears: hears}
		if d := b.known(); d != nil {
			from.described, from.legacy, from.modern = true, d.Legacy, d.Modern
		}
		wanted[from.name] = from
	}
	for name, r := range st.relays {
		if now, ok := wanted[name]; ok && r.source.isStill(now) {
			r.source = now
			delete(wanted, name)
			select {
			case r.anew <- struct{}{}:
			default:
			}
			continue
		}
		r.stop()
		delete(st.relays, name)
		st.ears.hear(ctx, name, nil)
		st.news.hear(ctx, false)
	}
	for name, from := range wanted {
		if st.relays == nil {
			st.relays = map[string]*running{}
		}
		relaying, stop := context.WithCancel(ctx)
		r := &running{source: from, stop: stop, anew: make(chan struct{}, 1)}
		st.relays[name] = r
		go st.relay(relaying, from, r.anew)
	}
}

const (
	firstRelayPause = 200 * time.Millisecond
	lastRelayPause  = 15 * time.Second
)

// relay passes on what one backend sends outside of calls. When the backend hangs up it listens again, less and less often
// while that fails; a backend that offers no stream is left alone.
func (st *stream) relay(ctx context.Context, from source, anew <-chan struct{}) {
	for pause := firstRelayPause; ctx.Err() == nil; {
		b := st.Front.state.Load().byName[from.name]
		if b == nil || b.Server != from.server {
			return // attend is about to say so
		}
		begun := time.Now()
		again, err := st.relayOnce(ctx, &relay{stream: st, ctx: ctx, backend: b, hears: from.hears, anew: anew})
		if from.hears {
			st.news.hear(ctx, false) // until it is listened again
		}
		switch {
		case ctx.Err() != nil || !again:
			return
		case errors.Is(err, errMoved):
			continue
		case errors.Is(err, backend.ErrNoStream):
			st.ears.deafen(ctx, from.name)
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
func (st *stream) relayOnce(ctx context.Context, r *relay) (again bool, err error) {
	defer st.options.Panics.Catch(r.backend.Config.Name, &err)
	b := r.backend
	d, err := b.Server.Describe(ctx)
	if err != nil {
		return true, err
	}
	switch {
	case st.session == nil && d.Legacy && !d.Modern:
		return true, r.subscribe(ctx)
	case st.session == nil || !d.Legacy:
		return true, r.follow(ctx)
	}
	if l := st.session.linkTo(b.Config.Name); st.lone(st.Front.state.Load()) == nil && l.isIdle() {
		select { // its session is opened when it is called, and heard from then
		case <-l.used:
		case <-ctx.Done():
		}
		return true, nil
	}
	if r.channel, r.handle, err = st.channelOf(ctx, st.session, b); err != nil {
		return !errors.Is(err, errOver), err
	}
	err = r.listenIn(ctx, st.session.linkTo(b.Config.Name))
	switch {
	case errors.Is(err, backend.ErrSession):
		err = st.reopen(ctx, st.session, b, r.channel)
	case errors.Is(err, backend.ErrNoStream) && d.Modern:
		// A server without sessions has no stream for this client's protocol version, but one for the other.
		return true, r.follow(ctx)
	}
	return true, err
}

// servedBy returns the resources that the backend serves.
func (f *Front) servedBy(s *State, b *Backend, uris []string) []string {
	var served []string
	for _, uri := range uris {
		if owner, ok := f.ownerOf(s, uri); ok && owner.Server == b.Server {
			served = append(served, uri)
		}
	}
	return served
}

// relay is the sink of what a backend sends outside of calls.
type relay struct {
	*stream

	// ctx ends when it is relayed no more.
	ctx     context.Context //nolint:containedctx // of the relay whose sink it is
	backend *Backend
	channel backend.Channel
	// handle is that of the channel, if that is of the client's session.
	handle backend.Handle
	// hears says that changes of the lists are relayed too.
	hears bool
	// anew gets an element when there is another table or catalog.
	anew <-chan struct{}
	// begun gets an element when the backend has acknowledged a subscription; nil if there is none.
	begun chan struct{}
}

// listen listens in a legacy session.
func (r *relay) listen(ctx context.Context) error {
	if r.hears {
		r.news.hear(ctx, true)
	}
	return r.listenAt(ctx, r.backend, r.channel, nil, r)
}

// errMoved ends listening in a session that has another channel now.
var errMoved = errors.New("the session goes on at another place")

// listenIn listens in a session of the client's until the session has another channel: a call may have found that the one it had serves
// no more calls, while its streams stay open and tell nothing.
func (r *relay) listenIn(ctx context.Context, l *link) error {
	moved := l.movedFrom(r.channel)
	listening, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-moved:
			stop()
		case <-listening.Done():
		}
	}()
	err := r.listen(listening)
	select {
	case <-moved:
		return errMoved
	default:
		return err
	}
}

// subscribe subscribes, in the session that the gateway keeps for the caller, to the resources of a legacy backend that a client of
// 2026-07-28 asked for, and listens in it.
func (r *relay) subscribe(ctx context.Context) (err error) {
	if r.channel, err = r.backend.shared(ctx, r.caller); err != nil {
		return err
	}
	listening, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.listen(listening) }()
	defer r.ears.hear(ctx, r.backend.Config.Name, nil)
	for subscribed := map[string]bool{}; ; {
		uris := r.servedBy(r.Front.state.Load(), r.backend, r.filter.URIs)
		for _, uri := range uris {
			if !subscribed[uri] {
				subscribed[uri] = true
				r.request(ctx, r.channel, "resources/subscribe", map[string]string{"uri": uri})
			}
		}
		r.ears.hear(ctx, r.backend.Config.Name, uris)
		select {
		case err := <-ended:
			return err
		case <-r.anew:
		}
	}
}

// Message passes on what is for this client. Changes of lists that are not relayed are told by the catalogs.
func (r *relay) Message(m *wire.Message) error {
	if m.Method == translate.Acknowledged {
		select {
		case r.begun <- struct{}{}:
		default: // nobody waits, or it is known already
		}
		return nil
	}
	select {
	case <-r.opened:
	case <-r.over:
		return context.Canceled
	}
	if m.Kind == wire.Request {
		return r.ask(m)
	}
	switch m.Method {
	case translate.ToolsListChanged, translate.PromptsListChanged, translate.ResourcesListChanged:
		if !r.hears {
			return nil
		}
	case translate.LogMessage:
		if level := r.logLevel(); level != "" && !translate.ForCaller(m, backend.Legacy, level) {
			return nil
		}
	case translate.ResourceUpdated:
		// The backend may not know yet that it is not subscribed to any more.
		if r.session != nil && r.channel.Era() == backend.Modern && !r.session.isSubscribed(m) {
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
		return r.reply.message(translate.FromSubscription(m))
	}
	return r.reply.message(r.unasked(r.session, origin{r.backend.Config.Name, r.handle}, m))
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

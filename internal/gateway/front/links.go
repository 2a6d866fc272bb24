package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// link is a session's way to one backend.
type link struct {
	// turn is held by whoever opens or resumes: over the network, and so never with mu.
	turn chan struct{}
	// used is closed when it is used for the first time.
	used chan struct{}

	mu      sync.Mutex
	channel backend.Channel
	// moved is closed, and made anew, when another channel takes the place of the one in use.
	moved  chan struct{}
	handle backend.Handle
	owner  *Backend
	// opened says that this replica alone knows of it: it was opened after initialize, and so is in no session id. It is closed at the
	// backend when the session is forgotten here. One that is in a session id may be in use at another replica, and ends by the
	// client's DELETE or by the backend's own idle time.
	opened bool
	// origin is the sealed origin of questions that are asked in the session of the handle originOf; empty while there were none.
	origin   string
	originOf backend.Handle
	// lastAsked is when the client was asked something last.
	lastAsked time.Time
}

// newLink is the link of a session that may have been opened elsewhere.
func newLink(handle backend.Handle) *link {
	return &link{turn: make(chan struct{}, 1), used: make(chan struct{}), moved: make(chan struct{}), handle: handle}
}

// isIdle says that the link was never used, here or elsewhere.
func (l *link) isIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channel == nil && l.handle.Version == ""
}

// usable is the channel in use, unless it is one that is broken or of a server that is gone.
func (l *link) usable(b *Backend, broken backend.Channel) (backend.Channel, backend.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channel != nil && l.channel != broken && l.owner.Server == b.Server {
		return l.channel, l.handle
	}
	return nil, l.handle
}

func (l *link) use(b *Backend, channel backend.Channel, handle backend.Handle, opened bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channel != channel {
		close(l.moved)
		l.moved = make(chan struct{})
	}
	l.channel, l.owner, l.handle, l.opened = channel, b, handle, l.opened || opened
	select {
	case <-l.used:
	default:
		close(l.used)
	}
}

// movedFrom is closed once the session has another channel than this one.
func (l *link) movedFrom(channel backend.Channel) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channel != channel {
		moved := make(chan struct{})
		close(moved)
		return moved
	}
	return l.moved
}

// channelOf is the session's own channel to a backend, and its handle: the one in use, the one that its id tells of, or a new one.
func (f *Front) channelOf(ctx context.Context, s *session, b *Backend) (backend.Channel, backend.Handle, error) {
	return f.channelBut(ctx, s, b, nil)
}

// reopen replaces a channel whose session the backend no longer knows. Of several requests that find out, one opens.
func (f *Front) reopen(ctx context.Context, s *session, b *Backend, broken backend.Channel) error {
	_, _, err := f.channelBut(ctx, s, b, broken)
	return err
}

func (f *Front) channelBut(ctx context.Context, s *session, b *Backend, broken backend.Channel) (backend.Channel, backend.Handle, error) {
	l := s.linkTo(b.Config.Name)
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, backend.Handle{}, context.Cause(ctx)
	}
	channel, handle := l.usable(b, broken)
	switch {
	case s.isOver():
		return nil, handle, errOver
	case channel != nil:
		return channel, handle, nil
	case broken == nil && handle.Version != "":
		channel, err := b.Server.Resume(handle)
		if err == nil {
			l.use(b, channel, handle, false)
			return channel, handle, nil
		}
		if !errors.Is(err, backend.ErrSession) {
			return nil, handle, err
		}
	}
	return f.open(ctx, s, l, b)
}

// claim makes the session at a backend, if there is one, the caller's to close: the client ends it.
func (f *Front) claim(ctx context.Context, s *session, b *Backend) (err error) {
	defer f.options.Panics.Catch(b.Config.Name, &err)
	l := s.linkTo(b.Config.Name)
	select {
	case l.turn <- struct{}{}:
	default: // only then the time counts, which a link before may have used up: where it is free there is nothing to wait for
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-l.turn }()
	channel, handle := l.usable(b, nil)
	if channel == nil && handle.Version == "" {
		return nil
	}
	if channel == nil {
		if channel, err = b.Server.Resume(handle); err != nil {
			return err
		}
	}
	l.use(b, channel, handle, true)
	return nil
}

// open opens a session at the backend with what the client said of itself, and asks again what the client asked before. The
// caller has the link's turn.
func (f *Front) open(ctx context.Context, s *session, l *link, b *Backend) (backend.Channel, backend.Handle, error) {
	channel, handle, err := b.Server.Open(ctx, backend.Client{Capabilities: s.Capabilities, Info: s.Info, Version: s.Version})
	if err != nil {
		return nil, handle, err
	}
	l.use(b, channel, handle, true)
	if s.isOver() { // it ended meanwhile, and did not find this one
		f.closeAll(s.takeOpened())
		return nil, handle, errOver
	}
	if level := s.logLevel(); level != "" {
		f.request(ctx, channel, "logging/setLevel", map[string]string{"level": level})
	}
	uris, _ := s.subscribed()
	for uri := range uris {
		if owner, ok := f.ownerOf(f.state.Load(), uri); ok && owner.Server == b.Server {
			f.request(ctx, channel, "resources/subscribe", map[string]string{"uri": uri})
		}
	}
	return channel, handle, nil
}

// errOver is returned for a session that has ended here.
var errOver = errors.New("the session has ended")

// dropSession ends what a session has here. Sessions at backends that nobody else knows of are closed there too.
func (f *Front) dropSession(s *session) {
	s.finishAll(errOver)
	f.closeAll(s.takeOpened())
}

// evictSession ends a session, and its sessions at backends, beside the caller.
func (f *Front) evictSession(s *session) {
	go func() {
		defer f.options.Panics.Catch("", nil)
		ctx, cancel := context.WithTimeout(context.Background(), f.limits.Listing)
		defer cancel()
		f.claimAll(ctx, s)
		f.dropSession(s)
	}()
}

// claimAll makes the sessions at backends that the client's session id holds such as end with it.
func (f *Front) claimAll(ctx context.Context, s *session) {
	state := f.state.Load()
	for name := range s.Backends {
		if b := state.byName[name]; b != nil {
			if err := f.claim(ctx, s, b); err != nil {
				f.options.Logger.Debug("resume a session to end it", "backend", name, "error", err)
			}
		}
	}
}

// closeAll closes sessions at backends, beside the caller and each other: one that hangs costs the others nothing.
func (f *Front) closeAll(channels []backend.Channel) {
	for _, channel := range channels {
		go func() {
			defer f.options.Panics.Catch("", nil)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := channel.Close(ctx); err != nil {
				f.options.Logger.Debug("close a session at its backend", "error", err)
			}
		}()
	}
}

// request asks a backend something on the gateway's own behalf. That it failed is logged: there is nobody to tell.
func (f *Front) request(ctx context.Context, channel backend.Channel, method string, params map[string]string) {
	raw, err := json.Marshal(params)
	if err != nil {
		return // strings always can be marshalled
	}
	id := json.RawMessage(`"gateway-` + strconv.FormatInt(f.requests.Add(1), 10) + `"`)
	var got collector
	if err := channel.Call(ctx, &backend.Call{Message: wire.NewRequest(id, method, raw)}, &got); err != nil {
		f.options.Logger.Debug("ask a backend", "method", method, "error", err)
	}
}

// collector is a sink that keeps the response, up to a size.
type collector struct{ bytes.Buffer }

// maxCollected bounds responses that are held, which are lists alone.
const maxCollected = 16 << 20

var errTooLarge = errors.New("the response is larger than allowed")

func (c *collector) Message(*wire.Message) error { return nil }

func (c *collector) Response(r io.Reader) error {
	n, err := c.ReadFrom(io.LimitReader(r, maxCollected+1))
	if err == nil && n > maxCollected {
		err = errTooLarge
	}
	return err
}

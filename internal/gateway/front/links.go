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
	handle  backend.Handle
	owner   *Backend
	// opened says that it was opened here, so that it is closed here when the session ends or has been idle.
	opened bool
}

// newLink is the link of a session that may have been opened elsewhere.
func newLink(handle backend.Handle) *link {
	return &link{turn: make(chan struct{}, 1), used: make(chan struct{}), handle: handle}
}

// isIdle says that the link was never used, here or elsewhere.
func (l *link) isIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channel == nil && l.handle.Version == ""
}

// own makes the session at the backend one that is closed from here.
func (l *link) own() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = true
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
	l.channel, l.owner, l.handle, l.opened = channel, b, handle, l.opened || opened
	select {
	case <-l.used:
	default:
		close(l.used)
	}
}

// channelOf is the session's own channel to a backend: the one in use, the one that its id tells of, or a new one.
func (f *Front) channelOf(ctx context.Context, s *session, b *Backend) (backend.Channel, error) {
	return f.channelBut(ctx, s, b, nil)
}

// reopen replaces a channel whose session the backend no longer knows. Of several requests that find out, one opens.
func (f *Front) reopen(ctx context.Context, s *session, b *Backend, broken backend.Channel) error {
	_, err := f.channelBut(ctx, s, b, broken)
	return err
}

func (f *Front) channelBut(ctx context.Context, s *session, b *Backend, broken backend.Channel) (backend.Channel, error) {
	l := s.linkTo(b.Config.Name)
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	channel, handle := l.usable(b, broken)
	switch {
	case s.isOver():
		return nil, errOver
	case channel != nil:
		return channel, nil
	case broken == nil && handle.Version != "":
		channel, err := b.Server.Resume(handle)
		if err == nil {
			l.use(b, channel, handle, false)
			return channel, nil
		}
		if !errors.Is(err, backend.ErrSession) {
			return nil, err
		}
	}
	return f.open(ctx, s, l, b)
}

// open opens a session at the backend with what the client said of itself, and asks again what the client asked before. The
// caller has the link's turn.
func (f *Front) open(ctx context.Context, s *session, l *link, b *Backend) (backend.Channel, error) {
	channel, handle, err := b.Server.Open(ctx, backend.Client{Capabilities: s.Capabilities, Info: s.Info, Version: s.Version})
	if err != nil {
		return nil, err
	}
	l.use(b, channel, handle, true)
	if s.isOver() { // it ended meanwhile, and did not find this one
		f.closeAll(s.takeOpened())
		return nil, errOver
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
	return channel, nil
}

// errOver is returned for a session that has ended here.
var errOver = errors.New("the session has ended")

// dropSession ends what a session has here. Sessions at backends that were opened here are closed there too.
func (f *Front) dropSession(s *session) {
	s.finishAll(errOver)
	f.closeAll(s.takeOpened())
}

// closeAll closes sessions at backends, beside the caller.
func (f *Front) closeAll(channels []backend.Channel) {
	if len(channels) == 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, channel := range channels {
			if err := channel.Close(ctx); err != nil {
				f.options.Logger.Debug("close a session at its backend", "error", err)
			}
		}
	}()
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

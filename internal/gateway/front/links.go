package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// channelOf is the session's own channel to a backend: the one in use, the one that its id tells of, or a new one.
func (f *Front) channelOf(ctx context.Context, s *session, b *Backend) (backend.Channel, error) {
	l := s.linkTo(b.Config.Name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channel != nil && l.owner == b {
		return l.channel, nil
	}
	l.channel, l.owner = nil, b
	if l.handle.Version != "" {
		channel, err := b.Server.Resume(l.handle)
		if err == nil {
			l.channel = channel
			return channel, nil
		}
		if !errors.Is(err, backend.ErrSession) {
			return nil, err
		}
	}
	return f.open(ctx, s, l, b)
}

// open opens a session at the backend with what the client said of itself, and asks again what the client asked before. The
// caller holds the link's lock.
func (f *Front) open(ctx context.Context, s *session, l *link, b *Backend) (backend.Channel, error) {
	channel, handle, err := b.Server.Open(ctx, backend.Client{Capabilities: s.Capabilities, Info: s.Info, Version: s.Version})
	if err != nil {
		return nil, err
	}
	l.channel, l.handle, l.opened = channel, handle, true
	if level := s.logLevel(); level != "" {
		f.request(ctx, channel, "logging/setLevel", map[string]string{"level": level})
	}
	uris, _ := s.subscribed()
	for uri := range uris {
		if owner, ok := f.ownerOf(f.state.Load(), uri); ok && owner == b {
			f.request(ctx, channel, "resources/subscribe", map[string]string{"uri": uri})
		}
	}
	return channel, nil
}

// reopen replaces a channel whose session the backend no longer knows. Of several requests that find out, one opens.
func (f *Front) reopen(ctx context.Context, s *session, b *Backend, broken backend.Channel) error {
	l := s.linkTo(b.Config.Name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channel != nil && l.channel != broken {
		return nil
	}
	l.channel, l.owner, l.handle = nil, b, backend.Handle{}
	_, err := f.open(ctx, s, l, b)
	return err
}

// dropSession closes what a session holds here. Sessions at backends that were opened here are closed there too.
func (f *Front) dropSession(s *session) {
	s.cancelAll(errCancelled)
	channels := s.takeOpened()
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
	id := json.RawMessage(`"gateway-` + method + `"`)
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

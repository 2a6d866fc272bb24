package child

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// logsQuarantine is how long the log messages of a process go to nobody after the call that asked for them was given up.
const logsQuarantine = 30 * time.Second

// modernServer is the process for protocol version 2026-07-28, and the channel to it.
type modernServer struct {
	b          *Backend
	keeper     *keeper
	hub        *hub
	discovered atomic.Pointer[json.RawMessage]
}

func newModernServer(b *Backend) *modernServer {
	s := &modernServer{b: b}
	s.hub = newHub(s)
	return s
}

// hello asks a process what it is, which tells that it serves.
func (s *modernServer) hello(ctx context.Context, p *process) error {
	result, err := p.discover(ctx)
	if result != nil {
		s.discovered.Store(&result)
	}
	return err
}

// again is hello for a process that follows another one.
func (s *modernServer) again(all *servers) hello {
	return func(ctx context.Context, p *process) error {
		if err := s.hello(ctx, p); err != nil {
			return err
		}
		all.describe()
		s.hub.move(p)
		return nil
	}
}

// refresh asks the process again.
func (s *modernServer) refresh(ctx context.Context) error {
	p, err := s.keeper.get(ctx, time.Now().Add(s.b.options.HoldTimeout))
	if err != nil {
		return err
	}
	if err := s.hello(ctx, p); err != nil {
		return err
	}
	if all := s.b.servers.Load(); all != nil && all.modern == s {
		all.describe()
	}
	return nil
}

// alone reports whether the program said that it speaks no version with sessions.
func (s *modernServer) alone(c *candidate) bool {
	return c.answers() && !slices.ContainsFunc(versionsIn(*s.discovered.Load()), func(v string) bool { return v < wire.Version20260728 })
}

// patience is none: nobody waits for somebody else's slow reader.
func (s *modernServer) patience() time.Duration { return 0 }

// take passes on log messages and what was subscribed to. Requests do not exist in this direction.
func (s *modernServer) take(p *process, m *wire.Message) {
	switch {
	case m.Kind == wire.Request:
		p.refuse(m)
	case m.Method == methodLog:
		if c := p.logger(); c != nil {
			c.q.push(m, 0)
		}
	default:
		s.hub.take(p, m)
	}
}

// Era is Modern.
func (s *modernServer) Era() backend.Era { return backend.Modern }

// Call sends a request.
func (s *modernServer) Call(ctx context.Context, c *backend.Call, sink backend.Sink) error {
	if c.Message.Method == methodListen {
		return s.Listen(ctx, c, sink)
	}
	return s.b.call(ctx, s.keeper.get, c, sink, claimLogs)
}

// Send is for sessions.
func (s *modernServer) Send(context.Context, *wire.Message) error {
	return fmt.Errorf("child: a message that is no request was sent by protocol version %s: %w", wire.Version20260728, backend.ErrEra)
}

// Close has nothing to end.
func (s *modernServer) Close(context.Context) error { return nil }

// claimLogs lets one call at a time ask for log messages. They do not say which call they are about, but a server may send none
// for a call that did not ask; so while one asks, they are that one's. Others get none, which the protocol allows.
func claimLogs(p *process, c *call) []wire.Edit {
	if c.message.MetaField(wire.MetaLogLevel) == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.logs == nil || !p.logsUntil.IsZero() && time.Now().After(p.logsUntil) {
		p.logs, p.logsUntil = c, time.Time{}
		return nil
	}
	return []wire.Edit{wire.RemoveMeta(wire.MetaLogLevel)}
}

// logger is the call that log messages are for.
func (p *process) logger() *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.logsUntil.IsZero() {
		return nil
	}
	return p.logs
}

// releaseLogs ends a call's claim: at once when it was answered, since nothing comes after that; else after a while. The
// caller holds the lock.
func (p *process) releaseLogs(c *call, answered bool) {
	switch {
	case p.logs != c:
	case answered:
		p.logs = nil
	case p.logsUntil.IsZero():
		p.logsUntil = time.Now().Add(logsQuarantine)
	}
}

package child

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// Backend is one MCP server that runs as child processes of the gateway. It implements backend.Backend and backend.Sharer.
type Backend struct {
	*environment

	ctx    context.Context //nolint:containedctx // it is the backend's life
	cancel context.CancelFunc
	// servers are the shared processes, once it was found out what the program speaks.
	servers  atomic.Pointer[servers]
	sessions *sessions
	tasks    sync.WaitGroup

	mu      sync.Mutex
	finding bool
	failure error         // of the last attempt to find out
	changed chan struct{} // closed and replaced with every attempt that ended
	stale   bool          // Forget was called
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Sharer  = (*Backend)(nil)
)

// New makes a Backend. No process is started before it is asked something.
func New(options Options) (*Backend, error) {
	o := options
	if err := o.withDefaults(); err != nil {
		return nil, err
	}
	b := &Backend{
		environment: &environment{options: &o, counts: &counts{logger: o.Logger}, ledger: &ledger{limit: 4 * o.LineLimit}},
		changed:     make(chan struct{}),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.sessions = newSessions(b)
	b.tasks.Go(b.sessions.expire)
	return b, nil
}

// Describe says what the program speaks, which is found out with its first processes, and again when one of them answers
// otherwise. While that fails it waits for the next attempt, HoldTimeout at most.
func (b *Backend) Describe(ctx context.Context) (*backend.Description, error) {
	s, err := b.found(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	stale := b.stale
	b.stale = false
	b.mu.Unlock()
	if stale && s.modern != nil {
		if err := s.modern.refresh(ctx); err != nil {
			return nil, b.failed(err, false)
		}
	}
	return s.description.Load(), nil
}

// Forget makes the next Describe ask again. What a process said in initialize holds as long as the process.
func (b *Backend) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stale = true
}

// Open opens a legacy session.
func (b *Backend) Open(ctx context.Context, c backend.Client) (backend.Channel, backend.Handle, error) {
	if err := b.speaksLegacy(ctx); err != nil {
		return nil, backend.Handle{}, err
	}
	s, err := b.sessions.open(ctx, c, b.options.Sessions == Stateful)
	if err != nil {
		return nil, backend.Handle{}, b.failed(err, false)
	}
	return s, s.handle(), nil
}

// Shared returns a legacy session that many callers of one subject may use at a time. Subjects share a process as sessions do; the
// gateway itself, which is the empty subject or one that begins with NUL, always uses the shared one.
func (b *Backend) Shared(ctx context.Context, subject string) (backend.Channel, backend.Handle, error) {
	if err := b.speaksLegacy(ctx); err != nil {
		return nil, backend.Handle{}, err
	}
	s, err := b.sessions.pooled(ctx, subject)
	if err != nil {
		return nil, backend.Handle{}, b.failed(err, false)
	}
	return s, s.handle(), nil
}

func (b *Backend) speaksLegacy(ctx context.Context) error {
	s, err := b.found(ctx)
	if err == nil && s.legacy == nil {
		err = backend.ErrEra
	}
	return err
}

// Resume is the channel of a session opened before, until it was idle for too long or its process ended.
func (b *Backend) Resume(h backend.Handle) (backend.Channel, error) {
	if s := b.sessions.find(h.Session); s != nil {
		return s, nil
	}
	return nil, backend.ErrSession
}

// Modern is the channel for requests of protocol version 2026-07-28.
func (b *Backend) Modern(ctx context.Context) (backend.Channel, error) {
	s, err := b.found(ctx)
	if err != nil {
		return nil, err
	}
	if s.modern == nil {
		return nil, backend.ErrEra
	}
	return s.modern, nil
}

// Status is what /status tells of the processes.
func (b *Backend) Status() table.ChildStatus { return b.counts.status() }

// Close ends all sessions and processes: stdin is closed, then comes SIGTERM, then SIGKILL, which comes at once when ctx ends.
func (b *Backend) Close(ctx context.Context) error {
	b.mu.Lock() // so that no task begins after this
	b.cancel()
	b.mu.Unlock()
	b.children.close()
	b.sessions.endAll()
	if s := b.servers.Load(); s != nil && s.modern != nil {
		s.modern.hub.end()
	}
	var all sync.WaitGroup
	for _, p := range b.children.all() {
		all.Go(func() { p.stop(ctx) })
	}
	all.Wait()
	b.tasks.Wait()
	return nil
}

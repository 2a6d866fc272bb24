package child

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// sessions are the legacy sessions of a backend.
type sessions struct {
	b *Backend

	mu   sync.Mutex
	byID map[string]*session
	own  int                 // sessions that have, or are about to have, a process of their own
	pool map[string]*session // those of Shared, by subject
}

func newSessions(b *Backend) *sessions {
	return &sessions{b: b, byID: map[string]*session{}, pool: map[string]*session{}}
}

// open opens a session. It shares a process unless the client is to have its own: must says that it may not share.
func (t *sessions) open(ctx context.Context, c backend.Client, must bool) (*session, error) {
	asks := canBeAsked(c.Capabilities)
	if !must && (!asks || t.b.options.Sessions == Stateless) {
		return t.openShared(ctx)
	}
	granted := t.reserve(ctx, must)
	if !granted && must {
		return nil, errFull
	}
	if !granted {
		t.b.options.Logger.Warn("no process left for a session that would have its own: it shares one, and cannot be asked anything")
		return t.openShared(ctx)
	}
	s := t.b.newSession()
	s.asks = asks
	if err := t.begin(ctx, s, c); err != nil {
		t.release()
		return nil, err
	}
	t.add(s)
	return s, nil
}

// reserve makes room for another process of a session's own: false if all that run are in use. Clients rarely end their
// sessions, so the one unused for longest, whose client holds no stream open either, gives up its process. Should its client
// come back, it is ErrSession, and another is opened. Where sessions hold state (must) a pause is no reason, only an absence.
func (t *sessions) reserve(ctx context.Context, must bool) bool {
	least := time.Duration(0)
	if must {
		least = absence
	}
	for {
		t.mu.Lock()
		if t.own < t.b.options.MaxChildren {
			t.own++
			t.mu.Unlock()
			return true
		}
		oldest := t.retire(func(s *session, idle time.Duration) bool { return s.own != nil && idle >= least })
		t.mu.Unlock()
		if oldest == nil {
			return false
		}
		t.close(ctx, oldest)
	}
}

// absence is how long a client that holds no stream open must be silent to pass for gone.
const absence = time.Minute

// retire takes out of use the session unused for longest, of those that fit and are not in use. The caller holds the lock.
func (t *sessions) retire(fits func(s *session, idle time.Duration) bool) *session {
	for {
		var oldest *session
		var since time.Time
		for _, s := range t.byID {
			if idle := s.idleSince(); !idle.IsZero() && fits(s, time.Since(idle)) && (oldest == nil || idle.Before(since)) {
				oldest, since = s, idle
			}
		}
		if oldest == nil || oldest.retire(since) {
			return oldest
		}
	}
}

// canBeAsked reports whether the client declared something that a server may ask of it.
func canBeAsked(capabilities json.RawMessage) bool {
	for _, name := range []string{"sampling", "elicitation", "roots"} {
		if wire.IsObject(wire.Field(capabilities, name)) {
			return true
		}
	}
	return false
}

// openShared opens a session at the shared process, once that runs.
func (t *sessions) openShared(ctx context.Context) (*session, error) {
	s := t.b.newSession()
	found, err := t.b.found(ctx)
	if err != nil {
		return nil, err
	}
	if found.legacy == nil {
		return nil, backend.ErrEra
	}
	if _, err := found.legacy.keeper.get(ctx, time.Now().Add(t.b.options.HoldTimeout)); err != nil {
		return nil, err
	}
	s.version = versionOf(*found.legacy.initialized.Load())
	t.add(s)
	return s, nil
}

// begin starts a session's own process. One that ends before it answers is tried again for HoldTimeout.
func (t *sessions) begin(ctx context.Context, s *session, c backend.Client) error {
	ctx, cancel := t.b.starting(ctx)
	defer cancel()
	hold := time.Now().Add(t.b.options.HoldTimeout)
	hello := func(ctx context.Context, p *process) error {
		result, err := p.initialize(ctx, c)
		s.version = versionOf(result)
		return err
	}
	var pause backoff
	for {
		p, err := t.b.start(backend.Legacy, s)
		if err == nil {
			if err = greet(ctx, p, hello); err == nil {
				s.own = p
				go t.watch(s)
				return nil
			}
			p.discard()
			s.clear()
		}
		var died *diedError
		wait := pause.next()
		if !errors.As(err, &died) || time.Now().Add(wait).After(hold) || !backend.Pause(ctx, wait) {
			return err
		}
		t.b.counts.restarts.Add(1)
	}
}

// watch ends a session with its process.
func (t *sessions) watch(s *session) {
	<-s.own.exited
	if !s.own.stopped() {
		s.own.mourn()
	}
	t.end(s)
	t.release()
	close(s.released)
}

func (t *sessions) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own--
}

func (t *sessions) add(s *session) {
	t.mu.Lock()
	var oldest *session
	if len(t.byID) >= t.b.options.MaxSessions {
		oldest = t.retire(func(*session, time.Duration) bool { return true })
	}
	t.byID[s.id] = s
	t.mu.Unlock()
	if t.b.ctx.Err() != nil || !s.usable() {
		t.end(s) // the end of all, or of its process, may have been before there was an entry
	}
	if oldest != nil {
		t.end(oldest)
		go t.close(t.b.ctx, oldest)
	}
}

func (t *sessions) find(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// end forgets a session; its streams end.
func (t *sessions) end(s *session) {
	t.mu.Lock()
	delete(t.byID, s.id)
	for subject, pooled := range t.pool {
		if pooled == s {
			delete(t.pool, subject)
		}
	}
	t.mu.Unlock()
	s.finish()
}

// close ends a session and what it has at the child.
func (t *sessions) close(ctx context.Context, s *session) {
	t.end(s)
	if s.own != nil {
		s.own.stop(ctx)
		<-s.released // so that who comes next finds room
		return
	}
	if found := t.b.servers.Load(); found != nil && found.legacy != nil {
		found.legacy.leave(ctx, s)
	}
}

// pooled is the session of a subject.
func (t *sessions) pooled(ctx context.Context, subject string) (*session, error) {
	t.mu.Lock()
	s := t.pool[subject]
	t.mu.Unlock()
	if s != nil && s.usable() {
		return s, nil
	}
	gateway := subject == "" || subject[0] == 0
	s, err := t.open(ctx, backend.Client{}, !gateway && t.b.options.Sessions == Stateful)
	if err != nil {
		return nil, err
	}
	s.pooled = true // nobody else knows it yet
	t.mu.Lock()
	other := t.pool[subject]
	if other == nil || !other.usable() {
		t.pool[subject], other = s, nil
	}
	t.mu.Unlock()
	if other != nil { // of two callers at a time one keeps its session
		t.close(ctx, s)
		return other, nil
	}
	if !s.usable() {
		t.end(s) // it may have ended before the subject had it
	}
	return s, nil
}

// endAll ends every session on this side.
func (t *sessions) endAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.byID {
		s.finish()
	}
}

// tellShared passes a message on to every session that shares a process.
func (t *sessions) tellShared(m *wire.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.byID {
		if s.own == nil {
			s.tell(m)
		}
	}
}

// expire ends sessions that are idle for too long.
func (t *sessions) expire() {
	for backend.Pause(t.b.ctx, max(t.b.options.IdleTimeout/20, time.Millisecond)) {
		idle := map[*session]time.Time{}
		t.mu.Lock()
		for _, s := range t.byID {
			if since := s.idleSince(); !since.IsZero() && time.Since(since) > t.b.options.IdleTimeout {
				idle[s] = since
			}
		}
		t.mu.Unlock()
		for s, since := range idle {
			if s.retire(since) { // the end of the one before takes its time
				t.close(t.b.ctx, s)
			}
		}
	}
}

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// shared is a legacy session of the gateway's own, which all callers of one subject use.
type shared struct {
	*Backend

	subject string
	ready   chan struct{} // closed once channel or err is there
	err     error
	channel backend.Channel
	handle  backend.Handle

	mu     sync.Mutex
	active int
	used   time.Time
	feed   *feed // of those who listen; nil if nobody does
}

// feed is the one stream of a session, handed out to all who listen.
type feed struct {
	hub    hub
	cancel context.CancelFunc
	users  int // guarded by the session's lock
}

// Shared is the channel of the gateway's own session for a subject.
func (b *Backend) Shared(ctx context.Context, subject string) (backend.Channel, backend.Handle, error) {
	b.mu.Lock()
	s := b.shared[subject]
	if s == nil && !b.closed {
		s = &shared{Backend: b, subject: subject, ready: make(chan struct{}), used: time.Now()}
		b.makeRoom(ctx)
		b.shared[subject] = s
		b.reapLater()
		beside, opened := context.WithoutCancel(ctx), s.use() // until it is open, it cannot be ended
		b.tasks.Go(func() { s.open(beside, opened) })
	} else if s != nil {
		s.touch() // it is not idle any more for whoever looks next
	}
	b.mu.Unlock()
	if s == nil {
		return nil, backend.Handle{}, b.failure(classConnect, false, errClosed)
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, backend.Handle{}, b.failure(classTimeout, false, context.Cause(ctx))
	}
	if s.err != nil {
		return nil, backend.Handle{}, s.err
	}
	return s, s.handle, nil
}

// open opens the session for all who wait for it. A failure is theirs alone: who comes next tries again.
func (s *shared) open(ctx context.Context, opened func()) {
	defer close(s.ready)
	defer opened()
	defer func() {
		if s.err != nil {
			s.drop()
		}
	}()
	defer s.options.Panics.Catch(s.config.Name, &s.err)
	s.channel, s.handle, s.err = s.Open(ctx, backend.Client{})
	switch channel := s.channel.(type) {
	case *session:
		channel.next = new(atomic.Int64)
	case *pipe:
		channel.mu.Lock()
		channel.own = true
		channel.mu.Unlock()
	}
	if s.err == nil {
		s.speakUp(ctx)
	}
}

// speakUp asks for all log messages, of which each caller gets what it wants of its own calls: callers of protocol version
// 2026-07-28 say with every request how much that is, and a session has one level for all.
func (s *shared) speakUp(ctx context.Context) {
	d, err := s.describe(ctx)
	if err != nil || !wire.IsObject(wire.Field(wire.Field(d.Initialize, "capabilities"), "logging")) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.Notice)
	defer cancel()
	m := wire.NewRequest(json.RawMessage(`"gateway-level"`), "logging/setLevel", json.RawMessage(`{"level":"debug"}`))
	if err := s.channel.Call(ctx, &backend.Call{Message: m}, ignored{}); err != nil {
		s.log.Debug("a session of the gateway's own has no log level", "error", err)
	}
}

// ignored is a sink for an answer that says nothing.
type ignored struct{}

func (ignored) Message(*wire.Message) error { return nil }

func (ignored) Response(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// drop makes the next caller open another session, in which those who listen here will listen too.
func (s *shared) drop() {
	s.Backend.drop(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed != nil {
		s.feed.cancel()
	}
}

func (b *Backend) drop(s *shared) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shared[s.subject] == s {
		delete(b.shared, s.subject)
	}
}

// end ends the session at the server.
func (s *shared) end(ctx context.Context) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return
	}
	if s.err != nil {
		return
	}
	if err := s.channel.Close(ctx); err != nil {
		s.log.Debug("a session of the gateway's own could not be ended", "error", err)
	}
}

// Era is backend.Legacy.
func (*shared) Era() backend.Era { return backend.Legacy }

// Call sends a request and gives the sink what comes back.
func (s *shared) Call(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	defer s.use()()
	err := s.channel.Call(ctx, request, sink)
	if errors.Is(err, backend.ErrSession) {
		s.drop()
	}
	return err
}

// Send sends a notification, or a response to a request of the server's.
func (s *shared) Send(ctx context.Context, m *wire.Message) error {
	defer s.use()()
	err := s.channel.Send(ctx, m)
	if errors.Is(err, backend.ErrSession) {
		s.drop()
	}
	return err
}

// use marks the session as in use until what it returns is called.
func (s *shared) use() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active--
		s.used = time.Now()
	}
}

// touch makes now the last use.
func (s *shared) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
}

// errHungUp ends those who listen when the server ended the stream.
var errHungUp = errors.New("the backend ended the stream")

// Listen gives the sink what belongs to no call. All who listen share the one stream that the server has for the session.
func (s *shared) Listen(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	defer s.use()()
	channel, ok := s.channel.(*session)
	if !ok {
		return s.channel.Listen(ctx, request, sink) // it has one stream anyway
	}
	f := s.joinFeed(ctx, channel)
	err := f.hub.listen(ctx, s.limits.Queue, sink)
	s.leaveFeed(f)
	switch {
	case ctx.Err() != nil || errors.Is(err, errHungUp):
		return nil
	case errors.Is(err, errSlow):
		return s.failure(classTooLarge, true, err)
	case errors.Is(err, backend.ErrSession):
		s.drop()
	}
	return err
}

// joinFeed starts the feed if it does not run.
func (s *shared) joinFeed(ctx context.Context, channel *session) *feed {
	s.mu.Lock()
	if f := s.feed; f != nil {
		f.users++
		s.mu.Unlock()
		return f
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &feed{cancel: cancel, users: 1}
	s.feed = f
	s.mu.Unlock() // background takes the backend's lock, under which others take the session's
	if !s.background(func() {
		err := s.listen(ctx, channel, &feedSink{feed: f, channel: channel, ctx: ctx})
		if err == nil {
			err = errHungUp
		}
		s.endFeed(f, err)
	}) {
		s.endFeed(f, s.failure(classConnect, false, errClosed))
	}
	return f
}

// endFeed ends a feed for all who listen. Who comes next starts another one.
func (s *shared) endFeed(f *feed, err error) {
	s.mu.Lock()
	if s.feed == f {
		s.feed = nil
	}
	s.mu.Unlock()
	f.hub.end(err)
}

// listen listens at the server.
func (s *shared) listen(ctx context.Context, channel *session, sink backend.Sink) (err error) {
	defer s.options.Panics.Catch(s.config.Name, &err)
	return channel.Listen(ctx, nil, sink)
}

// leaveFeed ends the feed with the last who listens.
func (s *shared) leaveFeed(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.users == 0 {
		f.cancel()
		if s.feed == f {
			s.feed = nil
		}
	}
}

// feedSink hands out what the stream brings.
type feedSink struct {
	backend.Sink // no response comes

	feed    *feed
	channel *session
	ctx     context.Context //nolint:containedctx // the feed's own, which Message is not given
}

// Message publishes a notification. A request is answered here: there are many callers, and none of them is meant.
func (f *feedSink) Message(m *wire.Message) error {
	m = m.With() // it is read after this has returned
	if m.Kind == wire.Request {
		f.channel.answerBeside(f.ctx, f.channel, m)
		return nil
	}
	f.feed.hub.publish(m)
	return nil
}

// Close does nothing: the session ends when it is not used.
func (*shared) Close(context.Context) error { return nil }

// lastUse is now if the session is in use.
func (s *shared) lastUse() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active > 0 {
		return time.Now()
	}
	return s.used
}

// makeRoom ends the session of the gateway's own that is unused for longest, if there are too many and one is unused. The
// caller holds b.mu.
func (b *Backend) makeRoom(ctx context.Context) {
	if len(b.shared) < b.limits.Sessions {
		return
	}
	var oldest *shared
	least := time.Now()
	for _, s := range b.shared {
		if used := s.lastUse(); used.Before(least) {
			oldest, least = s, used
		}
	}
	if oldest != nil {
		b.retire(ctx, oldest)
	}
}

// reapLater looks for idle sessions from now on. The caller holds b.mu.
func (b *Backend) reapLater() {
	if b.reaper == nil {
		b.reaper = time.AfterFunc(b.limits.SessionIdle/10, b.reap)
	}
}

// reap ends sessions that are idle.
func (b *Backend) reap() {
	before := time.Now().Add(-b.limits.SessionIdle)
	var idle []*pipe
	b.mu.Lock()
	for _, s := range b.shared {
		if s.lastUse().Before(before) {
			b.retire(b.ctx, s)
		}
	}
	for _, p := range b.pipes {
		if p.lastUse().Before(before) {
			idle = append(idle, p)
		}
	}
	b.reaper = nil
	if !b.closed && len(b.shared)+len(b.pipes) > 0 {
		b.reapLater()
	}
	b.mu.Unlock()
	for _, p := range idle {
		p.endIdle(before)
	}
}

// retire ends a session of the gateway's own beside the caller, who holds b.mu.
func (b *Backend) retire(ctx context.Context, s *shared) {
	delete(b.shared, s.subject)
	if b.closed {
		return
	}
	beside := context.WithoutCancel(ctx)
	b.tasks.Go(b.contained(func() {
		ctx, cancel := context.WithTimeout(beside, b.limits.Notice)
		defer cancel()
		s.end(ctx)
	}))
}

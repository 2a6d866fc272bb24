package child

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const (
	// ownPatience is how long a process of one session waits for its slow reader.
	ownPatience = 30 * time.Second
	// maxMailed bounds what waits for a session's next stream or call, maxAsked the requests of a child that wait for answers.
	maxMailed = 64
	maxAsked  = 256
)

// session is a legacy session and the channel to it. It is the owner of its process if it has one of its own.
type session struct {
	b       *Backend
	id      string
	version string
	// own is the session's own process; nil if it shares one.
	own *process
	// released is closed when that is over and counts no longer.
	released chan struct{}
	// asks says that the client may be asked by a server.
	asks bool
	// pooled says that the session is one of Shared.
	pooled bool

	mu      sync.Mutex
	ended   bool
	users   int // calls and streams
	used    time.Time
	streams []*queue // the newest last
	mailed  []*wire.Message
	// asked are the requests of the child's that wait for the client's answer, by the ids that the client sees. Those are not
	// the child's own, so that an answer that comes late cannot be taken for one to another request.
	asked map[string]json.RawMessage
	last  int
}

func (b *Backend) newSession() *session {
	return &session{b: b, id: rand.Text(), released: make(chan struct{}), used: time.Now(), asked: map[string]json.RawMessage{}}
}

func (s *session) handle() backend.Handle { return backend.Handle{Session: s.id, Version: s.version} }

// Era is Legacy.
func (s *session) Era() backend.Era { return backend.Legacy }

// process is where the session's messages go.
func (s *session) process(ctx context.Context, deadline time.Time) (*process, error) {
	if s.own != nil {
		if s.own.over() {
			return nil, backend.ErrSession
		}
		return s.own, nil
	}
	found, err := s.b.found(ctx)
	if err != nil {
		return nil, err
	}
	if found.legacy == nil {
		return nil, backend.ErrSession
	}
	return found.legacy.keeper.get(ctx, deadline)
}

// Call sends a request. At a shared process some methods are not the child's business: what they set would be set for everybody.
func (s *session) Call(ctx context.Context, c *backend.Call, sink backend.Sink) error {
	if !s.enter() {
		return backend.ErrSession
	}
	defer s.leave()
	if s.own == nil {
		switch c.Message.Method {
		case "logging/setLevel": // log messages of a shared process reach nobody, whatever their level
			return respond(sink, wire.NewResult(c.Message.ID, nil))
		case "tasks/list": // they are everybody's
			return respond(sink, wire.NewError(c.Message.ID, wire.CodeMethodNotFound, "tasks cannot be listed where clients share a process", nil))
		case "resources/subscribe", "resources/unsubscribe":
			return s.subscription(ctx, c, sink)
		}
	}
	var q *queue
	err := s.b.call(ctx, s.process, c, sink, func(_ *process, c *call) []wire.Edit {
		s.mu.Lock()
		defer s.mu.Unlock()
		q = c.q
		s.collect(q)
		return nil
	})
	if q != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keep(q)
	}
	return err
}

// subscription passes a subscription on, and the end of one if nobody else has it. If its server is given up before it was sent, it goes
// to the next.
func (s *session) subscription(ctx context.Context, c *backend.Call, sink backend.Sink) error {
	for {
		err := s.subscribe(ctx, c, sink)
		if !errors.Is(err, errStopped) || s.b.ctx.Err() != nil {
			return err
		}
	}
}

func (s *session) subscribe(ctx context.Context, c *backend.Call, sink backend.Sink) error {
	found, err := s.b.found(ctx)
	if err != nil {
		return s.b.failed(err, false)
	}
	legacy := found.legacy
	if legacy == nil {
		return backend.ErrSession
	}
	select {
	case legacy.turn <- struct{}{}:
	case <-ctx.Done():
		return s.b.failed(ended(ctx), false)
	}
	defer func() { <-legacy.turn }()
	uri, _ := c.Message.StringParam("uri")
	if c.Message.Method == "resources/unsubscribe" {
		if !legacy.unsubscribe(s, uri) {
			return respond(sink, wire.NewResult(c.Message.ID, nil))
		}
		return s.b.call(ctx, legacy.keeper.get, c, sink, nil)
	}
	switch err := legacy.subscribe(s, uri); {
	case errors.Is(err, errCrowded):
		return respond(sink, wire.NewError(c.Message.ID, wire.CodeInvalidParams, err.Error(), nil))
	case err != nil:
		return err
	}
	return s.b.call(ctx, legacy.keeper.get, c, sink, nil)
}

// Send sends a notification, or the answer to a request of the child's. What is said to a process that others share, or is
// about a request that is no longer open, is for nobody.
func (s *session) Send(ctx context.Context, m *wire.Message) error {
	if !s.enter() {
		return backend.ErrSession
	}
	defer s.leave()
	switch {
	case s.own == nil || m.Method == "notifications/initialized" || m.Method == methodCancelled:
		return nil // the first was sent with initialize; the other is the end of a call's context
	case m.Kind == wire.Response:
		id := s.answered(m.ID)
		if id == nil {
			return nil
		}
		m = m.With(wire.SetID(id))
	case m.Kind == wire.Request:
		return errors.New("child: Send was given a request: use Call")
	}
	_, err := s.own.out.put(ctx, m)
	if errors.Is(err, errUnsent) {
		return backend.ErrSession
	}
	return err
}

// Listen receives what comes outside of calls. Of several streams the newest receives.
func (s *session) Listen(ctx context.Context, _ *backend.Call, sink backend.Sink) error {
	if !s.enter() {
		return backend.ErrSession
	}
	defer s.leave()
	q := newQueue()
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return nil
	}
	s.streams = append(s.streams, q)
	s.collect(q) // at once, or what is said meanwhile would come before it
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams = slices.DeleteFunc(s.streams, func(other *queue) bool { return other == q })
		s.keep(q)
	}()
	for {
		m, err := q.next(ctx)
		if ctx.Err() != nil || errors.Is(err, errStopped) {
			return nil
		}
		if err == nil {
			err = sink.Message(m)
		}
		if err != nil {
			return err
		}
	}
}

// Close ends the session, unless others use it.
func (s *session) Close(ctx context.Context) error {
	if s.pooled {
		return nil
	}
	s.b.sessions.close(ctx, s)
	return nil
}

func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.users++
	return true
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.used = time.Now()
}

func (s *session) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// usable reports whether the session can be called.
func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended && (s.own == nil || !s.own.over())
}

// retire lets nobody use the session any more, unless it was used since it was looked at. It reports whether it did.
func (s *session) retire(idleSince time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.users > 0 || !s.used.Equal(idleSince) {
		return false
	}
	s.ended = true
	return true
}

// idleSince is zero while the session is in use, and once it has ended.
func (s *session) idleSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 || s.ended {
		return time.Time{}
	}
	return s.used
}

func (s *session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, q := range s.streams {
		q.fail(errStopped)
	}
}

// tell passes a message of a shared process on, if there is a stream for it.
func (s *session) tell(m *wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.streams); n > 0 {
		s.streams[n-1].push(m, 0)
	}
}

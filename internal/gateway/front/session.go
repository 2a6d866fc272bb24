package front

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
)

// passport is what is sealed into a session id: everything another replica needs to go on with the session.
type passport struct {
	// Version is the protocol version agreed on with the client.
	Version string `json:"v"`
	// Capabilities and Info are what the client said of itself; sessions opened later are opened with them.
	Capabilities json.RawMessage `json:"c,omitempty"`
	Info         json.RawMessage `json:"i,omitempty"`
	// Backends are the sessions opened at initialize, by backend. Whoever has the id can go on with them, at any replica: forgetting
	// the session at one of them must not end them.
	Backends map[string]backend.Handle `json:"b,omitempty"`
	// Seen marks the lists at initialize.
	Seen []byte `json:"n,omitempty"`
}

// maxClientInfo bounds what of a client is kept in the session id, which travels in a header with every request.
const maxClientInfo = 1 << 10

// sessionKey names a session in memory, without being good for anything else.
type sessionKey [16]byte

func keyOf(id string) sessionKey {
	sum := sha256.Sum256([]byte(id))
	return sessionKey(sum[:16])
}

// session is what this replica remembers of a client's session. All of it can be lost: the passport brings it back, but for
// what the client asked of backends that know no sessions (level and subscriptions).
type session struct {
	passport

	key    sessionKey
	caller string

	mu sync.Mutex
	// links are the ways to the backends that speak the client's protocol versions.
	links map[string]*link
	// level is the log level the client asked for; empty if it never did.
	level string
	// subscriptions are the resources subscribed to, by URI.
	subscriptions map[string]struct{}
	// subscriptionBytes is the length of their URIs together.
	subscriptionBytes int
	// resubscribed is closed, and made anew, when subscriptions change.
	resubscribed chan struct{}
	// calls are the requests in flight, by raw id.
	calls map[string]context.CancelCauseFunc
	// stream ends the session's event stream; nil while it has none.
	stream *context.CancelCauseFunc
	// ears are by what its stream hears; nil while it has none.
	ears *ears
	// seen marks the lists that the client was told of last; nil for those of its id.
	seen *catalog.Mark
	// over says that nothing is opened for it any more.
	over bool

	// The rest belongs to the registry and is guarded by its lock.
	active int
	used   time.Time
	order  *list.Element
}

func (s *session) linkTo(name string) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.links[name]
	if l == nil {
		l = newLink(s.Backends[name])
		s.links[name] = l
	}
	return l
}

// begin registers a request, so that a cancellation finds it. A second one of the same id in flight is refused. In a session that has
// ended meanwhile it is ended at once.
func (s *session) begin(id string, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.calls[id]; taken {
		return false
	}
	s.calls[id] = cancel
	if s.over {
		cancel(errOver)
	}
	return true
}

func (s *session) finish(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

// cancel ends a request in flight; false if there is none here.
func (s *session) cancel(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel, ok := s.calls[id]
	if ok {
		cancel(errCancelled)
	}
	return ok
}

// finishAll ends the session's requests and its stream, and lets no other link be opened.
func (s *session) finishAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, cancel := range s.calls {
		cancel(cause)
	}
	if s.stream != nil {
		(*s.stream)(cause)
	}
}

func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

func (s *session) logLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

func (s *session) setLogLevel(level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

// takeOpened takes the channels of sessions that are to be closed from here. Who opens one holds a link's lock and asks for the session's:
// so never the two at once, in this order.
func (s *session) takeOpened() []backend.Channel {
	s.mu.Lock()
	links := slices.Collect(maps.Values(s.links))
	s.mu.Unlock()
	var channels []backend.Channel
	for _, l := range links {
		l.mu.Lock()
		if l.opened && l.channel != nil {
			channels = append(channels, l.channel)
		}
		l.channel, l.opened = nil, false
		l.mu.Unlock()
	}
	return channels
}

// registry holds the sessions in memory, least recently used first out.
type registry struct {
	limits *Limits
	// drop ends what a session that falls out or is ended holds; called without the lock.
	drop func(*session)
	// evict ends in the same way what makes room for another of its caller, and its sessions at backends whoever else may know of them:
	// else a caller that ends none would have as many there as it likes.
	evict func(*session)
	// changed is told how many sessions there are more.
	changed func(delta int)

	mu      sync.Mutex
	byKey   map[sessionKey]*session
	order   *list.List // of *session; the front was used last
	callers map[string]int
	// marks are what is left of sessions that were ended: nothing but that.
	marks map[sessionKey]struct{}
	ends  *list.List // of mark; the front is the oldest
}

// mark says when a session was ended.
type mark struct {
	key sessionKey
	at  time.Time
}

func newRegistry(limits *Limits, drop func(*session), changed func(delta int)) *registry {
	return &registry{
		limits: limits, drop: drop, evict: drop, changed: changed, byKey: map[sessionKey]*session{}, order: list.New(), callers: map[string]int{},
		marks: map[sessionKey]struct{}{}, ends: list.New(),
	}
}

// enter finds the session, or remembers it anew, and holds it until leave. It returns nil for one that was ended.
func (r *registry) enter(key sessionKey, caller string, p passport) *session {
	r.mu.Lock()
	if _, ended := r.marks[key]; ended {
		r.mu.Unlock()
		return nil
	}
	s := r.byKey[key]
	var out *session
	if s == nil {
		s = &session{
			key: key, caller: caller, passport: p, links: map[string]*link{}, subscriptions: map[string]struct{}{},
			resubscribed: make(chan struct{}), calls: map[string]context.CancelCauseFunc{},
		}
		if r.callers[caller] >= r.limits.Sessions { // ids of old: they push out no session of somebody else
			out = r.takeIdle(func(s *session) bool { return s.caller == caller })
		}
		if out == nil {
			out = r.makeRoom()
		}
		r.byKey[key] = s
		s.order = r.order.PushFront(s)
		r.callers[caller]++
		r.changed(1)
	}
	s.active++
	s.used = time.Now()
	r.order.MoveToFront(s.order)
	r.mu.Unlock()
	if out != nil {
		r.drop(out)
	}
	return s
}

func (r *registry) leave(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.active--
	s.used = time.Now()
}

// makeRoom takes the oldest mark, or the oldest idle session, out of the memory if it is full. The caller holds the lock.
func (r *registry) makeRoom() *session {
	if r.order.Len()+r.ends.Len() < r.limits.TotalSessions {
		return nil
	}
	if oldest := r.ends.Front(); oldest != nil {
		r.forget(oldest)
		return nil
	}
	return r.takeIdle(func(*session) bool { return true })
}

// forget removes a mark.
func (r *registry) forget(e *list.Element) {
	if m, ok := r.ends.Remove(e).(mark); ok {
		delete(r.marks, m.key)
	}
	if len(r.marks) == 0 {
		r.marks = map[sessionKey]struct{}{} // the old one keeps the room that it had
	}
}

// takeIdle takes out the session that was used longest ago, of those that fit and serve nobody now.
func (r *registry) takeIdle(fits func(*session) bool) *session {
	for e := r.order.Back(); e != nil; e = e.Prev() {
		if s, ok := e.Value.(*session); ok && s.active == 0 && fits(s) {
			r.remove(s)
			return s
		}
	}
	return nil
}

// remove takes a session out, and out of the counts.
func (r *registry) remove(s *session) {
	delete(r.byKey, s.key)
	r.order.Remove(s.order)
	r.changed(-1)
	if r.callers[s.caller]--; r.callers[s.caller] == 0 {
		delete(r.callers, s.caller)
	}
}

// admit says whether the caller may open another session. At the limit its longest idle one is ended for it.
func (r *registry) admit(caller string) bool {
	r.mu.Lock()
	if r.callers[caller] < r.limits.Sessions {
		r.mu.Unlock()
		return true
	}
	s := r.takeIdle(func(s *session) bool { return s.caller == caller })
	r.mu.Unlock()
	if s != nil {
		r.evict(s)
	}
	return s != nil
}

// end ends a session for good, as far as this replica is asked. What is left is a mark, for as long as there is room, which
// counts for nobody.
func (r *registry) end(s *session) {
	r.mu.Lock()
	known := r.byKey[s.key]
	if known != nil {
		r.remove(known)
	}
	if _, ended := r.marks[s.key]; !ended {
		r.marks[s.key] = struct{}{}
		r.ends.PushBack(mark{s.key, time.Now()})
	}
	for r.order.Len()+r.ends.Len() > r.limits.TotalSessions && r.ends.Len() > 0 {
		r.forget(r.ends.Front())
	}
	r.mu.Unlock()
	r.drop(s)
	if known != nil && known != s { // it fell out, and was entered again
		r.drop(known)
	}
}

// expire takes out what has been idle, or ended, since before.
func (r *registry) expire(before time.Time) {
	for {
		r.mu.Lock()
		for e := r.ends.Front(); e != nil && isBefore(e, before); e = r.ends.Front() {
			r.forget(e)
		}
		s := r.takeIdle(func(s *session) bool { return s.used.Before(before) })
		r.mu.Unlock()
		if s == nil {
			return
		}
		r.drop(s)
	}
}

func isBefore(e *list.Element, t time.Time) bool {
	m, ok := e.Value.(mark)
	return ok && m.at.Before(t)
}

// count is how much there is in memory, marks included.
func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byKey) + len(r.marks)
}

// replaceStream ends the stream that the session had, and takes its place until the function it returns is called. In a session that has
// ended meanwhile the stream is ended at once: nobody else would end it.
func (s *session) replaceStream(ctx context.Context) (leave func()) {
	end, _ := ctx.Value(endStream{}).(context.CancelCauseFunc)
	mine := &end
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		(*s.stream)(errReplaced)
	}
	s.stream = mine
	if s.over {
		end(errOver)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stream == mine {
			s.stream = nil
		}
	}
}

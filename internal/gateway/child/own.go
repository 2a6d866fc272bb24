package child

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// patience is long where a slow reader is the only one to wait.
func (s *session) patience() time.Duration { return ownPatience }

// take passes on what the session's own process says outside of its answers: to the client it is, and on the stream it belongs to.
func (s *session) take(p *process, m *wire.Message) {
	switch {
	case m.Kind == wire.Request:
		id := s.ask(m.ID)
		if id == nil {
			p.refuse(m)
			return
		}
		m = m.With(wire.SetID(id))
	case m.Method == methodCancelled:
		id := s.withdraw(m.Param("requestId"))
		if id == nil {
			return
		}
		m = m.With(wire.SetParam("requestId", id))
	}
	if q := s.stream(p, m); q != nil && !q.push(m, ownPatience) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if q.isStopped() && m.Method != methodLog {
			s.mail(p, m) // the stream ended just before
		}
	}
}

// ask notes a request of the child's, and returns the id that the client is to see; nil if it may not be asked, or not that much.
func (s *session) ask(id json.RawMessage) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asks || len(s.asked) >= maxAsked {
		return nil
	}
	s.last++
	ours := strconv.Itoa(s.last)
	s.asked[ours] = id
	return json.RawMessage(ours)
}

// answered returns the child's id of a request that the client answers; nil if it is no longer open.
func (s *session) answered(ours json.RawMessage) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.asked[string(ours)]
	delete(s.asked, string(ours))
	return id
}

// withdraw forgets a request that the child gave up, and returns the id that the client knows.
func (s *session) withdraw(id json.RawMessage) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ours, theirs := range s.asked {
		if string(theirs) == string(id) {
			delete(s.asked, ours)
			return json.RawMessage(ours)
		}
	}
	return nil
}

// clear forgets what was said by a process that never got as far as to answer: the next one asks under the same ids.
func (s *session) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.asked)
	s.mailed = nil
}

// stream is where a message goes. On a pipe nothing says which call it is about: it is taken to be about the newest one that is at
// work, unless it is about lists or resources. What finds no reader waits for one, but for log messages.
func (s *session) stream(p *process, m *wire.Message) *queue {
	c := p.newest()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.streams)
	outside := isListChanged(m) || m.Method == methodUpdated
	switch {
	case n > 0 && (outside || c == nil):
		return s.streams[n-1]
	case c != nil:
		return c.q
	case m.Method != methodLog:
		s.mail(p, m)
	}
	return nil
}

// mail keeps a message for the next stream or call. The caller holds the lock.
func (s *session) mail(p *process, m *wire.Message) {
	size := len(m.Raw)
	for _, other := range s.mailed {
		size += len(other.Raw)
	}
	same := func(other *wire.Message) bool { return isListChanged(m) && other.Method == m.Method }
	switch {
	case slices.ContainsFunc(s.mailed, same):
	case len(s.mailed) < maxMailed && size <= queueBytes:
		s.mailed = append(s.mailed, m)
	case m.Kind == wire.Request && s.asked[string(m.ID)] != nil: // else the child has given it up
		p.refuse(m.With(wire.SetID(s.asked[string(m.ID)])))
		delete(s.asked, string(m.ID))
	}
}

// keep mails what a stream that ends did not pass on, the message that it had taken before all others. The caller holds the lock.
func (s *session) keep(taken *wire.Message, q *queue) {
	left := q.stop()
	if s.own == nil {
		return
	}
	if taken != nil {
		left = append([]*wire.Message{taken}, left...)
	}
	for _, m := range left {
		if m.Method != methodLog {
			s.mail(s.own, m)
		}
	}
}

// collect hands what waits to a stream or call that begins.
func (s *session) collect(q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mailed {
		q.push(m, 0)
	}
	s.mailed = nil
}

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
	for {
		q := s.stream(p, m)
		if q == nil || q.push(m, ownPatience) {
			return
		} // else its reader has left meanwhile, and is not found again
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

// stream is where a message goes. What finds no reader waits for one, but for log messages.
func (s *session) stream(p *process, m *wire.Message) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.reader(p, m)
	if q == nil && m.Method != methodLog {
		s.mail(p, m)
	}
	return q
}

// reader is the stream or call that a message goes to; nil if none is open. On a pipe nothing says which call a message is about: it is
// taken to be about the newest one that is at work, unless it is about lists or resources. The caller holds the lock.
func (s *session) reader(p *process, m *wire.Message) *queue {
	outside := isListChanged(m) || m.Method == methodUpdated
	c := p.newest()
	if c != nil && !outside {
		return c.q
	}
	for _, q := range slices.Backward(s.streams) {
		if q.isOpen() {
			return q
		}
	}
	if c != nil {
		return c.q
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

// keep passes on elsewhere, or mails, what a stream or call that ends did not pass on. The caller holds the lock.
func (s *session) keep(q *queue) {
	left := q.stop()
	if s.own == nil {
		return
	}
	for _, m := range left {
		if m.Kind == wire.Response || m.Method == methodProgress || m.Method == methodLog {
			continue
		}
		if next := s.reader(s.own, m); next != nil {
			if taken, _ := next.try(m); taken {
				continue
			}
		}
		s.mail(s.own, m)
	}
}

// collect hands what waits to a stream or call that begins. The caller holds the lock.
func (s *session) collect(q *queue) {
	for _, m := range s.mailed {
		q.push(m, 0)
	}
	s.mailed = nil
}

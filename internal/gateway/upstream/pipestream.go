package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// errStream marks the end of the stream that a session over HTTP+SSE is.
var errStream = errors.New("the stream of the session ended")

// read takes what the stream brings to whom it is for, until it ends.
func (p *pipe) read(ctx context.Context, events *wire.EventReader) (err error) {
	defer p.options.Panics.Catch(p.config.Name, &err)
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, wire.ErrEventTooLarge):
			return p.failure(classTooLarge, true, err)
		case err != nil:
			return endOf(err)
		case event.Type != "message":
			continue
		}
		m, err := wire.Parse(bytes.Clone(event.Data), wire.Limits{Bytes: int(p.limits.Response), Depth: answerLimits.Depth})
		if err != nil {
			return p.failure(classNotMCP, true, err)
		}
		if m.Kind != wire.Response && len(m.Raw) > p.limits.Event {
			return p.failure(classTooLarge, true, wire.ErrEventTooLarge)
		}
		if m, err = p.redacted(m); err != nil {
			return p.failure(classNotMCP, true, err)
		}
		p.route(ctx, m)
	}
}

// route gives a message to whom it is for. A request that nobody can be asked is answered here.
func (p *pipe) route(ctx context.Context, m *wire.Message) {
	if !p.give(m) && m.Kind == wire.Request {
		p.answerBeside(ctx, p, m)
	}
}

// give finds the reader of a message; false if there is none. Responses and progress name their call. What is left belongs to the
// session: the stream does not tell which call a request or a log message is about, so it goes to the newest, and the rest to
// who listens. In a session of the gateway's own there may be many callers, and nobody gets what may be another's.
func (p *pipe) give(m *wire.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if progress := m.Method == "notifications/progress"; progress || m.Kind == wire.Response {
		for i, c := range p.calls {
			if progress && c.names.token != nil && bytes.Equal(m.Param(progressToken), c.names.token) || !progress && bytes.Equal(m.ID, c.names.id) {
				c.queue.put(m)
				if !progress {
					p.used = time.Now()
					p.calls = slices.Delete(p.calls, i, i+1) // it reads no further, and what comes next is for another
				}
				return true
			}
		}
		return false // it is late, or made up
	}
	forAll := isAboutLists(m)
	if p.own && !forAll {
		return false
	}
	if !p.own && len(p.calls) > 0 && (!forAll || p.hub.size() == 0) {
		p.calls[len(p.calls)-1].queue.put(m)
		return true
	}
	return p.hub.publish(m)
}

// isAboutLists says whether a notification is about what the server offers, rather than about a call.
func isAboutLists(m *wire.Message) bool {
	return strings.HasSuffix(m.Method, "/list_changed") || m.Method == "notifications/resources/updated"
}

// answerBeside answers a request of the server's that no client can be asked.
func (b *Backend) answerBeside(ctx context.Context, channel backend.Channel, m *wire.Message) {
	answer := wire.NewError(m.ID, wire.CodeMethodNotFound, "there is no client to ask", nil)
	if m.Method == "ping" {
		answer = wire.NewResult(m.ID, nil)
	}
	b.beside(ctx, func(ctx context.Context) {
		if err := channel.Send(ctx, answer); err != nil {
			b.log.Debug("a request of the backend could not be answered", "error", err)
		}
	})
}

// unanswered is the error of a call that was delivered and whose response did not come.
func (p *pipe) unanswered(ctx context.Context, err error) error {
	_, isTold := errors.AsType[*backend.Error](err)
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, backend.ErrSession): // another request was told that there is no session any more
		return p.taken(err)
	case cause != nil:
		return p.failure(classTimeout, true, cause)
	case errors.Is(err, errClosed):
		return p.failure(classConnect, true, err)
	case errors.Is(err, errSlow):
		return p.failure(classTooLarge, true, err)
	case errors.Is(err, errStream) && !isTold:
		return p.failure(classServerError, true, err)
	}
	return p.taken(err) // or the sink's
}

// deliver posts a message.
func (p *pipe) deliver(ctx context.Context, m *wire.Message, further map[string]string, hold time.Duration) error {
	x := p.begin(ctx)
	defer x.end()
	x.hold = hold
	p.mu.Lock()
	to := p.endpoint
	p.mu.Unlock()
	o := p.post(&to, m.Raw, further)
	if err := x.send(&o); err != nil {
		if errors.Is(err, backend.ErrSession) {
			p.abandon()
		}
		return err
	}
	x.skim()
	switch status := x.response.StatusCode; {
	case status >= 200 && status <= 299:
		return nil
	case status == http.StatusNotFound:
		failure := p.lostSession(status, "HTTP status 404")
		p.end(failure)
		return failure
	default:
		return p.statusFailure(status)
	}
}

// cancelled tells the server, beside the caller, that nobody waits for a response any more.
func (p *pipe) cancelled(ctx context.Context, id json.RawMessage) {
	p.beside(ctx, func(ctx context.Context) {
		if err := p.deliver(ctx, cancellation(id), nil, 0); err != nil {
			p.log.Debug("a request could not be cancelled", "error", err)
		}
	})
}

// Send sends a notification, or a response to a request of the server's. A cancellation names the request as its caller does.
func (p *pipe) Send(ctx context.Context, m *wire.Message) error {
	if m.Method == "notifications/cancelled" {
		id := p.idOf(m.Param("requestId"))
		if id == nil {
			return nil // it is answered already, or is one of many callers'
		}
		m = m.With(wire.SetParam("requestId", id))
	}
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended != nil {
		return p.lostSession(0, ended.Error())
	}
	return p.deliver(ctx, m, nil, p.options.Hold)
}

// idOf is the server's id for a request that is in flight.
func (p *pipe) idOf(outer json.RawMessage) json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if !p.own && bytes.Equal(c.names.outerID, outer) {
			return c.names.id
		}
	}
	return nil
}

// Listen gives the sink what belongs to no call.
func (p *pipe) Listen(ctx context.Context, _ *backend.Call, sink backend.Sink) error {
	err := p.hub.listen(ctx, p.limits.Queue, sink)
	p.touch()
	switch {
	case ctx.Err() != nil:
		err = nil
	case errors.Is(err, errSlow):
		return p.failure(classTooLarge, true, err)
	case errors.Is(err, errStream):
		return p.lostSession(0, err.Error())
	}
	return err
}

// listen gives the sink what is published.
func (h *hub) listen(ctx context.Context, limit int, sink backend.Sink) error {
	q := newQueue(limit)
	h.join(q)
	defer h.leave(q)
	for {
		m, err := q.next(ctx)
		if err != nil {
			return err
		}
		if err := sink.Message(m); err != nil {
			return err
		}
	}
}

// Close ends the session by ending its stream.
func (p *pipe) Close(context.Context) error {
	p.end(errEnded)
	return nil
}

// end ends the session, once.
func (p *pipe) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(why)
}

// abandon ends the session, whose pod takes nothing more, with the last call that it has still to answer.
func (p *pipe) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandoned = true
	if len(p.calls) == 0 {
		p.endLocked(errMoved)
	}
}

// endIdle ends the session if it was not used since.
func (p *pipe) endIdle(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastUseLocked().Before(since) {
		p.endLocked(errReplaced)
	}
}

// endLocked is end for who holds the lock.
func (p *pipe) endLocked(why error) {
	if p.ended != nil {
		return
	}
	if cause := context.Cause(p.life.ctx); errors.Is(cause, errClosed) {
		why = cause // and not what became of the stream by that
	}
	p.ended = fmt.Errorf("%w: %w", errStream, why)
	for _, c := range p.calls {
		c.queue.end(p.ended)
	}
	p.hub.end(p.ended)
	p.life.cancel(why)
	if p.kept {
		p.pods.closed(p.address)
	}
	go p.forget()
}

// forget makes the session one that cannot be resumed.
func (p *pipe) forget() {
	p.Backend.mu.Lock()
	defer p.Backend.mu.Unlock()
	delete(p.pipes, p.id)
}

// lastUse is now if the session is in use.
func (p *pipe) lastUse() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastUseLocked()
}

// touch makes now the last use.
func (p *pipe) touch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
}

// lastUseLocked is lastUse for who holds the lock.
func (p *pipe) lastUseLocked() time.Time {
	if len(p.calls) > 0 || p.hub.size() > 0 {
		return time.Now()
	}
	return p.used
}

package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// send posts a message that has no response.
func (s *session) send(ctx context.Context, m *wire.Message, hold time.Duration) error {
	x := s.begin(ctx)
	defer x.end()
	x.hold = hold
	o := s.post(&s.to, m.Raw, nil)
	if err := x.send(&o); err != nil {
		return err
	}
	x.skim()
	status := x.response.StatusCode
	switch {
	case status >= 200 && status <= 299:
		return nil
	case s.to.session == "":
	case status == http.StatusNotFound:
		return s.lostSession(status, "HTTP status 404")
	case status == http.StatusBadRequest && s.isLost(ctx, &s.to):
		return s.lostSession(status, "HTTP status 400, and so it says to a ping")
	}
	return s.statusFailure(status)
}

// Listen receives what the server sends outside of calls. A stream with event ids that ends is gone on with where it ended.
func (s *session) Listen(ctx context.Context, _ *backend.Call, sink backend.Sink) error {
	if s.noStream[backend.Legacy].Load() {
		return s.noSuchStream(0)
	}
	x := s.begin(ctx)
	defer x.end()
	x.patience = 0
	events := s.events()
	defer s.giveBack(events)
	for lean, last := 0, ""; ; lean++ {
		if err := s.openStream(ctx, x, last); err != nil {
			return s.stopped(ctx, err)
		}
		events.Reset(x.response.Body)
		heard, err := s.listen(events, sink)
		if heard {
			lean = 0
		}
		if seen := events.LastEventID(); seen != "" {
			last = seen
		}
		retry := events.Retry()
		x.release()
		ended, isEnd := errors.AsType[*streamEndError](err)
		switch {
		case !isEnd || ctx.Err() != nil:
			return s.stopped(ctx, err)
		case last == "" || lean >= s.limits.Resumes:
			if errors.Is(ended, errNoResponse) {
				return nil // it hung up
			}
			return x.broken(ended.err, true)
		}
		if !x.wait(retryAfter(retry)) {
			return nil
		}
	}
}

// conflicts is how often a stream is asked for again while the server believes that the session has one still: its end may not
// have come to it yet.
const conflicts = 5

// openStream opens the stream, or the rest of one that ended after an event.
func (s *session) openStream(ctx context.Context, x *exchange, after string) error {
	var pause backoff
	for again := 0; ; again++ {
		o := s.get(&s.to, after)
		if err := x.send(&o); err != nil {
			return err
		}
		if x.response.StatusCode == http.StatusConflict && again < conflicts {
			x.release()
			if !x.wait(pause.next()) {
				return x.over()
			}
			continue
		}
		return s.offersStream(ctx, x.response, after)
	}
}

// stopped is what Listen returns: nothing if its caller ended it.
func (s *session) stopped(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		err = nil
	case errors.Is(err, backend.ErrSession):
		s.leave()
	}
	return err
}

// offersStream judges the answer to the GET of a stream.
func (s *session) offersStream(ctx context.Context, response *http.Response, after string) error {
	status := response.StatusCode
	kind, err := mediaOf(response)
	switch {
	case status == http.StatusOK && err == nil && kind == mediaStream:
		return nil
	case after != "":
		return s.statusFailure(status)
	case status == http.StatusOK, status == http.StatusMethodNotAllowed:
	case status == http.StatusNotFound || status == http.StatusBadRequest:
		if s.to.session != "" {
			switch lost, told := s.pinged(ctx, &s.to); {
			case lost:
				return s.lostSession(status, "so it says to a ping too")
			case !told: // it may mean either
				return s.statusFailure(status)
			}
		}
	case statusClass(status) != classNotMCP:
		return s.statusFailure(status)
	}
	// It is remembered: a server without a stream is not asked for it again and again.
	s.noStream[backend.Legacy].Store(true)
	return s.noSuchStream(status)
}

// listen gives the sink what a stream brings until it ends, which is a *streamEndError, and reports whether anything came.
func (s *session) listen(events *wire.EventReader, sink backend.Sink) (heard bool, err error) {
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, wire.ErrEventTooLarge):
			return heard, s.failure(classTooLarge, true, err)
		case err != nil:
			return heard, endOf(err)
		case event.Type != "message":
			continue
		case event.Rest != nil:
			continue // a response, to nothing
		}
		m, err := wire.Parse(event.Data, wire.Limits{Bytes: s.limits.Event, Depth: answerLimits.Depth})
		if err != nil {
			return heard, s.failure(classNotMCP, true, err)
		}
		heard = true
		if m.Kind == wire.Response {
			continue
		}
		if m, err = s.redacted(m); err != nil {
			return heard, s.failure(classNotMCP, true, err)
		}
		if err := sink.Message(m); err != nil {
			return heard, err
		}
	}
}

package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// A server may end a stream and go on in another one (protocol version 2025-11-25, "polling"; before that, after a broken
// connection), which the id of the last event asks for. The pause before that is the server's to say, within bounds.
const (
	shortestRetry = 10 * time.Millisecond
	defaultRetry  = time.Second
	longestRetry  = 30 * time.Second
)

func retryAfter(said time.Duration) time.Duration {
	if said == 0 {
		said = defaultRetry
	}
	return min(max(said, shortestRetry), longestRetry)
}

// streamEndError is what reading a stream returns when it ended before its response, for whatever reason.
type streamEndError struct{ err error }

func (e *streamEndError) Error() string { return e.err.Error() }
func (e *streamEndError) Unwrap() error { return e.err }

func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		err = errNoResponse
	}
	return &streamEndError{err}
}

// streams reads the stream of a call, and those that go on where it ended.
func (c *call) streams() error {
	in := &cappedReader{left: c.limits.StreamBytes}
	if c.listening {
		in.left = math.MaxInt64
	}
	events := c.events()
	defer c.giveBack(events)
	for lean, last := 0, ""; ; {
		in.in, in.err = c.watched(c.response.Body), nil
		events.Reset(in)
		err := c.stream(events, in)
		ended, isEnd := errors.AsType[*streamEndError](err)
		switch {
		case err == nil:
			return nil
		case !isEnd:
			return err
		case isModern(c.to.version) || c.ctx.Err() != nil:
			return c.broken(ended, true)
		}
		seen, retry := events.LastEventID(), events.Retry()
		if seen == "" {
			seen = last
		} else if seen != last {
			lean = 0
		}
		if last = seen; last == "" {
			return c.broken(ended, true)
		}
		if lean++; lean > c.limits.Resumes {
			retry = max(retry, defaultRetry)
		}
		if err = c.resume(last, retry); err != nil {
			return err
		}
	}
}

// stream reads one stream up to the response. A *streamEndError says that it ended before.
func (c *call) stream(events *wire.EventReader, in *cappedReader) error {
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, io.EOF), err != nil && in.failed() != nil && !errors.Is(err, errTooLarge):
			return endOf(err)
		case err != nil:
			return c.broken(err, true)
		case event.Type != "message":
			continue
		case event.Rest != nil:
			err := c.passOn(event.Data, &cappedReader{in: event.Rest, left: c.limits.Response - int64(len(event.Data))})
			c.tail = err == nil
			return err
		}
		m, err := wire.Parse(event.Data, wire.Limits{Bytes: c.limits.Event, Depth: answerLimits.Depth})
		if err != nil {
			return c.broken(err, true)
		}
		if m.Kind == wire.Response {
			err := c.answer(m)
			c.tail = err == nil
			return err
		}
		if m, err = c.redacted(m); err != nil {
			return c.broken(err, true)
		}
		if err := c.sink.Message(c.names.restored(m)); err != nil {
			return err
		}
	}
}

// resume asks for the rest of a stream.
func (c *call) resume(after string, retry time.Duration) error {
	c.release()
	if !c.wait(retryAfter(retry)) {
		return c.broken(errNoResponse, true)
	}
	o := c.get(c.to, after)
	if err := c.send(&o); err != nil {
		return err // taken says what it means for the request whose response was waited for
	}
	status := c.response.StatusCode
	if kind, err := mediaOf(c.response); status != http.StatusOK || err != nil || kind != mediaStream {
		failure := c.failure(classServerError, true, fmt.Errorf("%w, and was not resumed: HTTP status %d", errNoResponse, status))
		failure.Status = status
		return failure
	}
	return nil
}

// events takes a reader of event streams out of the pool.
func (b *Backend) events() *wire.EventReader {
	if events, ok := b.readers.Get().(*wire.EventReader); ok {
		return events
	}
	return wire.NewEventReader(nil, b.limits.Event)
}

var noStream = bytes.NewReader(nil)

func (b *Backend) giveBack(events *wire.EventReader) {
	events.Reset(noStream)
	b.readers.Put(events)
}

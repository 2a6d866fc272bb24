package wire

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// EventWriter writes a text/event-stream of messages. It is not safe for concurrent use.
type EventWriter struct {
	w     http.ResponseWriter
	flush *http.ResponseController
}

// NewEventWriter writes events to w. It sets the headers of an event stream; the status, 200 unless the caller wrote another one,
// goes out with the first event or comment.
func NewEventWriter(w http.ResponseWriter) *EventWriter {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	return &EventWriter{w: w, flush: http.NewResponseController(w)}
}

// The type is the default one, and named because there are clients that wait for the name.
const (
	eventHead = "event: message\ndata: "
	eventTail = "\n\n"
)

// Event writes one message and flushes it. Line feeds and carriage returns, which in JSON are white space between its parts, become
// spaces.
func (e *EventWriter) Event(data []byte) error {
	if _, err := io.WriteString(e.w, eventHead); err != nil {
		return err
	}
	if _, err := e.w.Write(SingleLine(data)); err != nil {
		return err
	}
	return e.finish()
}

// EventFrom is Event for a message that is passed on as r gives it, flushed at its end. After an error of r the event is
// unfinished: the connection has to be cut, so that the client does not take it for a whole one.
func (e *EventWriter) EventFrom(r io.Reader) error {
	if _, err := io.WriteString(e.w, eventHead); err != nil {
		return err
	}
	buf := copyBuffers.Get().(*[copyBufferBytes]byte) //nolint:forcetypeassert // nothing else is put in
	defer copyBuffers.Put(buf)
	for {
		n, err := r.Read(buf[:])
		blankLineEnds(buf[:n])
		if _, err := e.w.Write(buf[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return e.finish()
		}
		if err != nil {
			return err
		}
	}
}

const copyBufferBytes = 16 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBufferBytes]byte) }}

// Comment writes an empty comment and flushes it, which keeps a silent connection open.
func (e *EventWriter) Comment() error {
	if _, err := io.WriteString(e.w, ":\n\n"); err != nil {
		return err
	}
	return e.flush.Flush()
}

func (e *EventWriter) finish() error {
	if _, err := io.WriteString(e.w, eventTail); err != nil {
		return err
	}
	return e.flush.Flush()
}

package wire

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strconv"
	"time"
)

var (
	// ErrEventTooLarge is returned for an event that is larger than the reader's limit and is not to be streamed.
	ErrEventTooLarge = errors.New("server-sent event too large")
	// ErrManyEvents is returned for the event after EventReader.MaxEvents.
	ErrManyEvents = errors.New("too many server-sent events")
)

// Event is one server-sent event.
type Event struct {
	// Type is TypeMessage unless the server named another one.
	Type string
	// ID is the last event id the server gave, with this event or before.
	ID string
	// Data is the event's data, never empty. It is valid until the next call of Next.
	Data []byte
	// Rest is not nil if Data is but the beginning of a long response; it gives what follows. What is left of it unread is
	// skipped by the next call of Next.
	Rest io.Reader
}

// EventReader splits a text/event-stream into events (HTML standard, section 9.2). Lines end in LF, CR or both, a byte
// order mark may come first, comments and events without data are skipped. At the end of the stream an unfinished event counts,
// since there are servers that leave out its last line feed.
type EventReader struct {
	// MaxEvents bounds the events of the stream, those without data included. The default 0 means no bound.
	MaxEvents int
	// Whole makes every event come in one piece: no Rest, and a response too may be no larger than the limit.
	Whole bool

	lines     lineReader // keeps the data of the event so far
	max       int        // bytes of an event
	hasData   bool       // there was a data line
	head      headKind   // what the data is the head of
	judged    int        // how many bytes were held when head was last looked for
	eventType string     // as named by the event, or ""
	spent     int        // bytes of the event so far, in whole lines
	events    int
	lastID    string
	retry     time.Duration
	rest      *eventRest
}

// NewEventReader reads events of at most maxEvent bytes from r, field names and line ends included. A response may be longer: see
// Event.Rest.
func NewEventReader(r io.Reader, maxEvent int) *EventReader {
	return &EventReader{lines: lineReader{in: r}, max: maxEvent}
}

// Reset makes e read another stream, with the memory of the last one.
func (e *EventReader) Reset(r io.Reader) {
	*e = EventReader{MaxEvents: e.MaxEvents, Whole: e.Whole, max: e.max, lines: lineReader{in: r, buf: e.lines.buf}}
}

// LastEventID is the last event id the server gave, also with an event without data; "" if there was none.
func (e *EventReader) LastEventID() string { return e.lastID }

// Retry is how long the server wants a client to wait before it connects again; 0 if it did not say.
func (e *EventReader) Retry() time.Duration { return e.retry }

// Next returns the next event with data, of any type. The end of the stream is io.EOF.
func (e *EventReader) Next() (Event, error) {
	if e.rest != nil {
		if _, err := io.Copy(io.Discard, e.rest); err != nil {
			return Event{}, err
		}
		e.rest = nil
	}
	for e.begin(); ; {
		start, end, err := e.line()
		if errors.Is(err, errHead) {
			return e.stream()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return Event{}, err
		}
		if end > start {
			e.field(start, end)
			if err == nil {
				continue
			}
		}
		complete := e.hasData && e.lines.k1 > e.lines.k0
		if err != nil && !complete {
			return Event{}, err
		}
		event, err := e.event()
		if err != nil || complete {
			return event, err
		}
		e.begin()
	}
}

// begin forgets the last event.
func (e *EventReader) begin() {
	e.hasData, e.head, e.judged, e.eventType, e.spent = false, unknownHead, 0, "", 0
	e.lines.k0, e.lines.k1 = e.lines.r, e.lines.r
	e.lines.shrink()
}

// event counts the event and returns it.
func (e *EventReader) event() (Event, error) {
	if e.events++; e.MaxEvents > 0 && e.events > e.MaxEvents {
		return Event{}, ErrManyEvents
	}
	data := e.lines.buf[e.lines.k0:e.lines.k1:e.lines.k1]
	return Event{Type: cmp.Or(e.eventType, TypeMessage), ID: e.lastID, Data: data}, nil
}

// TypeMessage is the type of an event that says none, and of all those that hold a message.
const TypeMessage = "message"

// errHead is returned by line when the event so far is the head of a response that is to be streamed.
var errHead = errors.New("head of a response")

// line returns where in the buffer the next line is, without its end. With io.EOF it is the last one, which has none.
func (e *EventReader) line() (start, end int, err error) {
	l := &e.lines
	for {
		left := e.max - e.spent
		start, end, ok := l.next()
		if ok {
			if e.spent += end - start + 1; e.spent <= e.max {
				return start, end, nil
			}
			if e.isResponse(start, min(end, start+left)) {
				l.r = start
				return 0, 0, errHead
			}
			return 0, 0, ErrEventTooLarge
		}
		start = l.begun()
		over := l.w-start > left
		// What is not decided yet is looked at again when there is twice as much.
		due := l.held() >= max(headBytes, 2*e.judged)
		if (over || due) && e.isResponse(start, min(l.w, start+left)) {
			return 0, 0, errHead
		}
		if over {
			return 0, 0, ErrEventTooLarge
		}
		if err := l.more(); err != nil {
			start, end = l.last()
			e.spent += end - start
			return start, end, err
		}
	}
}

// field takes a line as a field of the event; comments have an empty name.
func (e *EventReader) field(start, end int) {
	l := &e.lines
	name, value, _ := bytes.Cut(l.buf[start:end], colon)
	value = bytes.TrimPrefix(value, space)
	switch string(name) {
	case "data":
		e.data(end-len(value), end)
	case "event":
		if e.eventType = TypeMessage; string(value) != TypeMessage {
			e.eventType = string(value)
		}
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != e.lastID {
			e.lastID = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	case "":
		if !e.hasData && e.eventType == "" {
			e.spent = 0 // a stream may be kept alive by comments for days
		}
	}
}

var (
	colon     = []byte(":")
	space     = []byte(" ")
	dataField = []byte("data:")
)

// data adds a line to the data, which is before it in the buffer.
func (e *EventReader) data(start, end int) {
	l := &e.lines
	if !e.hasData {
		e.hasData = true
		l.k0, l.k1 = start, end
		return
	}
	l.buf[l.k1] = '\n' // there is room: the name of the field
	l.k1++
	l.k1 += copy(l.buf[l.k1:], l.buf[start:end])
}

package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var (
	errEventTooLarge = errors.New("server-sent event too large")
	errManyEvents    = errors.New("too many server-sent events")
)

// eventReader splits a text/event-stream into events. It holds one event at a
// time, and never more of it than the limit.
type eventReader struct {
	in         *bufio.Reader
	maxBytes   int
	eventsLeft int

	line     []byte // the line being read
	data     []byte // the event's data lines so far, joined by line feeds
	hasData  bool   // there was a data line
	foreign  bool   // the event has a type that is not "message"
	spent    int    // bytes read since the last event, of any kind
	skipFeed bool   // the last line ended in CR: a LF right after belongs to it
	started  bool   // the first line is behind us
}

// start begins a stream, using the memory of the last one.
func (e *eventReader) start(in io.Reader, limits Limits) {
	*e = eventReader{
		in: bufio.NewReaderSize(in, 4<<10), maxBytes: limits.EventBytes, eventsLeft: limits.Events,
		line: e.line[:0], data: e.data[:0],
	}
}

// next returns the data of the next event of type "message" that has data,
// valid until the next call. At the end of the stream an unfinished event
// counts, since some servers leave its last line feed out; then io.EOF.
func (e *eventReader) next() ([]byte, error) {
	e.reset()
	for {
		err := e.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(e.line) > 0 {
			e.field()
			if err == nil {
				continue
			}
		}
		complete := e.hasData && len(e.data) > 0 && !e.foreign
		if err != nil && !complete {
			return nil, err
		}
		if e.eventsLeft--; e.eventsLeft < 0 {
			return nil, errManyEvents
		}
		if complete {
			return e.data, nil
		}
		e.reset()
	}
}

func (e *eventReader) reset() {
	e.line, e.data = e.line[:0], e.data[:0]
	e.hasData, e.foreign, e.spent = false, false, 0
}

// readLine reads one line into e.line, without its end: LF, CR, or both.
func (e *eventReader) readLine() error {
	e.line = e.line[:0]
	for {
		b, err := e.in.ReadByte()
		if err != nil {
			return err
		}
		if e.spent++; e.spent > e.maxBytes {
			return errEventTooLarge
		}
		belongsToLast := b == '\n' && e.skipFeed
		e.skipFeed = b == '\r'
		switch {
		case belongsToLast:
		case b == '\n' || b == '\r':
			e.trimMark()
			return nil
		default:
			e.line = append(e.line, b)
		}
	}
}

// trimMark drops the byte order mark that a stream may begin with.
func (e *eventReader) trimMark() {
	if !e.started {
		e.line = bytes.TrimPrefix(e.line, []byte("\ufeff"))
	}
	e.started = true
}

// field takes e.line as a field of the event; comments have an empty name.
func (e *eventReader) field() {
	name, value, _ := bytes.Cut(e.line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.hasData = true
	case "event":
		e.foreign = len(value) > 0 && string(value) != "message"
	}
}

package wire

import (
	"bytes"
	"errors"
	"io"
)

// headKind is what the beginning of a message tells of it.
type headKind int

const (
	unknownHead headKind = iota
	responseHead
	otherHead
)

// isResponse reports whether the event so far is the head of a response, and may be streamed. It is judged by what is within
// the limit, however the stream is cut into reads: the data so far, and the line that is in the buffer from start to end.
func (e *EventReader) isResponse(start, end int) bool {
	if e.Whole || e.rest != nil || e.eventType != "" && e.eventType != TypeMessage {
		return false
	}
	if e.head == unknownHead {
		l := &e.lines
		data := l.buf[l.k0:l.k1]
		if at, ok := dataAt(l.buf[start:max(start, end)]); ok && e.hasData {
			data = bytes.Join([][]byte{data, l.buf[start+at : end]}, []byte("\n"))
		} else if ok {
			data = l.buf[start+at : end]
		}
		e.head = kindOfHead(data)
		e.judged = l.held()
	}
	return e.head == responseHead
}

// dataAt returns where in a line, or the beginning of one, the data begins; false if it is no line of data, or there is too little
// of it to tell.
func dataAt(line []byte) (int, bool) {
	at := len(dataField)
	if !bytes.HasPrefix(line, dataField) || len(line) == at {
		return 0, false
	}
	if line[at] == ' ' {
		at++
	}
	return at, true
}

// kindOfHead tells a response by a result or an error before any method.
func kindOfHead(head []byte) headKind {
	head = head[skipSpace(head, 0):]
	if len(head) > 0 && head[0] != '{' {
		return otherHead
	}
	for i := firstMember(head); i >= 0; {
		keyEnd := skipText(head, i)
		if colon := skipSpace(head, keyEnd); colon == len(head) || head[colon] != ':' {
			break
		}
		switch inside := head[i+1 : keyEnd-1]; {
		case insideIs(inside, "result"), insideIs(inside, "error"):
			return responseHead
		case insideIs(inside, "method"):
			return otherHead
		}
		_, i = nextMember(head, i)
	}
	return unknownHead
}

// stream returns the event whose head is in the buffer, with the reader for the rest.
func (e *EventReader) stream() (Event, error) {
	l := &e.lines
	start := l.begun()
	at, inLine := dataAt(l.buf[start:l.w])
	if inLine {
		l.r, l.started = lineEnd(l.buf[:l.w], start), true
		e.data(start+at, l.r)
	}
	event, err := e.event()
	if err != nil {
		return Event{}, err
	}
	// The head stays valid while the rest is read.
	e.rest = &eventRest{events: e, inLine: inLine}
	l.k1 = l.k0
	l.moveTo(make([]byte, max(restBufferBytes, 2*l.unread())))
	event.Rest = e.rest
	return event, nil
}

const restBufferBytes = 32 << 10

// eventRest reads the data of an event of which the head was given out.
type eventRest struct {
	events *EventReader
	inLine bool  // the next byte is data; else a line begins
	err    error // of the end
}

// Read gives the data of the lines that follow, joined by line feeds.
func (s *eventRest) Read(p []byte) (int, error) {
	for len(p) > 0 && s.err == nil {
		if s.inLine {
			if n := s.data(p); n > 0 {
				return n, nil
			}
			continue
		}
		if s.nextLine() {
			p[0] = '\n'
			return 1, nil
		}
	}
	return 0, s.err
}

// data reads within a line of data.
func (s *eventRest) data(p []byte) int {
	l := &s.events.lines
	if l.unread() == 0 {
		s.err = l.more()
		return 0
	}
	end := lineEnd(l.buf[:l.w], l.r)
	n := copy(p, l.buf[l.r:end])
	if l.r += n; l.r == end && end < l.w {
		_, _, _ = l.next()
		s.inLine = false
	}
	return n
}

// nextLine takes a field name, or a whole line, and reports whether it is one of data.
func (s *eventRest) nextLine() bool {
	e, l := s.events, &s.events.lines
	l.skipLF()
	for lineEnd(l.buf[:l.w], l.r) == l.w && l.unread() <= len(dataField) {
		if l.more() != nil {
			break // what is there is all
		}
		l.skipLF()
	}
	if bytes.HasPrefix(l.buf[l.r:l.w], dataField) {
		if l.r += len(dataField); l.r < l.w && l.buf[l.r] == ' ' {
			l.r++
		}
		s.inLine = true
		return true
	}
	e.spent = 0
	start, end, err := e.line()
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		s.err = err
		return false
	case start == end || err != nil:
		s.err = io.EOF
	}
	if string(l.buf[start:end]) == "data" {
		return true
	}
	if start < end {
		e.field(start, end)
	}
	return false
}

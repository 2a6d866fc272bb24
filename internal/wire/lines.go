package wire

import (
	"bytes"
	"io"
)

const (
	// firstBufferBytes is what a reader of lines begins with: most streams bring one small response.
	firstBufferBytes = 4 << 10
	// headBytes is what a reader of events holds of one before it looks whether it can be streamed.
	headBytes = 64 << 10
)

// lineReader reads lines that end in LF, CR or both, from a buffer that its user sees.
type lineReader struct {
	in  io.Reader
	err error // of in

	buf     []byte
	k0, k1  int // buf[k0:k1] is kept for the user; what is between k1 and r is not
	r, w    int // buf[r:w] was read and not given out
	scanned int // no line ends between r and here
	afterCR bool
	started bool // the first line is behind us
}

// next gives out the next line, without its end, if that is in the buffer.
func (l *lineReader) next() (start, end int, ok bool) {
	l.skipLF()
	l.scanned = lineEnd(l.buf[:l.w], max(l.scanned, l.r))
	if l.scanned == l.w {
		return 0, 0, false
	}
	start, end = l.r, l.scanned
	l.afterCR = l.buf[end] == '\r'
	l.r = end + 1
	l.skipLF()
	return l.withoutMark(start, end), end, true
}

// last gives out what is left, a line without an end.
func (l *lineReader) last() (start, end int) {
	start, end = l.r, l.w
	l.r = l.w
	return l.withoutMark(start, end), end
}

// skipLF drops the LF after a CR. It may come much later.
func (l *lineReader) skipLF() {
	if l.afterCR && l.r < l.w {
		l.afterCR = false
		if l.buf[l.r] == '\n' {
			l.r++
		}
	}
}

// begun returns the start of the line that is not whole yet.
func (l *lineReader) begun() int {
	if !l.started && bytes.HasPrefix(l.buf[l.r:l.w], byteOrderMark) {
		return l.r + len(byteOrderMark)
	}
	return l.r
}

// withoutMark returns the start of a line after the byte order mark a stream may begin with.
func (l *lineReader) withoutMark(start, end int) int {
	if !l.started && bytes.HasPrefix(l.buf[start:end], byteOrderMark) {
		start += len(byteOrderMark)
	}
	l.started = true
	return start
}

var byteOrderMark = []byte("\ufeff")

// lineEnd returns the offset of the first LF or CR at or after i, or len(data).
func lineEnd(data []byte, i int) int {
	for i = nextControl(data, i); i < len(data); i = nextControl(data, i+1) {
		if data[i] == '\n' || data[i] == '\r' {
			return i
		}
	}
	return len(data)
}

func (l *lineReader) unread() int { return l.w - l.r }

// held is the number of bytes a buffer needs for what is kept and what is unread.
func (l *lineReader) held() int { return l.k1 - l.k0 + l.unread() }

// more reads once, after what is unread. The error is that of the input, and comes after its last byte.
func (l *lineReader) more() error {
	if l.err != nil {
		return l.err
	}
	if l.w == len(l.buf) {
		l.makeRoom()
	}
	for range maxEmptyReads {
		var n int
		n, l.err = l.in.Read(l.buf[l.w:])
		l.w += n
		if n > 0 {
			return nil
		}
		if l.err != nil {
			return l.err
		}
	}
	l.err = io.ErrNoProgress
	return l.err
}

const maxEmptyReads = 100

// makeRoom moves what is kept and what is unread to the beginning of the buffer, or of a larger one if this one is full.
func (l *lineReader) makeRoom() {
	into := l.buf
	if 2*l.held() >= len(l.buf) {
		into = make([]byte, max(firstBufferBytes, 2*len(l.buf), min(4*len(l.buf), headBytes)))
	}
	l.moveTo(into)
}

func (l *lineReader) moveTo(into []byte) {
	kept := copy(into, l.buf[l.k0:l.k1])
	unread := copy(into[kept:], l.buf[l.r:l.w])
	l.scanned = max(0, l.scanned-l.r) + kept
	l.buf, l.k0, l.k1, l.r, l.w = into, 0, kept, kept, kept+unread
}

// shrink gives up a buffer that had to grow for a large event.
func (l *lineReader) shrink() {
	if len(l.buf) > headBytes && l.unread() <= firstBufferBytes/2 {
		l.moveTo(make([]byte, firstBufferBytes))
	}
}

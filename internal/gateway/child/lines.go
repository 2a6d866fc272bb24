package child

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader splits stdout into messages, one a line.
type lineReader struct {
	r     *bufio.Reader
	limit int
}

// lineBuffer is what a process' stdout is read with: the size of a pipe.
const lineBuffer = 64 << 10

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, lineBuffer), limit: limit}
}

// next returns the next line without its end, in memory of its own. Of a line over the limit it returns what could be told
// of it in passing, and no line.
func (l *lineReader) next() ([]byte, *head, error) {
	chunk, err := l.r.ReadSlice('\n')
	line := bytes.Clone(chunk)
	for errors.Is(err, bufio.ErrBufferFull) {
		chunk, err = l.r.ReadSlice('\n')
		if len(line)+len(chunk) > l.limit+2 {
			return l.skip(line, chunk, err)
		}
		line = append(line, chunk...)
	}
	if err != nil && len(line) == 0 {
		return nil, nil, err
	}
	line = bytes.TrimRight(line, "\r\n")
	if len(line) > l.limit {
		h := new(head)
		h.write(line)
		return nil, h, nil
	}
	return line, nil, nil
}

// skip reads a line to its end without holding it.
func (l *lineReader) skip(line, chunk []byte, err error) ([]byte, *head, error) {
	h := new(head)
	h.write(line)
	h.write(chunk)
	for errors.Is(err, bufio.ErrBufferFull) {
		chunk, err = l.r.ReadSlice('\n')
		h.write(chunk)
	}
	if err != nil {
		return nil, nil, err
	}
	return nil, h, nil
}

// head finds the id and the method of a message that cannot be parsed, because it is too long or no valid JSON. It looks at the
// members of the outermost object only, so that nothing inside a result passes for them.
type head struct {
	id, method []byte

	depth   int
	text    bool // inside a string
	escape  bool // after a backslash in it
	over    bool // after the object
	key     []byte
	current []byte
}

// headBytes bounds keys and values that are looked at.
const headBytes = 64

func (h *head) write(p []byte) {
	for i := 0; i < len(p); i++ {
		if h.text && !h.escape && (h.depth > 1 || len(h.current) > headBytes) {
			if n := bytes.IndexAny(p[i:], `"\`); n > 0 {
				i += n
			} else if n < 0 {
				return
			}
		}
		h.next(p[i])
	}
}

func (h *head) next(b byte) {
	switch {
	case h.over:
	case h.text:
		h.keep(b)
		switch {
		case h.escape:
			h.escape = false
		case b == '\\':
			h.escape = true
		case b == '"':
			h.text = false
		}
	case b == '"':
		h.text = true
		h.keep(b)
	case b == '{' || b == '[':
		h.depth++
	case b == '}' || b == ']':
		h.end()
		if h.depth--; h.depth == 0 {
			h.over = true
		}
	case h.depth != 1 || b <= ' ':
	case b == ':':
		h.key, h.current = append(h.key[:0], h.current...), h.current[:0]
	case b == ',':
		h.end()
	default:
		h.keep(b)
	}
}

func (h *head) keep(b byte) {
	if h.depth == 1 && len(h.current) <= headBytes {
		h.current = append(h.current, b)
	}
}

// end takes the member that ends here.
func (h *head) end() {
	if h.depth != 1 {
		return
	}
	switch string(h.key) {
	case `"id"`:
		h.id = bytes.Clone(h.current)
	case `"method"`:
		h.method = bytes.Clone(h.current)
	}
	h.key = h.key[:0]
	h.current = h.current[:0]
}

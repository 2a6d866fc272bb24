package wire

import (
	"encoding/json"
	"errors"
	"io"
)

// ReplaceID passes one JSON object on as it is read from r, with the value of its top-level "id" replaced by id, a JSON
// value, and every other byte as it was. It holds no more than one Read brought. An object without an id gets none; what is
// no object passes unchanged. The end of r in the middle of the object is io.ErrUnexpectedEOF, after all that came.
func ReplaceID(r io.Reader, id json.RawMessage) io.Reader {
	return &idReplacer{in: r, id: id, bound: firstReadBytes}
}

// firstReadBytes bounds the first read: the id stands at the beginning mostly, and what was read beyond it has to be held.
const firstReadBytes = 512

type idReplacer struct {
	in      io.Reader
	id      []byte
	bound   int    // of the next read, if not 0
	err     error  // of in
	held    []byte // read already; from unseen on it was not looked at
	unseen  int
	pending []byte // of the id, to be given out

	scan idScanner
}

// Read passes on what one read of the input brings, or a part of it.
func (x *idReplacer) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if len(x.pending) > 0 {
			n := copy(p, x.pending)
			x.pending = x.pending[n:]
			return n, nil
		}
		again := x.unseen < len(x.held)
		if !again && x.err != nil {
			return 0, x.end()
		}
		chunk := x.next(p, again)
		from, to, found := x.scan.pass(chunk)
		if found {
			x.pending = x.id
			if again {
				x.unseen -= len(chunk) - to
			} else {
				x.held, x.unseen = append(x.held[:0], chunk[to:]...), 0
			}
		}
		if n := copy(p, chunk[from:to]); n > 0 {
			return n, nil
		}
	}
	return 0, nil
}

// next fills p from what is held, or else from the input, which it asks once.
func (x *idReplacer) next(p []byte, again bool) []byte {
	if again {
		n := copy(p, x.held[x.unseen:])
		x.unseen += n
		return p[:n]
	}
	if x.bound > 0 && len(p) > x.bound {
		p = p[:x.bound]
	}
	x.bound = 0
	n, err := x.in.Read(p)
	x.err = err
	return p[:n]
}

// end is the error of the end.
func (x *idReplacer) end() error {
	if errors.Is(x.err, io.EOF) && x.scan.state != afterObject {
		return io.ErrUnexpectedEOF
	}
	return x.err
}

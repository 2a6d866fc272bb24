package mcp

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"io"
	"slices"
	"unicode/utf8"
)

// digester computes digests of tool definitions without building them in
// memory: what a server can make it hold is a few bytes for each member of the
// objects it is inside of.
type digester struct {
	sum hash.Hash
	out canonicalWriter
}

// newDigester makes a digester that looks at no more than budget bytes.
func newDigester(budget int64) *digester {
	sum := sha256.New()
	return &digester{sum: sum, out: canonicalWriter{sink: sum, budget: budget}}
}

// digestedMembers are the members of a tool that its digest covers, sorted.
var digestedMembers = []string{"annotations", "description", "inputSchema", "name", "outputSchema", "title"}

// tool returns the SHA-256 over the canonical JSON of the digested members of a
// tool. The error is errDuplicateKey or errBudget.
func (d *digester) tool(tool jsonValue) (sum [sha256.Size]byte, err error) {
	values, err := tool.pick(digestedMembers...)
	if err != nil {
		return sum, err
	}
	d.sum.Reset()
	d.out.buf, d.out.members = d.out.buf[:0], d.out.members[:0]
	separator := "{"
	for i, value := range values {
		if value == nil {
			continue
		}
		d.out.write(separator, `"`, digestedMembers[i], `":`)
		if err := d.out.value(value); err != nil {
			return sum, err
		}
		separator = ","
	}
	d.out.write("}")
	d.out.flush()
	return [sha256.Size]byte(d.sum.Sum(nil)), nil
}

// memberAt is where a member of an object begins, in the text of that object. A
// body is far smaller than 4 GiB, and there may be many members: 8 bytes each
// instead of 48.
type memberAt struct{ key, value uint32 }

// canonicalWriter writes JSON with sorted keys, no white space, the fewest
// escapes, and numbers as they are. The error of its methods is errDuplicateKey
// or errBudget.
type canonicalWriter struct {
	sink io.Writer // a hash or a buffer: one that does not fail
	buf  []byte

	members []memberAt // a stack: those of the objects that are being written
	budget  int64      // bytes that may still be looked at to find members
}

func (w *canonicalWriter) flush() {
	_, _ = w.sink.Write(w.buf)
	w.buf = w.buf[:0]
}

func (w *canonicalWriter) write(parts ...string) {
	for _, part := range parts {
		w.buf = append(w.buf, part...)
	}
}

// raw writes text that may be long.
func (w *canonicalWriter) raw(text []byte) {
	w.flush()
	_, _ = w.sink.Write(text)
}

func (w *canonicalWriter) value(v jsonValue) error {
	if len(w.buf) > 4<<10 {
		w.flush()
	}
	switch {
	case v.isObject():
		return w.object(v)
	case v.isArray():
		return w.array(v)
	case v.isText():
		w.text(v)
	default:
		w.buf = append(w.buf, v...)
	}
	return nil
}

// spend takes a container from the budget. Finding what is in it means looking
// at all of its text, and so again for each level of nesting: a text of a few
// MiB could keep us busy for long.
func (w *canonicalWriter) spend(v jsonValue) error {
	if w.budget -= int64(len(v)); w.budget < 0 {
		return errBudget
	}
	return nil
}

func (w *canonicalWriter) array(v jsonValue) error {
	if err := w.spend(v); err != nil {
		return err
	}
	separator := ""
	w.write("[")
	for element := range v.elements() {
		w.write(separator)
		if err := w.value(element); err != nil {
			return err
		}
		separator = ","
	}
	w.write("]")
	return nil
}

func (w *canonicalWriter) object(v jsonValue) error {
	if err := w.spend(v); err != nil {
		return err
	}
	base := len(w.members)
	defer func() { w.members = w.members[:base] }()
	w.push(v)
	// What the values of this object push may move w.members, so it is indexed
	// anew each time.
	end := len(w.members)
	slices.SortFunc(w.members[base:], func(a, b memberAt) int {
		return compareText(insideAt(v, a.key), insideAt(v, b.key))
	})
	w.write("{")
	for i := base; i < end; i++ {
		m := w.members[i]
		if i > base {
			if compareText(insideAt(v, w.members[i-1].key), insideAt(v, m.key)) == 0 {
				return errDuplicateKey
			}
			w.write(",")
		}
		w.text(v[m.key:skipText(v, int(m.key))])
		w.write(":")
		if err := w.value(v[m.value:skipValue(v, int(m.value))]); err != nil {
			return err
		}
	}
	w.write("}")
	return nil
}

// push adds the members of an object to the stack.
func (w *canonicalWriter) push(v jsonValue) {
	for i := skipSpace(v, 1); v[i] == '"'; {
		start := skipSpace(v, skipSpace(v, skipText(v, i))+1)
		w.members = append(w.members, memberAt{key: uint32(i), value: uint32(start)}) //nolint:gosec // offsets in a text of at most Limits.BodyBytes
		if i = skipSpace(v, skipValue(v, start)); v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
}

func (w *canonicalWriter) text(v jsonValue) {
	inside := v.inside()
	if bytes.IndexByte(inside, '\\') < 0 {
		if len(v) > 1<<10 {
			w.raw(v)
			return
		}
		w.buf = append(w.buf, v...)
		return
	}
	w.write(`"`)
	for len(inside) > 0 {
		var r rune
		r, inside = nextRune(inside)
		w.escaped(r)
		if len(w.buf) > 4<<10 {
			w.flush()
		}
	}
	w.write(`"`)
}

func (w *canonicalWriter) escaped(r rune) {
	const hexDigits = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		w.buf = append(w.buf, '\\', byte(r))
	case r == '\b':
		w.write(`\b`)
	case r == '\f':
		w.write(`\f`)
	case r == '\n':
		w.write(`\n`)
	case r == '\r':
		w.write(`\r`)
	case r == '\t':
		w.write(`\t`)
	case r < 0x20:
		w.buf = append(w.buf, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
	default:
		w.buf = utf8.AppendRune(w.buf, r)
	}
}

// insideAt returns the inside of the string that begins at i.
func insideAt(v jsonValue, i uint32) []byte {
	return v[i+1 : skipText(v, int(i))-1]
}

// compareText orders what two insides of strings stand for by their UTF-8
// bytes, which is the order of their characters.
func compareText(a, b []byte) int {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Compare(a, b)
	}
	for len(a) > 0 && len(b) > 0 {
		var x, y rune
		x, a = nextRune(a)
		y, b = nextRune(b)
		if x != y {
			return int(x - y)
		}
	}
	return len(a) - len(b)
}

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"unicode/utf8"
)

// ErrBudget is returned by a Canonical that was made to look at more than its budget.
var ErrBudget = errors.New("JSON too large for its depth")

// Canonical writes JSON with sorted keys, no white space, the fewest escapes, and numbers as they are. It builds nothing in
// memory: what a text can make it hold is a few bytes for each member of the objects it is inside of.
type Canonical struct {
	sink io.Writer
	buf  []byte

	members []memberAt // a stack: those of the objects that are being written
	budget  int64      // bytes that may still be looked at to find members
}

// memberAt is where a member of an object begins, in the text of that object. There may be many: 8 bytes each instead of 48.
type memberAt struct{ key, value uint32 }

// NewCanonical writes to sink, which must not fail: a hash or a buffer. It looks at no more than budget bytes in all, where what is
// inside nested containers counts once for each of them: finding what is in a container means looking at all of its text, so
// that a text of a few MiB could keep it busy for long.
func NewCanonical(sink io.Writer, budget int64) *Canonical {
	return &Canonical{sink: sink, budget: budget}
}

// Value writes a value of JSON that was checked. The error is ErrDuplicateKey or ErrBudget; what was written then is of no use.
func (c *Canonical) Value(v json.RawMessage) error {
	c.buf, c.members = c.buf[:0], c.members[:0]
	err := c.value(v)
	c.flush()
	return err
}

// Object writes an object of the given members as Value does: their keys have to be sorted, and values that are nil are left out.
func (c *Canonical) Object(keys []string, values []json.RawMessage) error {
	c.buf, c.members = c.buf[:0], c.members[:0]
	separator := byte('{')
	for i, value := range values {
		if value == nil {
			continue
		}
		c.buf = append(appendText(append(c.buf, separator), keys[i]), ':')
		if err := c.value(value); err != nil {
			return err
		}
		separator = ','
	}
	if separator == '{' {
		c.write("{")
	}
	c.write("}")
	c.flush()
	return nil
}

func (c *Canonical) flush() {
	_, _ = c.sink.Write(c.buf)
	c.buf = c.buf[:0]
}

func (c *Canonical) write(text string) { c.buf = append(c.buf, text...) }

func (c *Canonical) value(v []byte) error {
	if len(c.buf) > 4<<10 {
		c.flush()
	}
	switch {
	case IsObject(v):
		return c.object(v)
	case IsArray(v):
		return c.array(v)
	case IsText(v):
		c.text(v)
	default:
		c.buf = append(c.buf, v...)
	}
	return nil
}

func (c *Canonical) spend(v []byte) error {
	if c.budget -= int64(len(v)); c.budget < 0 {
		return ErrBudget
	}
	return nil
}

func (c *Canonical) array(v []byte) error {
	if err := c.spend(v); err != nil {
		return err
	}
	separator := ""
	c.write("[")
	for element := range Elements(v) {
		c.write(separator)
		if err := c.value(element); err != nil {
			return err
		}
		separator = ","
	}
	c.write("]")
	return nil
}

func (c *Canonical) object(v []byte) error {
	if err := c.spend(v); err != nil {
		return err
	}
	base := len(c.members)
	defer func() { c.members = c.members[:base] }()
	for i := firstMember(v); i >= 0; {
		var m member
		if m, i = nextMember(v, i); m.end > 0 {
			c.members = append(c.members, memberAt{uint32(m.key), uint32(m.start)}) //nolint:gosec // Check bounds the text
		}
	}
	// What the values of this object push may move c.members, so it is indexed anew each time.
	end := len(c.members)
	slices.SortFunc(c.members[base:], func(a, b memberAt) int {
		return compareText(insideAt(v, a.key), insideAt(v, b.key))
	})
	c.write("{")
	for i := base; i < end; i++ {
		m := c.members[i]
		if i > base {
			if compareText(insideAt(v, c.members[i-1].key), insideAt(v, m.key)) == 0 {
				return ErrDuplicateKey
			}
			c.write(",")
		}
		c.text(v[m.key:skipText(v, int(m.key))])
		c.write(":")
		if err := c.value(v[m.value:skipValue(v, int(m.value))]); err != nil {
			return err
		}
	}
	c.write("}")
	return nil
}

// text writes a string, and passes one that is long on as it is.
func (c *Canonical) text(v []byte) {
	inside := v[1 : len(v)-1]
	if indexEscape(inside) < 0 {
		if len(v) > 1<<10 {
			c.flush()
			_, _ = c.sink.Write(v)
			return
		}
		c.buf = append(c.buf, v...)
		return
	}
	c.write(`"`)
	for len(inside) > 0 {
		var r rune
		r, inside = nextRune(inside)
		c.buf = appendRune(c.buf, r)
		if len(c.buf) > 4<<10 {
			c.flush()
		}
	}
	c.write(`"`)
}

// appendRune appends a character of a string with the fewest escapes.
func appendRune(dst []byte, r rune) []byte {
	const hexDigits = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\b':
		return append(dst, `\b`...)
	case r == '\f':
		return append(dst, `\f`...)
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r < 0x20:
		return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// insideAt returns the inside of the string that begins at i.
func insideAt(v []byte, i uint32) []byte {
	return v[i+1 : skipText(v, int(i))-1]
}

// compareText orders what two insides of strings stand for by their UTF-8 bytes, which is the order of their characters.
func compareText(a, b []byte) int {
	if indexEscape(a) < 0 && indexEscape(b) < 0 {
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

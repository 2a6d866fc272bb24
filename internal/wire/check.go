package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

// Why a text is refused.
var (
	// ErrSyntax is returned for text that is not exactly one JSON value by RFC 8259 in valid UTF-8, or has a number that
	// no float64 holds.
	ErrSyntax = errors.New("not valid JSON")
	// ErrTooLarge is returned for text over Limits.Bytes.
	ErrTooLarge = errors.New("JSON too large")
	// ErrTooDeep is returned for containers nested deeper than Limits.Depth.
	ErrTooDeep = errors.New("JSON nested too deep")
	// ErrManyMembers is returned for an object with more than Limits.Members members.
	ErrManyMembers = errors.New("JSON object with too many members")
	// ErrDuplicateKey is returned for an object with the same key twice, however written.
	ErrDuplicateKey = errors.New("JSON object with the same key twice")
	// ErrKey is returned for a key that holds NUL, and for one that is a key of the protocol but for its case.
	ErrKey = errors.New("JSON object with a key that readers take for another one")
)

// Limits bounds what a text may make its reader hold and do. A field that is zero means the value of DefaultLimits.
type Limits struct {
	// Bytes bounds the text.
	Bytes int
	// Depth bounds how deep containers may be nested: 1 is an object of plain values.
	Depth int
	// Members bounds the members of one object.
	Members int
}

// DefaultLimits is what the gateway allows a client: 4 MiB, 64 levels, 10,000 members in one object.
var DefaultLimits = Limits{Bytes: 4 << 20, Depth: 64, Members: 10_000}

// Check returns the one JSON value that data is, without white space around it and without a copy. It is refused with one of
// the errors of this package if two readers could understand it differently.
func Check(data []byte, l Limits) (json.RawMessage, error) {
	c := checker{data: data, unique: true}
	start, end := c.run(l, nil)
	return c.cause.judge(data, start, end)
}

// CheckSyntax is Check without the rules for keys: it accepts one that comes twice or holds NUL. It costs no memory, and is for
// readers that look for duplicates among the few keys they read.
func CheckSyntax(data []byte, l Limits) (json.RawMessage, error) {
	c := checker{data: data}
	start, end := c.run(l, nil)
	return c.cause.judge(data, start, end)
}

// checker walks over text that may be anything. Its methods take an offset and return the one after what they checked, or
// failed, with the reason in cause. None of them returns a part of the checker, so that it can live on the stack.
type checker struct {
	data                 []byte
	maxDepth, maxMembers int
	unique               bool // keys are held and compared
	cause                cause

	keys  keyStack          // of the objects the offset is inside of
	found [envelopeLen]span // the members of the outermost object that are in the envelope
	// params are those of params that are asked for again and again.
	params [paramsLen]span
}

// failed is no offset.
const failed = -1

// span is where a value is in a text. A value is never empty, so that the zero span stands for an absent one.
type span struct{ start, end uint32 }

// cause is why a text is refused.
type cause int

const (
	accepted cause = iota
	syntax
	tooLarge
	tooDeep
	manyMembers
	duplicateKey
	badKey
)

// judge returns the value of a text, or the error.
func (c cause) judge(data []byte, start, end int) (json.RawMessage, error) {
	if c != accepted {
		return nil, [...]error{nil, ErrSyntax, ErrTooLarge, ErrTooDeep, ErrManyMembers, ErrDuplicateKey, ErrKey}[c]
	}
	return data[start:end:end], nil
}

func (c *checker) fail(why cause) int {
	c.cause = why
	return failed
}

// run checks the whole text, and returns where its value is. Names are those that the outermost object gives a meaning to.
func (c *checker) run(l Limits, names *vocabulary) (start, end int) {
	c.maxDepth, c.maxMembers = cmp.Or(l.Depth, DefaultLimits.Depth), cmp.Or(l.Members, DefaultLimits.Members)
	if len(c.data) > min(cmp.Or(l.Bytes, DefaultLimits.Bytes), math.MaxInt32) {
		return 0, c.fail(tooLarge)
	}
	if !utf8.Valid(c.data) {
		return 0, c.fail(syntax)
	}
	start = skipSpace(c.data, 0)
	end = c.value(start, 0, names)
	if end != failed && skipSpace(c.data, end) != len(c.data) {
		return 0, c.fail(syntax)
	}
	return start, end
}

func (c *checker) value(i, depth int, names *vocabulary) int {
	if i >= len(c.data) {
		return c.fail(syntax)
	}
	switch c.data[i] {
	case '"':
		end, _ := c.text(i)
		return end
	case '{':
		if depth >= c.maxDepth {
			return c.fail(tooDeep)
		}
		return c.object(i, depth+1, names)
	case '[':
		if depth >= c.maxDepth {
			return c.fail(tooDeep)
		}
		return c.array(i, depth+1)
	case 't':
		return c.word(i, "true")
	case 'f':
		return c.word(i, "false")
	case 'n':
		return c.word(i, "null")
	default:
		return c.number(i)
	}
}

func (c *checker) array(i, depth int) int {
	i = skipSpace(c.data, i+1)
	if i < len(c.data) && c.data[i] == ']' {
		return i + 1
	}
	for {
		if i = c.value(i, depth, nil); i == failed {
			return failed
		}
		i = skipSpace(c.data, i)
		if i >= len(c.data) {
			return c.fail(syntax)
		}
		if c.data[i] == ']' {
			return i + 1
		}
		if c.data[i] != ',' {
			return c.fail(syntax)
		}
		i = skipSpace(c.data, i+1)
	}
}

func (c *checker) object(i, depth int, names *vocabulary) int {
	i = skipSpace(c.data, i+1)
	if i < len(c.data) && c.data[i] == '}' {
		return i + 1
	}
	base := c.keys.n
	var seen keySet
	for members := 1; ; members++ {
		if members > c.maxMembers {
			return c.fail(manyMembers)
		}
		k, start := c.key(i)
		if start == failed {
			return failed
		}
		if c.unique && !c.remember(k, base, &seen) {
			return failed
		}
		if i = c.memberValue(k, start, depth, names); i == failed {
			return failed
		}
		if i = skipSpace(c.data, i); i >= len(c.data) {
			return c.fail(syntax)
		}
		if c.data[i] == '}' {
			c.keys.pop(base)
			return i + 1
		}
		if c.data[i] != ',' {
			return c.fail(syntax)
		}
		i = skipSpace(c.data, i+1)
	}
}

// memberValue checks the value of a member of an object, whose keys have the given names.
func (c *checker) memberValue(k key, start, depth int, names *vocabulary) int {
	if names == nil {
		return c.value(start, depth, nil)
	}
	inside, name := c.lookUp(k, names)
	if name == misspelt {
		return c.fail(badKey)
	}
	end := c.value(start, depth, inside)
	if end == failed || name == unknownName {
		return end
	}
	at := span{uint32(start), uint32(end)} //nolint:gosec // run bounds the text
	switch {
	case names == &envelope:
		c.found[name] = at
	case names == envelope.inside && name < paramsLen:
		c.params[name] = at
	}
	return end
}

// key checks a key and the colon after it, and returns the offset of the value.
func (c *checker) key(i int) (key, int) {
	if i >= len(c.data) || c.data[i] != '"' {
		return key{}, c.fail(syntax)
	}
	end, escaped := c.text(i)
	if end == failed {
		return key{}, failed
	}
	k := key{start: uint32(i + 1), end: uint32(end - 1), escaped: escaped} //nolint:gosec // run bounds the text
	i = skipSpace(c.data, end)
	if i >= len(c.data) || c.data[i] != ':' {
		return key{}, c.fail(syntax)
	}
	return k, skipSpace(c.data, i+1)
}

func (c *checker) word(i int, word string) int {
	end := i + len(word)
	if end > len(c.data) || string(c.data[i:end]) != word {
		return c.fail(syntax)
	}
	return end
}

// text checks a string, and reports whether it has escapes.
func (c *checker) text(i int) (end int, escaped bool) {
	for i = nextSpecial(c.data, i+1); i < len(c.data); i = nextSpecial(c.data, i) {
		switch c.data[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			n := escapeLength(c.data[i:])
			if n == 0 {
				return c.fail(syntax), false
			}
			i += n
			escaped = true
		default:
			return c.fail(syntax), false
		}
	}
	return c.fail(syntax), false
}

// escapeLength returns the length of the escape s begins with, or 0.
func escapeLength(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 || hexRune(s[2:6]) < 0 {
			return 0
		}
		return 6
	}
	return 0
}

func (c *checker) number(start int) int {
	i := start
	if i < len(c.data) && c.data[i] == '-' {
		i++
	}
	if i < len(c.data) && c.data[i] == '0' {
		i++
	} else if i = c.digits(i); i == failed {
		return c.fail(syntax)
	}
	exponent := false
	if i < len(c.data) && c.data[i] == '.' {
		if i = c.digits(i + 1); i == failed {
			return c.fail(syntax)
		}
	}
	if i < len(c.data) && (c.data[i] == 'e' || c.data[i] == 'E') {
		exponent = true
		i++
		if i < len(c.data) && (c.data[i] == '+' || c.data[i] == '-') {
			i++
		}
		if i = c.digits(i); i == failed {
			return c.fail(syntax)
		}
	}
	if (exponent || i-start >= 20) && !held(c.data[start:i]) {
		return c.fail(syntax)
	}
	return i
}

// digits returns the offset after at least one digit, or failed.
func (c *checker) digits(i int) int {
	start := i
	for i < len(c.data) && c.data[i] >= '0' && c.data[i] <= '9' {
		i++
	}
	if i == start {
		return failed
	}
	return i
}

// maxNumberBytes is more than any number needs that a float64 can hold to its last digit.
const maxNumberBytes = 1100

// held reports whether a float64 holds a number.
func held(number []byte) bool {
	if len(number) > maxNumberBytes {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err == nil
}

package wire

import "bytes"

// idScanner walks over a JSON object in pieces of any size and finds the values of "id" in it. It does not check.
type idScanner struct {
	state    idState
	dropping bool // the value is that of an id
	depth    int  // of the containers of the value that the next byte is in
	escaped  bool // the next byte of the string is escaped
	key      keyMatcher
}

// idState is what the next byte belongs to.
type idState int

const (
	beforeObject idState = iota
	beforeKey            // white space before a key, or the end of the object
	inKey                // a key or the quote after it
	afterKey             // white space after a key, or the colon
	beforeValue          // white space before a value, or its first byte
	inScalar             // a value that is neither string nor container
	inText               // a string that is the value or within it, or the quote after it
	inContainer          // a container that is the value, outside of the strings in it
	afterValue           // white space after a value, the comma, or the end of the object
	afterObject
)

// pass looks at a piece. What is between from and to is to be passed on; what is before from belongs to the value of an
// id. If found, a value of an id begins at to, and the next piece has to begin there.
func (s *idScanner) pass(piece []byte) (from, to int, found bool) {
	i := 0
	if s.dropping {
		i = s.value(piece, 0)
		from = i
	}
	for i < len(piece) {
		switch s.state {
		case beforeValue:
			i = skipSpace(piece, i)
			if s.dropping = i < len(piece) && s.key.matched(); s.dropping {
				return from, i, true
			}
			i = s.value(piece, i)
		case inScalar, inText, inContainer:
			i = s.value(piece, i)
		case inKey:
			i = s.keyText(piece, i)
		case afterObject:
			i = len(piece)
		default:
			s.between(piece[i])
			i++
		}
	}
	return from, len(piece), false
}

// between takes a byte between values.
func (s *idScanner) between(b byte) {
	switch {
	case s.state == beforeObject && b == '{':
		s.state = beforeKey
	case s.state == beforeObject && b != ' ' && b != '\t' && b != '\n' && b != '\r':
		s.state = afterObject
	case s.state == beforeKey && b == '"':
		s.state, s.key = inKey, keyMatcher{}
	case s.state == afterKey && b == ':':
		s.state = beforeValue
	case s.state == afterValue && b == ',':
		s.state = beforeKey
	case (s.state == beforeKey || s.state == afterValue) && b == '}':
		s.state = afterObject
	}
}

// keyText takes a key to its end, or to that of the piece.
func (s *idScanner) keyText(piece []byte, i int) int {
	for ; i < len(piece); i++ {
		if s.key.take(piece[i]) {
			s.state = afterKey
			return i + 1
		}
	}
	return i
}

// value takes a value to its end, or to that of the piece.
func (s *idScanner) value(piece []byte, i int) int {
	for i < len(piece) {
		switch s.state {
		case beforeValue:
			i = s.begin(piece, i)
		case inText:
			i = s.text(piece, i)
		case inContainer:
			i = s.container(piece, i)
		case inScalar:
			for i < len(piece) && isScalarByte(piece[i]) {
				i++
			}
			if i < len(piece) {
				s.state = afterValue
			}
		default:
			s.dropping = false
			return i
		}
	}
	if s.state == afterValue {
		s.dropping = false
	}
	return i
}

// begin takes the first byte of a value.
func (s *idScanner) begin(piece []byte, i int) int {
	switch piece[i] {
	case '"':
		s.state = inText
	case '{', '[':
		s.state, s.depth = inContainer, 1
	default:
		s.state = inScalar
		return i
	}
	return i + 1
}

// text takes the inside of a string and the quote after it.
func (s *idScanner) text(piece []byte, i int) int {
	if s.escaped {
		s.escaped = false
		i++
	}
	for i < len(piece) {
		end := len(piece)
		quoted := false
		if n := bytes.IndexByte(piece[i:], '"'); n >= 0 {
			end, quoted = i+n, true
		}
		for i < end {
			n := bytes.IndexByte(piece[i:end], '\\')
			if n < 0 {
				i = end
				break
			}
			i += n + 2
		}
		if i == end && quoted {
			s.state = afterValue
			if s.depth > 0 {
				s.state = inContainer
			}
			return i + 1
		}
	}
	s.escaped = i > len(piece)
	return len(piece)
}

// container takes what is outside of strings, to the bracket that ends the value.
func (s *idScanner) container(piece []byte, i int) int {
	for ; i < len(piece); i++ {
		switch structural[piece[i]] {
		case quote:
			s.state = inText
			return i + 1
		case opening:
			s.depth++
		case closing:
			if s.depth--; s.depth == 0 {
				s.state = afterValue
				return i + 1
			}
		}
	}
	return i
}

// keyMatcher compares what a key stands for with "id", byte by byte as it is written.
type keyMatcher struct {
	seen   int  // characters that agree, or -1 after one that does not
	escape int  // bytes of the escape so far, or 0 outside of one
	code   rune // of a \u escape so far
}

const idKey = "id"

// take takes a byte, and reports whether it is the quote that ends the key.
func (k *keyMatcher) take(b byte) bool {
	switch {
	case k.escape == 0 && b == '"':
		return true
	case k.escape == 0 && b == '\\':
		k.escape, k.code = 1, 0
	case k.escape == 0:
		k.compare(rune(b))
	case k.escape == 1 && b != 'u':
		k.escape = 0
		k.compare(simpleEscape(b))
	case k.escape == 1:
		k.escape++
	default:
		k.code = k.code<<4 | hexDigit(b)
		if k.escape++; k.escape == len(`\u0000`) {
			k.escape = 0
			k.compare(k.code)
		}
	}
	return false
}

func (k *keyMatcher) compare(r rune) {
	if k.seen < 0 || k.seen == len(idKey) || rune(idKey[k.seen]) != r {
		k.seen = -1
		return
	}
	k.seen++
}

func (k *keyMatcher) matched() bool { return k.seen == len(idKey) }

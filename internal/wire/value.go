package wire

import (
	"encoding/binary"
	"encoding/json"
	"iter"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Field returns the value of an object's member, or nil if there is none, or object is no object. Of two members with one key
// it is the first.
func Field(object json.RawMessage, key string) json.RawMessage {
	for i := firstMember(object); i >= 0; {
		var m member
		if m, i = nextMember(object, i); m.is(object, key) {
			return object[m.start:m.end:m.end]
		}
	}
	return nil
}

// FieldAt returns where in the text of an object the value is that Field returns; twice 0 if there is none.
func FieldAt(object json.RawMessage, key string) (start, end int) {
	for i := firstMember(object); i >= 0; {
		var m member
		if m, i = nextMember(object, i); m.is(object, key) {
			return m.start, m.end
		}
	}
	return 0, 0
}

// Pick returns the values of an object's members with the given keys, in that order, nil where absent. One of them twice is
// ErrDuplicateKey.
func Pick(object json.RawMessage, keys ...string) ([]json.RawMessage, error) {
	found := make([]json.RawMessage, len(keys))
	for i := firstMember(object); i >= 0; {
		var m member
		m, i = nextMember(object, i)
		for n, key := range keys {
			if !m.is(object, key) {
				continue
			}
			if found[n] != nil {
				return nil, ErrDuplicateKey
			}
			found[n] = object[m.start:m.end:m.end]
		}
	}
	return found, nil
}

// Fields yields the members of an object in their order. Other values have none.
func Fields(object json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for i := firstMember(object); i >= 0; {
			var m member
			m, i = nextMember(object, i)
			k, _ := decodedText(object[m.key:m.keyEnd])
			if m.end > 0 && !yield(k, object[m.start:m.end:m.end]) {
				return
			}
		}
	}
}

// Elements yields the elements of an array in their order. Other values have none.
func Elements(array json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		if len(array) == 0 || array[0] != '[' {
			return
		}
		for i := skipSpace(array, 1); i < len(array) && array[i] != ']'; {
			end := skipValue(array, i)
			if end == i || !yield(array[i:end:end]) {
				return
			}
			if i = skipSpace(array, end); i < len(array) && array[i] == ',' {
				i = skipSpace(array, i+1)
			}
		}
	}
}

// String returns what a JSON string stands for. It reports false for other values, and for a string with half of a surrogate
// pair, which stands for nothing two readers agree on.
func String(raw json.RawMessage) (string, bool) {
	if !IsText(raw) {
		return "", false
	}
	return decodedText(raw)
}

// TextIs reports whether raw is a JSON string that stands for exactly want.
func TextIs(raw json.RawMessage, want string) bool {
	return IsText(raw) && insideIs(raw[1:len(raw)-1], want)
}

// Text returns what a JSON string stands for, cut to at most limit bytes at the border of a character; "" for other values.
// Half of a surrogate pair becomes U+FFFD.
func Text(raw json.RawMessage, limit int) string {
	if !IsText(raw) {
		return ""
	}
	rest := raw[1 : len(raw)-1]
	out := make([]byte, 0, min(len(rest), limit))
	for len(rest) > 0 {
		var r rune
		r, rest = nextRune(rest)
		if len(out)+utf8.RuneLen(r) > limit {
			break
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// IsObject reports whether a valid value is an object; one that is absent is not.
func IsObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// IsArray reports whether a valid value is an array; one that is absent is not.
func IsArray(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '[' }

// IsText reports whether a valid value is a string; one that is absent is not.
func IsText(raw json.RawMessage) bool {
	return len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"'
}

// member is where a member is in the text of its object: the key with its quotes, and the value.
type member struct{ key, keyEnd, start, end int }

func (m member) is(object []byte, key string) bool {
	return m.end > 0 && insideIs(object[m.key+1:m.keyEnd-1], key)
}

// firstMember returns the offset of an object's first key, or -1.
func firstMember(object []byte) int {
	if len(object) == 0 || object[0] != '{' {
		return -1
	}
	i := skipSpace(object, 1)
	if i >= len(object) || object[i] != '"' {
		return -1
	}
	return i
}

// nextMember returns the member whose key begins at i, and the offset of the next key, or -1 after the last one. In text that
// was never checked it stops where it makes no sense, with the zero member.
func nextMember(object []byte, i int) (member, int) {
	m := member{key: i, keyEnd: skipText(object, i)}
	colon := skipSpace(object, m.keyEnd)
	m.start = skipSpace(object, colon+1)
	m.end = skipValue(object, m.start)
	if m.end <= m.start || m.keyEnd < i+2 {
		return member{}, -1
	}
	if i = skipSpace(object, m.end); i >= len(object) || object[i] != ',' {
		return m, -1
	}
	if i = skipSpace(object, i+1); i >= len(object) || object[i] != '"' {
		return m, -1
	}
	return m, i
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// Masks to look at eight bytes at once.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// nextControl returns the offset of the first control character of ASCII below the space at or after i, or len(data).
func nextControl(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		if hits := (w - ones*0x20) &^ w & highs; hits != 0 {
			return i + bits.TrailingZeros64(hits)/8
		}
	}
	for i < len(data) && data[i] >= 0x20 {
		i++
	}
	return min(i, len(data))
}

// nextSpecial returns the offset of the first quote, backslash or control character at or after i, or len(data).
func nextSpecial(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quotes, slashes := w^(ones*'"'), w^(ones*'\\')
		// The lowest bit of each term, and so of all, is at a true hit: what is above may be due to its borrow.
		hits := ((quotes-ones)&^quotes | (slashes-ones)&^slashes | (w-ones*0x20)&^w) & highs
		if hits != 0 {
			return i + bits.TrailingZeros64(hits)/8
		}
	}
	for ; i < len(data); i++ {
		if b := data[i]; b == '"' || b == '\\' || b < 0x20 {
			return i
		}
	}
	return len(data)
}

// skipText returns the offset after the string that begins at i, or len(data).
func skipText(data []byte, i int) int {
	for i = nextSpecial(data, i+1); i < len(data); i = nextSpecial(data, i) {
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			i++
		}
	}
	return len(data)
}

// skipValue returns the offset after the value that begins at i, at most len(data).
func skipValue(data []byte, i int) int {
	if i >= len(data) {
		return len(data)
	}
	switch data[i] {
	case '"':
		return skipText(data, i)
	case '{', '[':
		return skipContainer(data, i)
	}
	for i < len(data) && isScalarByte(data[i]) {
		i++
	}
	return i
}

// skipContainer counts brackets outside strings; their kinds were checked.
func skipContainer(data []byte, i int) int {
	for open := 0; i < len(data); {
		switch structural[data[i]] {
		case plain:
			i++
			continue
		case quote:
			i = skipText(data, i)
			continue
		case opening:
			open++
		case closing:
			open--
		}
		i++
		if open == 0 {
			return i
		}
	}
	return len(data)
}

// Classes of the bytes of JSON text outside strings.
const (
	plain = iota
	quote
	opening
	closing
)

// structural gives the class of each byte.
var structural = [256]byte{'"': quote, '{': opening, '[': opening, '}': closing, ']': closing}

func isScalarByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b == '-' || b == '+' || b == '.' || b == 'E'
}

// insideIs reports whether the inside of a string stands for exactly want.
func insideIs(inside []byte, want string) bool {
	if string(inside) == want {
		return indexEscape(inside) < 0
	}
	if indexEscape(inside) < 0 {
		return false
	}
	for _, r := range want {
		if len(inside) == 0 {
			return false
		}
		var got rune
		if got, inside = nextRune(inside); got != r {
			return false
		}
	}
	return len(inside) == 0
}

// nextRune takes one character, escaped or not, from the inside of a string. A surrogate without its other half becomes U+FFFD.
func nextRune(s []byte) (rune, []byte) {
	if s[0] != '\\' || len(s) < 2 {
		r, n := utf8.DecodeRune(s)
		return r, s[n:]
	}
	if s[1] != 'u' || len(s) < 6 {
		return simpleEscape(s[1]), s[2:]
	}
	r, rest := hexRune(s[2:6]), s[6:]
	if !utf16.IsSurrogate(r) {
		return r, rest
	}
	if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
		if pair := utf16.DecodeRune(r, hexRune(rest[2:6])); pair != utf8.RuneError {
			return pair, rest[6:]
		}
	}
	return utf8.RuneError, rest
}

func simpleEscape(b byte) rune {
	switch b {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return rune(b)
}

// hexRune returns the value of hexadecimal digits, or a negative one if they are none.
func hexRune(digits []byte) rune {
	var r rune
	for _, b := range digits {
		d := hexDigit(b)
		if d < 0 {
			return -1
		}
		r = r<<4 | d
	}
	return r
}

func hexDigit(b byte) rune {
	switch {
	case b >= '0' && b <= '9':
		return rune(b - '0')
	case b >= 'a' && b <= 'f':
		return rune(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return rune(b-'A') + 10
	}
	return -1
}

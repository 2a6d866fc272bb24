package mcp

import (
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonValue is the text of one valid JSON value without white space around it.
// Only parseJSON makes one from foreign text; its methods rely on that.
type jsonValue []byte

// skipText returns the offset after the string that begins at i.
func skipText(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns the offset after the value that begins at i.
func skipValue(data []byte, i int) int {
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
	for open := 0; ; {
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

// isObject, isArray and isText tell the type of a value; a nil value, which
// stands for an absent one, has none.
func (v jsonValue) isObject() bool { return len(v) > 0 && v[0] == '{' }
func (v jsonValue) isArray() bool  { return len(v) > 0 && v[0] == '[' }
func (v jsonValue) isText() bool   { return len(v) > 0 && v[0] == '"' }
func (v jsonValue) isTrue() bool   { return string(v) == "true" }

// members yields the members of an object in their order: the key as written,
// with its quotes, and the value. Other values have none.
func (v jsonValue) members() iter.Seq2[jsonValue, jsonValue] {
	return func(yield func(jsonValue, jsonValue) bool) {
		if !v.isObject() {
			return
		}
		for i := skipSpace(v, 1); v[i] == '"'; {
			keyEnd := skipText(v, i)
			start := skipSpace(v, skipSpace(v, keyEnd)+1)
			end := skipValue(v, start)
			if !yield(v[i:keyEnd], v[start:end]) {
				return
			}
			if i = skipSpace(v, end); v[i] == ',' {
				i = skipSpace(v, i+1)
			}
		}
	}
}

// elements yields the elements of an array. Other values have none.
func (v jsonValue) elements() iter.Seq[jsonValue] {
	return func(yield func(jsonValue) bool) {
		if !v.isArray() {
			return
		}
		for i := skipSpace(v, 1); v[i] != ']'; {
			end := skipValue(v, i)
			if !yield(v[i:end]) {
				return
			}
			if i = skipSpace(v, end); v[i] == ',' {
				i = skipSpace(v, i+1)
			}
		}
	}
}

// pick returns the members of an object with the given keys, in that order,
// nil where absent. One of them twice is an error: two readers would disagree.
func (v jsonValue) pick(keys ...string) ([]jsonValue, error) {
	found := make([]jsonValue, len(keys))
	for key, value := range v.members() {
		for i, want := range keys {
			if !key.textIs(want) {
				continue
			}
			if found[i] != nil {
				return nil, errDuplicateKey
			}
			found[i] = value
		}
	}
	return found, nil
}

// member returns the first member with the given key, or nil.
func (v jsonValue) member(key string) jsonValue {
	for k, value := range v.members() {
		if k.textIs(key) {
			return value
		}
	}
	return nil
}

// textIs reports whether a string stands for exactly want.
func (v jsonValue) textIs(want string) bool {
	rest := v.inside()
	for _, r := range want {
		if len(rest) == 0 {
			return false
		}
		var got rune
		if got, rest = nextRune(rest); got != r {
			return false
		}
	}
	return len(rest) == 0
}

// text returns what a string stands for, cut to max bytes; "" for other values.
// A surrogate without its other half becomes U+FFFD.
func (v jsonValue) text(limit int) string {
	if !v.isText() {
		return ""
	}
	rest := v.inside()
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

// inside returns a string's text between its quotes, escapes untouched.
func (v jsonValue) inside() []byte { return v[1 : len(v)-1] }

// nextRune takes one character, escaped or not, from the inside of a string.
func nextRune(s []byte) (rune, []byte) {
	if s[0] != '\\' {
		r, n := utf8.DecodeRune(s)
		return r, s[n:]
	}
	if s[1] != 'u' {
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

func hexRune(digits []byte) rune {
	var r rune
	for _, b := range digits {
		r = r<<4 | hexDigit(b)
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

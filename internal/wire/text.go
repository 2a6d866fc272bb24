package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

func indexEscape(inside []byte) int { return bytes.IndexByte(inside, '\\') }

// decodeText appends what the inside of a string stands for.
func decodeText(dst, inside []byte) []byte {
	for len(inside) > 0 {
		at := indexEscape(inside)
		if at < 0 {
			return append(dst, inside...)
		}
		dst = append(dst, inside[:at]...)
		var r rune
		r, inside = nextRune(inside[at:])
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// decodedText returns what a string, with its quotes, stands for, and whether it has no half of a surrogate pair.
func decodedText(text []byte) (string, bool) {
	if len(text) < 2 {
		return "", false
	}
	inside := text[1 : len(text)-1]
	if indexEscape(inside) < 0 {
		return string(inside), true
	}
	return string(decodeText(make([]byte, 0, len(inside)), inside)), !hasHalfPair(inside)
}

// hasHalfPair reports whether an escape is a surrogate without its other half.
func hasHalfPair(inside []byte) bool {
	for len(inside) > 0 {
		at := indexEscape(inside)
		if at < 0 {
			return false
		}
		inside = inside[at:]
		written := len(inside) >= 6 && inside[1] == 'u' && hexRune(inside[2:6]) == utf8.RuneError
		var r rune
		if r, inside = nextRune(inside); r == utf8.RuneError && !written {
			return true
		}
	}
	return false
}

// appendText appends s as a JSON string. Bad UTF-8 becomes U+FFFD.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		dst = appendRune(dst, r)
	}
	return append(dst, '"')
}

// validText returns s as a reader of its JSON sees it.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// Quote returns s as a JSON string.
func Quote(s string) json.RawMessage { return appendText(make([]byte, 0, len(s)+2), s) }

// AppendQuote appends s as a JSON string.
func AppendQuote(dst []byte, s string) []byte { return appendText(dst, s) }

// SingleLine returns JSON as one line: its line feeds and carriage returns, which are white space between its parts, become
// spaces. It returns raw itself if it has none.
func SingleLine(raw []byte) []byte {
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw
	}
	raw = bytes.Clone(raw)
	blankLineEnds(raw)
	return raw
}

// blankLineEnds turns line feeds and carriage returns into spaces, in place.
func blankLineEnds(p []byte) {
	for _, end := range []byte{'\n', '\r'} {
		for i := bytes.IndexByte(p, end); i >= 0; {
			p[i] = ' '
			next := bytes.IndexByte(p[i+1:], end)
			if next < 0 {
				break
			}
			i += 1 + next
		}
	}
}

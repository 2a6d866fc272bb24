package mcp

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cleanLine makes foreign text fit for a line of a status, a log or a terminal:
// valid UTF-8, no control sequence, no character that is invisible or changes
// the direction of others, white space collapsed, at most limit bytes.
func cleanLine(s string, limit int) string {
	return cut(strings.Join(strings.Fields(strip(s)), " "), limit)
}

// cleanText is cleanLine for text of several lines.
func cleanText(s string, limit int) string {
	lines := strings.Split(strip(s), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return cut(strings.Trim(strings.Join(lines, "\n"), "\n"), limit)
}

// strip removes terminal control sequences and every character that is not
// graphic, but keeps line feeds and tabs.
func strip(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for len(s) > 0 {
		if n := controlSequence(s); n > 0 {
			s = s[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		switch {
		case r == utf8.RuneError && n == 1:
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r':
			b.WriteByte(' ')
		case unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case unicode.IsGraphic(r) && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// controlSequence returns the length of the ANSI sequence s begins with, or 0:
// ESC [ … letter, ESC ] … BEL or ESC \, and ESC with one other character.
func controlSequence(s string) int {
	const escape = '\x1b'
	if s[0] != escape {
		return 0
	}
	if len(s) == 1 {
		return 1
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return len(s)
	case ']', 'P', '_', '^':
		for i := 2; i < len(s); i++ {
			if s[i] == '\a' {
				return i + 1
			}
			if s[i] == escape && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return len(s)
	}
	return 1
}

// cut shortens s to at most limit bytes, at the border of a character, and shows
// that it did.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const ellipsis = "…"
	end := max(limit-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	if limit < len(ellipsis) {
		return s[:end]
	}
	return s[:end] + ellipsis
}

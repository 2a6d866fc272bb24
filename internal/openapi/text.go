package openapi

import (
	"fmt"
	"strings"
	"unicode"
)

// maxQuote bounds what of a document is quoted in a message.
const maxQuote = 120

// quote shows a foreign text in a message.
func quote(s string) string { return fmt.Sprintf("%q", line(s, maxQuote)) }

// line makes foreign text fit for a line: white space collapsed, nothing that hides or reorders text, at most limit bytes.
func line(s string, limit int) string {
	return cut(strings.Join(strings.Fields(visible(s, limit)), " "), limit)
}

// paragraphs is line for text of several lines.
func paragraphs(s string, limit int) string {
	lines := strings.Split(visible(s, limit), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return cut(strings.Trim(strings.Join(lines, "\n"), "\n"), limit)
}

// visible drops what is not graphic, but for line feeds and tabs: a model would read what nobody sees. Of a long text it looks at the
// beginning alone, which is enough for limit bytes unless most of it cannot be seen.
func visible(s string, limit int) string {
	const most = 8
	s = s[:min(len(s), most*limit)]
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.Is(unicode.Zs, r):
			return ' '
		case !unicode.IsGraphic(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

func cut(s string, limit int) string {
	const ellipsis = "…"
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(ellipsis)], "") + ellipsis
}

// words makes a text into words of a legal tool name, joined by '_'.
func words(s string, legal func(rune) bool) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !legal(r) }), "_")
}

// isNameRune says whether a character may be in the name of a tool or an argument.
func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.'
}

// isWordRune says whether a character may be in a word of a name that is made of a path.
func isWordRune(r rune) bool { return isNameRune(r) && r != '.' && r != '-' }

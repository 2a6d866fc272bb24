package backend

import (
	"strings"
	"unicode"
)

// maxSaid bounds what the text of an Error says of its cause, in bytes: it may be a server's words.
const maxSaid = 256

// Line makes one line of a text of anybody's that can be shown anywhere, in at most limit bytes: what hides, moves or breaks text
// becomes a space.
func Line(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	text = strings.Join(strings.Fields(text), " ")
	const more = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

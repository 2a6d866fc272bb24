package route

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of texts, in bytes.
const (
	maxReason = 512
	maxShown  = 256
	maxQuoted = 64
	maxSource = 128
	maxDigest = 80
)

// line makes one line of a text that can be shown anywhere, at most limit bytes: what hides, moves or breaks text becomes a space.
func line(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	const more = "…"
	return strings.TrimSpace(strings.ToValidUTF8(text[:limit-len(more)], "")) + more
}

// shortened cuts a name, and puts a digest in place of what is cut.
func shortened(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:limit-11] + "-" + hex.EncodeToString(sum[:5])
}

package schema

import (
	"io"
	"strings"
	"time"
)

const (
	// freeWork is how many instructions of patterns a check may carry out, at most, without being watched: less than a tenth of a second.
	freeWork = 4 << 20
	// maxMatching is how long it may match by patterns from then on.
	maxMatching = time.Second
	// freeInstructions are those of a pattern that is not large.
	freeInstructions = 1000
)

// matching bounds how many matches are sought at a time by patterns that are large, or for long: package regexp needs some 100 bytes for
// each instruction meanwhile, so up to 4 MiB.
var matching = make(chan struct{}, 4)

// match says whether a text has a match. That takes time in proportion to the text, times the instructions of the pattern at the worst,
// which few ever are at: so what may be much is watched, and given up when it is much.
func (v *validation) match(p *pattern, text string) bool {
	if !v.spend(1 + len(text)/8) {
		return false
	}
	v.work += (len(text) + 1) * p.instructions
	isWatched := v.work > freeWork
	if isWatched || p.instructions > freeInstructions {
		matching <- struct{}{}
		defer func() { <-matching }()
	}
	if !isWatched {
		return p.compiled.MatchString(text)
	}
	began := time.Now()
	watched := &watchedText{text: strings.NewReader(text), until: began.Add(maxMatching - v.matched)}
	matches := p.compiled.MatchReader(watched)
	if v.matched += time.Since(began); v.matched >= maxMatching {
		v.exhaust()
		return false
	}
	return matches
}

// watchedText is a text that ends when the time is over.
type watchedText struct {
	text  *strings.Reader
	until time.Time
	runes int
}

// ReadRune looks at the clock every now and then.
func (t *watchedText) ReadRune() (r rune, size int, err error) {
	const pause = 16
	if t.runes++; t.runes%pause == 0 && !time.Now().Before(t.until) {
		return 0, 0, io.EOF
	}
	return t.text.ReadRune() //nolint:wrapcheck // it is io.EOF, which callers compare
}

package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// What a schema takes when it is compiled is not in proportion to its text: a{1000} is a thousand instructions, \pL more than a thousand
// bounds, {} a node. So it is reckoned before anything is compiled, from above, and bounded: for a pattern, for a schema, and for all that
// a process holds at a time (see compiled).
const (
	// maxBytes bounds what a schema is compiled to, maxPatternBytes that of one of its patterns.
	maxBytes        = 8 << 20
	maxPatternBytes = 4 << 20

	nodeBytes  = 512 // of a part, beside what it lists
	entryBytes = 128 // of an entry in a map, beside its key
	textBytes  = 32  // of a text in a list, beside what it says

	// bytesPerStep is how much of a value is compared in a step.
	bytesPerStep = 64
)

// tooLarge says that a schema takes too much, and where that was found.
func tooLarge(at *path, bytes int) error {
	return fmt.Errorf("at %s: up to here the schema takes %d bytes when it is compiled, and the limit is %d: "+
		"cut down its patterns, those that repeat by {n,m} before all, its parts and its lists of values", at, bytes, maxBytes)
}

// sizeOf is how many bytes a decoded value takes, at most.
func sizeOf(value any) int {
	size := 56
	switch value := value.(type) {
	case string:
		size += textBytes + len(value)
	case []any:
		for _, element := range value {
			size += sizeOf(element)
		}
	case map[string]any:
		size += 400
		for key, element := range value {
			size += entryBytes + len(key) + sizeOf(element)
		}
	}
	return size
}

// pattern is a regular expression.
type pattern struct {
	compiled     *regexp.Regexp // nil when the schema is not for use
	shown        string
	instructions int // at most
	bytes        int
	err          error
}

const (
	// What parsing takes beside the text: a class of Unicode's has a thousand ranges and more, and a range in a pattern that ignores case is
	// folded character by character.
	classBytes = 16 << 10
	foldBytes  = 256 << 10

	patternBytes     = 512
	partBytes        = 192 // of a literal, a class, a group
	instructionBytes = 112 // of a program, and of matching by it
	onePassBytes     = 64  // of the program for one pass besides, which copies the bounds of every class
	onePassMost      = 1000
)

// ignoresCase finds the flag.
var ignoresCase = regexp.MustCompile(`\(\?[a-zA-Z]*i`)

// read fills the pattern in: its size, what is wrong with it and, for use, what it is compiled to.
func (p *pattern) read(text string, forUse bool) {
	p.bytes = classBytes * (strings.Count(text, `\p`) + strings.Count(text, `\P`))
	if ignoresCase.MatchString(text) && (strings.Contains(text, `\x`) || !isASCII(text)) {
		p.bytes += foldBytes * strings.Count(text, "-")
	}
	if p.refuse(); p.err != nil {
		return
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		p.err = errors.New("it must be a regular expression of RE2, else it cannot be checked: " +
			"no look-around, no back-references, no repetition above 1000")
		return
	}
	instructions, shared := measure(parsed)
	p.shown, p.instructions = clip(text), instructions
	p.bytes += patternBytes + instructionBytes*instructions + shared
	if p.refuse(); p.err != nil {
		return
	}
	if p.bytes += p.onePass(parsed); p.bytes > maxPatternBytes {
		p.refuse()
		return
	}
	if forUse {
		p.compiled, p.err = regexp.Compile(text)
	}
}

// refuse fails a pattern that takes too much.
func (p *pattern) refuse() {
	if p.bytes > maxPatternBytes {
		p.err = fmt.Errorf("compiled, the pattern takes %d bytes, and the limit is %d: shorten it, and repeat less by {n,m}", p.bytes, maxPatternBytes)
	}
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > 0x7f }) < 0
}

// measure counts the instructions that an expression is compiled to, at most, and the bytes of its parts, which those share. It never
// overflows: the parser takes no product of repetitions above 1000, and a pattern is short.
func measure(re *syntax.Regexp) (instructions, shared int) {
	for _, sub := range re.Sub {
		i, s := measure(sub)
		instructions, shared = instructions+i, shared+s
	}
	shared += partBytes + 4*cap(re.Rune)
	switch re.Op {
	case syntax.OpLiteral:
		instructions = len(re.Rune)
	case syntax.OpConcat:
	case syntax.OpAlternate:
		instructions += len(re.Sub)
	case syntax.OpRepeat:
		times := max(re.Max, re.Min+1)
		instructions = times*(instructions+1) + 2
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		instructions += 2
	default: // all others are one
		instructions = 1
	}
	return max(instructions, 1), shared
}

// onePass is what the program for one pass takes, if there may be one: package regexp makes it of expressions that are anchored and short.
func (*pattern) onePass(parsed *syntax.Regexp) int {
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) >= onePassMost {
		return 0
	}
	first := program.Inst[program.Start]
	if first.Op != syntax.InstEmptyWidth || first.Arg&uint32(syntax.EmptyBeginText) == 0 {
		return 0
	}
	bytes := 0
	for i := range program.Inst {
		bytes += onePassBytes + 8*len(program.Inst[i].Rune)
	}
	return bytes
}

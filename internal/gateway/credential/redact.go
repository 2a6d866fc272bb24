package credential

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// minSecret is the shortest text that is hidden: what is shorter is found everywhere.
	minSecret = 4
	// redacted stands where a secret stood.
	redacted = "[redacted]"
	// maxValues is how many values of a source are hidden: who was sent an older one may still repeat it.
	maxValues = 4
)

// spoken is what every server writes, whatever it was sent. A secret that is a part of it is none, and hiding it would leave no
// message whole.
const spoken = `{"jsonrpc":"2.0","id":null,"method":"notifications/message","params":{"_meta":{"progressToken":true}},"result":{` +
	`"tools":[{"name":"","title":"","description":"","inputSchema":{"type":"object","properties":{"string":"number"},"required":[false]},` +
	`"outputSchema":{},"annotations":{"readOnlyHint":true}}],"content":[{"type":"text","text":""}],"structuredContent":{},"isError":false,` +
	`"resultType":"complete","protocolVersion":"","supportedVersions":[],"capabilities":{},"serverInfo":{"name":"","version":""},` +
	`"prompts":[],"arguments":[],"messages":[{"role":"user"},{"role":"assistant"}],"resources":[{"uri":"","mimeType":""}],"contents":[]},` +
	`"error":{"code":-32600,"message":"","data":{}}}` + redacted

// Redactor knows the secrets of a source, and hides them in what servers send back. Nil knows none. It is not changed after it was made.
//
// A secret is found as it is, and as a string of JSON holds it, however its encoder escapes what is no letter or digit, and however often
// it was encoded. It is not found in any other disguise: reversed, in hexadecimal, in parts.
type Redactor struct {
	values  []string // what headers were set to, the newest first
	secrets []secret
}

// secret is one text to hide.
type secret struct {
	// text is without backslashes, which are passed over wherever they come: they come with an escape, or double.
	text string
	// anchor is a part of text that nobody escapes, and before how many bytes of text are in front of it. Empty if there is none.
	anchor []byte
	before int
	// reach is how many bytes text can be at most where all is escaped that may be, and reachBefore what is in front of the anchor.
	reach, reachBefore int
}

// NewRedactor hides what is secret in the values of headers: what follows a scheme, and of a Basic credential the password too. Texts of
// less than 4 bytes are not hidden, nor are words of the protocol itself.
func NewRedactor(values ...string) *Redactor {
	r := &Redactor{values: values}
	var texts []string
	for _, value := range values {
		texts = append(texts, secretsIn(value)...)
	}
	// The longest first, or what is left of one that holds another would show.
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, text := range slices.Compact(texts) {
		r.secrets = append(r.secrets, newSecret(text))
	}
	return r
}

// with knows another value too, and of the older ones a few.
func (r *Redactor) with(value string) *Redactor {
	values := []string{value}
	if r != nil {
		values = append(values, slices.DeleteFunc(slices.Clone(r.values), func(old string) bool { return old == value })...)
	}
	return NewRedactor(values[:min(len(values), maxValues)]...)
}

// Format writes nothing of the secrets, whatever the verb.
func (*Redactor) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("secrets to hide")) }

// secretsIn are the texts in a header's value that must not be shown: what follows the scheme, or without one the whole, and of a Basic
// credential, as servers write it that tell who called, the password, or without one the name.
func secretsIn(value string) []string {
	scheme, token, _ := strings.Cut(value, " ")
	found := firstOf(token, value)
	if !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(scheme, "Basic") {
		found = append(found, firstOf(value)...) // what looks like a scheme may be a part of the secret
	}
	if raw, err := base64.StdEncoding.DecodeString(token); err == nil && strings.EqualFold(scheme, "Basic") {
		name, password, _ := strings.Cut(string(raw), ":")
		if password == "" {
			password = name
		}
		found = append(found, firstOf(password, string(raw))...)
	}
	return found
}

// firstOf returns the first of some texts that can be hidden. The next ones hold it, and beside it no secret.
func firstOf(texts ...string) []string {
	for _, text := range texts {
		if len(strings.ReplaceAll(text, `\`, "")) >= minSecret && !strings.Contains(spoken, text) {
			return []string{text}
		}
	}
	return nil
}

// escaped is the most that an encoder makes of one character, twice over: two halves of a pair.
const escaped = 16

// leading is how many backslashes before a secret are seen with it, so that it is known which of them escapes which.
const leading = 32

func newSecret(text string) secret {
	s := secret{text: strings.ReplaceAll(text, `\`, ""), reach: leading}
	slashes, reach := 0, 0 // before the run that is looked at
	for start := 0; start < len(text); {
		end := start
		for end < len(text) && isPlain(text[end]) {
			end++
		}
		if end-start > len(s.anchor) {
			s.anchor, s.before, s.reachBefore = []byte(text[start:end]), start-slashes, reach
		}
		reach += end - start
		if end == start {
			reach += escaped
		}
		if text[start] == '\\' {
			slashes++
		}
		start = max(end, start+1)
	}
	s.reach += reach
	return s
}

// isPlain says whether encoders leave a character as it is.
func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// Redact returns what a server sent without the secrets, and whether there were any. It returns the text itself if there were none.
func (r *Redactor) Redact(text []byte) (clean []byte, found bool) {
	if r == nil {
		return text, false
	}
	for i := range r.secrets {
		var out []byte
		from := 0
		for {
			start, end := r.secrets[i].find(text, from)
			if start < 0 {
				break
			}
			out = append(append(out, text[from:start]...), redacted...)
			from = end
		}
		if from > 0 {
			text, found = append(out, text[from:]...), true
		}
	}
	return text, found
}

// RedactHead is Redact for the beginning of a longer text: what may be the beginning of a secret at its end is left out.
func (r *Redactor) RedactHead(text []byte) []byte {
	text, _ = r.Redact(text)
	return text[:len(text)-r.begun(text)]
}

// begun is how many bytes at the end may be the beginning of a secret.
func (r *Redactor) begun(text []byte) int {
	if r == nil {
		return 0
	}
	most := 0
	for i := range r.secrets {
		s := &r.secrets[i]
		first := max(0, len(text)-s.reach)
		for start := first; start < len(text)-most; start++ {
			if inRun(text, first, start) {
				continue
			}
			if _, open := s.match(text[start:]); open {
				most = len(text) - start
			}
		}
	}
	return most
}

// find returns where the secret is, at from or after; -1 if it is not there.
func (s *secret) find(text []byte, from int) (start, end int) {
	if len(s.anchor) == 0 {
		for start = from; start < len(text); start++ {
			if inRun(text, from, start) {
				continue
			}
			if n, _ := s.match(text[start:]); n > 0 {
				return start, start + n
			}
		}
		return -1, 0
	}
	next := from // what is before it was looked at: a text full of anchors, which the server may send, is gone through once
	for at := from; ; at++ {
		found := bytes.Index(text[at:], s.anchor)
		if found < 0 {
			return -1, 0
		}
		at += found
		first := max(next, at-s.reachBefore)
		for start = first; start <= at-s.before; start++ {
			if inRun(text, first, start) {
				continue
			}
			if n, _ := s.match(text[start:]); start+n > at {
				return outside(text, from, start), start + n
			}
		}
		next = max(next, at-s.before+1)
	}
}

// inRun says whether a secret that is at start is one byte before too, since backslashes are passed over: each run of them is looked at once.
func inRun(text []byte, from, start int) bool {
	return start > from && text[start] == '\\' && text[start-1] == '\\'
}

// outside moves a start before a backslash that escapes it: what comes in its place must not be.
func outside(text []byte, from, start int) int {
	slashes := 0
	for start-slashes > from && text[start-slashes-1] == '\\' {
		slashes++
	}
	return start - slashes%2
}

// match returns how many bytes of text the secret takes at its beginning, 0 if it is not there; open says that text ends before that can
// be told.
func (s *secret) match(text []byte) (n int, open bool) {
	for rest := s.text; rest != ""; {
		want, size := utf8.DecodeRuneInString(rest)
		slashes := n
		for n < len(text) && text[n] == '\\' {
			n++
		}
		slashes = n - slashes
		have := text[n:min(len(text), n+size)]
		switch {
		case string(have) == rest[:size]:
			n += size
		case string(have) == rest[:len(have)]:
			return 0, true
		case slashes == 0:
			return 0, false
		default:
			r, taken := unescape(text[n:])
			if taken == 0 {
				return 0, len(text)-n < escaped && mayEscape(text[n:])
			}
			n += taken
			if r == '\\' {
				continue
			}
			if r != want {
				return 0, false
			}
		}
		rest = rest[size:]
	}
	return n, false
}

// unescape reads what follows the backslashes of an escape: a tab, or a character by its number. It takes 0 bytes if it is neither.
func unescape(text []byte) (r rune, taken int) {
	if len(text) > 0 && text[0] == 't' {
		return '\t', 1
	}
	r, ok := unit(text)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 5
	}
	rest := bytes.TrimLeft(text[5:], `\`)
	second, ok := unit(rest)
	if !ok {
		return 0, 0
	}
	return utf16.DecodeRune(r, second), len(text) - len(rest) + 5
}

// unit reads the u and the four digits of an escape.
func unit(text []byte) (rune, bool) {
	if len(text) < 5 || text[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	return rune(n), err == nil
}

// mayEscape says whether a text may become an escape when more of it comes.
func mayEscape(text []byte) bool {
	return len(bytes.Trim(text, `u\0123456789abcdefABCDEF`)) == 0
}

// bufferBytes is what a reader reads at once.
const bufferBytes = 32 << 10

// Reader passes on what in brings without the secrets. It holds back what may be the beginning of one until more has come. What is held
// when in fails, rather than ends, is not given out.
func (r *Redactor) Reader(in io.Reader) io.Reader {
	if r == nil || len(r.secrets) == 0 {
		return in
	}
	room := bufferBytes
	for i := range r.secrets {
		room = max(room, bufferBytes+r.secrets[i].reach)
	}
	return &reader{Redactor: r, in: in, buffer: make([]byte, room)}
}

type reader struct {
	*Redactor

	in     io.Reader
	buffer []byte
	ready  []byte // to be given out
	held   []byte // may be the beginning of a secret
	err    error  // of in
}

// Read passes on what one read of the input brings, if it is not all held back.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil || len(p) == 0 {
			return 0, r.err
		}
		held := copy(r.buffer, r.held)
		n, err := r.in.Read(r.buffer[held:])
		r.err = err
		text, _ := r.Redact(r.buffer[:held+n])
		end := len(text)
		if !errors.Is(err, io.EOF) {
			end -= r.begun(text)
		}
		r.ready, r.held = text[:end], text[end:]
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the size of the largest table that Parse reads, in bytes: what a ConfigMap can hold.
const MaxBytes = 1 << 20

// maxProblems is how many problems an InvalidError lists.
const maxProblems = 20

// InvalidError lists what is wrong with a table. It quotes names and short values of the table, never a URL, since a URL that is
// refused may be so for the password in it.
type InvalidError struct {
	// Problems are the first 20, each as "<path>: <what is wrong and what to do>", such as "backends[2].url: must be given".
	Problems []string
	// More is how many there are besides.
	More int
}

// Error names all listed problems.
func (e *InvalidError) Error() string {
	text := "the table is refused: " + strings.Join(e.Problems, "; ")
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more", e.More)
	}
	return text
}

// problems gathers what is wrong.
type problems struct{ InvalidError }

// add notes a problem of what stands at path.
func (p *problems) add(path, format string, args ...any) {
	if len(p.Problems) == maxProblems {
		p.More++
		return
	}
	p.Problems = append(p.Problems, path+": "+fmt.Sprintf(format, args...))
}

// err is nil if nothing was added.
func (p *problems) err() error {
	if len(p.Problems) == 0 {
		return nil
	}
	return &p.InvalidError
}

// Parse reads a table strictly: what it does not understand exactly is refused, because what it ignored could be what keeps
// somebody out. That is: an unknown format version, unknown and duplicate keys, keys in other letter case, null for anything
// but a list, data after the table, bad UTF-8, more than MaxBytes, and all that Validate refuses. Empty fields that have a
// default are filled in. An error is an *InvalidError.
func Parse(data []byte) (*Table, error) {
	var p problems
	switch {
	case len(data) > MaxBytes:
		p.add("table", "is %d bytes long, the limit is %d", len(data), MaxBytes)
	case !utf8.Valid(data):
		p.add("table", "is not valid UTF-8")
	default:
		checkFormat(data, &p)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	checkShape(data, reflect.TypeFor[Table](), &p)
	if err := p.err(); err != nil {
		return nil, err
	}
	t := new(Table)
	if err := json.Unmarshal(data, t); err != nil {
		p.add("table", "cannot be decoded: %v", err)
		return nil, p.err()
	}
	t.fillDefaults()
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return t, nil
}

// checkFormat looks at the syntax and the format version alone: a table of a later format is told as such, not by the fields
// that it has more.
func checkFormat(data []byte, p *problems) {
	var head struct {
		Version json.RawMessage `json:"version"`
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	err := json.Unmarshal(data, &head)
	switch {
	case errors.As(err, &syntax):
		p.add("table", "is not JSON: at byte %d: %v", syntax.Offset, syntax)
	case errors.As(err, &kind):
		p.add("table", "must be a JSON object")
	case err != nil:
		p.add("table", "is not JSON: %v", err)
	case head.Version == nil:
		p.add("version", "must be given; this build reads version %d", Version)
	case string(head.Version) != fmt.Sprint(Version):
		p.add("version", "%s is not known; this build reads version %d", clip(string(head.Version)), Version)
	}
}

// fillDefaults sets the empty fields that have a default within the table.
func (t *Table) fillDefaults() {
	if t.Endpoint.Path == "" {
		t.Endpoint.Path = DefaultPath
	}
	for i := range t.Backends {
		if t.Backends[i].Transport == "" {
			t.Backends[i].Transport = TransportHTTP
		}
	}
}

// clip makes a value of the table fit for a message.
func clip(s string) string {
	const limit = 64
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// Package credential puts the gateway's own credential for a backend into requests, and hides it in what comes back. The value lives in a
// mounted file, is read again when that changes, and is in no error, log line or formatted text.
package credential

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mcp-operator/mcp-operator/internal/gateway/mounted"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = 64 << 10

// Source sends one credential. It is safe for concurrent use.
type Source struct {
	// header is the canonical name of the header to set; empty sends nothing.
	header string
	// text describes the source without the value.
	text string
	// value and hidden are behind pointers so that no way of formatting a Source reaches them.
	value  *mounted.Value[string]
	hidden *atomic.Pointer[Redactor]
}

// New makes a source of a table's credential; nil is a source that sends nothing. Files need not exist yet: what is wrong
// with them fails the calls of this backend, told by Apply, and nothing else.
func New(c *table.Credential) (*Source, error) {
	if c == nil {
		return &Source{text: "no credential"}, nil
	}
	switch c.Type {
	case table.CredentialBearer:
		return source("Authorization", "Bearer", func(files mounted.Files) (string, error) {
			token, err := field(files, "token", c.ValueFile)
			if err == nil && token == "" {
				err = &UnfitError{"token", c.ValueFile, "is empty"}
			}
			return "Bearer " + token, err
		}, c.ValueFile)
	case table.CredentialBasic:
		return source("Authorization", "Basic", func(files mounted.Files) (string, error) {
			return basic(files, c.UsernameFile, c.PasswordFile)
		}, c.UsernameFile, c.PasswordFile)
	case table.CredentialHeader:
		if !isToken(c.Header) {
			return nil, fmt.Errorf("credential: %q is no header name", c.Header)
		}
		return source(c.Header, "header "+c.Header, func(files mounted.Files) (string, error) {
			value, err := field(files, "value", c.ValueFile)
			if err == nil && value == "" {
				err = &UnfitError{"value", c.ValueFile, "is empty"}
			}
			return value, err
		}, c.ValueFile)
	}
	return nil, fmt.Errorf("credential: type %q is unknown: use Bearer, Basic or Header", c.Type)
}

// UnfitError says what is wrong with the content of a file, and nothing of the content.
type UnfitError struct {
	// What it holds: "token", "value", "user name" or "password".
	What string
	// File is its path.
	File string
	// Why continues a sentence about it.
	Why string
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("credential %s: the %s %s", e.File, e.What, e.Why)
}

// Told is the same for somebody who knows nothing of this machine's files.
func (e *UnfitError) Told() string { return "the " + e.What + " of the credential " + e.Why }

func source(header, kind string, parse func(mounted.Files) (string, error), paths ...string) (*Source, error) {
	if slices.Contains(paths, "") {
		return nil, fmt.Errorf("credential: %s: the path of a file is missing", kind)
	}
	hidden := new(atomic.Pointer[Redactor])
	remembered := func(files mounted.Files) (string, error) {
		value, err := parse(files)
		if err == nil {
			hidden.Store(hidden.Load().with(value))
		}
		return value, err
	}
	return &Source{
		header: http.CanonicalHeaderKey(header),
		text:   kind + " from " + strings.Join(paths, " and "),
		value:  mounted.New(mounted.Paths(maxFile, paths...), remembered, nil),
		hidden: hidden,
	}, nil
}

// Apply sets the header, in place of all values it has. It fails, and leaves h as it is, while a file is missing, larger
// than 64 KiB, empty, or not fit for a header: an old value is not sent after somebody replaced it.
func (s *Source) Apply(h http.Header) error {
	if s.header == "" {
		return nil
	}
	value, err := s.value.Get()
	if err != nil {
		return err
	}
	h[s.header] = []string{value}
	return nil
}

// Redactor hides what Apply has set, now and lately. Nil if that was never anything.
func (s *Source) Redactor() *Redactor {
	if s.hidden == nil {
		return nil
	}
	return s.hidden.Load()
}

// Format writes what the source is, never its value, whatever the verb.
func (s *Source) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(s.text)) // the error is the formatter's own to find
}

// basic is the value of RFC 7617.
func basic(files mounted.Files, usernameFile, passwordFile string) (string, error) {
	username, err := field(files, "user name", usernameFile)
	if err != nil {
		return "", err
	}
	password, err := field(files, "password", passwordFile)
	if err != nil {
		return "", err
	}
	if strings.Contains(username, ":") {
		return "", &UnfitError{"user name", usernameFile, "has a colon, which it cannot have (RFC 7617)"}
	}
	if username == "" && password == "" {
		return "", &UnfitError{"user name", usernameFile, "is empty, and so is the password"}
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password)), nil
}

// field is a file's content without its trailing line feeds, if a header may carry it (RFC 9110, section 5.5).
func field(files mounted.Files, what, path string) (string, error) {
	value := strings.TrimRight(string(files[path]), "\r\n")
	for i := range len(value) {
		if c := value[i]; (c < ' ' && c != '\t') || c == 0x7f {
			return "", &UnfitError{what, path, "has a line feed or another control character inside, which a header cannot carry"}
		}
	}
	if value != strings.Trim(value, " \t") {
		return "", &UnfitError{what, path, "begins or ends with white space, which a header loses: remove it"}
	}
	return value, nil
}

// isToken says whether name is a token of RFC 9110, section 5.6.2.
func isToken(name string) bool {
	const symbols = "!#$%&'*+-.^_`|~"
	for _, c := range name {
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !isLetter && (c < '0' || c > '9') && !strings.ContainsRune(symbols, c) {
			return false
		}
	}
	return name != ""
}

package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yosida95/uritemplate/v3"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Entry is one tool, prompt, resource or resource template, as its server lists it.
type Entry struct {
	// Name is what the server calls it by: its name, URI or URI template.
	Name string
	// Raw is the whole definition, an object, as it was sent. These bytes are held once, whatever shows them.
	Raw json.RawMessage
	// Digest is that of internal/mcp.Tool for a tool, empty for others.
	Digest string
	// ParamHeaders are the arguments of a tool that are sent as headers too (2026-07-28).
	ParamHeaders []wire.ParamHeader

	nameAt, nameTo uint32            // where the name is in Raw, with its quotes
	sum            [sha256.Size]byte // over all of the definition
	readOnly       bool              // the tool says that it changes nothing
	notDestructive bool              // the tool says that it destroys nothing
	pattern        *regexp.Regexp    // the URIs of a template
}

var errName = errors.New("name is not 1 to 128 of A-Z a-z 0-9 . _ -")

// Invalid is an entry that was dropped.
type Invalid struct {
	// Name is made fit to be shown: at most 128 characters, none invisible. It may be empty.
	Name string
	// Reason is a stable sentence without foreign text.
	Reason string
}

const (
	// entryBytes bounds one definition, descriptionBytes the text a model is given of it.
	entryBytes       = 256 << 10
	descriptionBytes = 32 << 10
	// entryDepth bounds how deep a definition is nested, which bounds its schemas too.
	entryDepth = 64

	// toolNameLength is how long a server's own name for a tool may be, in characters: what a table can rename.
	toolNameLength  = 128
	promptNameBytes = 256
	uriBytes        = 8 << 10
	templateBytes   = 1 << 10
	templateVars    = 32
)

// readEntry checks one entry of a list, which it makes no copy of. The error is the reason to drop it.
func readEntry(k Kind, raw json.RawMessage, digests *mcp.Digester) (Entry, error) {
	raw, err := wire.Check(raw, wire.Limits{Bytes: entryBytes, Depth: entryDepth})
	if err != nil {
		return Entry{}, err
	}
	if !wire.IsObject(raw) {
		return Entry{}, errors.New("not an object")
	}
	if wire.Misspelt(raw, lists[k].key) {
		return Entry{}, fmt.Errorf("has a key that readers take for %s", lists[k].key)
	}
	at, to := wire.FieldAt(raw, lists[k].key)
	e := Entry{Raw: raw, nameAt: uint32(at), nameTo: uint32(to)} //nolint:gosec // entryBytes is far below
	if e.Name, err = readName(k, raw[at:to]); err != nil {
		return Entry{}, err
	}
	if len(wire.Field(raw, "description")) > descriptionBytes {
		return Entry{}, fmt.Errorf("description of more than %d KiB", descriptionBytes>>10)
	}
	switch k {
	case Tools:
		err = e.readTool(raw, digests)
	case Templates:
		err = e.readTemplate()
	case Prompts, Resources:
	}
	return e, err
}

// appendAs appends the definition under a name; all its other bytes are as they were.
func (e *Entry) appendAs(out []byte, name string) []byte {
	if name == e.Name {
		return append(out, e.Raw...)
	}
	out = wire.AppendQuote(append(out, e.Raw[:e.nameAt]...), name)
	return append(out, e.Raw[e.nameTo:]...)
}

// lengthAs is how many bytes appendAs appends.
func (e *Entry) lengthAs(name string) int {
	if name == e.Name {
		return len(e.Raw)
	}
	return len(e.Raw) - int(e.nameTo-e.nameAt) + len(wire.Quote(name))
}

func readName(k Kind, raw json.RawMessage) (string, error) {
	name, ok := wire.String(raw)
	if !ok {
		return "", fmt.Errorf("no %s", lists[k].key)
	}
	longest := uriBytes
	switch k {
	case Tools: // what clients would call it is judged with the policy, which may rename it
		if name == "" || utf8.RuneCountInString(name) > toolNameLength || strings.ContainsFunc(name, hidden) {
			return "", errName
		}
		return name, nil
	case Prompts:
		longest = promptNameBytes
	case Templates:
		longest = templateBytes
	case Resources:
	}
	if name == "" || len(name) > longest {
		return "", fmt.Errorf("%s is not 1 to %d bytes long", lists[k].key, longest)
	}
	if strings.ContainsFunc(name, hidden) {
		return "", fmt.Errorf("%s has characters that are invisible or change how others are shown", lists[k].key)
	}
	return name, nil
}

// hidden reports whether a character is a control or format character, one that sets directions, a space of no width, a tag, or
// in another way not to be seen.
func hidden(r rune) bool {
	return r != ' ' && unicode.IsSpace(r) || r == utf8.RuneError || !unicode.IsGraphic(r) ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// shown makes what should have been a name fit for a status. A name that a table can speak of stays as it is.
func shown(raw json.RawMessage) string {
	name := []rune(wire.Text(raw, toolNameLength*utf8.UTFMax))
	name = name[:min(len(name), toolNameLength)]
	for i, r := range name {
		if hidden(r) {
			name[i] = utf8.RuneError
		}
	}
	return string(name)
}

func (e *Entry) readTool(raw json.RawMessage, digests *mcp.Digester) error {
	input := wire.Field(raw, "inputSchema")
	if !wire.TextIs(wire.Field(input, "type"), "object") {
		return errors.New(`inputSchema is not an object with "type": "object"`)
	}
	if err := checkSchema(input); err != nil {
		return fmt.Errorf("inputSchema %w", err)
	}
	if output := wire.Field(raw, "outputSchema"); output != nil {
		if !wire.IsObject(output) {
			return errors.New("outputSchema is not an object")
		}
		if err := checkSchema(output); err != nil {
			return fmt.Errorf("outputSchema %w", err)
		}
	}
	annotations := wire.Field(raw, "annotations")
	e.readOnly = string(wire.Field(annotations, "readOnlyHint")) == "true"
	e.notDestructive = string(wire.Field(annotations, "destructiveHint")) == "false"
	var err error
	if e.ParamHeaders, err = wire.ParamHeaders(input); err != nil {
		return err
	}
	e.Digest, err = digests.Tool(raw)
	return err
}

// readTemplate compiles the template. Its limits keep the library, which makes a regular expression of it, from making one that
// is not accepted or is very large.
func (e *Entry) readTemplate() error {
	template, err := uritemplate.New(e.Name)
	if err != nil {
		return errors.New("uriTemplate is not a URI template (RFC 6570)")
	}
	if strings.Count(e.Name, ",")+strings.Count(e.Name, "{") > templateVars {
		return fmt.Errorf("uriTemplate has more than %d variables", templateVars)
	}
	e.pattern = template.Regexp()
	return nil
}

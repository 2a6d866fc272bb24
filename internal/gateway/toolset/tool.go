package toolset

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/gateway/schema"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// tool is one tool, ready to be called.
type tool struct {
	name       string
	definition json.RawMessage
	input      *schema.Schema
	output     *schema.Schema  // nil without outputSchema
	http       *table.HTTPTool // nil for a statement
}

// newTool compiles the schemas of a definition. With an error the tool, if there is one, has a name only.
func newTool(definition json.RawMessage) (*tool, error) {
	definition, err := wire.Check(definition, wire.DefaultLimits)
	if err != nil {
		return nil, fmt.Errorf("its definition: %w", err)
	}
	t := &tool{definition: definition}
	t.name, _ = wire.String(wire.Field(definition, "name"))
	if t.input, err = schema.Compile(wire.Field(definition, "inputSchema")); err != nil {
		return t, fmt.Errorf("its inputSchema: %w", err)
	}
	if output := wire.Field(definition, "outputSchema"); output != nil {
		if t.output, err = schema.Compile(output); err != nil {
			return t, fmt.Errorf("its outputSchema: %w", err)
		}
	}
	return t, nil
}

func find(tools []*tool, name string) *tool {
	for _, t := range tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

// arguments are those of a call that are given: neither absent nor null.
type arguments map[string]json.RawMessage

func argumentsOf(raw json.RawMessage) arguments {
	out := arguments{}
	for key, value := range wire.Fields(raw) {
		if string(value) != "null" {
			out[key] = value
		}
	}
	return out
}

// argumentError says which argument cannot be sent, and why. The caller can mend it.
type argumentError struct{ name, why string }

func (e *argumentError) Error() string { return "the argument " + e.name + " " + e.why }

func refuse(name, why string) error { return &argumentError{name, why} }

// scalar is the text of a string, number or boolean.
func scalar(name string, value json.RawMessage) (string, error) {
	if wire.IsText(value) {
		text, ok := wire.String(value)
		if !ok {
			return "", refuse(name, "has half of a surrogate pair in it")
		}
		return text, nil
	}
	if wire.IsObject(value) || wire.IsArray(value) || string(value) == "null" {
		return "", refuse(name, "must be a string, a number or a boolean here")
	}
	return string(value), nil
}

// scalars are the texts of a list of such, or of one.
func scalars(name string, value json.RawMessage) ([]string, error) {
	if !wire.IsArray(value) {
		text, err := scalar(name, value)
		return []string{text}, err
	}
	var out []string
	for element := range wire.Elements(value) {
		text, err := scalar(name, element)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// valueOf is what a parameter has in a call, nil if nothing, and the name to call it by.
func (a arguments) valueOf(p *table.Param) (json.RawMessage, string) {
	if p.Value != nil {
		return p.Value, p.Name
	}
	name := p.Argument
	if name == "" {
		name = p.Name
	}
	return a[name], name
}

// result is that of tools/call.
type result struct {
	isError    bool
	content    []json.RawMessage
	structured json.RawMessage
}

// text makes a content block.
func text(s string) json.RawMessage {
	out := append([]byte(`{"type":"text","text":`), wire.Quote(strings.ToValidUTF8(s, "\uFFFD"))...)
	return append(out, '}')
}

// failed is the result of a call that failed in a way the caller may mend.
func failed(format string, args ...any) *result {
	return &result{isError: true, content: []json.RawMessage{text(fmt.Sprintf(format, args...))}}
}

func (r *result) encode() json.RawMessage {
	out := []byte(`{"resultType":"complete","content":[`)
	for i, block := range r.content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, block...)
	}
	out = append(out, ']')
	if r.structured != nil {
		out = append(append(out, `,"structuredContent":`...), r.structured...)
	}
	if r.isError {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}')
}

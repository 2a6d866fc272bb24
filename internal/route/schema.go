package route

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// maxSubschemas is how many parts a schema may have, which is the limit of the gateway's catalog.
const maxSubschemas = 5000

// nothing is the input schema of a tool that takes nothing.
const nothing = `{"additionalProperties":false,"type":"object"}`

// rows is the output schema of a statement.
const rows = `{"properties":{"rows":{"description":"The rows, by column name.","items":{"type":"object"},"type":"array"},` +
	`"rowsAffected":{"description":"How many rows a statement that returns none has changed.","type":"integer"},` +
	`"truncated":{"description":"True if there are more rows than these.","type":"boolean"}},"required":["rows"],"type":"object"}`

// schemas are those of a tool, each an object of type "object"; output may be nil.
type schemas struct{ input, output json.RawMessage }

func schemasOf(asked *mcpv1alpha1.ToolSchema, text SchemaText) (schemas, error) {
	var given schemas
	switch {
	case asked == nil:
	case asked.Inline != nil && asked.ConfigMapRef == nil:
		if input := asked.Inline.Input; input != nil {
			given.input = input.Raw
		}
		if output := asked.Inline.Output; output != nil {
			given.output = output.Raw
		}
	case asked.ConfigMapRef != nil && asked.Inline == nil:
		var err error
		if given, err = readSchemas(text); err != nil {
			return schemas{}, invalid("schema.configMapRef: %s", err)
		}
	default:
		return schemas{}, invalid("schema must have exactly one of inline and configMapRef")
	}
	if given.input == nil {
		given.input = json.RawMessage(nothing)
	}
	var out schemas
	var err error
	if out.input, err = objectSchema(given.input); err != nil {
		return schemas{}, invalid("schema.input: %s", err)
	}
	if _, err := wire.ParamHeaders(out.input); err != nil {
		return schemas{}, invalid("schema.input: %s", err)
	}
	if given.output == nil {
		return out, nil
	}
	if out.output, err = objectSchema(given.output); err != nil {
		return schemas{}, invalid("schema.output: %s", err)
	}
	return out, nil
}

// readSchemas reads JSON or YAML strictly.
func readSchemas(text SchemaText) (schemas, error) {
	if text.Problem != "" {
		return schemas{}, invalid("%s", text.Problem)
	}
	data := []byte(strings.TrimSpace(text.Text))
	if len(data) == 0 {
		return schemas{}, invalid("the key is empty, and must hold the schemas")
	}
	if data[0] != '{' {
		var err error
		if data, err = yaml.YAMLToJSONStrict(data); err != nil {
			return schemas{}, invalid("the key is neither JSON nor YAML: %s", line(err.Error(), maxShown))
		}
	}
	raw, err := wire.Check(data, wire.Limits{})
	if err != nil {
		return schemas{}, invalid("the key: %s", err)
	}
	if !wire.IsObject(raw) {
		return schemas{}, invalid("the key must hold an object with the members input and output")
	}
	var out schemas
	for member, value := range wire.Fields(raw) {
		switch member {
		case "input":
			out.input = value
		case "output":
			out.output = value
		default:
			return schemas{}, invalid("the key has the member '%s', and only input and output are known", line(member, maxQuoted))
		}
	}
	return out, nil
}

// objectSchema is a schema of objects in one form: with its type, and its keywords sorted.
func objectSchema(raw json.RawMessage) (json.RawMessage, error) {
	checked, err := wire.Check(raw, wire.Limits{Bytes: maxDefinition})
	if err != nil {
		return nil, err
	}
	var keywords map[string]json.RawMessage
	if err := json.Unmarshal(checked, &keywords); err != nil || keywords == nil {
		return nil, invalid("must be a JSON Schema that is an object")
	}
	if kind := keywords["type"]; kind != nil && !wire.TextIs(kind, "object") {
		return nil, invalid(`must have the type "object"`)
	}
	keywords["type"] = json.RawMessage(`"object"`)
	walk := schemaWalk{left: maxSubschemas}
	if err := walk.schema(checked); err != nil {
		return nil, err
	}
	var out strings.Builder
	out.WriteByte('{')
	for i, key := range sortedKeys(keywords) {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(wire.Quote(key))
		out.WriteByte(':')
		out.Write(keywords[key])
	}
	out.WriteByte('}')
	return json.RawMessage(out.String()), nil
}

// schemaWalk goes through a schema as the gateway's catalog does: nothing in it may make a client fetch something.
type schemaWalk struct{ left int }

func (w *schemaWalk) schema(raw json.RawMessage) error {
	if wire.IsArray(raw) {
		for element := range wire.Elements(raw) {
			if err := w.schema(element); err != nil {
				return err
			}
		}
		return nil
	}
	if !wire.IsObject(raw) {
		return nil
	}
	if w.left--; w.left < 0 {
		return invalid("has more than %d parts", maxSubschemas)
	}
	for key, value := range wire.Fields(raw) {
		if err := w.keyword(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (w *schemaWalk) keyword(key string, value json.RawMessage) error {
	switch key {
	case "$ref", "$dynamicRef", "$recursiveRef":
		if target, ok := wire.String(value); ok && !strings.HasPrefix(target, "#") {
			return invalid("its %s refers to another document, which nobody may fetch: put that under $defs", key)
		}
		return nil
	case "default", "const", "enum", "examples", "example":
		return nil // values, in which nothing is a keyword
	case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
		for _, schema := range wire.Fields(value) { // here the keys are names
			if err := w.schema(schema); err != nil {
				return err
			}
		}
		return nil
	}
	return w.schema(value)
}

// arguments are what an input schema names.
type arguments struct {
	properties map[string]json.RawMessage
	required   map[string]bool
	// isOpen says that the schema may name arguments elsewhere than in its properties.
	isOpen bool
}

func argumentsOf(input json.RawMessage) arguments {
	out := arguments{properties: map[string]json.RawMessage{}, required: map[string]bool{}}
	for keyword, value := range wire.Fields(input) {
		switch {
		case keyword == "properties":
			maps.Insert(out.properties, wire.Fields(value))
		case keyword == "required":
			for name := range wire.Elements(value) {
				if text, ok := wire.String(name); ok {
					out.required[text] = true
				}
			}
		case slices.Contains([]string{"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "patternProperties", "dependentSchemas"}, keyword):
			out.isOpen = true
		}
	}
	return out
}

// check refuses an argument that the schema does not name: nobody would know to give it.
func (a *arguments) check(name, field string) error {
	if a.properties[name] == nil && !a.isOpen {
		return invalid("%s: the argument '%s' is none of the properties of schema.input", field, line(name, maxQuoted))
	}
	return nil
}

// sqlType is the type of a parameter that follows from the argument's; empty leaves it to the statement.
func (a *arguments) sqlType(name string) table.SQLType {
	kinds := wire.Field(a.properties[name], "type")
	if wire.IsArray(kinds) { // of a type and null
		var rest []json.RawMessage
		for kind := range wire.Elements(kinds) {
			if !wire.TextIs(kind, "null") {
				rest = append(rest, kind)
			}
		}
		if len(rest) != 1 {
			return ""
		}
		kinds = rest[0]
	}
	kind, _ := wire.String(kinds)
	return map[string]table.SQLType{
		"string": table.SQLText, "integer": table.SQLInteger, "number": table.SQLNumber, "boolean": table.SQLBoolean, "object": table.SQLJSON,
	}[kind]
}

// checkRows refuses an output schema of a statement that describes anything but its result, such as one row of it.
func checkRows(output json.RawMessage) error {
	result := argumentsOf(json.RawMessage(rows))
	described := argumentsOf(output)
	for _, names := range [][]string{sortedKeys(described.properties), sortedKeys(described.required)} {
		for _, name := range names {
			if result.properties[name] == nil {
				return invalid("schema.output: the result of a statement has the members rows, rowsAffected and truncated, and no '%s': "+
					"describe rows as a list of objects by column name", line(name, maxQuoted))
			}
		}
	}
	return nil
}

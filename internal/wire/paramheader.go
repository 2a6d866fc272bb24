package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ParamHeader says that a header field repeats an argument of a tool.
type ParamHeader struct {
	// Header is the whole name of the field: Mcp-Param-Region.
	Header string
	// Path leads to the argument: the keys from the arguments down.
	Path []string
}

// annotation is the keyword of a schema that asks for a header field.
const annotation = "x-mcp-header"

// ParamHeaders returns the header fields an input schema asks for by x-mcp-header (specification 2026-07-28), in the order of
// the schema. A tool that asks wrongly is to be hidden: with a name that is no token of HTTP or is there twice, for what is not declared as a
// string, integer or boolean, or in a place that properties alone do not lead to.
func ParamHeaders(inputSchema json.RawMessage) ([]ParamHeader, error) {
	w := schemaWalk{}
	if err := w.schema(inputSchema, true, 0); err != nil {
		return nil, err
	}
	return w.found, nil
}

// schemaWalk looks for annotations in a schema, those in wrong places included.
type schemaWalk struct {
	found []ParamHeader
	path  []string
}

var errSchemaDepth = errors.New("the schema is nested too deep")

// schema walks over a schema. Reached says that properties alone led to it.
func (w *schemaWalk) schema(schema json.RawMessage, reached bool, depth int) error {
	if depth > DefaultLimits.Depth {
		return errSchemaDepth
	}
	if IsArray(schema) {
		for element := range Elements(schema) {
			if err := w.schema(element, false, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	for keyword, value := range Fields(schema) {
		var err error
		switch keyword {
		case annotation:
			err = w.annotate(schema, value, reached)
		case "properties":
			err = w.schemas(value, reached, depth+1)
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			err = w.schemas(value, false, depth+1)
		case "const", "default", "enum", "examples": // hold values, not schemas
		default:
			err = w.schema(value, false, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// schemas walks over schemas by name.
func (w *schemaWalk) schemas(byName json.RawMessage, reached bool, depth int) error {
	for name, schema := range Fields(byName) {
		w.path = append(w.path, name)
		if err := w.schema(schema, reached, depth); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	return nil
}

// annotate takes the annotation of a schema.
func (w *schemaWalk) annotate(schema, value json.RawMessage, reached bool) error {
	if !reached || len(w.path) == 0 {
		return fmt.Errorf("%s is only for properties, and not below any other keyword", annotation)
	}
	switch t, _ := String(Field(schema, "type")); t {
	case "string", "integer", "boolean":
	default:
		return fmt.Errorf("%s is only for properties of type string, integer or boolean", annotation)
	}
	name, _ := String(value)
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }) {
		return fmt.Errorf("%s is not the name of a header field", annotation)
	}
	field := HeaderParamPrefix + name
	if slices.ContainsFunc(w.found, func(other ParamHeader) bool { return strings.EqualFold(other.Header, field) }) {
		return fmt.Errorf("%s names one header field twice", annotation)
	}
	w.found = append(w.found, ParamHeader{Header: field, Path: slices.Clone(w.path)})
	return nil
}

// isTokenChar reports whether a header field's name may hold r (RFC 9110, section 5.6.2).
func isTokenChar(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// ParamHeaderValues returns the header fields that repeat arguments, encoded. An argument that is absent, null, or of another type than
// declared has none.
func ParamHeaderValues(hs []ParamHeader, arguments json.RawMessage) map[string]string {
	var values map[string]string
	for _, h := range hs {
		value, ok := headerText(argument(arguments, h.Path))
		if !ok {
			continue
		}
		if values == nil {
			values = make(map[string]string, len(hs))
		}
		values[h.Header] = EncodeHeader(value)
	}
	return values
}

// CheckParamHeaders demands that header fields repeat what the arguments say. The error is a *HeaderError.
func CheckParamHeaders(h http.Header, hs []ParamHeader, arguments json.RawMessage) error {
	for _, p := range hs {
		raw := argument(arguments, p.Path)
		field := http.CanonicalHeaderKey(p.Header)
		if raw == nil || isNull(raw) {
			if len(h[field]) > 0 {
				return &HeaderError{Reason: "the header " + p.Header + " repeats an argument that is not there"}
			}
			continue
		}
		want, ok := headerText(raw)
		if !ok {
			return &HeaderError{Reason: "the argument that the header " + p.Header + " repeats is no string, integer or boolean"}
		}
		if want == "" && len(h[field]) == 1 && h[field][0] == "" {
			continue
		}
		got, err := onlyHeader(h, field)
		if err != nil {
			return err
		}
		if got != want {
			return &HeaderError{Reason: "the header " + p.Header + " does not say what its argument says"}
		}
	}
	return nil
}

func argument(arguments json.RawMessage, path []string) json.RawMessage {
	for _, key := range path {
		arguments = Field(arguments, key)
	}
	return arguments
}

// headerText returns what a header field says for an argument.
func headerText(raw json.RawMessage) (string, bool) {
	if s, ok := String(raw); ok {
		return s, true
	}
	switch string(raw) {
	case "true", "false":
		return string(raw), true
	}
	const safe = 1<<53 - 1 // beyond, readers of JSON see different numbers
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > safe {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

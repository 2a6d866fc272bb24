package openapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// library holds the schemas of a document that others refer to, as they are in requests or in responses. Each is turned once, so that a
// schema that refers to itself needs no end, and that many operations may share large ones.
type library struct {
	doc *document
	// hidden is the keyword that marks properties that do not occur here: readOnly in requests, writeOnly in responses.
	hidden string

	definitions map[string]*definition // by reference
	left        *int                   // parts that may be turned yet, for the whole document
}

// definition is a schema that others refer to.
type definition struct {
	schema       any
	refs         []string // what it refers to
	parts, bytes int
	err          error

	sought, ends bool // whether it refers to itself for the same value was asked, and answered
}

func newLibrary(doc *document, hidden string, left *int) *library {
	return &library{doc: doc, hidden: hidden, definitions: map[string]*definition{}, left: left}
}

// defsPrefix begins a reference to a definition.
const defsPrefix = "#/$defs/"

// nameOf is the name of a reference's definition: that of a component, if it is one with a legal name.
func nameOf(ref string) string {
	const components = "#/components/schemas/"
	last := ref[strings.LastIndexByte(ref, '/')+1:]
	base := words(last, isNameRune)
	if base == last && ref == components+last {
		return base
	}
	return base[:min(len(base), maxArgument)] + "_" + hashOf(ref)
}

// target follows a chain of references, and returns the last of it and what it leads to.
func (l *library) target(ref string) (string, any, error) {
	for range maxHops {
		value, err := l.doc.at(ref)
		if err != nil {
			return "", nil, err
		}
		object := members(value)
		next, isRef := object["$ref"].(string)
		if !isRef || !l.doc.old && len(object) > 1 {
			return ref, value, nil
		}
		ref = next
	}
	return "", nil, fmt.Errorf("its reference %s leads back to itself", quote(ref))
}

func (l *library) definition(ref string) *definition {
	if known := l.definitions[ref]; known != nil {
		return known
	}
	made := &definition{}
	l.definitions[ref] = made
	r := reader{library: l}
	_, target, err := l.target(ref)
	if err == nil {
		made.schema, err = r.convert(target, 0)
	}
	made.refs, made.parts, made.bytes, made.err = r.refs, r.parts, size(made.schema), err
	return made
}

// collect returns the definitions that a reader's schemas need, by name; nil if they need none. Together they have at most limit bytes.
func (l *library) collect(r *reader, limit int) (map[string]any, error) {
	needed := map[string]any{}
	bytes, parts := 0, r.parts
	for pending := slices.Clone(r.refs); len(pending) > 0; pending = pending[1:] {
		name := nameOf(pending[0])
		if _, there := needed[name]; there {
			continue
		}
		if *l.left--; *l.left < 0 {
			return nil, errBudget
		}
		d := l.definition(pending[0])
		bytes, parts = bytes+d.bytes, parts+d.parts
		switch {
		case d.err != nil:
			return nil, d.err
		case !l.isFinite(pending[0]):
			return nil, errEndless
		case parts > maxSchemaParts:
			return nil, fmt.Errorf("its schemas have more than %d parts", maxSchemaParts)
		case bytes > limit:
			return nil, fmt.Errorf("its schemas have more than %d bytes", limit)
		}
		needed[name] = d.schema
		pending = append(pending, d.refs...)
	}
	if len(needed) == 0 {
		return nil, nil //nolint:nilnil // no definitions are no error
	}
	return needed, nil
}

// errEndless says that a value would have to be checked against a schema again and again, without ever going into a part of it. A schema
// that refers to itself for a part of a value ends with the value.
var errEndless = errors.New("a schema in it refers to itself for the same value, without end")

// isFinite says that a definition does not lead back to itself for the same value.
func (l *library) isFinite(ref string) bool {
	d := l.definition(ref)
	if d.sought {
		return d.ends // false while it is being asked
	}
	d.sought = true
	byName := map[string]string{}
	for _, next := range d.refs {
		byName[nameOf(next)] = next
	}
	for _, name := range referred(d.schema) {
		if next, ok := byName[name]; ok && !l.isFinite(next) {
			return false
		}
	}
	d.ends = true
	return true
}

// inPlace are the keywords whose schemas are for the value itself.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

// referred are the names of the definitions that a schema refers to for the value itself.
func referred(schema any) []string {
	object := members(schema)
	var names []string
	if ref, ok := object["$ref"].(string); ok {
		names = append(names, strings.TrimPrefix(ref, defsPrefix))
	}
	for _, key := range inPlace {
		var parts []any
		switch value := object[key].(type) {
		case []any:
			parts = value
		case map[string]any:
			parts = []any{value}
			if key == "dependentSchemas" {
				parts = slices.Collect(maps.Values(value))
			}
		}
		for _, part := range parts {
			names = append(names, referred(part)...)
		}
	}
	return names
}

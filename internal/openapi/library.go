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

	definitions map[*target]*definition
}

// target is what a reference leads to in the end.
type target struct {
	ref   string // the last of its chain
	value any
	err   error

	name, pointer string // of its definition, and what refers to that
}

// definition is a schema that others refer to.
type definition struct {
	schema       any
	refs         []*target // what it refers to
	parts, bytes int
	err          error

	sought, ends bool // whether it refers to itself for the same value was asked, and answered
}

func newLibrary(doc *document, hidden string) *library {
	return &library{doc: doc, hidden: hidden, definitions: map[*target]*definition{}}
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

// target follows a chain of references to its end. Each is followed once.
func (d *document) target(ref string) (*target, error) {
	if err := d.budget.spend(len(ref) / bytesPerPart); err != nil {
		return nil, err
	}
	found := d.ends[ref]
	if found == nil {
		found = d.follow(ref)
		d.ends[ref] = found
	}
	return found, found.err
}

func (d *document) follow(first string) *target {
	ref, seen := first, map[string]bool{}
	for range maxHops {
		if seen[ref] {
			return &target{err: fmt.Errorf("its reference %s leads back to itself", quote(first))}
		}
		seen[ref] = true
		value, err := d.at(ref)
		if err != nil {
			return &target{err: err}
		}
		object := members(value)
		next, isRef := object["$ref"].(string)
		if isRef && (d.old || len(object) == 1) {
			ref = next
			continue
		}
		found := d.ends[ref] // all that end here share one
		if found == nil {
			name := nameOf(ref)
			found = &target{ref: ref, value: value, name: name, pointer: defsPrefix + name}
			d.ends[ref] = found
		}
		return found
	}
	return &target{err: fmt.Errorf("its reference %s is %w", quote(first), errChain)}
}

func (l *library) definition(of *target) *definition {
	if known := l.definitions[of]; known != nil {
		return known
	}
	made := &definition{}
	l.definitions[of] = made
	r := reader{library: l}
	var err error
	made.schema, err = r.convert(of.value, 0)
	made.refs, made.parts, made.bytes, made.err = r.refs, r.parts, size(made.schema), err
	return made
}

// collect returns the definitions that a reader's schemas need, by name; nil if they need none. Together they have at most limit bytes.
func (l *library) collect(r *reader, limit int) (map[string]any, error) {
	needed := map[string]any{}
	bytes, parts := 0, r.parts
	for pending := slices.Clone(r.refs); len(pending) > 0; pending = pending[1:] {
		name := pending[0].name
		if _, there := needed[name]; there {
			continue
		}
		if err := l.doc.budget.spend(1 + len(name)/bytesPerPart); err != nil {
			return nil, err
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
func (l *library) isFinite(of *target) bool {
	d := l.definition(of)
	if d.sought {
		return d.ends // false while it is being asked
	}
	d.sought = true
	byName := map[string]*target{}
	for _, next := range d.refs {
		byName[next.name] = next
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

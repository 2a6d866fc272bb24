package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

const (
	// maxSchemaParts bounds the schemas of one tool's input, or output, those under $defs included; maxParts those that are turned for all
	// operations together, where one that is referred to is turned once and counts once more for each use. A list of values counts as one part for
	// each bytesPerPart bytes.
	maxSchemaParts = 4000
	maxParts       = 1_000_000
	bytesPerPart   = 64
	// maxSchemaDepth bounds how deep a schema is nested.
	maxSchemaDepth = 64

	maxTitle       = 256
	maxDescription = 1024 // of a part of a schema
)

// keyword says what the value of a keyword of JSON Schema is.
type keyword int

const (
	plain        keyword = iota // anything
	prose                       // text for people
	schemaOf                    // a schema
	schemaList                  // a list of schemas
	schemaByName                // an object of schemas
)

// keywords are those of JSON Schema 2020-12 that are kept. What is not among them has no meaning for a validator, is told otherwise
// (example, xml, discriminator), or works in whole documents alone ($id, $anchor); $ref is treated apart.
var keywords = map[string]keyword{
	"type": plain, "enum": plain, "const": plain, "format": plain, "default": plain, "deprecated": plain,
	"multipleOf": plain, "maximum": plain, "exclusiveMaximum": plain, "minimum": plain, "exclusiveMinimum": plain,
	"maxLength": plain, "minLength": plain, "pattern": plain, "contentEncoding": plain, "contentMediaType": plain,
	"maxItems": plain, "minItems": plain, "uniqueItems": plain, "maxContains": plain, "minContains": plain,
	"maxProperties": plain, "minProperties": plain, "required": plain, "dependentRequired": plain,
	"title": prose, "description": prose,
	"items": schemaOf, "contains": schemaOf, "additionalProperties": schemaOf, "propertyNames": schemaOf,
	"unevaluatedItems": schemaOf, "unevaluatedProperties": schemaOf, "not": schemaOf, "if": schemaOf, "then": schemaOf, "else": schemaOf,
	"allOf": schemaList, "anyOf": schemaList, "oneOf": schemaList, "prefixItems": schemaList,
	"properties": schemaByName, "patternProperties": schemaByName, "dependentSchemas": schemaByName,
}

// reader turns schemas into JSON Schema 2020-12, and notes what they refer to. What has no parts is put where it is used; all else that is
// referred to comes under $defs.
type reader struct {
	*library

	refs  []*target // in the order of their occurrence
	parts int
}

func (s *reader) spend(parts int) error {
	s.parts += parts
	if err := s.doc.budget.spend(parts); err != nil {
		return err
	}
	if s.parts > maxSchemaParts {
		return fmt.Errorf("its schemas have more than %d parts", maxSchemaParts)
	}
	return nil
}

func (s *reader) convert(value any, depth int) (any, error) {
	if err := s.spend(1); err != nil {
		return nil, err
	}
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("its schemas are nested deeper than %d levels", maxSchemaDepth)
	}
	switch value := value.(type) {
	case bool:
		return value, nil
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok {
			return s.reference(ref, value, depth)
		}
		return s.keep(value, depth)
	}
	return nil, errors.New("a schema in it is neither an object nor a boolean")
}

// annotations are what may stand beside a reference without making it another schema.
var annotations = []string{"title", "description", "default", "deprecated"}

func (s *reader) reference(ref string, beside map[string]any, depth int) (any, error) {
	target, err := s.doc.target(ref)
	if err != nil {
		return nil, err
	}
	if s.doc.old {
		own := map[string]any{}
		for _, key := range annotations {
			if value, given := beside[key]; given {
				own[key] = value
			}
		}
		beside = own
	}
	out, err := s.keep(beside, depth)
	if err != nil {
		return nil, err
	}
	constrains := func(key string) bool { return !slices.Contains(annotations, key) }
	if object, ok := target.value.(map[string]any); ok && isLeaf(object) && !slices.ContainsFunc(slices.Collect(maps.Keys(out)), constrains) {
		leaf, err := s.keep(object, depth)
		if err != nil {
			return nil, err
		}
		maps.Copy(leaf, out)
		return leaf, nil
	}
	s.refs = append(s.refs, target)
	out["$ref"] = target.pointer
	return out, s.spend(len(target.pointer) / bytesPerPart)
}

// isLeaf says whether a schema has no schemas in it.
func isLeaf(object map[string]any) bool {
	for key, kind := range keywords {
		if _, given := object[key]; given && kind >= schemaOf {
			return false
		}
	}
	_, refers := object["$ref"]
	return !refers
}

// keywordsOf are those of a schema that are kept, sorted. An object may have a million members that are none.
func keywordsOf(object map[string]any) []string {
	var found []string
	for key := range keywords {
		if _, given := object[key]; given {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}

// keep returns the keywords of a schema that are kept.
func (s *reader) keep(object map[string]any, depth int) (map[string]any, error) {
	given := keywordsOf(object)
	out := make(map[string]any, len(given))
	for _, key := range given {
		value, err := s.value(key, keywords[key], object[key], depth)
		if err != nil {
			return nil, err
		}
		if value != nil {
			out[key] = value
		}
	}
	s.hide(object, out)
	modernize(object, out)
	if truth(object["nullable"]) {
		return orNull(out), nil
	}
	return out, nil
}

// value turns the value of one keyword; nil leaves it out.
func (s *reader) value(key string, kind keyword, value any, depth int) (any, error) {
	switch kind {
	case plain:
		switch value.(type) {
		case []any, map[string]any:
			return value, s.spend(size(value) / bytesPerPart)
		}
		return value, nil
	case prose:
		limit := map[string]int{"title": maxTitle, "description": maxDescription}[key]
		if shown := paragraphs(text(value), limit); shown != "" {
			return shown, nil
		}
		return nil, nil //nolint:nilnil // nothing is left of it
	case schemaOf:
		return s.convert(value, depth+1)
	case schemaList:
		values, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("%s in a schema of it is not a list", quote(key))
		}
		out := make([]any, len(values))
		for i, value := range values {
			converted, err := s.convert(value, depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = converted
		}
		return out, nil
	case schemaByName:
	}
	values, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s in a schema of it is not an object", quote(key))
	}
	out := make(map[string]any, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		converted, err := s.convert(values[name], depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = converted
	}
	return out, nil
}

// hide drops properties that do not occur here.
func (s *reader) hide(object, out map[string]any) {
	properties := members(out["properties"])
	hidden := map[string]bool{}
	for name, raw := range members(object["properties"]) {
		property := members(raw)
		if ref, ok := property["$ref"].(string); ok && !truth(property[s.hidden]) {
			target, err := s.doc.target(ref)
			s.doc.budget.note(err)
			if err == nil {
				property = members(target.value)
			}
		}
		if truth(property[s.hidden]) {
			delete(properties, name)
			hidden[name] = true
		}
	}
	if required := list(out["required"]); required != nil && len(hidden) > 0 {
		out["required"] = slices.DeleteFunc(slices.Clone(required), func(key any) bool { return hidden[text(key)] })
	}
}

// modernize turns what OpenAPI 3.0 says otherwise. Of 3.1 there is nothing to turn, but documents mix them up.
func modernize(object, out map[string]any) {
	for exclusive, limit := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		flag, isFlag := object[exclusive].(bool)
		if !isFlag {
			continue
		}
		delete(out, exclusive)
		if bound, ok := object[limit]; flag && ok {
			out[exclusive] = bound
			delete(out, limit)
		}
	}
	if required, ok := out["required"].([]any); (ok && len(required) == 0) || !ok {
		delete(out, "required") // 3.0 has a boolean there in old documents
	}
}

// orNull lets null through too.
func orNull(out map[string]any) map[string]any {
	name, hasType := out["type"].(string)
	if !hasType {
		if _, isList := out["type"].([]any); isList || len(out) == 0 {
			return out
		}
		return map[string]any{"anyOf": []any{out, map[string]any{"type": "null"}}}
	}
	out["type"] = []any{name, "null"}
	if enum, ok := out["enum"].([]any); ok && !slices.Contains(enum, nil) {
		out["enum"] = append(slices.Clone(enum), nil)
	}
	return out
}

// typesOf are the types that a schema lets through, as far as it says so itself, by allOf, or by what it refers to; none if it does not.
func (d *document) typesOf(value any) []string {
	left := maxHops
	return d.typesWithin(value, &left)
}

// typesWithin looks at so many schemas at most.
func (d *document) typesWithin(value any, left *int) []string {
	object, err := d.object(value, "a schema")
	d.budget.note(err)
	if *left--; err != nil || *left < 0 || d.budget.clock.check() != nil {
		return nil
	}
	if name := text(object["type"]); name != "" {
		return []string{name}
	}
	var names []string
	for _, name := range list(object["type"]) {
		if name := text(name); name != "null" {
			names = append(names, name)
		}
	}
	if names != nil {
		return names
	}
	if object["properties"] != nil {
		return []string{"object"}
	}
	for _, part := range list(object["allOf"]) {
		if names := d.typesWithin(part, left); names != nil {
			return names
		}
	}
	return nil
}

// isObject says whether a schema is one of objects alone.
func (d *document) isObject(value any) bool {
	return slices.Equal(d.typesOf(value), []string{"object"})
}

// holdsObjects says whether a schema is one of objects, or of lists of objects or of lists.
func (d *document) holdsObjects(value any) bool {
	types := d.typesOf(value)
	if slices.Contains(types, "object") {
		return true
	}
	object, err := d.object(value, "a schema")
	d.budget.note(err)
	if err != nil || !slices.Contains(types, "array") {
		return false
	}
	inner := d.typesOf(object["items"])
	return slices.Contains(inner, "object") || slices.Contains(inner, "array")
}

// size is how many bytes a value has as JSON.
func size(value any) int {
	encoded, err := json.Marshal(value)
	if err != nil {
		return 1 << 30
	}
	return len(encoded)
}

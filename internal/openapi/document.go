package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// maxHops bounds a chain of references.
const maxHops = 16

// document is a decoded OpenAPI document.
type document struct {
	root map[string]any
	// old is OpenAPI 3.0, whose schemas are not JSON Schema, and where nothing beside a $ref counts.
	old bool

	budget *budget
	places map[string]place   // by reference
	ends   map[string]*target // by reference
}

// place is what a reference leads to.
type place struct {
	value any
	err   error
}

// open decodes a document and looks at its version.
func open(ctx context.Context, content []byte) (*document, error) {
	value, err := decode(ctx, content)
	if err != nil {
		return nil, err
	}
	root, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object, so no OpenAPI document")
	}
	version := ""
	switch v := root["openapi"].(type) {
	case string:
		version = v
	case json.Number: // YAML without quotes
		version = v.String()
	}
	doc := &document{root: root, budget: newBudget(ctx), places: map[string]place{}, ends: map[string]*target{}}
	switch {
	case version == "3.0" || strings.HasPrefix(version, "3.0."):
		doc.old = true
		return doc, nil
	case version == "3.1" || strings.HasPrefix(version, "3.1."):
		return doc, nil
	case version != "":
		return nil, fmt.Errorf("it is of OpenAPI %s: 3.0 and 3.1 are read", quote(version))
	case root["swagger"] != nil:
		return nil, errors.New("it is of OpenAPI 2.0 (Swagger): 3.0 and 3.1 are read; convert it")
	}
	return nil, errors.New(`it has no member "openapi", so it is no OpenAPI document`)
}

// at returns the value that a reference within the document leads to. It is sought once.
func (d *document) at(ref string) (any, error) {
	if err := d.budget.spend(len(ref) / bytesPerPart); err != nil {
		return nil, err
	}
	known, ok := d.places[ref]
	if !ok {
		known.value, known.err = d.seek(ref)
		d.places[ref] = known
	}
	return known.value, known.err
}

func (d *document) seek(ref string) (any, error) {
	pointer, inside := strings.CutPrefix(ref, "#")
	if !inside {
		return nil, fmt.Errorf("it refers to another document (%s), which is not fetched: put what it refers to into this one", quote(ref))
	}
	decoded, err := url.PathUnescape(pointer)
	if err != nil || decoded == "" || decoded[0] != '/' {
		return nil, fmt.Errorf("its reference %s does not begin with \"#/\"", quote(ref))
	}
	var value any = d.root
	for token := range strings.SplitSeq(decoded[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		found := false
		switch container := value.(type) {
		case map[string]any:
			value, found = container[token]
		case []any:
			i, err := strconv.Atoi(token)
			if found = err == nil && i >= 0 && i < len(container); found {
				value = container[i]
			}
		}
		if !found {
			return nil, fmt.Errorf("its reference %s leads to nothing", quote(ref))
		}
	}
	return value, nil
}

// object returns a value that must be an object, or a reference to one.
func (d *document) object(value any, what string) (map[string]any, error) {
	seen := map[string]bool{}
	for range maxHops {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", what)
		}
		ref, isRef := object["$ref"].(string)
		if !isRef {
			return object, nil
		}
		if seen[ref] {
			return nil, fmt.Errorf("%s refers to itself", what)
		}
		seen[ref] = true
		next, err := d.at(ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		value = next
	}
	return nil, fmt.Errorf("%s is %w", what, errChain)
}

// errChain says that what is meant is too far away.
var errChain = fmt.Errorf("a reference to a reference, more than %d times over: refer to it directly", maxHops)

// optional is object for a value that may be absent: then it is nil.
func (d *document) optional(value any, what string) (map[string]any, error) {
	if value == nil {
		return nil, nil //nolint:nilnil // absent is no error, and a nil map reads like an empty one
	}
	return d.object(value, what)
}

// elements are those of a list that may be absent.
func elements(value any, what string) ([]any, error) {
	given, isList := value.([]any)
	if !isList && value != nil {
		return nil, fmt.Errorf("%s are not a list", what)
	}
	return given, nil
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func truth(value any) bool {
	b, _ := value.(bool)
	return b
}

func list(value any) []any {
	l, _ := value.([]any)
	return l
}

func members(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

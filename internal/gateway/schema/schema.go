// Package schema checks JSON values against JSON Schemas of draft 2020-12, as tools have them.
//
// Schemas are foreign and so are values, so that a check has a budget: neither a schema that refers to itself nor one whose
// alternatives multiply takes more than that, in time or in stack. Patterns are regular expressions of RE2, which take linear time,
// and nothing is ever fetched.
//
// A schema is enforced as a whole or refused: a keyword that would hold values back and that cannot be checked is an error. Annotations
// are no such keywords, nor is "format", which draft 2020-12 has as one.
package schema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	root *node
}

// node is one schema. What is nil or empty was not given.
type node struct {
	never bool // the schema false

	ref                                          *node
	types                                        []string
	enum                                         []any // with const as its only element
	minimum, maximum, above, below, multipleOf   *float64
	minLength, maxLength                         *int
	pattern                                      *regexp.Regexp
	prefix                                       []*node
	items, contains                              *node
	minItems, maxItems, minContains, maxContains *int
	unique                                       bool
	properties, dependentSchemas                 map[string]*node
	patterns                                     []patternNode
	additional, propertyNames                    *node
	required                                     []string
	dependentRequired                            map[string][]string
	minProperties, maxProperties                 *int
	allOf, anyOf, oneOf                          []*node
	not, condition, then, otherwise              *node
}

type patternNode struct {
	pattern *regexp.Regexp
	node    *node
}

const (
	// maxNodes bounds a schema's parts, maxCompileDepth how deep they are nested.
	maxNodes        = 20_000
	maxCompileDepth = 128
	maxPattern      = 4 << 10
)

// Compile reads a schema. Its error says where what is wrong.
func Compile(raw json.RawMessage) (*Schema, error) {
	c := &compiler{byPointer: map[string]*node{}, left: maxNodes}
	if err := json.Unmarshal(raw, &c.document); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	root, err := c.compile(c.document, "#", 0)
	if err != nil {
		return nil, err
	}
	return &Schema{root: root}, nil
}

// Check says why a schema cannot be used, as Compile does: a keyword that is wrong, one that cannot be checked, a type of no kind, or a
// $ref that leads to nothing.
func Check(raw json.RawMessage) error {
	_, err := Compile(raw)
	return err
}

type compiler struct {
	document  any
	byPointer map[string]*node
	left      int
}

// compile makes the node of the schema at a pointer, once.
func (c *compiler) compile(value any, at string, depth int) (*node, error) {
	if n := c.byPointer[at]; n != nil {
		return n, nil
	}
	if c.left--; c.left < 0 || depth > maxCompileDepth {
		return nil, fmt.Errorf("at %s: it has more than %d parts, or is nested deeper than %d levels", at, maxNodes, maxCompileDepth)
	}
	n := &node{}
	c.byPointer[at] = n
	switch value := value.(type) {
	case bool:
		n.never = !value
		return n, nil
	case map[string]any:
		r := reader{compiler: c, object: value, at: at, depth: depth}
		r.read(n)
		return n, r.err
	}
	return nil, fmt.Errorf("at %s: a schema must be an object or a boolean", at)
}

// resolve finds the schema that a reference within the document leads to.
func (c *compiler) resolve(ref, at string, depth int) (*node, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("at %s: $ref must be \"#\" or begin with \"#/\": other documents and anchors are not looked up", at)
	}
	value := c.document
	if pointer != "" {
		found, err := Lookup(value, unescape(pointer))
		if err != nil {
			return nil, fmt.Errorf("at %s: $ref leads to nothing", at)
		}
		value = found
	}
	return c.compile(value, "#"+unescape(pointer), depth)
}

// unescape undoes the percent-encoding of a pointer in a URI fragment.
func unescape(pointer string) string {
	if !strings.Contains(pointer, "%") {
		return pointer
	}
	var b strings.Builder
	for i := 0; i < len(pointer); i++ {
		var c byte
		if pointer[i] == '%' && i+2 < len(pointer) {
			if _, err := fmt.Sscanf(pointer[i+1:i+3], "%02x", &c); err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(pointer[i])
	}
	return b.String()
}

// Lookup finds the value at a JSON pointer (RFC 6901) in what encoding/json made of a document. The empty pointer is the document.
func Lookup(document any, pointer string) (any, error) {
	value := document
	if pointer == "" {
		return value, nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch container := value.(type) {
		case map[string]any:
			member, ok := container[token]
			if !ok {
				return nil, fmt.Errorf("there is no %q", token)
			}
			value = member
		case []any:
			i := 0
			if _, err := fmt.Sscanf(token, "%d", &i); err != nil || fmt.Sprint(i) != token || i < 0 || i >= len(container) {
				return nil, fmt.Errorf("there is no element %q", token)
			}
			value = container[i]
		default:
			return nil, fmt.Errorf("there is no %q", token)
		}
	}
	return value, nil
}

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
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Schema is a schema that can be used. It is its text alone: what it is compiled to is made when a value is checked, and kept as long as
// there is room (see compiled). It is safe for concurrent use.
type Schema struct {
	raw   json.RawMessage
	sum   [sha256.Size]byte
	bytes int // of what it is compiled to
}

// node is one schema. What is nil or empty was not given.
type node struct {
	never bool // the schema false

	ref                                          *node
	types                                        []string
	enum                                         *choice // with const as its only element
	minimum, maximum, above, below, multipleOf   *float64
	minLength, maxLength                         *int
	pattern                                      *pattern
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
	pattern *pattern
	node    *node
}

// choice is a list of values that are allowed.
type choice struct {
	values  []any
	weights []int // the steps that a comparison takes, by value
	shown   string
}

const (
	// maxText bounds the text of a schema: what a catalog takes for a whole definition.
	maxText = 256 << 10
	// maxNodes bounds a schema's parts, maxCompileDepth how deep they are nested.
	maxNodes        = 16_000
	maxCompileDepth = 128
	maxPattern      = 4 << 10
)

// Compile reads a schema, and says where what is wrong: a keyword that is wrong, one that cannot be checked, a type of no kind, a $ref
// that leads to nothing, or what would be too large. The Schema holds on to the text, and to nothing else.
func Compile(raw json.RawMessage) (*Schema, error) {
	c, _, err := compile(raw, false)
	if err != nil {
		return nil, err
	}
	return &Schema{raw: raw, sum: sha256.Sum256(raw), bytes: c.bytes}, nil
}

// Check says why a schema cannot be used, as Compile does.
func Check(raw json.RawMessage) error {
	_, _, err := compile(raw, false)
	return err
}

// compiling bounds how many schemas are read at a time. While it is, one may need some 30 MiB, since JSON of lists and objects takes
// many times its text once it is decoded.
var compiling = make(chan struct{}, 2)

// compile reads a schema: for use, or else to see what is wrong with it, without compiling its patterns.
func compile(raw json.RawMessage, forUse bool) (*compiler, *node, error) {
	if len(raw) > maxText {
		return nil, nil, fmt.Errorf("it has %d bytes, and the limit is %d", len(raw), maxText)
	}
	compiling <- struct{}{}
	defer func() { <-compiling }()
	c := &compiler{nodes: map[uintptr]*node{}, patterns: map[string]*pattern{}, left: maxNodes, forUse: forUse}
	if err := json.Unmarshal(raw, &c.document); err != nil {
		return nil, nil, fmt.Errorf("it is not JSON: %w", err)
	}
	root, err := c.compile(c.document, nil, 0)
	return c, root, err
}

type compiler struct {
	document any
	nodes    map[uintptr]*node // by the address of the schema's object in document
	patterns map[string]*pattern
	left     int
	bytes    int // taken
	forUse   bool
}

// compile makes the node of a schema, once.
func (c *compiler) compile(value any, at *path, depth int) (*node, error) {
	object, isObject := value.(map[string]any)
	address := uintptr(0)
	if isObject {
		address = reflect.ValueOf(object).Pointer()
		if n := c.nodes[address]; n != nil {
			return n, nil
		}
	}
	if c.left--; c.left < 0 || depth > maxCompileDepth {
		return nil, fmt.Errorf("at %s: it has more than %d parts, or is nested deeper than %d levels", at, maxNodes, maxCompileDepth)
	}
	if c.bytes += nodeBytes; c.bytes > maxBytes {
		return nil, tooLarge(at, c.bytes)
	}
	n := &node{}
	if isObject {
		c.nodes[address] = n
		r := reader{compiler: c, object: object, at: at, depth: depth}
		r.read(n)
		return n, r.err
	}
	allowed, isBool := value.(bool)
	if !isBool {
		return nil, fmt.Errorf("at %s: a schema must be an object or a boolean", at)
	}
	n.never = !allowed
	return n, nil
}

// resolve finds the schema that a reference within the document leads to.
func (c *compiler) resolve(ref string, at *path, depth int) (*node, error) {
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
	return c.compile(value, pathOf(unescape(pointer)), depth)
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
		token = unescapeToken.Replace(token)
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

package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxDocumentBytes is the size of the largest document that is read: 8 MiB.
const MaxDocumentBytes = 8 << 20

const (
	// maxNodes bounds the values of a document, those that an alias repeats counted each time; with maxText it bounds what a few bytes
	// of YAML can become.
	maxNodes = 1_000_000
	// maxText bounds the texts of a document together, those that an alias repeats counted each time.
	maxText = 32 << 20
	// maxNesting bounds how deep a document is nested.
	maxNesting = 256
)

// decode reads JSON or YAML into maps, lists, strings, json.Numbers, booleans and nils.
func decode(ctx context.Context, document []byte) (any, error) {
	if len(document) > MaxDocumentBytes {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d: cut out what is not needed", len(document), MaxDocumentBytes)
	}
	if !utf8.Valid(document) {
		return nil, errors.New("it is not UTF-8 text")
	}
	d := &decoder{nodes: maxNodes, text: maxText, clock: clock{ctx: ctx}}
	if json.Valid(document) {
		tokens := json.NewDecoder(bytes.NewReader(document))
		tokens.UseNumber()
		return d.json(tokens, 0)
	}
	return d.yaml(document)
}

type decoder struct {
	nodes, text int
	clock       clock
}

// spend takes one value off what a document may have.
func (d *decoder) spend(text string, depth int) error {
	d.nodes--
	d.text -= len(text)
	switch {
	case depth > maxNesting:
		return fmt.Errorf("it is nested deeper than %d levels", maxNesting)
	case d.nodes < 0:
		return fmt.Errorf("it has more than %d values, those counted that YAML aliases repeat", maxNodes)
	case d.text < 0:
		return fmt.Errorf("its texts have more than %d bytes, those counted that YAML aliases repeat", maxText)
	}
	return d.clock.check()
}

// json reads the next value of text that is known to be JSON.
func (d *decoder) json(tokens *json.Decoder, depth int) (any, error) {
	token, err := tokens.Token()
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	text, _ := token.(string)
	if err := d.spend(text, depth); err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := map[string]any{}
		for tokens.More() {
			key, err := tokens.Token()
			if err != nil {
				return nil, fmt.Errorf("it is not JSON: %w", err)
			}
			name, _ := key.(string)
			value, err := d.json(tokens, depth+1)
			if err != nil {
				return nil, err
			}
			if err := d.put(object, name, value); err != nil {
				return nil, err
			}
		}
		_, err := tokens.Token() // the '}'
		return object, err
	case json.Delim('['):
		list := []any{}
		for tokens.More() {
			value, err := d.json(tokens, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := tokens.Token() // the ']'
		return list, err
	}
	return token, nil
}

// put adds a member. One that is given twice would mean one thing here and another elsewhere.
func (d *decoder) put(object map[string]any, name string, value any) error {
	if _, twice := object[name]; twice {
		return fmt.Errorf("it has the member %s twice in one object", quote(name))
	}
	d.text -= len(name)
	object[name] = value
	return nil
}

func (d *decoder) yaml(document []byte) (any, error) {
	// The parser makes some 200 bytes of each node, of which there are no more than of these characters.
	if n := countAny(document, "\n,[{:-?"); n > maxNodes {
		return nil, fmt.Errorf("it is YAML of more than %d parts: write it as JSON", maxNodes)
	}
	root, err := parseYAML(document)
	if err != nil {
		return nil, err
	}
	if err := d.clock.now(); err != nil {
		return nil, err
	}
	return d.node(root, 0)
}

func countAny(text []byte, chars string) int {
	n := 0
	for i := range len(chars) {
		n += bytes.Count(text, []byte{chars[i]})
	}
	return n
}

// parseYAML parses one YAML document. What the parser makes of hostile text is an error, whatever it does.
func parseYAML(document []byte) (root *yaml.Node, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			root, err = nil, errors.New("it is neither JSON nor YAML")
		}
	}()
	parser := yaml.NewDecoder(bytes.NewReader(document))
	root = &yaml.Node{}
	if err := parser.Decode(root); errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty")
	} else if err != nil {
		return nil, fmt.Errorf("it is neither JSON nor YAML: %s", line(err.Error(), maxQuote))
	}
	if err := parser.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("it holds more than one YAML document")
	}
	return root, nil
}

// node turns a node into a value. An alias is expanded, and counts as what it stands for.
func (d *decoder) node(n *yaml.Node, depth int) (any, error) {
	if err := d.spend(n.Value, depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return d.node(n.Content[0], depth)
	case yaml.AliasNode:
		return d.node(n.Alias, depth+1)
	case yaml.MappingNode:
		return d.mapping(n, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, element := range n.Content {
			value, err := d.node(element, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yaml.ScalarNode:
		return scalar(n), nil
	}
	return nil, errors.New("it is neither JSON nor YAML")
}

func (d *decoder) mapping(n *yaml.Node, depth int) (any, error) {
	object := map[string]any{}
	var merged []any
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key must be a text", key.Line)
		}
		value, err := d.node(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if err := d.put(object, key.Value, value); err != nil {
			return nil, err
		}
	}
	for _, value := range merged {
		mergeInto(object, value)
	}
	return object, nil
}

// mergeInto adds the members of what a merge key ("<<") names, which do not replace those that are given.
func mergeInto(object map[string]any, merged any) {
	switch merged := merged.(type) {
	case map[string]any:
		for key, value := range merged {
			if _, given := object[key]; !given {
				object[key] = value
			}
		}
	case []any:
		for _, value := range merged {
			if _, nested := value.([]any); !nested {
				mergeInto(object, value)
			}
		}
	}
}

// scalar is a node's value; what JSON has no word for stays text.
func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		return number(n)
	}
	return n.Value
}

// number is a node's value as JSON writes it: not 0x10, 1_000, +7 or .5.
func number(n *yaml.Node) any {
	if json.Valid([]byte(n.Value)) && strings.Trim(n.Value[:1], "-0123456789") == "" {
		return json.Number(n.Value)
	}
	var i int64
	if n.ShortTag() == "!!int" && n.Decode(&i) == nil {
		return json.Number(strconv.FormatInt(i, 10))
	}
	var f float64
	if n.Decode(&f) == nil {
		if text, err := json.Marshal(f); err == nil { // not of what is infinite
			return json.Number(text)
		}
	}
	return n.Value
}

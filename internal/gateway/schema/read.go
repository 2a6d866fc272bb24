package schema

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reader reads the keywords of one schema. Its first error stays.
type reader struct {
	*compiler

	object map[string]any
	at     *path
	depth  int
	err    error
}

func (r *reader) fail(key, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("at %s: it must be %s", r.at.under(key), what)
	}
}

// uncheckable are assertions that this package does not check, with what to do instead.
var uncheckable = map[string]string{
	"$dynamicRef":           "use $ref",
	"$recursiveRef":         "use $ref",
	"dependencies":          "use dependentRequired or dependentSchemas",
	"unevaluatedItems":      "use items",
	"unevaluatedProperties": "use additionalProperties",
}

// readUncheckable refuses what would be silently not enforced. What holds no value back, such as unevaluatedProperties: true, may stay.
func (r *reader) readUncheckable() {
	for _, key := range slices.Sorted(maps.Keys(uncheckable)) {
		switch value := r.object[key].(type) {
		case nil:
			continue
		case bool:
			if value {
				continue
			}
		case map[string]any:
			if len(value) == 0 {
				continue
			}
		}
		if r.err == nil {
			r.err = fmt.Errorf("at %s: this keyword cannot be checked: %s", r.at.under(key), uncheckable[key])
		}
	}
}

// read fills the node in. Keywords that are not known are no constraint.
func (r *reader) read(n *node) {
	if ref, ok := r.object["$ref"].(string); ok {
		target, err := r.resolve(ref, r.at, r.depth+1)
		if err != nil && r.err == nil {
			r.err = err
		}
		n.ref = target
	}
	r.readUncheckable()
	r.readAny(n)
	r.readText(n)
	r.readArray(n)
	r.readObject(n)
	n.allOf, n.anyOf, n.oneOf = r.nodes("allOf"), r.nodes("anyOf"), r.nodes("oneOf")
	n.not, n.condition, n.then, n.otherwise = r.node("not"), r.node("if"), r.node("then"), r.node("else")
}

var types = []string{"null", "boolean", "object", "array", "number", "integer", "string"}

func (r *reader) readAny(n *node) {
	switch t := r.object["type"].(type) {
	case nil:
	case string:
		n.types = []string{t}
	default:
		for _, t := range r.texts("type") { // which may say the same a thousand times
			if !slices.Contains(n.types, t) {
				n.types = append(n.types, t)
			}
			if len(n.types) > len(types) {
				break
			}
		}
	}
	for _, t := range n.types {
		if !slices.Contains(types, t) {
			r.fail("type", "a JSON type or a list of them")
		}
	}
	if enum, ok := r.object["enum"]; ok {
		values, ok := enum.([]any)
		if !ok {
			r.fail("enum", "a list")
		}
		n.enum = r.allow("enum", values)
	}
	if constant, ok := r.object["const"]; ok {
		n.enum = r.allow("const", []any{constant})
	}
	n.minimum, n.maximum = r.number("minimum"), r.number("maximum")
	n.above, n.below = r.number("exclusiveMinimum"), r.number("exclusiveMaximum")
	if n.multipleOf = r.number("multipleOf"); n.multipleOf != nil && *n.multipleOf <= 0 {
		r.fail("multipleOf", "above 0")
	}
}

func (r *reader) readText(n *node) {
	n.minLength, n.maxLength = r.count("minLength"), r.count("maxLength")
	if value, ok := r.object["pattern"]; ok {
		text, ok := value.(string)
		if !ok {
			r.fail("pattern", "a string")
		}
		n.pattern = r.pattern("pattern", text)
	}
}

func (r *reader) readArray(n *node) {
	if _, old := r.object["items"].([]any); old { // before draft 2020-12
		n.prefix, n.items = r.nodes("items"), r.node("additionalItems")
	} else {
		n.prefix, n.items = r.nodes("prefixItems"), r.node("items")
	}
	n.contains, n.minContains, n.maxContains = r.node("contains"), r.count("minContains"), r.count("maxContains")
	n.minItems, n.maxItems = r.count("minItems"), r.count("maxItems")
	if value, ok := r.object["uniqueItems"]; ok {
		if n.unique, ok = value.(bool); !ok {
			r.fail("uniqueItems", "a boolean")
		}
	}
}

func (r *reader) readObject(n *node) {
	n.properties, n.dependentSchemas = r.named("properties"), r.named("dependentSchemas")
	patterns := r.named("patternProperties")
	for _, text := range slices.Sorted(maps.Keys(patterns)) {
		n.patterns = append(n.patterns, patternNode{r.pattern("patternProperties", text), patterns[text]})
	}
	n.additional = r.node("additionalProperties")
	n.propertyNames, n.required = r.node("propertyNames"), r.texts("required")
	n.minProperties, n.maxProperties = r.count("minProperties"), r.count("maxProperties")
	value, ok := r.object["dependentRequired"]
	if !ok {
		return
	}
	dependent, ok := value.(map[string]any)
	if !ok {
		r.fail("dependentRequired", "an object")
	}
	n.dependentRequired = map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(dependent)) {
		r.take(key, entryBytes+len(key))
		below := reader{compiler: r.compiler, object: dependent, at: r.at.under("dependentRequired")}
		n.dependentRequired[key] = below.texts(key)
		if r.err == nil {
			r.err = below.err
		}
	}
}

func (r *reader) number(key string) *float64 {
	value, ok := r.object[key]
	if !ok {
		return nil
	}
	f, ok := value.(float64)
	if !ok {
		r.fail(key, "a number")
	}
	return &f
}

func (r *reader) count(key string) *int {
	f := r.number(key)
	if f == nil {
		return nil
	}
	if *f < 0 || *f != math.Trunc(*f) {
		r.fail(key, "a whole number from 0")
	}
	i := int(min(*f, math.MaxInt32))
	return &i
}

func (r *reader) texts(key string) []string {
	value, ok := r.object[key]
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		r.fail(key, "a list of strings")
	}
	out := make([]string, 0, len(list))
	for _, element := range list {
		text, ok := element.(string)
		if !ok {
			r.fail(key, "a list of strings")
		}
		r.take(key, textBytes+len(text))
		out = append(out, text)
	}
	return out
}

// allow makes the list of what is allowed.
func (r *reader) allow(key string, values []any) *choice {
	made := &choice{values: values, weights: make([]int, len(values)), shown: oneOf(values)}
	for i, value := range values {
		size := sizeOf(value)
		made.weights[i] = max(size/bytesPerStep, 1)
		r.take(key, size)
	}
	return made
}

// take takes what a part needs off what the schema may take.
func (r *reader) take(key string, bytes int) {
	if r.bytes += bytes; r.bytes > maxBytes && r.err == nil {
		r.err = tooLarge(r.at.under(key), r.bytes)
	}
}

// pattern reads a regular expression. What RE2 does not have, such as a look-ahead, could only be accepted and not enforced.
func (r *reader) pattern(key, text string) *pattern {
	if r.err != nil {
		return nil
	}
	known := r.patterns[text]
	if known == nil {
		known = &pattern{}
		if len(text) > maxPattern {
			known.err = fmt.Errorf("it must be at most %d bytes long", maxPattern)
		} else {
			known.read(escapes.ReplaceAllStringFunc(text, translate), r.forUse)
		}
		r.patterns[text] = known
		r.take(key, known.bytes)
	}
	if known.err != nil {
		r.err = fmt.Errorf("at %s: %w", r.at.under(key), known.err)
	}
	return known
}

// escapes are those of ECMA-262, whatever they stand for.
var escapes = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|.)`)

// translate writes a code unit of ECMA-262 as RE2 does. Half of a surrogate pair stays, and so is refused: no text has one.
func translate(escape string) string {
	if len(escape) != len(`\u0000`) || escape[1] != 'u' || strings.ContainsAny(escape[2:3], "dD") && escape[3] >= '8' {
		return escape
	}
	return `\x{` + escape[2:] + `}`
}

func (r *reader) node(key string) *node {
	value, ok := r.object[key]
	if !ok {
		return nil
	}
	n, err := r.compile(value, r.at.under(key), r.depth+1)
	if err != nil && r.err == nil {
		r.err = err
	}
	return n
}

func (r *reader) nodes(key string) []*node {
	value, ok := r.object[key]
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		r.fail(key, "a list of schemas")
	}
	out := make([]*node, 0, len(list))
	for i, element := range list {
		n, err := r.compile(element, r.at.under(key).under(strconv.Itoa(i)), r.depth+1)
		if err != nil && r.err == nil {
			r.err = err
		}
		if r.err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

func (r *reader) named(key string) map[string]*node {
	value, ok := r.object[key]
	if !ok {
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		r.fail(key, "an object of schemas")
	}
	out := make(map[string]*node, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		r.take(key, entryBytes+len(name))
		n, err := r.compile(object[name], r.at.under(key).under(name), r.depth+1)
		if err != nil && r.err == nil {
			r.err = err
		}
		if r.err != nil {
			return nil
		}
		out[name] = n
	}
	return out
}

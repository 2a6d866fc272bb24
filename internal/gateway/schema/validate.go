package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxSteps bounds the work of one check beside that of reading the value: some tens of milliseconds.
	maxSteps = 200_000
	// maxCheckDepth bounds how schemas call each other.
	maxCheckDepth = 300
	// textPerStep is how many bytes of a text are counted in a step.
	textPerStep = 64
	// maxProblems is how many problems an error lists.
	maxProblems = 5
)

// InvalidError says why a value does not fit. It never quotes the value.
type InvalidError struct {
	// Problems are the first five, each as "<where>: <what it must be>", such as "filter.limit: must be at most 100".
	Problems []string
}

// Error lists the problems.
func (e *InvalidError) Error() string { return strings.Join(e.Problems, "; ") }

// errBudget ends a check that takes too long.
var errBudget = errors.New("checking it takes too long: its schema has too many alternatives, refers to itself without end, " +
	"or has patterns that are too large for such a text")

// Validate checks a JSON value, which is called by the name given in problems of it as a whole. The error is an *InvalidError, or
// says that the schema takes too long to check.
func (s *Schema) Validate(value json.RawMessage, name string) error {
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return &InvalidError{Problems: []string{name + ": must be JSON"}}
	}
	root, release, err := compiled.use(s)
	if err != nil {
		return err
	}
	defer release()
	v := &validation{left: maxSteps + len(value)}
	problems := v.check(root, decoded, place{name: name})
	if v.left < 0 {
		return errBudget
	}
	if len(problems) == 0 {
		return nil
	}
	return &InvalidError{Problems: problems[:min(len(problems), maxProblems)]}
}

// place is where a value is.
type place struct{ name, path string }

func (p place) String() string {
	if p.path == "" {
		return p.name
	}
	return p.path
}

func (p place) member(key string) place {
	if p.path != "" {
		key = p.path + "." + key
	}
	return place{p.name, clip(key)}
}

func (p place) element(i int) place {
	return place{p.name, clip(fmt.Sprintf("%s[%d]", p.path, i))}
}

// clip keeps keys that a value brought short and printable.
func clip(path string) string {
	const limit = 200
	path = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, path)
	if len(path) > limit {
		path = strings.ToValidUTF8(path[:limit], "") + "…"
	}
	return path
}

type validation struct {
	left  int // steps; below 0 the check has failed
	depth int

	work    int           // instructions of patterns, at most
	matched time.Duration // how long it took when that was much
}

// spend takes steps off the budget.
func (v *validation) spend(steps int) bool {
	v.left -= steps
	return v.left >= 0
}

// exhaust ends the check.
func (v *validation) exhaust() { v.left = -1 }

// check returns what is wrong with a value: more than maxProblems only by what is found at once.
func (v *validation) check(n *node, value any, at place) []string {
	if n == nil || !v.spend(1) {
		return nil
	}
	if v.depth++; v.depth > maxCheckDepth {
		v.exhaust()
		return nil
	}
	defer func() { v.depth-- }()
	if n.never {
		return []string{at.String() + ": is not allowed"}
	}
	problems := v.check(n.ref, value, at)
	if len(n.types) > 0 && !slices.ContainsFunc(n.types, func(t string) bool { return hasType(value, t) }) {
		return append(problems, at.String()+": must be "+strings.Join(n.types, " or "))
	}
	if n.enum != nil && !v.among(value, n.enum) {
		problems = append(problems, at.String()+": must be "+n.enum.shown)
	}
	switch value := value.(type) {
	case float64:
		problems = append(problems, n.checkNumber(value, at)...)
	case string:
		problems = append(problems, v.checkText(n, value, at)...)
	case []any:
		problems = append(problems, v.checkArray(n, value, at)...)
	case map[string]any:
		problems = append(problems, v.checkObject(n, value, at)...)
	}
	return append(problems, v.checkCombined(n, value, at)...)
}

func hasType(value any, name string) bool {
	switch value := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && value == math.Trunc(value)
	case []any:
		return name == "array"
	}
	return name == "object"
}

func (v *validation) among(value any, enum *choice) bool {
	for i, allowed := range enum.values {
		if !v.spend(enum.weights[i]) {
			return false
		}
		if reflect.DeepEqual(allowed, value) {
			return true
		}
	}
	return false
}

// oneOf lists what is allowed, as far as it is short.
func oneOf(enum []any) string {
	const limit = 300
	raw, err := json.Marshal(enum)
	if err != nil || len(raw) > limit {
		return fmt.Sprintf("one of the %d values its schema lists", len(enum))
	}
	list := string(raw[1 : len(raw)-1])
	if len(enum) == 1 {
		return list
	}
	return "one of " + strings.ReplaceAll(list, ",", ", ")
}

func (n *node) checkNumber(f float64, at place) (problems []string) {
	bounds := []struct {
		bound *float64
		ok    func(bound float64) bool
		what  string
	}{
		{n.minimum, func(b float64) bool { return f >= b }, "at least"},
		{n.maximum, func(b float64) bool { return f <= b }, "at most"},
		{n.above, func(b float64) bool { return f > b }, "above"},
		{n.below, func(b float64) bool { return f < b }, "below"},
		{n.multipleOf, func(b float64) bool { return isMultiple(f, b) }, "a multiple of"},
	}
	for _, b := range bounds {
		if b.bound != nil && !b.ok(*b.bound) {
			problems = append(problems, fmt.Sprintf("%s: must be %s %v", at, b.what, *b.bound))
		}
	}
	return problems
}

// isMultiple allows for decimal fractions, which float64 does not hold exactly.
func isMultiple(f, of float64) bool {
	quotient := f / of
	return math.Abs(quotient-math.Round(quotient)) <= 1e-9*max(1, math.Abs(quotient))
}

func (v *validation) checkText(n *node, text string, at place) (problems []string) {
	if (n.minLength != nil || n.maxLength != nil) && v.spend(len(text)/textPerStep) {
		problems = n.size(utf8.RuneCountInString(text), n.minLength, n.maxLength, "characters", at)
	}
	if n.pattern != nil && !v.match(n.pattern, text) {
		problems = append(problems, fmt.Sprintf("%s: must match the pattern %s", at, n.pattern.shown))
	}
	return problems
}

func (*node) size(got int, least, most *int, of string, at place) (problems []string) {
	if least != nil && got < *least {
		problems = append(problems, fmt.Sprintf("%s: must have at least %d %s", at, *least, of))
	}
	if most != nil && got > *most {
		problems = append(problems, fmt.Sprintf("%s: must have at most %d %s", at, *most, of))
	}
	return problems
}

func (v *validation) checkArray(n *node, list []any, at place) []string {
	problems := n.size(len(list), n.minItems, n.maxItems, "elements", at)
	for i, element := range list {
		if i < len(n.prefix) {
			problems = append(problems, v.check(n.prefix[i], element, at.element(i))...)
		} else if n.items != nil {
			problems = append(problems, v.check(n.items, element, at.element(i))...)
		}
		if len(problems) > maxProblems || v.left < 0 {
			return problems
		}
	}
	if n.contains != nil {
		found, least := 0, 1
		for i, element := range list {
			if len(v.check(n.contains, element, at.element(i))) == 0 {
				found++
			}
		}
		if n.minContains != nil {
			least = *n.minContains
		}
		problems = append(problems, n.size(found, &least, n.maxContains, "elements of the kind its schema says", at)...)
	}
	if n.unique && v.repeats(list) {
		problems = append(problems, at.String()+": must not have the same element twice")
	}
	return problems
}

func (v *validation) repeats(list []any) bool {
	seen := make(map[string]bool, len(list))
	for _, element := range list {
		raw, err := json.Marshal(element) // its keys are sorted
		if err != nil || !v.spend(len(raw)/8+1) {
			return false
		}
		if seen[string(raw)] {
			return true
		}
		seen[string(raw)] = true
	}
	return false
}

func (v *validation) checkObject(n *node, object map[string]any, at place) []string {
	problems := n.size(len(object), n.minProperties, n.maxProperties, "members", at)
	for _, name := range n.required {
		if len(problems) > maxProblems || !v.spend(1) {
			return problems
		}
		if _, ok := object[name]; !ok {
			problems = append(problems, at.member(name).String()+": must be given")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if len(problems) > maxProblems || !v.spend(1) {
			return problems
		}
		problems = append(problems, v.checkMember(n, object, key, at)...)
	}
	return problems
}

func (v *validation) checkMember(n *node, object map[string]any, key string, at place) (problems []string) {
	value, below, known := object[key], at.member(key), false
	if property := n.properties[key]; property != nil {
		known = true
		problems = v.check(property, value, below)
	}
	for _, p := range n.patterns {
		if v.match(p.pattern, key) {
			known = true
			problems = append(problems, v.check(p.node, value, below)...)
		}
	}
	if !known && n.additional != nil {
		if n.additional.never {
			return append(problems, below.String()+": is not known"+n.offer())
		}
		problems = append(problems, v.check(n.additional, value, below)...)
	}
	if n.propertyNames != nil && len(v.check(n.propertyNames, key, below)) > 0 {
		problems = append(problems, below.String()+": must have another name")
	}
	for _, name := range n.dependentRequired[key] {
		if len(problems) > maxProblems || !v.spend(1) {
			return problems
		}
		if _, ok := object[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s: must be given with %s", at.member(name), clip(key)))
		}
	}
	return append(problems, v.check(n.dependentSchemas[key], object, at)...)
}

// offer names the members there are.
func (n *node) offer() string {
	const most = 20
	if len(n.properties) == 0 || len(n.properties) > most {
		return ""
	}
	return "; known are " + clip(strings.Join(slices.Sorted(maps.Keys(n.properties)), ", "))
}

func (v *validation) checkCombined(n *node, value any, at place) (problems []string) {
	for _, part := range n.allOf {
		if problems = append(problems, v.check(part, value, at)...); len(problems) > maxProblems {
			return problems
		}
	}
	if len(n.anyOf) > 0 {
		if matched, nearest := v.matches(n.anyOf, value, at); matched == 0 {
			problems = append(problems, nearest...)
		}
	}
	if len(n.oneOf) > 0 {
		switch matched, nearest := v.matches(n.oneOf, value, at); {
		case matched == 0:
			problems = append(problems, nearest...)
		case matched > 1:
			problems = append(problems, at.String()+": must fit only one of the alternatives of its schema")
		}
	}
	if n.not != nil && len(v.check(n.not, value, at)) == 0 {
		problems = append(problems, at.String()+": must not be what its schema excludes")
	}
	if n.condition != nil {
		if len(v.check(n.condition, value, at)) == 0 {
			return append(problems, v.check(n.then, value, at)...)
		}
		return append(problems, v.check(n.otherwise, value, at)...)
	}
	return problems
}

// matches counts the alternatives that a value fits, and returns the problems of the one it misses by least.
func (v *validation) matches(alternatives []*node, value any, at place) (matched int, nearest []string) {
	for _, alternative := range alternatives {
		problems := v.check(alternative, value, at)
		if len(problems) == 0 {
			matched++
		}
		if nearest == nil || len(problems) < len(nearest) {
			nearest = problems
		}
	}
	return matched, nearest
}

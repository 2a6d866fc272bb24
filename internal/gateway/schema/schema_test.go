package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValuesAreHeldToTheirSchemas(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		schema      string
		good        []string
		bad         string // one value
		badProblems []string
	}{
		"true":       {`true`, []string{`1`, `null`}, "", nil},
		"false":      {`false`, nil, `1`, []string{"v: is not allowed"}},
		"a type":     {`{"type":"integer"}`, []string{`1`, `1.0`, `-1e3`}, `1.5`, []string{"v: must be integer"}},
		"types":      {`{"type":["string","null"]}`, []string{`"a"`, `null`}, `{}`, []string{"v: must be string or null"}},
		"a boolean":  {`{"type":"boolean"}`, []string{`true`}, `0`, []string{"v: must be boolean"}},
		"an enum":    {`{"enum":["a",1,{"b":[2]}]}`, []string{`"a"`, `1.0`, `{"b":[2]}`}, `"b"`, []string{`v: must be one of "a", 1, {"b":[2]}`}},
		"a constant": {`{"const":"x"}`, []string{`"x"`}, `1`, []string{`v: must be "x"`}},
		"bounds": {
			`{"minimum":1,"maximum":9,"exclusiveMaximum":9}`, []string{`1`, `8.9`, `"x"`}, `9`, []string{"v: must be below 9"},
		},
		"more bounds": {`{"exclusiveMinimum":0,"multipleOf":0.01}`, []string{`0.07`, `19.99`, `4.35`}, `0.001`, []string{"v: must be a multiple of 0.01"}},
		"a length":    {`{"minLength":2,"maxLength":3}`, []string{`"üü"`, `"😀😀😀"`}, `"a"`, []string{"v: must have at least 2 characters"}},
		"a pattern":   {`{"pattern":"^a\\d+$"}`, []string{`"a1"`}, `"b1"`, []string{`v: must match the pattern ^a\d+$`}},
		"a pattern with code units": {
			`{"pattern":"^[\\u00e0-\\u00FF]\\\\u0041$"}`, []string{`"é\\u0041"`}, `"éA"`, []string{`v: must match the pattern ^[\x{00e0}-\x{00FF}]\\u0041$`},
		},
		"elements": {
			`{"items":{"type":"string"},"minItems":1,"maxItems":2,"uniqueItems":true}`,
			[]string{`["a"]`, `["a","b"]`},
			`["a","a",1]`,
			[]string{"v: must have at most 2 elements", "[2]: must be string", "v: must not have the same element twice"},
		},
		"a tuple": {`{"prefixItems":[{"type":"string"}],"items":false}`, []string{`["a"]`, `[]`}, `["a",1]`, []string{"[1]: is not allowed"}},
		"an older tuple": {
			`{"items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`,
			[]string{`["a",1]`},
			`["a","b"]`,
			[]string{"[1]: must be integer"},
		},
		"a certain kind": {
			`{"contains":{"const":1},"maxContains":1}`,
			[]string{`[0,1]`},
			`[0]`,
			[]string{"v: must have at least 1 elements of the kind its schema says"},
		},
		"equal objects": {
			`{"uniqueItems":true}`,
			[]string{`[{"a":1},{"a":2}]`},
			`[{"a":1,"b":2},{"b":2.0,"a":1}]`,
			[]string{"v: must not have the same element twice"},
		},
		"members": {
			`{"properties":{"a":{"type":"integer"},"b":{"properties":{"c":{"type":"string"}}}},"required":["a"],"additionalProperties":false}`,
			[]string{`{"a":1}`, `{"a":1,"b":{"c":"x","d":1}}`},
			`{"b":{"c":1},"x":2}`,
			[]string{"a: must be given", "b.c: must be string", "x: is not known; known are a, b"},
		},
		"members by pattern": {
			`{"patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":{"type":"string"},"propertyNames":{"maxLength":3}}`,
			[]string{`{"x-a":1,"b":"c"}`},
			`{"x-a":"1","b":1,"long":"x"}`,
			[]string{"b: must be string", "long: must have another name", "x-a: must be integer"},
		},
		"numbers of members": {`{"minProperties":1,"maxProperties":2}`, []string{`{"a":1}`}, `{}`, []string{"v: must have at least 1 members"}},
		"dependents": {
			`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`,
			[]string{`{"b":1}`, `{"a":1,"b":1}`},
			`{"a":1,"c":1}`,
			[]string{"b: must be given with a", "d: must be given"},
		},
		"all of":  {`{"allOf":[{"minimum":1},{"maximum":2}]}`, []string{`1`}, `3`, []string{"v: must be at most 2"}},
		"any of":  {`{"anyOf":[{"type":"string"},{"type":"integer","minimum":5}]}`, []string{`"a"`, `5`}, `4`, []string{"v: must be string"}},
		"one of":  {`{"oneOf":[{"minimum":1},{"minimum":2}]}`, []string{`1`}, `2`, []string{"v: must fit only one of the alternatives of its schema"}},
		"none of": {`{"not":{"type":"string"}}`, []string{`1`}, `"a"`, []string{"v: must not be what its schema excludes"}},
		"if": {
			`{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":1}}`,
			[]string{`"ab"`, `1`},
			`"a"`,
			[]string{"v: must have at least 2 characters"},
		},
		"else": {`{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":1}}`, nil, `0`, []string{"v: must be at least 1"}},
		"references": {
			`{"$ref":"#/$defs/list","$defs":{"list":{"properties":{"next":{"$ref":"#/$defs/list"},"v/~ x":{"type":"integer"}}},
				"u":{"$ref":"#/$defs/list/properties/v~1~0%20x"}}}`,
			[]string{`{"next":{"next":{"v/~ x":1}}}`},
			`{"next":{"next":{"v/~ x":"a"}}}`,
			[]string{"next.next.v/~ x: must be integer"},
		},
		"not all problems": {`{"items":{"type":"string"}}`, nil, `[1,2,3,4,5,6,7]`, []string{
			"[0]: must be string", "[1]: must be string", "[2]: must be string", "[3]: must be string", "[4]: must be string",
		}},
		"what is not asserted": {`{"format":"email","unknown":1,"title":2}`, []string{`"no address"`}, "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile(json.RawMessage(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			for _, good := range tc.good {
				if err := s.Validate(json.RawMessage(good), "v"); err != nil {
					t.Errorf("%s: %v", good, err)
				}
			}
			if tc.bad == "" {
				return
			}
			invalid, ok := errors.AsType[*InvalidError](s.Validate(json.RawMessage(tc.bad), "v"))
			if !ok {
				t.Fatalf("%s fits", tc.bad)
			}
			if diff := cmp.Diff(tc.badProblems, invalid.Problems); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.bad, diff)
			}
		})
	}
}

func TestSchemasThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{`:                            "it is not JSON: unexpected end of JSON input",
		`[]`:                           "at #: a schema must be an object or a boolean",
		`{"properties":{"a":1}}`:       "at #/properties/a: a schema must be an object or a boolean",
		`{"type":"text"}`:              "at #/type: it must be a JSON type or a list of them",
		`{"type":1}`:                   "at #/type: it must be a list of strings",
		`{"minimum":"1"}`:              "at #/minimum: it must be a number",
		`{"exclusiveMinimum":true}`:    "at #/exclusiveMinimum: it must be a number",
		`{"minLength":-1}`:             "at #/minLength: it must be a whole number from 0",
		`{"multipleOf":0}`:             "at #/multipleOf: it must be above 0",
		`{"enum":1}`:                   "at #/enum: it must be a list",
		`{"required":[1]}`:             "at #/required: it must be a list of strings",
		`{"pattern":1}`:                "at #/pattern: it must be a string",
		`{"uniqueItems":1}`:            "at #/uniqueItems: it must be a boolean",
		`{"properties":[]}`:            "at #/properties: it must be an object of schemas",
		`{"anyOf":{}}`:                 "at #/anyOf: it must be a list of schemas",
		`{"dependentRequired":1}`:      "at #/dependentRequired: it must be an object",
		`{"$ref":"https://x.example"}`: `at #: $ref must be "#" or begin with "#/": other documents and anchors are not looked up`,
		`{"$ref":"#/nothing"}`:         "at #: $ref leads to nothing",
		strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200): fmt.Sprintf(
			"at #%s: it has more than %d parts, or is nested deeper than %d levels", strings.Repeat("/not", maxCompileDepth+1), maxNodes, maxCompileDepth),
	} {
		if _, err := Compile(json.RawMessage(schema)); err == nil || err.Error() != want {
			t.Errorf("%.60s: %v, want %s", schema, err, want)
		}
	}
}

// What a library without a budget dies of.
func TestAHostileSchemaCostsNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	var doubling strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&doubling, `"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"60":false}}`)
	deep := strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60)
	cases := map[string]struct{ schema, value string }{
		"itself":                   {`{"$ref":"#"}`, `1`},
		"itself, by way of others": {`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#"}}}}`, `1`},
		"alternatives that double": {doubling.String(), `1`},
		"alternatives that double by depth": {
			`{"type":["object","string"],"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, deep,
		},
		"an enum for each element": {`{"items":{"enum":[` + strings.Repeat(`"x",`, 999) + `"y"]}}`, `[` + strings.Repeat(`"y",`, 9999) + `"y"]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile(json.RawMessage(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(json.RawMessage(tc.value), "v"); !errors.Is(err, errBudget) {
				t.Errorf("got %.200v", err)
			}
		})
	}
}

func TestWhatCannotBeCheckedIsRefused(t *testing.T) {
	t.Parallel()
	const pattern = ": it must be a regular expression of RE2, else it cannot be checked: no look-around, no back-references, no repetition above 1000"
	for schema, want := range map[string]string{
		`{"properties":{"a":{"pattern":"^(?!evil)"}}}`:       "at #/properties/a/pattern" + pattern,
		`{"items":{"pattern":"("}}`:                          "at #/items/pattern" + pattern,
		`{"pattern":"\\ud83d"}`:                              "at #/pattern" + pattern,
		`{"pattern":"^a{1,2000}$"}`:                          "at #/pattern" + pattern,
		`{"$ref":"#/$defs/a","$defs":{"a":{"pattern":"("}}}`: "at #/$defs/a/pattern" + pattern,
		`{"patternProperties":{"(?=y)":{}}}`:                 "at #/patternProperties" + pattern,
		`{"pattern":"` + strings.Repeat("a", 5000) + `"}`:    "at #/pattern: it must be at most 4096 bytes long",
		`{"unevaluatedProperties":false}`:                    "at #/unevaluatedProperties: this keyword cannot be checked: use additionalProperties",
		`{"unevaluatedItems":{"type":"string"}}`:             "at #/unevaluatedItems: this keyword cannot be checked: use items",
		`{"allOf":[{"$dynamicRef":"#x"}]}`:                   "at #/allOf/0/$dynamicRef: this keyword cannot be checked: use $ref",
		`{"$recursiveRef":"#"}`:                              "at #/$recursiveRef: this keyword cannot be checked: use $ref",
		`{"dependencies":{"a":["b"]}}`:                       "at #/dependencies: this keyword cannot be checked: use dependentRequired or dependentSchemas",
	} {
		if err := Check(json.RawMessage(schema)); err == nil || err.Error() != want {
			t.Errorf("%.60s: %v, want %s", schema, err, want)
		}
	}
}

func TestWhatHoldsNothingBackIsTaken(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"format":"email","title":"t","description":"d","examples":[1],"default":1,"x-own":{"pattern":"("}}`,
		`{"unevaluatedProperties":true,"unevaluatedItems":{}}`,
		`{"properties":{"dependencies":{"type":"string"},"pattern":{"const":"("}}}`,
		`{"$defs":{"unused":{"pattern":"("}}}`,
	} {
		if err := Check(json.RawMessage(schema)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

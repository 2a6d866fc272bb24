package wire

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParamHeadersAreFoundAlongProperties(t *testing.T) {
	t.Parallel()
	got, err := ParamHeaders(json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"deep":{"type":"object","properties":{"a":{"type":"object","properties":{"n":{"x-mcp-header":"N!","type":"integer"}}},
			"b":{"type":"boolean","x\u002dmcp-header":"B"}}},
		"x-mcp-header":{"type":"number"},
		"plain":{"type":"string","default":{"x-mcp-header":1},"enum":["x-mcp-header"],"examples":[{"x-mcp-header":"a"}],"const":{"x-mcp-header":""}},
		"$defs":{"type":"array","items":{"type":"string"}}
	},"required":["x-mcp-header"],"$defs":{"x-mcp-header":{"type":"string"}}}`))
	want := []ParamHeader{
		{"Mcp-Param-Region", []string{"region"}}, {"Mcp-Param-N!", []string{"deep", "a", "n"}}, {"Mcp-Param-B", []string{"deep", "b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, fields (-want +got):\n%s", err, diff)
	}
}

// TestAToolThatAsksForAHeaderWronglyIsToBeHidden is attack C4.
func TestAToolThatAsksForAHeaderWronglyIsToBeHidden(t *testing.T) {
	t.Parallel()
	property := func(schema string) string { return `{"type":"object","properties":{"a":` + schema + `}}` }
	lowerCase := property(`{"type":"string","x-mcp-header":"a"}`)
	for name, schema := range map[string]string{
		"line feed":                    property(`{"type":"string","x-mcp-header":"A\r\nX-Evil: 1"}`),
		"space":                        property(`{"type":"string","x-mcp-header":"A B"}`),
		"colon":                        property(`{"type":"string","x-mcp-header":"A:"}`),
		"not ASCII":                    property(`{"type":"string","x-mcp-header":"Größe"}`),
		"NUL":                          property(`{"type":"string","x-mcp-header":"A\u0000"}`),
		"empty":                        property(`{"type":"string","x-mcp-header":""}`),
		"no string":                    property(`{"type":"string","x-mcp-header":1}`),
		"null":                         property(`{"type":"string","x-mcp-header":null}`),
		"number":                       property(`{"type":"number","x-mcp-header":"A"}`),
		"object":                       property(`{"type":"object","x-mcp-header":"A"}`),
		"no type":                      property(`{"x-mcp-header":"A"}`),
		"several types":                property(`{"type":["string","null"],"x-mcp-header":"A"}`),
		"twice":                        `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"A"}}}`,
		"twice, in other case":         `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":` + lowerCase + `}}`,
		"at the top":                   `{"type":"string","x-mcp-header":"A"}`,
		"below items":                  property(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`),
		"below properties of items":    property(`{"items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}`),
		"below oneOf":                  property(`{"oneOf":[{"type":"string","x-mcp-header":"A"}]}`),
		"below anyOf of the top":       `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`,
		"below not":                    property(`{"not":{"type":"string","x-mcp-header":"A"}}`),
		"below additionalProperties":   `{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`,
		"below patternProperties":      `{"patternProperties":{".":{"type":"string","x-mcp-header":"A"}}}`,
		"below $defs":                  `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		"below an unknown keyword":     property(`{"x":[[{"type":"string","x-mcp-header":"A"}]]}`),
		"in a schema without a bottom": strings.Repeat(`{"properties":{"a":`, 100) + "{}" + strings.Repeat("}}", 100),
	} {
		if got, err := ParamHeaders(json.RawMessage(schema)); err == nil {
			t.Errorf("%s: accepted: %v", name, got)
		} else if strings.Contains(err.Error(), "Evil") {
			t.Errorf("%s: the error repeats the schema: %v", name, err)
		}
	}
	for _, schema := range []string{``, `{}`, `true`, `{"type":"object"}`, `{"properties":[]}`, `{"properties":{"a":true}}`} {
		if got, err := ParamHeaders(json.RawMessage(schema)); err != nil || len(got) > 0 {
			t.Errorf("%s: %v, %v", schema, got, err)
		}
	}
}

var argumentHeaders = []ParamHeader{{"Mcp-Param-A", []string{"a"}}, {"Mcp-Param-DeepB", []string{"deep", "b"}}}

// TestArgumentsAreRepeatedAsOneSafeValue is attack C5.
func TestArgumentsAreRepeatedAsOneSafeValue(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]map[string]string{
		`{"a":"x y","deep":{"b":true}}`:               {"Mcp-Param-A": "x y", "Mcp-Param-DeepB": "true"},
		`{"a":"x\r\nX-Evil: 1","deep":{"b":"Größe"}}`: {"Mcp-Param-A": "=?base64?eA0KWC1FdmlsOiAx?=", "Mcp-Param-DeepB": "=?base64?R3LDtsOfZQ==?="},
		`{"a":9007199254740991,"deep":{"b":-1.50e1}}`: {"Mcp-Param-A": "9007199254740991", "Mcp-Param-DeepB": "-15"},
		`{"a":9007199254740992,"deep":{"b":1.5}}`:     nil,
		`{"a":null,"deep":null}`:                      nil,
		`{"a":{"b":1},"deep":{"b":[1]}}`:              nil,
		`{"a":"","deep.b":"x","b":1}`:                 {"Mcp-Param-A": "=?base64??="},
		`{"a":"\ud800","deep":[{"b":1}]}`:             nil,
		`null`:                                        nil,
		``:                                            nil,
	} {
		got := ParamHeaderValues(argumentHeaders, json.RawMessage(arguments))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arguments, diff)
		}
	}
}

func TestHeadersOfArgumentsMustSayWhatTheArgumentsSay(t *testing.T) {
	t.Parallel()
	const field = "Mcp-Param-A"
	cases := map[string]struct {
		arguments string
		values    []string
		want      bool
	}{
		"right":                {`{"a":"x"}`, []string{"x"}, true},
		"encoded without need": {`{"a":"x"}`, []string{"=?base64?eA==?="}, true},
		"a number":             {`{"a":5}`, []string{"5"}, true},
		"a boolean":            {`{"a":false}`, []string{"false"}, true},
		"absent in both":       {`{}`, nil, true},
		"null and absent":      {`{"a":null}`, nil, true},
		"empty in both":        {`{"a":""}`, []string{""}, true},
		"other":                {`{"a":"x"}`, []string{"y"}, false},
		"missing":              {`{"a":"x"}`, nil, false},
		"missing, empty":       {`{"a":""}`, nil, false},
		"empty":                {`{"a":"x"}`, []string{""}, false},
		"twice":                {`{"a":"x"}`, []string{"x", "x"}, false},
		"for nothing":          {`{}`, []string{"x"}, false},
		"for null":             {`{"a":null}`, []string{""}, false},
		"bad base64":           {`{"a":"x"}`, []string{"=?base64?eA?="}, false},
		"an object":            {`{"a":{}}`, []string{"{}"}, false},
	}
	for name, tc := range cases {
		h := http.Header{}
		if tc.values != nil {
			h[field] = tc.values
		}
		err := CheckParamHeaders(h, argumentHeaders[:1], json.RawMessage(tc.arguments))
		if e := (*HeaderError)(nil); (err == nil) != tc.want || err != nil && !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

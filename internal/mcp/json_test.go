package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStrictJSON(t *testing.T) {
	t.Parallel()
	limits := Limits{Depth: 3, Members: 3}
	cases := map[string]struct {
		text string
		want error
	}{
		"nested to the limit":   {`[[[1]],{"a":{"b":[]}}]`, errTooDeep},
		"just within the limit": {`[[[1]],{"a":{"b":2}}]`, nil},
		"members at the limit":  {`{"a":1,"b":2,"c":3}`, nil},
		"members over it":       {`{"a":1,"b":2,"c":3,"d":4}`, errManyMembers},
		"long array":            {`[1,2,3,4,5,6,7]`, nil},
		"white space":           {" \t\r\n{ } \n", nil},
		"form feed":             {"\f{}", errNotJSON},
		"byte order mark":       {"\ufeff{}", errNotJSON},
		"nothing":               {"", errNotJSON},
		"two values":            {"{}{}", errNotJSON},
		"trailing comma":        {"[1,]", errNotJSON},
		"missing comma":         {"[1 2]", errNotJSON},
		"missing colon":         {`{"a" 1}`, errNotJSON},
		"bare key":              {`{a:1}`, errNotJSON},
		"unclosed":              {`{"a":[1`, errNotJSON},
		"unclosed text":         {`"abc`, errNotJSON},
		"NUL":                   {"\"a\x00b\"", errNotJSON},
		"line feed in text":     {"\"a\nb\"", errNotJSON},
		"NUL after the end":     {"{}\x00", errNotJSON},
		"bad escape":            {`"\x41"`, errNotJSON},
		"short escape":          {`"\u12"`, errNotJSON},
		"lone backslash":        {`"\`, errNotJSON},
		"bad UTF-8":             {"\"\xc3\x28\"", errNotJSON},
		"surrogates as UTF-8":   {"\"\xed\xa0\x80\"", errNotJSON},
		"leading zero":          {"01", errNotJSON},
		"plus":                  {"+1", errNotJSON},
		"no fraction":           {"1.", errNotJSON},
		"no exponent":           {"1e", errNotJSON},
		"hexadecimal":           {"0x10", errNotJSON},
		"NaN":                   {"NaN", errNotJSON},
		"too big":               {"1e400", errNotJSON},
		"tiny":                  {"1e-400", nil},
		"many digits":           {strings.Repeat("9", 300), nil},
		"too many digits":       {strings.Repeat("9", 400), errNotJSON},
		"far too many digits":   {"0." + strings.Repeat("0", 5000), errNotJSON},
		"wrong word":            {"trie", errNotJSON},
		"words":                 {"[true,false,null]", nil},
	}
	for name, tc := range cases {
		_, err := parseJSON([]byte(tc.text), limits)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

func mustParse(tb testing.TB, text string) jsonValue {
	tb.Helper()
	v, err := parseJSON([]byte(text), DefaultLimits())
	if err != nil {
		tb.Fatalf("%.100s: %v", text, err)
	}
	return v
}

func TestValuesAreReadInPlace(t *testing.T) {
	t.Parallel()
	v := mustParse(t, ` { "a" : [ 1 , "x]" , {"b":{}} ] ,"\u0061b":"t\u00e4\ud83d\ude00\ud800" , "e":{} } `)
	var members, elements []string
	for key, value := range v.members() {
		members = append(members, string(key)+string(value))
	}
	want := []string{`"a"[ 1 , "x]" , {"b":{}} ]`, `"\u0061b""t\u00e4\ud83d\ude00\ud800"`, `"e"{}`}
	if diff := cmp.Diff(want, members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	for element := range v.member("a").elements() {
		elements = append(elements, string(element))
	}
	if diff := cmp.Diff([]string{"1", `"x]"`, `{"b":{}}`}, elements); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
	if got, want := v.member("ab").text(100), "tä😀\ufffd"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got, want := v.member("ab").text(4), "tä"; got != want {
		t.Errorf("cut text %q, want %q", got, want)
	}
	for range v.member("none").members() {
		t.Error("a member of nothing")
	}
	if _, err := mustParse(t, `{"a":1,"\u0061":2}`).pick("a"); !errors.Is(err, errDuplicateKey) {
		t.Errorf("a key twice: %v", err)
	}
}

func canonical(v jsonValue) (string, error) {
	var out bytes.Buffer
	w := canonicalWriter{sink: &out, budget: math.MaxInt64}
	err := w.value(v)
	w.flush()
	return out.String(), err
}

func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	cases := map[string]struct{ text, want string }{
		"keys are sorted by what they stand for": {
			`{ "b":1, "\u0061":[ ] , "B":{}, "":null, "ä":2, "\u00e4a":3, "a\tb":4 }`,
			`{"":null,"B":{},"a":[],"a\tb":4,"b":1,"ä":2,"äa":3}`,
		},
		"by UTF-8, not UTF-16": {`{"\ud83d\ude00":1,"\uffee":2}`, `{"￮":2,"😀":1}`},
		"fewest escapes":       {`"\/\u0041\b\f\n\r\t\u000b\"\\\u2028\u007f"`, "\"/A\\b\\f\\n\\r\\t\\u000b\\\"\\\\\u2028\x7f\""},
		"numbers as written":   {`[1, 1.0,1E2, -0 ]`, `[1,1.0,1E2,-0]`},
		"nested":               {`{"z":{"b":[{"d":1,"c":2}],"a":true}}`, `{"z":{"a":true,"b":[{"c":2,"d":1}]}}`},
		"long texts":           {`["` + long + `","\u0061` + long + `"]`, `["` + long + `","a` + long + `"]`},
	}
	for name, tc := range cases {
		got, err := canonical(mustParse(t, tc.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := canonical(mustParse(t, `[{"a":{"x":1,"y":2,"\u0078":3}}]`)); !errors.Is(err, errDuplicateKey) {
		t.Errorf("a key twice: %v", err)
	}
}

func TestADigestCostsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("0,", 500) + "0"
	for name, text := range map[string]string{
		"arrays":  strings.Repeat("[", 20) + payload + strings.Repeat("]", 20),
		"objects": strings.Repeat(`{"a":`, 20) + "[" + payload + "]" + strings.Repeat("}", 20),
	} {
		tool := mustParse(t, `{"name":"a","inputSchema":`+text+`}`)
		if _, err := newDigester(10_000).tool(tool); !errors.Is(err, errBudget) {
			t.Errorf("%s over the budget: %v", name, err)
		}
		if _, err := newDigester(40_000).tool(tool); err != nil {
			t.Errorf("%s within it: %v", name, err)
		}
	}
}

func TestADigestCoversTheDefinitionAlone(t *testing.T) {
	t.Parallel()
	digest := func(text string) [32]byte {
		t.Helper()
		sum, err := newDigester(1 << 20).tool(mustParse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	base := digest(`{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":true}}`)
	same := digest(`{"annotations":{ "readOnlyHint" : true },"outputSchema":{},"_meta":{"v":2},"icons":[],` +
		`"name":"\u0061","title":"A","inputSchema":{"x":1,"type":"object"},"description":"d"}`)
	if base != same {
		t.Error("order, white space or members that define nothing change the digest")
	}
	for _, text := range []string{
		`{"name":"b","title":"A","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"B","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"A","description":"e","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","x":2},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{},"annotations":{"readOnlyHint":false}}`,
	} {
		if digest(text) == base {
			t.Errorf("the same digest for %s", text)
		}
	}
}

func FuzzStrictJSON(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}`, `[1,-0.5e+3,"\ud83d\ude00",null,true]`,
		`{"a":{"b":{}},"\u0061":[]}`, "\"\xff\"", `{"a":1,}`, `"\u00`, "1e999", "", "[[[[", `{"Method":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{Depth: 1000, Members: math.MaxInt}
	f.Fuzz(func(t *testing.T, data []byte) {
		// Neither may panic, whatever the text.
		_, _ = parseMessage(data, limits)
		v, err := parseJSON(data, limits)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted what is not JSON: %q", data)
		}
		text, err := canonical(v)
		if err != nil {
			return
		}
		again, err := canonical(mustParse(t, text))
		if err != nil || again != text {
			t.Fatalf("canonical form of the canonical form %q is %q (%v)", text, again, err)
		}
		var a, b any
		if json.Unmarshal(v, &a) != nil || json.Unmarshal([]byte(text), &b) != nil {
			t.Fatalf("canonical form %q cannot be read", text)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("canonical form means something else (-text +canonical):\n%s", diff)
		}
	})
}

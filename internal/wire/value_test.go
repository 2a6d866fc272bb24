package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustCheck(tb testing.TB, text string) json.RawMessage {
	tb.Helper()
	v, err := Check([]byte(text), DefaultLimits)
	if err != nil {
		tb.Fatalf("%.100s: %v", text, err)
	}
	return v
}

func TestValuesAreReadInPlace(t *testing.T) {
	t.Parallel()
	v := mustCheck(t, ` { "a" : [ 1 , "x]" , {"b":{}} , "\\" ] ,"\u0061b":"t\u00e4\ud83d\ude00" , "e":{} , "n":-1.5e3} `)
	type field struct{ Key, Value string }
	var fields []field
	for key, value := range Fields(v) {
		fields = append(fields, field{key, string(value)})
	}
	want := []field{{"a", `[ 1 , "x]" , {"b":{}} , "\\" ]`}, {"ab", `"t\u00e4\ud83d\ude00"`}, {"e", `{}`}, {"n", "-1.5e3"}}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	var elements []string
	for element := range Elements(Field(v, "a")) {
		elements = append(elements, string(element))
	}
	if diff := cmp.Diff([]string{"1", `"x]"`, `{"b":{}}`, `"\\"`}, elements); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
	for range Fields(Field(v, "none")) {
		t.Error("a member of nothing")
	}
	for range Elements(v) {
		t.Error("an element of an object")
	}
	for range Fields(v) {
		break // must not panic
	}
	if start, end := FieldAt(v, "ab"); string(v[start:end]) != `"t\u00e4\ud83d\ude00"` {
		t.Errorf("the member is said to be at %d to %d", start, end)
	}
	if start, end := FieldAt(v, "b"); start != 0 || end != 0 {
		t.Errorf("a member of a member is said to be at %d to %d", start, end)
	}
	if got := Field(v, "b"); got != nil {
		t.Errorf("a member of a member is found: %s", got)
	}
	if got := append(Field(v, "e"), '!'); string(got) != "{}!" || string(Field(v, "n")) != "-1.5e3" {
		t.Error("a value can grow into what follows it")
	}
}

func TestWhatAStringStandsFor(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		raw, want string
		ok        bool
	}{
		"plain":                {`"a b"`, "a b", true},
		"empty":                {`""`, "", true},
		"escapes":              {`"\"\\\/\b\f\n\r\t\u0041\u00e4"`, "\"\\/\b\f\n\r\tAä", true},
		"a pair":               {`"\ud83d\ude00x"`, "😀x", true},
		"half a pair":          {`"\ud83d"`, "\ufffd", false},
		"the wrong half first": {`"\ude00\ud83d"`, "\ufffd\ufffd", false},
		"U+FFFD itself":        {`"\ufffd\uFFFD"`, "\ufffd\ufffd", true},
		"NUL":                  {`"\u0000"`, "\x00", true},
		"a number":             {`1`, "", false},
		"an object":            {`{"a":"b"}`, "", false},
		"absent":               {``, "", false},
	}
	for name, tc := range cases {
		raw := json.RawMessage(tc.raw)
		if got, ok := String(raw); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %q, %v, want %q, %v", name, got, ok, tc.want, tc.ok)
		}
		if got := Text(raw, 100); got != tc.want {
			t.Errorf("%s: text %q, want %q", name, got, tc.want)
		}
		if IsText(raw) && !TextIs(raw, tc.want) || TextIs(raw, tc.want+"x") {
			t.Errorf("%s: TextIs disagrees", name)
		}
	}
	if got := Text(json.RawMessage(`"t\u00e4\ud83d\ude00"`), 4); got != "tä" {
		t.Errorf("cut in the middle of a character: %q", got)
	}
}

func TestAPickedKeyMayNotComeTwice(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{"a":1,"b":2,"\u0063":3,"a":4}`)
	got, err := Pick(object, "c", "x", "b")
	if diff := cmp.Diff([]json.RawMessage{json.RawMessage("3"), nil, json.RawMessage("2")}, got); diff != "" || err != nil {
		t.Errorf("error %v, picked (-want +got):\n%s", err, diff)
	}
	if _, err := Pick(object, "a"); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("a key twice: %v", err)
	}
}

func TestOtherCasesOfAName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"result":1}`:             false,
		`{"resulty":1,"resul":1}`:  false,
		`{"":1,"r":1}`:             false,
		`{"Result":1}`:             true,
		`{"re\u017fult":1}`:        true, // long s
		`{"reſult":1}`:             true,
		`{"ta\u212a":1}`:           false,
		`{"tas\u212A":1}`:          true, // Kelvin sign
		`{"\u0052esult":1}`:        true,
		`{"result\u0000":1}`:       false,
		`{"x":{"Result":1}}`:       false,
		`{"résult":1,"RESULT ":1}`: false,
	} {
		if got := Misspelt(json.RawMessage(text), "result", "task"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestAMessageBecomesOneLine(t *testing.T) {
	t.Parallel()
	in := []byte("{\r\n\t\"a\":\n\n1\r}")
	if got := string(SingleLine(in)); got != "{  \t\"a\":  1 }" {
		t.Errorf("%q", got)
	}
	if !strings.Contains(string(in), "\n") {
		t.Error("the message itself is changed")
	}
	if same := []byte(`{"a":"\n"}`); &SingleLine(same)[0] != &same[0] {
		t.Error("what is one line is copied")
	}
}

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func canonical(v json.RawMessage) (string, error) {
	var out bytes.Buffer
	err := NewCanonical(&out, math.MaxInt64).Value(v)
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
		got, err := canonical(mustCheck(t, tc.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := canonical(json.RawMessage(`[{"a":{"x":1,"y":2,"\u0078":3}}]`)); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("a key twice: %v", err)
	}
}

func TestACanonicalObjectOfGivenMembers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := NewCanonical(&out, 1000)
	if err := c.Object([]string{"a", "b\"", "c"}, []json.RawMessage{nil, json.RawMessage("[ 1 ]"), json.RawMessage("{ }")}); err != nil {
		t.Error(err)
	}
	if err := c.Object([]string{"a"}, []json.RawMessage{nil}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(`{"b\"":[1],"c":{}}{}`, out.String()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestACanonicalFormCostsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("0,", 500) + "0"
	for name, text := range map[string]string{
		"arrays":  strings.Repeat("[", 20) + payload + strings.Repeat("]", 20),
		"objects": strings.Repeat(`{"a":`, 20) + "[" + payload + "]" + strings.Repeat("}", 20),
	} {
		c := NewCanonical(io.Discard, 40_000)
		if err := c.Value(json.RawMessage(text)); err != nil {
			t.Errorf("%s within the budget: %v", name, err)
		}
		if err := c.Value(json.RawMessage(text)); !errors.Is(err, ErrBudget) {
			t.Errorf("%s over what is left of it: %v", name, err)
		}
	}
}

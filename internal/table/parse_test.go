package table

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is the shortest table there is.
const small = `{"version":1,"endpoint":{},"auth":{"type":"None"},"backends":[]}`

func problemsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("error is %T, want *InvalidError", err)
	}
	return invalid.Problems
}

func TestEveryFieldSurvivesARoundTrip(t *testing.T) {
	golden, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	table, err := Parse(golden)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(golden)), string(again)); diff != "" {
		t.Errorf("the table written again differs (-read +written):\n%s", diff)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	table, err := Parse([]byte(`{"version":1,"endpoint":{},"auth":{"type":"None"},"backends":[{"name":"a","url":"http://a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Table{
		Version: 1, Endpoint: Endpoint{Path: "/mcp"}, Auth: Auth{Type: AuthNone},
		Backends: []Backend{{Name: "a", Transport: TransportHTTP, URL: "http://a"}},
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEmptyAllowListIsNotNoList(t *testing.T) {
	const frame = `{"version":1,"endpoint":{},"auth":{"type":"None"},"backends":[{"name":"a","url":"http://a"TOOLS}]}`
	for tools, want := range map[string]bool{
		``:                        true,
		`,"tools":{}`:             true,
		`,"tools":{"allow":null}`: true,
		`,"tools":{"allow":[]}`:   false,
	} {
		table, err := Parse([]byte(strings.Replace(frame, "TOOLS", tools, 1)))
		if err != nil {
			t.Fatalf("%s: %v", tools, err)
		}
		if got, _ := table.Backends[0].Tools.Match("x"); got != want {
			t.Errorf("%s: a tool is let through: %v, want %v", tools, got, want)
		}
	}
}

func TestParseRefusesWhatItDoesNotUnderstandExactly(t *testing.T) {
	backend := func(fields string) string {
		return strings.Replace(small, "[]", "["+fields+"]", 1)
	}
	for name, tc := range map[string]struct {
		data string
		want []string
	}{
		"nothing":            {``, []string{"table: is not JSON: at byte 0: unexpected end of JSON input"}},
		"no object":          {`[]`, []string{"table: must be a JSON object"}},
		"no version":         {`{}`, []string{"version: must be given; this build reads version 1"}},
		"null":               {`null`, []string{"version: must be given; this build reads version 1"}},
		"a later version":    {`{"version":2,"shields":"up"}`, []string{`version: "2" is not known; this build reads version 1`}},
		"a version in words": {`{"version":"1"}`, []string{`version: "\"1\"" is not known; this build reads version 1`}},
		"a comma too many": {
			`{"version":1,}`,
			[]string{"table: is not JSON: at byte 14: invalid character '}' looking for beginning of object key string"},
		},
		"data after the table": {small + `{}`, []string{"table: is not JSON: at byte 65: invalid character '{' after top-level value"}},
		"bad UTF-8":            {`{"version":1,"revision":"` + "\xff" + `"}`, []string{"table: is not valid UTF-8"}},
		"more than 1 MiB":      {small + strings.Repeat(" ", MaxBytes), []string{"table: is 1048640 bytes long, the limit is 1048576"}},
		"an unknown field": {
			strings.Replace(small, `"type"`, `"denyAll":true,"type"`, 1),
			[]string{"auth.denyAll: is not a field of table version 1"},
		},
		"an unknown field deep inside, and one with a strange name": {
			backend(`{"name":"a","url":"http://a","tools":{"denny":["x"],"a b":{}}}`),
			[]string{"backends[0].tools.denny: is not a field of table version 1", `backends[0].tools["a b"]: is not a field of table version 1`},
		},
		"a key in other letter case": {
			strings.Replace(small, `"type"`, `"Type"`, 1),
			[]string{"auth.Type: is not a field of table version 1"},
		},
		"a duplicate key": {
			strings.Replace(small, `"type":"None"`, `"type":"Tokens","type":"None"`, 1),
			[]string{"auth.type: occurs twice"},
		},
		"a duplicate key written with an escape": {
			strings.Replace(small, `"type":"None"`, `"type":"Tokens","t\u0079pe":"None"`, 1),
			[]string{"auth.type: occurs twice"},
		},
		"a duplicate key in what is kept raw": {
			strings.Replace(small, `"type":"None"`, `"type":"Tokens","serviceAccounts":{"keys":{"keys":[{"kty":"EC","kty":"oct"}]}}`, 1),
			[]string{"auth.serviceAccounts.keys.keys[0].kty: occurs twice"},
		},
		"duplicate names in a map": {
			backend(`{"name":"a","url":"http://a","tools":{"rename":{"x":"y","x":"z"}}}`),
			[]string{"backends[0].tools.rename.x: occurs twice"},
		},
		"null for an object": {
			strings.Replace(small, `{"type":"None"}`, `null`, 1),
			[]string{"auth: must be an object"},
		},
		"null for keys": {
			strings.Replace(small, `"None"`, `"Tokens","serviceAccounts":{"keys":null}`, 1),
			[]string{"auth.serviceAccounts.keys: must not be null"},
		},
		"wrong types": {
			backend(`{"name":1,"trusted":"yes","timeoutSeconds":1.5,"command":{},"tools":[],"url":null},7`),
			[]string{
				"backends[0].name: must be a string", "backends[0].trusted: must be true or false",
				"backends[0].timeoutSeconds: must be a whole number below 2^31", "backends[0].command: must be a list",
				"backends[0].tools: must be an object", "backends[0].url: must be a string", "backends[1]: must be an object",
			},
		},
		"deep nesting": {
			strings.Replace(small, `"type"`, `"x":`+strings.Repeat("[", maxDepth+2)+strings.Repeat("]", maxDepth+2)+`,"type"`, 1),
			[]string{
				"auth.x: is not a field of table version 1",
				"table: cannot be read: auth.x" + strings.Repeat("[0]", 64) + " is nested deeper than 64 levels",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := Parse([]byte(tc.data))
			if table != nil {
				t.Error("a table came back")
			}
			if diff := cmp.Diff(tc.want, problemsOf(t, err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAtMostTwentyProblemsAreListed(t *testing.T) {
	table := Table{Version: 1, Auth: Auth{Type: AuthNone}, Backends: make([]Backend, 30)}
	var invalid *InvalidError
	if !errors.As(table.Validate(), &invalid) {
		t.Fatal("no *InvalidError")
	}
	// Each lacks a name and a URL, and all but the first have the name of another.
	if len(invalid.Problems) != 20 || invalid.More != 30+30+29-20 {
		t.Errorf("%d problems and %d more", len(invalid.Problems), invalid.More)
	}
	if !strings.HasSuffix(invalid.Error(), "; and 69 more") {
		t.Errorf("the text hides it: %s", invalid)
	}
}

func FuzzParse(f *testing.F) {
	golden, err := os.ReadFile("testdata/full.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte(small))
	f.Add([]byte(`{"version":1,"endpoint":{"instructions":"<\u2028>"},"auth":{"type":"None"},"backends":null}`))
	f.Add([]byte(`{"version":1,"Version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Parse(data)
		if err != nil {
			problemsOf(t, err)
			return
		}
		written, err := json.Marshal(table)
		if err != nil {
			t.Fatalf("an accepted table cannot be written: %v", err)
		}
		again, err := Parse(written)
		if err != nil {
			t.Fatalf("an accepted table is refused once written: %v\n%s", err, written)
		}
		rewritten, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(written), string(rewritten)); diff != "" {
			t.Errorf("written twice (-first +second):\n%s", diff)
		}
	})
}

package catalog

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestALoneBackendsListPassesUntouchedWithoutPolicy(t *testing.T) {
	t.Parallel()
	for _, result := range []string{
		`{ "vendor":1, "tools": [ ` + tool("a", `, "x":1.0`) + ` ], "nextCursor":"theirs", "ttlMs":5 }`,
		`{"tools":[]}`, `[]`, `{}`,
	} {
		got, _, err := FilterTools(json.RawMessage(result), table.Backend{Name: "b"}, nil)
		if err != nil || string(got) != result {
			t.Errorf("%s became %s, %v", result, got, err)
		}
	}
}

func TestALoneBackendsListIsFilteredAndRenamed(t *testing.T) {
	t.Parallel()
	result := json.RawMessage(`{"vendor":1,"tools":[` + tool("a", `,"x":1.0`) + `,` + tool("secret", "") + `,{"name":"bad"},` + tool("c", "") +
		`],"nextCursor":"theirs"}`)
	b := table.Backend{Name: "b", Prefix: "p_", Tools: table.ToolPolicy{Deny: []string{"sec*"}, Rename: map[string]string{"c": "see"}}}
	got, statuses, err := FilterTools(result, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"vendor":1,"tools":[` + tool("p_a", `,"x":1.0`) + `,` + tool("see", "") + `],"nextCursor":"theirs"}`
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	wantVerdicts := []string{
		"p_a<a: Served", `p_secret<secret: Denied (deny "sec*")`, "see<c: Served",
		`p_bad<bad: Invalid (inputSchema is not an object with "type": "object")`,
	}
	if diff := cmp.Diff(wantVerdicts, verdicts(statuses)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if statuses[0].Digest == "" {
		t.Error("a tool has no digest")
	}
}

func TestAPrefixAloneChangesAList(t *testing.T) {
	t.Parallel()
	got, _, err := FilterTools(json.RawMessage(toolList("a")), table.Backend{Name: "b", Prefix: "p_"}, nil)
	if want := toolList("p_a"); err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestALoneBackendsPromptsAreRenamed(t *testing.T) {
	t.Parallel()
	got, err := FilterPrompts(json.RawMessage(`{"prompts":[{"name":"a","arguments":[]},{"name":"\u200b"}]}`), table.Backend{Prefix: "p_"})
	if want := `{"prompts":[{"name":"p_a","arguments":[]}]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestAListThatReadersUnderstandDifferentlyIsRefused(t *testing.T) {
	t.Parallel()
	denied := table.Backend{Name: "b", Tools: table.ToolPolicy{Deny: []string{"delete*"}}}
	good, bad := tool("ok", ""), tool("delete_all", "")
	for name, result := range map[string]string{
		"the list twice":              `{"tools":[` + good + `],"tools":[` + good + `,` + bad + `]}`,
		"the second time escaped":     `{"tools":[` + good + `],"\u0074ools":[` + bad + `]}`,
		"another case of it":          `{"tools":[` + good + `],"Tools":[` + bad + `]}`,
		"another case, outside ASCII": `{"toolſ":[` + bad + `]}`,
		"no list first":               `{"tools":7,"tools":[` + bad + `]}`,
		"no list":                     `{"tools":{"0":` + bad + `}}`,
	} {
		if got, _, err := FilterTools(json.RawMessage(result), denied, nil); !errors.Is(err, ErrAmbiguous) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, entry := range map[string]string{
		"the name twice":     `{"name":"ok","name":"delete_all","inputSchema":{"type":"object"}}`,
		"another case of it": `{"name":"ok","Name":"delete_all","inputSchema":{"type":"object"}}`,
	} {
		got, _, err := FilterTools(json.RawMessage(`{"tools":[`+entry+`]}`), denied, nil)
		if err != nil || string(got) != `{"tools":[]}` {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestNamesOfALoneBackendLeadBack holds the way back against the way there.
func TestNamesOfALoneBackendLeadBack(t *testing.T) {
	t.Parallel()
	originals := []string{"a", "b", "c", "p_a", "see", "secret", "b2"}
	for name, b := range map[string]table.Backend{
		"plain":   {},
		"prefix":  {Prefix: "p_"},
		"renamed": {Tools: table.ToolPolicy{Rename: map[string]string{"a": "see2", "b": "a", "c": "c"}}},
		"both":    {Prefix: "p_", Tools: table.ToolPolicy{Rename: map[string]string{"a": "b", "b": "p_b2", "b2": "x"}}},
		"policy":  {Tools: table.ToolPolicy{Allow: []string{"*e*", "a"}, Deny: []string{"sec*"}}},
	} {
		b.Name = "x"
		v := Compile([]Source{toolSource(t, b, originals...)}, 0)
		for _, asked := range append(originals, "see2", "p_b", "p_c", "p_b2", "p_p_a", "x", "p_", "") {
			route, listed := v.Tool(asked)
			got, ok := OriginalTool(&b, asked)
			if ok && listed && got != route.Original || listed && !ok {
				t.Errorf("%s: %q is %q, %v, and by the view %q, %v", name, asked, got, ok, route.Original, listed)
			}
			if ok && clientName(Tools, &b, got) != asked {
				t.Errorf("%s: %q is %q, which is called %q", name, asked, got, clientName(Tools, &b, got))
			}
		}
	}
	for _, policy := range []table.ToolPolicy{{ReadOnly: true}, {DenyDestructive: true}} {
		if _, ok := OriginalTool(&table.Backend{Name: "x", Tools: policy, Trusted: true}, "a"); ok {
			t.Errorf("%+v: a tool is let through whose annotations nobody knows", policy)
		}
	}
}

package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestTheRuleForNamesIsOneForWhatClientsSee(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", toolNameLength)
	for name, tc := range map[string]struct {
		original string
		rename   map[string]string
		// listed is the one name that is, if any, and verdict what becomes of the tool.
		listed, verdict string
	}{
		"a valid name": {"read", nil, "web_read", "web_read<read: Served"},
		"a name that is not": {
			"repo/list", nil, "", "web_repo/list<repo/list: Invalid (the name with its prefix is not 1 to 128 of A-Z a-z 0-9 . _ -)",
		},
		"it is renamed":               {"repo/list", map[string]string{"repo/list": "list"}, "list", "list<repo/list: Served"},
		"as long as a rename may say": {long, map[string]string{long: "e"}, "e", "e<" + long + ": Served"},
		"longer than that":            {long + "é", map[string]string{long + "é": "e"}, "", "web_" + long + "<" + long + ": Invalid (" + errName.Error() + ")"},
		"with something to hide": {
			"a\u200bb", map[string]string{"a\u200bb": "ab"}, "", "web_a\ufffdb<a\ufffdb: Invalid (" + errName.Error() + ")",
		},
	} {
		b := table.Backend{Name: "b", Prefix: "web_", Tools: table.ToolPolicy{Rename: tc.rename}}
		quoted, err := json.Marshal(tc.original)
		if err != nil {
			t.Fatal(err)
		}
		list := `{"tools":[{"name":` + string(quoted) + `,"inputSchema":{"type":"object"}}]}`
		v := Compile([]Source{source(t, b, map[string]string{"tools/list": list})}, 0)
		if route, _ := v.Tool(tc.listed); tc.listed != "" && route.Original != tc.original {
			t.Errorf("%s: a call goes to %+v", name, route)
		}
		if got := strings.Join(listed(t, v, Tools), " "); got != tc.listed {
			t.Errorf("%s: listed are %q", name, got)
		}
		if diff := cmp.Diff(tc.verdict, verdicts(v.Backends()[0].Tools)[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		result, _, err := FilterTools(json.RawMessage(list), b, nil)
		if isListed := strings.Contains(string(result), `"name":`); err != nil || isListed != (tc.listed != "") {
			t.Errorf("%s: a lone backend's list is %s, %v", name, result, err)
		}
	}
}

func TestANameThatLooksLikeAnotherIsNotServed(t *testing.T) {
	t.Parallel()
	list := `{"tools":[{"name":"se\u0430rch","inputSchema":{"type":"object"}},` + tool("search", "") + `]}`
	v := Compile([]Source{source(t, table.Backend{Name: "b"}, map[string]string{"tools/list": list})}, 0)
	wantTools(t, "the one", v, "search")
	want := []string{"se\u0430rch<se\u0430rch: Invalid (" + errName.Error() + ")", "search<search: Served"}
	if diff := cmp.Diff(want, verdicts(v.Backends()[0].Tools)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// resources is the answer to resources/list.
func resources(t *testing.T, uris ...string) map[string]string {
	t.Helper()
	list := []map[string]string{}
	for _, uri := range uris {
		list = append(list, map[string]string{"uri": uri, "name": "r"})
	}
	raw, err := json.Marshal(map[string]any{"resources": list})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"tools/list": `{"tools":[]}`, "resources/list": string(raw)}
}

func TestANameThatSeveralBackendsOfferIsToldOfEachOfThem(t *testing.T) {
	t.Parallel()
	offers := map[string]string{
		"tools/list":               `{"tools":[` + tool("same", "") + `]}`,
		"prompts/list":             `{"prompts":[{"name":"ask"}]}`,
		"resources/list":           `{"resources":[{"uri":"both:z"},{"uri":"both:a"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"twin:{x}"}]}`,
	}
	v := Compile([]Source{
		source(t, table.Backend{Name: "a"}, offers),
		source(t, table.Backend{Name: "b"}, offers),
		source(t, table.Backend{Name: "c", Prefix: "c_"}, resources(t, "both:z", "c:own")),
	}, 0)
	two, three := []string{"a", "b"}, []string{"a", "b", "c"}
	want := []table.NameConflict{
		{Kind: "prompt", Name: "ask", Backends: two},
		{Kind: "resource", Name: "both:a", Backends: two},
		{Kind: "resource", Name: "both:z", Backends: three},
		{Kind: "resourceTemplate", Name: "twin:{x}", Backends: two},
	}
	for i, want := range [][]table.NameConflict{want, want, {want[2]}} {
		s := v.Backends()[i]
		if diff := cmp.Diff(want, s.Conflicts); diff != "" || s.ConflictCount != len(want) {
			t.Errorf("%s counts %d (-want +got):\n%s", s.Name, s.ConflictCount, diff)
		}
	}
}

func TestConflictsThatAreToldAreBoundedAndTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	var uris []string
	for i := range 2 * table.MaxConflicts {
		uris = append(uris, fmt.Sprintf("r:%03d", i))
	}
	long := "a:" + strings.Repeat("\u00e9", table.MaxConflictName)
	uris = append(uris, long)
	told := func(uris []string) table.BackendStatus {
		var sources []Source
		for i := range 2 * table.MaxConflictBackends {
			sources = append(sources, source(t, table.Backend{Name: fmt.Sprintf("b%02d", i)}, resources(t, uris...)))
		}
		return Compile(sources, 0).Backends()[0]
	}
	s := told(uris)
	if len(s.Conflicts) != table.MaxConflicts || s.ConflictCount != len(uris) {
		t.Fatalf("%d are told, and %d counted, of %d", len(s.Conflicts), s.ConflictCount, len(uris))
	}
	first := s.Conflicts[0]
	if n := len(first.Name); n > table.MaxConflictName || n < table.MaxConflictName-4 || len(first.Backends) != table.MaxConflictBackends {
		t.Errorf("%d bytes of a name, and %d backends: %s", n, len(first.Backends), first.Name)
	}
	slices.Reverse(uris)
	if diff := cmp.Diff(s.Conflicts, told(uris).Conflicts); diff != "" {
		t.Errorf("in another order (-before +after):\n%s", diff)
	}
}

func TestAListLeavesOutWhatIsHiddenAndNothingElse(t *testing.T) {
	t.Parallel()
	v := Compile([]Source{
		toolSource(t, table.Backend{Name: "a", Prefix: "a_"}, "one", "two"), toolSource(t, table.Backend{Name: "b", Prefix: "b_"}, "one"),
		toolSource(t, table.Backend{Name: "c", Prefix: "c_"}, "one", "two"),
	}, 0)
	for hidden, want := range map[string][]string{
		"a": {"b_one", "c_one", "c_two"}, "b": {"a_one", "a_two", "c_one", "c_two"}, "c": {"a_one", "a_two", "b_one"},
		"none": {"a_one", "a_two", "b_one", "c_one", "c_two"},
	} {
		raw, err := v.List(nil, Tools, "", 0, func(name string) bool { return name == hidden })
		if err != nil {
			t.Fatal(err)
		}
		var result struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		}
		if err := json.Unmarshal(raw, &result); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		var got []string
		for _, tool := range result.Tools {
			got = append(got, tool.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("without %s (-want +got):\n%s", hidden, diff)
		}
	}
}

package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("t%d", i)
	}
	return out
}

// next returns the cursor that follows a page of tools.
func next(tb testing.TB, v *View, from string) string {
	tb.Helper()
	result, err := v.List(nil, Tools, from, backend.Legacy, nil)
	if err != nil {
		tb.Fatal(err)
	}
	cursor, _ := wire.String(wire.Field(result, "nextCursor"))
	return cursor
}

func TestPagesHoldEveryEntryOnceInOrder(t *testing.T) {
	t.Parallel()
	s := []Source{toolSource(t, table.Backend{Name: "a"}, numbered(10)...), toolSource(t, table.Backend{Name: "b", Prefix: "b_"}, numbered(3)...)}
	want := append(numbered(10), "b_t0", "b_t1", "b_t2")
	for _, size := range []int{0, 1, 2, 5, 12, 13, 14, 1000} {
		if diff := cmp.Diff(want, listed(t, Compile(s, size), Tools)); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", size, diff)
		}
	}
}

func TestAPageIsBoundedInBytesToo(t *testing.T) {
	t.Parallel()
	var tools []string
	for _, name := range numbered(50) {
		tools = append(tools, tool(name, `,"x":"`+strings.Repeat("x", 100<<10)+`"`))
	}
	s := source(t, table.Backend{Name: "a"}, map[string]string{"tools/list": `{"tools":[` + strings.Join(tools, ",") + `]}`})
	v := Compile([]Source{s}, 0)
	for at := range v.pages[Tools].all {
		if n := len(v.pages[Tools].append(nil, Tools, at, backend.Modern, nil)); n > pageBytes+1000 {
			t.Errorf("a page of %d bytes", n)
		}
	}
	if diff := cmp.Diff(numbered(50), listed(t, v, Tools)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestAListIsThereThoughNobodyOffersAnything(t *testing.T) {
	t.Parallel()
	for _, v := range []*View{Compile(nil, 0), Compile([]Source{{Backend: table.Backend{Name: "a"}}}, 0)} {
		got, err := v.List(nil, Templates, "", backend.Modern, nil)
		want := `{"resultType":"complete","ttlMs":0,"cacheScope":"private","resourceTemplates":[]}`
		if err != nil || string(got) != want {
			t.Errorf("%s, %v", got, err)
		}
		if got, err := v.List(nil, Tools, "", backend.Legacy, nil); err != nil || string(got) != `{"tools":[]}` {
			t.Errorf("%s, %v", got, err)
		}
	}
}

func TestACursorThatWasNeverGivenIsRefused(t *testing.T) {
	t.Parallel()
	v := Compile([]Source{toolSource(t, table.Backend{Name: "a"}, numbered(3)...)}, 1)
	good := next(t, v, "")
	if _, err := v.List(nil, Tools, good, backend.Modern, nil); err != nil {
		t.Fatal(err)
	}
	for name, cursor := range map[string]string{
		"words":        "next page please",
		"a number":     "2",
		"cut":          good[:len(good)-1],
		"longer":       good + "AAAA",
		"changed":      "B" + good[1:],
		"page changed": good[:24] + "_" + good[25:],
		"spaces":       good + "\n",
	} {
		if _, err := v.List(nil, Tools, cursor, backend.Legacy, nil); !errors.Is(err, ErrCursor) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := v.List(nil, Prompts, good, backend.Legacy, nil); !errors.Is(err, ErrCursor) {
		t.Errorf("a cursor of another list: %v", err)
	}
}

func TestACursorOfAnOlderViewStartsOver(t *testing.T) {
	t.Parallel()
	older := Compile([]Source{toolSource(t, table.Backend{Name: "a"}, numbered(5)...)}, 2)
	newer := Compile([]Source{toolSource(t, table.Backend{Name: "a"}, numbered(6)...)}, 2)
	first, err := newer.List(nil, Tools, "", backend.Legacy, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := newer.List(nil, Tools, next(t, older, next(t, older, "")), backend.Legacy, nil)
	if err != nil || string(got) != string(first) {
		t.Errorf("%s, %v, want the first page", got, err)
	}
}

// TestReplicasAgreeOnCursors compiles one input twice, as two replicas do.
func TestReplicasAgreeOnCursors(t *testing.T) {
	t.Parallel()
	one := Compile([]Source{toolSource(t, table.Backend{Name: "a"}, numbered(3)...)}, 2)
	two := Compile([]Source{toolSource(t, table.Backend{Name: "a"}, numbered(3)...)}, 2)
	got, err := two.List(nil, Tools, next(t, one, ""), backend.Legacy, nil)
	if err != nil || !strings.Contains(string(got), `"t2"`) || strings.Contains(string(got), `"t0"`) {
		t.Errorf("%s, %v", got, err)
	}
}

// T27, T37.
func TestClientsAreToldOfTrueChangesOnly(t *testing.T) {
	t.Parallel()
	base := func() map[string]string {
		return map[string]string{
			"tools/list":               `{"tools":[` + tool("a", "") + `,` + tool("b", "") + `]}`,
			"prompts/list":             `{"prompts":[{"name":"p"}]}`,
			"resources/list":           `{"resources":[{"uri":"a:b"}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"a:{b}"}]}`,
		}
	}
	before := Compile([]Source{source(t, table.Backend{Name: "x"}, base())}, 0)
	for name, tc := range map[string]struct {
		method, result string
		backend        table.Backend
		want           Changes
	}{
		"nothing":              {want: Changes{}},
		"another order":        {method: "tools/list", result: `{"tools":[` + tool("b", "") + `,` + tool("a", "") + `]}`},
		"written otherwise":    {method: "prompts/list", result: `{"prompts":[ {"name":"\u0070"} ]}`},
		"an invalid tool more": {method: "tools/list", result: `{"tools":[{},` + tool("a", "") + `,` + tool("b", "") + `]}`},
		"a denied tool more": {
			method: "tools/list", result: `{"tools":[` + tool("a", "") + `,` + tool("b", "") + `,` + tool("c", "") + `]}`,
			backend: table.Backend{Tools: table.ToolPolicy{Deny: []string{"c"}}},
		},
		"a tool less": {method: "tools/list", result: toolList("a"), want: Changes{Tools: true}},
		"a description": {
			method: "tools/list", result: `{"tools":[` + tool("a", `,"description":"d"`) + `,` + tool("b", "") + `]}`, want: Changes{Tools: true},
		},
		"an icon": {
			method: "tools/list", result: `{"tools":[` + tool("a", `,"icons":[]`) + `,` + tool("b", "") + `]}`, want: Changes{Tools: true},
		},
		"names exchanged":    {backend: table.Backend{Tools: table.ToolPolicy{Rename: map[string]string{"a": "b", "b": "a"}}}, want: Changes{Tools: true}},
		"a prefix":           {backend: table.Backend{Prefix: "x_"}, want: Changes{Tools: true, Prompts: true}},
		"a resource":         {method: "resources/list", result: `{"resources":[{"uri":"a:c"}]}`, want: Changes{Resources: true}},
		"a template":         {method: "resources/templates/list", result: `{"resourceTemplates":[]}`, want: Changes{Resources: true}},
		"everything but one": {method: "tools/list", result: toolList(), backend: table.Backend{Prefix: "x_"}, want: Changes{Tools: true, Prompts: true}},
	} {
		results := base()
		if tc.method != "" {
			results[tc.method] = tc.result
		}
		tc.backend.Name = "x"
		s := source(t, tc.backend, results)
		if got := Diff(before, Compile([]Source{s}, 0)); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		s.State = table.BackendFailed
		if got := Diff(Compile([]Source{s}, 0), Compile([]Source{s}, 1)); got != (Changes{}) {
			t.Errorf("%s: the state or the page size is news: %+v", name, got)
		}
	}
	if got := Diff(nil, before); got != (Changes{}) {
		t.Errorf("the first view is news: %+v", got)
	}
}

package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func wantTools(tb testing.TB, what string, v *View, want ...string) {
	tb.Helper()
	if diff := cmp.Diff(want, listed(tb, v, Tools)); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
	for _, name := range want {
		if _, ok := v.Tool(name); !ok {
			tb.Errorf("%s: %s is listed but cannot be called", what, name)
		}
	}
}

func TestALoneBackendKeepsItsNamesAndBytes(t *testing.T) {
	t.Parallel()
	const odd = `{ "vendor/x":1.0, "name":"a", "inputSchema":{"type":"object"},"_meta":{"k":"\u00e4"} }`
	s := source(t, table.Backend{Name: "b"}, map[string]string{"tools/list": `{"tools":[` + odd + `]}`})
	v := Compile([]Source{s}, 0)
	got, err := v.List(nil, Tools, "", backend.Legacy, nil)
	if err != nil || string(got) != `{"tools":[`+odd+`]}` {
		t.Errorf("%s, %v", got, err)
	}
	if route, ok := v.Tool("a"); !ok || route.Backend != "b" || route.Original != "a" {
		t.Errorf("route %+v, %v", route, ok)
	}
}

func TestARenamedToolDiffersInItsNameOnly(t *testing.T) {
	t.Parallel()
	s := source(t, table.Backend{Name: "b", Prefix: "web_"}, map[string]string{
		"tools/list": `{"tools":[{ "description":"\u0041" , "name" : "a" , "inputSchema":{"type":"object","properties":{"name":{}}} }]}`,
	})
	got, err := Compile([]Source{s}, 0).List(nil, Tools, "", backend.Legacy, nil)
	want := `{"tools":[{ "description":"\u0041" , "name" : "web_a" , "inputSchema":{"type":"object","properties":{"name":{}}} }]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// Three servers, one of which never answered (T31): the others are served, and one that answered before stays listed.
func TestABackendThatIsAwayCostsItsOwnToolsOnly(t *testing.T) {
	t.Parallel()
	a, b := toolSource(t, table.Backend{Name: "a"}, "one"), toolSource(t, table.Backend{Name: "b"}, "two")
	never := Source{Backend: table.Backend{Name: "c"}, State: table.BackendFailed}
	a.State = table.BackendFailed
	v := Compile([]Source{a, b, never}, 0)
	wantTools(t, "two of three", v, "one", "two")
	states := map[string]table.BackendState{}
	for _, s := range v.Backends() {
		states[s.Name] = s.State
	}
	want := map[string]table.BackendState{"a": table.BackendFailed, "b": table.BackendReady, "c": table.BackendFailed}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if got := v.Backends()[2]; got.CatalogDigest != "" || got.Tools != nil {
		t.Errorf("something is known of a backend that never answered: %+v", got)
	}
}

// T32.
func TestAddingABackendRenamesNothing(t *testing.T) {
	t.Parallel()
	a := toolSource(t, table.Backend{Name: "a"}, "search", "fetch")
	b := toolSource(t, table.Backend{Name: "b", Prefix: "b_"}, "search")
	wantTools(t, "alone", Compile([]Source{a}, 0), "search", "fetch")
	wantTools(t, "with another one", Compile([]Source{a, b}, 0), "search", "fetch", "b_search")
}

// T33: a prefix that begins like another one sends nothing to the wrong server.
func TestPrefixesThatBeginAlikeAreNotConfused(t *testing.T) {
	t.Parallel()
	web := toolSource(t, table.Backend{Name: "web", Prefix: "web_"}, "get", "scraper_run")
	scraper := toolSource(t, table.Backend{Name: "web-scraper", Prefix: "web_scraper_"}, "get", "web_get")
	v := Compile([]Source{web, scraper}, 0)
	for name, want := range map[string]Route{
		"web_get":             {Backend: "web", Original: "get"},
		"web_scraper_run":     {Backend: "web", Original: "scraper_run"},
		"web_scraper_get":     {Backend: "web-scraper", Original: "get"},
		"web_scraper_web_get": {Backend: "web-scraper", Original: "web_get"},
	} {
		if got, ok := v.Tool(name); !ok || !cmp.Equal(got, want) {
			t.Errorf("%s goes to %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"get", "web_", "web_run", "web_scraper_", "web_scraper_scraper_run", "WEB_get", "web_get ", ""} {
		if got, ok := v.Tool(name); ok {
			t.Errorf("%q goes to %+v", name, got)
		}
	}
}

// T34.
func TestAChangedPrefixLeavesNoOldNames(t *testing.T) {
	t.Parallel()
	s := toolSource(t, table.Backend{Name: "a", Prefix: "old_"}, "x")
	before := Compile([]Source{s}, 0)
	s.Backend.Prefix = "new_"
	after := Compile([]Source{s}, 0)
	wantTools(t, "after", after, "new_x")
	if _, ok := after.Tool("old_x"); ok {
		t.Error("the old name is still served")
	}
	if got := Diff(before, after); got != (Changes{Tools: true}) {
		t.Errorf("changes %+v", got)
	}
}

// T35, T36, C18.
func TestANameOfTwoBackendsIsServedByNeitherAndCostsNothingElse(t *testing.T) {
	t.Parallel()
	a := toolSource(t, table.Backend{Name: "a"}, "one", "same")
	b := toolSource(t, table.Backend{Name: "b"}, "same", "two")
	c := toolSource(t, table.Backend{Name: "c", Prefix: "sa"}, "me")
	v := Compile([]Source{a, b, c}, 0)
	wantTools(t, "the rest", v, "one", "two")
	if route, ok := v.Tool("same"); ok {
		t.Errorf("the name in conflict goes to %+v", route)
	}
	var got []string
	for _, s := range v.Backends() {
		got = append(got, verdicts(s.Tools)...)
	}
	want := []string{
		"one<one: Served",
		`same<same: Conflict (also offered by b (as "same"), c (as "me"))`,
		`same<same: Conflict (also offered by a (as "same"), c (as "me"))`,
		"two<two: Served",
		`same<me: Conflict (also offered by a (as "same"), b (as "same"))`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Conflict{{Kind: Tools, Name: "same", Backends: []string{"a", "b", "c"}}}, v.Conflicts()); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
}

func TestAConflictIsResolvedByPolicy(t *testing.T) {
	t.Parallel()
	a := toolSource(t, table.Backend{Name: "a"}, "same")
	b := toolSource(t, table.Backend{Name: "b"}, "same")
	b.Backend.Tools.Deny = []string{"same"}
	v := Compile([]Source{a, b}, 0)
	if route, ok := v.Tool("same"); !ok || route.Backend != "a" {
		t.Errorf("denied at b, same goes to %+v, %v", route, ok)
	}
	b.Backend.Tools = table.ToolPolicy{Rename: map[string]string{"same": "other"}}
	wantTools(t, "renamed at b", Compile([]Source{a, b}, 0), "same", "other")
}

func TestABackendCanBeInConflictWithItself(t *testing.T) {
	t.Parallel()
	a := toolSource(t, table.Backend{Name: "a", Tools: table.ToolPolicy{Rename: map[string]string{"x": "y"}}}, "x", "y", "z")
	v := Compile([]Source{a}, 0)
	wantTools(t, "the rest", v, "z")
	if diff := cmp.Diff([]Conflict{{Tools, "y", []string{"a"}}}, v.Conflicts()); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
}

func TestAConflictOfManyIsToldInFew(t *testing.T) {
	t.Parallel()
	var sources []Source
	for i := range 20 {
		sources = append(sources, toolSource(t, table.Backend{Name: fmt.Sprintf("b%d", i)}, "same"))
	}
	reason := Compile(sources, 0).Backends()[0].Tools[0].Reason
	if !strings.HasSuffix(reason, `b5 (as "same"), 14 more`) {
		t.Errorf("reason %q", reason)
	}
}

// TestEveryPolicy is C17 too: whatever is not listed cannot be called, and is answered like what does not exist.
func TestEveryPolicyHoldsForListingAndForCalling(t *testing.T) {
	t.Parallel()
	tools := `{"tools":[` + strings.Join([]string{
		tool("read", `,"annotations":{"readOnlyHint":true}`),
		tool("add", `,"annotations":{"destructiveHint":false}`),
		tool("drop", `,"annotations":{"destructiveHint":true}`),
		tool("plain", ""),
		tool("odd", `,"annotations":{"readOnlyHint":"true","destructiveHint":0}`),
	}, ",") + `]}`
	for name, tc := range map[string]struct {
		policy  table.ToolPolicy
		trusted bool
		want    []string
	}{
		"none":                         {table.ToolPolicy{}, false, []string{"read", "add", "drop", "plain", "odd"}},
		"allow":                        {table.ToolPolicy{Allow: []string{"r*", "*n"}}, false, []string{"read", "plain"}},
		"allow nothing":                {table.ToolPolicy{Allow: []string{}}, false, []string{}},
		"deny":                         {table.ToolPolicy{Deny: []string{"*d*"}}, false, []string{"plain"}},
		"deny wins":                    {table.ToolPolicy{Allow: []string{"*"}, Deny: []string{"drop"}}, false, []string{"read", "add", "plain", "odd"}},
		"read-only":                    {table.ToolPolicy{ReadOnly: true}, true, []string{"read"}},
		"read-only, not trusted":       {table.ToolPolicy{ReadOnly: true}, false, []string{}},
		"not destructive":              {table.ToolPolicy{DenyDestructive: true}, true, []string{"read", "add"}},
		"not destructive, not trusted": {table.ToolPolicy{DenyDestructive: true}, false, []string{}},
		"patterns match original names": {
			table.ToolPolicy{Allow: []string{"read"}, Rename: map[string]string{"read": "look", "drop": "read"}}, false, []string{"look"},
		},
	} {
		b := table.Backend{Name: "b", Tools: tc.policy, Trusted: tc.trusted}
		v := Compile([]Source{source(t, b, map[string]string{"tools/list": tools})}, 0)
		wantTools(t, name, v, tc.want...)
		for _, original := range []string{"read", "add", "drop", "plain", "odd"} {
			if _, ok := v.Tool(original); ok != slices.Contains(tc.want, original) {
				t.Errorf("%s: %s can be called: %v", name, original, ok)
			}
		}
		served := 0
		for _, s := range v.Backends()[0].Tools {
			if (s.Verdict == table.ToolServed) != (s.Reason == "") {
				t.Errorf("%s: %+v has a verdict without a reason, or a reason without need", name, s)
			}
			served += oneIf(s.Verdict == table.ToolServed)
		}
		if served != len(tc.want) {
			t.Errorf("%s: status tells of %d tools that are served, want %d", name, served, len(tc.want))
		}
	}
}

func TestWhatIsHiddenIsAnsweredLikeWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind   Kind
		name   string
		client backend.Era
		want   string
	}{
		{Tools, "x", backend.Legacy, `{"code":-32602,"message":"unknown tool \"x\""}`},
		{Prompts, "x\u200b", backend.Modern, `{"code":-32602,"message":"unknown prompt \"x\\u200b\""}`},
		{Resources, "a:b", backend.Legacy, `{"code":-32002,"message":"unknown resource \"a:b\""}`},
		{Resources, "a:b", backend.Modern, `{"code":-32602,"message":"unknown resource \"a:b\""}`},
		{Templates, "b", backend.Modern, `{"code":-32602,"message":"unknown resource template \"b\""}`},
	} {
		if got := Unknown(tc.kind, json.RawMessage(`1`), tc.name, tc.client).Error; string(got) != tc.want {
			t.Errorf("%s\nwant\n%s", got, tc.want)
		}
	}
}

func TestANameThatIsTooLongWithItsPrefixIsNotServed(t *testing.T) {
	t.Parallel()
	s := toolSource(t, table.Backend{Name: "b", Prefix: "prefix_"}, strings.Repeat("x", 128), "y")
	v := Compile([]Source{s}, 0)
	wantTools(t, "the rest", v, "prefix_y")
	if got := v.Backends()[0].Tools[0]; got.Verdict != table.ToolInvalid || got.Reason == "" {
		t.Errorf("%+v", got)
	}
}

func TestWhatABackendSaysWrongIsInItsStatus(t *testing.T) {
	t.Parallel()
	s := source(t, table.Backend{Name: "b"}, map[string]string{"tools/list": `{"tools":[{"name":"no\u200bschema"},` + tool("a", "") + `]}`})
	want := []string{"a<a: Served", "no\ufffdschema<no\ufffdschema: Invalid (name is not 1 to 128 of A-Z a-z 0-9 . _ -)"}
	if diff := cmp.Diff(want, verdicts(Compile([]Source{s}, 0).Backends()[0].Tools)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// T38.
func TestPromptsAndResourcesOfSeveralBackendsAreRouted(t *testing.T) {
	t.Parallel()
	a := source(t, table.Backend{Name: "a", Prefix: "a_"}, map[string]string{
		"tools/list":     toolList(),
		"prompts/list":   `{"prompts":[{"name":"ask"}]}`,
		"resources/list": `{"resources":[{"uri":"a:one"},{"uri":"both:same"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"a:{id}/data"},{"uriTemplate":"twin:{x}"},{"uriTemplate":"left:{x}"},
			{"uriTemplate":"a:{id}{?q}"},{"uriTemplate":"bot{+x}"}]}`,
	})
	b := source(t, table.Backend{Name: "b"}, map[string]string{
		"tools/list":               toolList(),
		"prompts/list":             `{"prompts":[{"name":"ask"},{"name":"a_ask2"}]}`,
		"resources/list":           `{"resources":[{"uri":"b:one"},{"uri":"both:same"},{"uri":"a:7/data"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"b:{+path}"},{"uriTemplate":"twin:{x}"},{"uriTemplate":"lef{+x}"}]}`,
	})
	v := Compile([]Source{a, b}, 0)
	if diff := cmp.Diff([]string{"a_ask", "ask", "a_ask2"}, listed(t, v, Prompts)); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a:one", "b:one", "a:7/data"}, listed(t, v, Resources)); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a:{id}/data", "left:{x}", "a:{id}{?q}", "bot{+x}", "b:{+path}", "lef{+x}"}, listed(t, v, Templates)); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	if route, ok := v.Prompt("a_ask"); !ok || !cmp.Equal(route, Route{Backend: "a", Original: "ask"}) {
		t.Errorf("prompt a_ask goes to %+v, %v", route, ok)
	}
	if route, ok := v.Template("b:{+path}"); !ok || route.Backend != "b" {
		t.Errorf("template goes to %+v, %v", route, ok)
	}
	for uri, want := range map[string]string{
		"a:one":                           "a",
		"a:8/data":                        "a", // by template
		"a:7/data":                        "b", // listed, which is more than a template
		"a:x?q=1":                         "a",
		"b:any/where":                     "b",
		"both:same":                       "", // in conflict, so no template is asked
		"both:other":                      "a",
		"twin:x":                          "", // the template is in conflict
		"left:x":                          "", // templates of both match
		"c:one":                           "",
		"":                                "",
		"b:" + strings.Repeat("x", 10000): "",
	} {
		route, ok := v.Resource(uri)
		if route.Backend != want || ok != (want != "") || ok && route.Original != uri {
			t.Errorf("%.40s goes to %+v, %v, want %q", uri, route, ok, want)
		}
	}
	want := []Conflict{{Resources, "both:same", []string{"a", "b"}}, {Templates, "twin:{x}", []string{"a", "b"}}}
	if diff := cmp.Diff(want, v.Conflicts()); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	if s := v.Backends(); s[0].PromptCount != 1 || s[0].ResourceCount != 1 || s[1].PromptCount != 2 || s[1].ResourceCount != 2 {
		t.Errorf("counts %+v", s)
	}
}

// TestRoutesLeadWhereTheListsSay compiles random sources, and holds every view to what it lists.
func TestRoutesLeadWhereTheListsSay(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pool := []string{"a", "b", "a_b", "b_a", "a_a_b", "ab"}
	for range 200 {
		var sources []Source
		for i := range 1 + random.IntN(4) {
			b := table.Backend{Name: fmt.Sprintf("s%d", i), Prefix: []string{"", "a_", "a", "b_"}[random.IntN(4)]}
			random.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
			sources = append(sources, toolSource(t, b, pool[:random.IntN(len(pool))]...))
		}
		v := Compile(sources, 1+random.IntN(3))
		owners := map[string][]Route{}
		for _, s := range sources {
			for _, e := range s.Catalog.Entries[Tools] {
				name := s.Backend.Prefix + e.Name
				owners[name] = append(owners[name], Route{Backend: s.Backend.Name, Original: e.Name})
			}
		}
		list := listed(t, v, Tools)
		for name, routes := range owners {
			got, ok := v.Tool(name)
			if unique := len(routes) == 1; ok != unique || unique && !cmp.Equal(got, routes[0]) || slices.Contains(list, name) != unique {
				t.Fatalf("%s of %+v goes to %+v, %v; listed %v", name, routes, got, ok, list)
			}
		}
	}
}

package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// gatewayOf is the status of a gateway with the given backends.
func gatewayOf(backends ...table.BackendStatus) Heard {
	return Heard{Status: table.Status{Revision: "newest", Backends: backends}}
}

// web is the status of the backend of the MCPServer "web".
func web(state table.BackendState, class string, tools ...table.ToolStatus) table.BackendStatus {
	return table.BackendStatus{Name: "server-web", State: state, ErrorClass: class, Tools: tools}
}

func toolStatus(name string, verdict table.ToolVerdict, reason string) table.ToolStatus {
	return table.ToolStatus{Name: name, Original: name, Verdict: verdict, Reason: reason}
}

func served(name string) table.ToolStatus { return toolStatus(name, table.ToolServed, "") }

func effective(name, source string, verdict mcpv1alpha1.ToolVerdict, reason string) mcpv1alpha1.EffectiveTool {
	return mcpv1alpha1.EffectiveTool{Name: name, Source: source, Verdict: verdict, Reason: reason}
}

// agentOf is granted MCPServers and then MCPTools.
func agentOf(servers []string, tools ...string) *mcpv1alpha1.MCPAgent {
	agent := &mcpv1alpha1.MCPAgent{}
	agent.Name, agent.Namespace = "research", "team"
	for _, name := range servers {
		agent.Spec.Servers = append(agent.Spec.Servers, mcpv1alpha1.AgentServer{ObjectName: mcpv1alpha1.ObjectName{Name: name}})
	}
	for _, name := range tools {
		agent.Spec.Tools = append(agent.Spec.Tools, mcpv1alpha1.ObjectName{Name: name})
	}
	return agent
}

// originsOf are those of agentOf(servers, tools...), each tool being one by its nature.
func originsOf(servers []string, tools ...string) Output {
	var out Output
	for _, name := range servers {
		out.Origins = append(out.Origins, Origin{Backend: "server-" + name, Source: "server/" + name})
	}
	for _, name := range tools {
		out.Origins = append(out.Origins, Origin{Backend: "tool-" + name, Source: "tool/" + name, Tool: name})
	}
	return out
}

func TestWhatGatewaysSayOfAServerIsMerged(t *testing.T) {
	t.Parallel()
	const source = "server/web"
	for name, tc := range map[string]struct {
		note     string
		statuses []Heard
		want     []mcpv1alpha1.EffectiveTool
		served   int32
		problems []string
	}{
		"no gateway serves the newest table": {
			want: []mcpv1alpha1.EffectiveTool{effective("", source, mcpv1alpha1.VerdictPending, "no gateway serves the newest table yet")},
		},
		"no gateway has asked it": {
			statuses: []Heard{gatewayOf(web(table.BackendUnknown, "")), gatewayOf()},
			want:     []mcpv1alpha1.EffectiveTool{effective("", source, mcpv1alpha1.VerdictPending, "no gateway has asked it yet")},
		},
		"all serve all": {
			statuses: []Heard{
				gatewayOf(web(table.BackendReady, "", served("b"), served("a"))), gatewayOf(web(table.BackendReady, "", served("a"), served("b"))),
			},
			want: []mcpv1alpha1.EffectiveTool{
				effective("a", source, mcpv1alpha1.VerdictServed, ""), effective("b", source, mcpv1alpha1.VerdictServed, ""),
			},
			served: 2,
		},
		"a gateway that just started is not heard": {
			statuses: []Heard{gatewayOf(web(table.BackendUnknown, "")), gatewayOf(web(table.BackendReady, "", served("a")))},
			want:     []mcpv1alpha1.EffectiveTool{effective("a", source, mcpv1alpha1.VerdictServed, "")},
			served:   1,
		},
		"a server without tools has none": {
			statuses: []Heard{gatewayOf(web(table.BackendReady, ""))},
		},
		"policy, conflicts and mistakes are told as the gateway has them": {
			statuses: []Heard{gatewayOf(web(table.BackendReady, "",
				toolStatus("d", table.ToolDenied, `deny "d*"`), toolStatus("c", table.ToolConflict, "also offered by server-files (as \"c\")"),
				toolStatus("i", table.ToolInvalid, "inputSchema is no object"), toolStatus("n", "Novel", "whatever"),
				toolStatus("m", table.ToolMissing, `allow names "m", and the server offers no tool of that name`)))},
			want: []mcpv1alpha1.EffectiveTool{
				effective("c", source, mcpv1alpha1.VerdictConflict, "also offered by server-files (as \"c\")"),
				effective("d", source, mcpv1alpha1.VerdictDenied, `deny "d*"`),
				effective("i", source, mcpv1alpha1.VerdictInvalid, "inputSchema is no object"),
				effective("m", source, mcpv1alpha1.VerdictMissing, `allow names "m", and the server offers no tool of that name`),
				effective("n", source, mcpv1alpha1.VerdictPending, "the gateway told nothing of it that this operator knows"),
			},
			problems: []string{
				"server/web (c) is Conflict: also offered by server-files (as \"c\")", "server/web (i) is Invalid: inputSchema is no object",
				`server/web (m) is Missing: allow names "m", and the server offers no tool of that name`,
			},
		},
		"what is held back stays so while the server is away": {
			statuses: []Heard{gatewayOf(web(table.BackendFailed, "Connect", served("a"), toolStatus("d", table.ToolDenied, "allow")))},
			want: []mcpv1alpha1.EffectiveTool{
				effective("a", source, mcpv1alpha1.VerdictUnavailable, "nobody accepts connections there"),
				effective("d", source, mcpv1alpha1.VerdictDenied, "allow"),
			},
			problems: []string{"server/web (a) is Unavailable: nobody accepts connections there"},
		},
		"the server knows better why it is away": {
			note:     "the MCPServer is not ready (ScaledToZero): zero replicas are asked for",
			statuses: []Heard{gatewayOf(web(table.BackendFailed, "DNS"))},
			want: []mcpv1alpha1.EffectiveTool{
				effective("", source, mcpv1alpha1.VerdictUnavailable, "the MCPServer is not ready (ScaledToZero): zero replicas are asked for"),
			},
			problems: []string{"server/web is Unavailable: the MCPServer is not ready (ScaledToZero): zero replicas are asked for"},
		},
		"a note on a server that answers is not told": {
			note:     "the MCPServer is not ready (Initializing): wait",
			statuses: []Heard{gatewayOf(web(table.BackendReady, "", served("a")))},
			want:     []mcpv1alpha1.EffectiveTool{effective("a", source, mcpv1alpha1.VerdictServed, "")},
			served:   1,
		},
		"one of two gateways cannot reach it": {
			statuses: []Heard{
				gatewayOf(web(table.BackendReady, "", served("a"))), gatewayOf(web(table.BackendFailed, "Timeout", served("a"))),
			},
			want:     []mcpv1alpha1.EffectiveTool{effective("a", source, mcpv1alpha1.VerdictUnavailable, "at 1 of 2 gateways: it does not answer in time")},
			problems: []string{"server/web (a) is Unavailable: at 1 of 2 gateways: it does not answer in time"},
		},
		"names and reasons are shown without what hides in them": {
			statuses: []Heard{gatewayOf(web(table.BackendReady, "",
				toolStatus("a\u202eb\x1b[31m", table.ToolInvalid, "line\none\u200b two"), toolStatus("\u200b", table.ToolInvalid, "no name"),
				toolStatus(strings.Repeat("é", 300), table.ToolInvalid, strings.Repeat("é", 600))))},
			want: []mcpv1alpha1.EffectiveTool{
				effective("?", source, mcpv1alpha1.VerdictInvalid, "no name"),
				effective("a b [31m", source, mcpv1alpha1.VerdictInvalid, "line one two"),
				effective(strings.Repeat("é", 126)+"…", source, mcpv1alpha1.VerdictInvalid, strings.Repeat("é", 254)+"…"),
			},
			problems: []string{
				"server/web (?) is Invalid: no name", "server/web (a b [31m) is Invalid: line one two",
				"server/web (" + strings.Repeat("é", 120) + "…",
			},
		},
		"an unknown class is told by its name": {
			statuses: []Heard{gatewayOf(web(table.BackendFailed, "Novel\x00"))},
			want:     []mcpv1alpha1.EffectiveTool{effective("", source, mcpv1alpha1.VerdictUnavailable, "it fails: Novel")},
			problems: []string{"server/web is Unavailable: it fails: Novel"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := originsOf([]string{"web"})
			out.Origins[0].Note = tc.note
			for range 2 { // in any order of the gateways
				got, count, problems := Effective(agentOf([]string{"web"}), out, tc.statuses)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("tools (-want +got):\n%s", diff)
				}
				if count != tc.served {
					t.Errorf("%d are served, want %d", count, tc.served)
				}
				if diff := cmp.Diff(append([]string{}, tc.problems...), problems); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
				slices.Reverse(tc.statuses)
			}
		})
	}
}

func TestWhatAGatewaySaysOfAToolIsTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		note    string
		backend table.BackendStatus
		verdict mcpv1alpha1.ToolVerdict
		reason  string
	}{
		"it is served": {
			backend: table.BackendStatus{State: table.BackendReady, Tools: []table.ToolStatus{served("orders")}}, verdict: mcpv1alpha1.VerdictServed,
		},
		"its list is not read yet": {
			backend: table.BackendStatus{State: table.BackendReady}, verdict: mcpv1alpha1.VerdictPending, reason: "no gateway has asked it yet",
		},
		"its schema cannot be used": {
			backend: table.BackendStatus{State: table.BackendReady, ErrorDetail: "not offered: orders (GET /): its inputSchema: at #/type: wrong"},
			verdict: mcpv1alpha1.VerdictInvalid, reason: "not offered: orders (GET /): its inputSchema: at #/type: wrong",
		},
		"the database refuses the statement": {
			backend: table.BackendStatus{State: table.BackendFailed, ErrorClass: "Statement", ErrorDetail: `SQLSTATE 42P01: relation "order" does not exist`},
			verdict: mcpv1alpha1.VerdictUnavailable, reason: `the database refuses the statement: SQLSTATE 42P01: relation "order" does not exist`,
		},
		"the gateway says so in the same words": {
			backend: table.BackendStatus{State: table.BackendFailed, ErrorClass: "Statement", ErrorDetail: "the database refuses the statement: it may not"},
			verdict: mcpv1alpha1.VerdictUnavailable, reason: "the database refuses the statement: it may not",
		},
		"it is no database": {
			backend: table.BackendStatus{State: table.BackendFailed, ErrorClass: "NotPostgres"},
			verdict: mcpv1alpha1.VerdictUnavailable, reason: "what answers there does not speak PostgreSQL",
		},
		"its address may not be dialled": {
			note:    "nobody accepts connections at db.example.com",
			backend: table.BackendStatus{State: table.BackendFailed, ErrorClass: "Denied", ErrorDetail: "its host has an address that may not be dialled"},
			verdict: mcpv1alpha1.VerdictUnavailable, reason: "its host has an address that may not be dialled",
		},
		"it takes no requests for its own name": {
			backend: table.BackendStatus{State: table.BackendFailed, ErrorClass: "Forbidden", ErrorDetail: "it answers with HTTP status 421"},
			verdict: mcpv1alpha1.VerdictUnavailable, reason: "it answers with HTTP status 421",
		},
		"the operator cannot reach it either": {
			note:    "nobody accepts connections at db.example.com",
			backend: table.BackendStatus{State: table.BackendFailed, ErrorClass: "Connect", Tools: []table.ToolStatus{served("orders")}},
			verdict: mcpv1alpha1.VerdictUnavailable, reason: "nobody accepts connections at db.example.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := originsOf(nil, "orders")
			out.Origins[0].Note, tc.backend.Name = tc.note, "tool-orders"
			got, _, _ := Effective(agentOf(nil, "orders"), out, []Heard{gatewayOf(tc.backend)})
			want := []mcpv1alpha1.EffectiveTool{effective("orders", "tool/orders", tc.verdict, tc.reason)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOperationsThatCannotBeOfferedAreToldBesideThoseThatAre(t *testing.T) {
	t.Parallel()
	out := Output{Origins: []Origin{{Backend: "tool-petstore", Source: "tool/petstore"}}}
	backend := table.BackendStatus{
		Name: "tool-petstore", State: table.BackendReady, ErrorDetail: "not offered: addPet (POST /pet): its inputSchema is too large",
		Tools: []table.ToolStatus{served("getPet")},
	}
	got, count, problems := Effective(agentOf(nil, "petstore"), out, []Heard{gatewayOf(backend)})
	want := []mcpv1alpha1.EffectiveTool{
		effective("", "tool/petstore", mcpv1alpha1.VerdictInvalid, backend.ErrorDetail),
		effective("getPet", "tool/petstore", mcpv1alpha1.VerdictServed, ""),
	}
	if diff := cmp.Diff(want, got); diff != "" || count != 1 {
		t.Errorf("%d are served (-want +got):\n%s", count, diff)
	}
	if want := []string{"tool/petstore is Invalid: " + backend.ErrorDetail}; !slices.Equal(want, problems) {
		t.Errorf("problems %q, want %q", problems, want)
	}
}

func TestEveryGrantHasAVerdict(t *testing.T) {
	t.Parallel()
	out := originsOf([]string{"web"})
	out.Verdicts = []mcpv1alpha1.EffectiveTool{effective("", "tool/gone", mcpv1alpha1.VerdictMissing, "there is no MCPTool 'gone' in the namespace team")}
	agent := agentOf([]string{"web", "added", "web"}, "gone", strings.Repeat("x", 253))
	got, _, problems := Effective(agent, out, nil)
	want := []mcpv1alpha1.EffectiveTool{
		effective("", "server/added", mcpv1alpha1.VerdictPending, "no table has it yet"),
		effective("", "server/web", mcpv1alpha1.VerdictPending, "no gateway serves the newest table yet"),
		effective("", "tool/gone", mcpv1alpha1.VerdictMissing, "there is no MCPTool 'gone' in the namespace team"),
		effective("", got[len(got)-1].Source, mcpv1alpha1.VerdictPending, "no table has it yet"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if long := got[len(got)-1].Source; !strings.HasPrefix(long, "tool/xxx") || len(long) != maxSource {
		t.Errorf("the source of a long name is %q", long)
	}
	if want := []string{"tool/gone is Missing: there is no MCPTool 'gone' in the namespace team"}; !slices.Equal(want, problems) {
		t.Errorf("problems %q, want %q", problems, want)
	}
}

func TestOfTooManyToolsThoseAreKeptThatSayMost(t *testing.T) {
	t.Parallel()
	many := func(verdict table.ToolVerdict, n int) []table.ToolStatus {
		var tools []table.ToolStatus
		for i := range n {
			tools = append(tools, toolStatus(fmt.Sprintf("%s%03d", verdict, i), verdict, ""))
		}
		return tools
	}
	for name, tc := range map[string]struct {
		tools  []table.ToolStatus
		kept   map[mcpv1alpha1.ToolVerdict]int
		served int32
	}{
		"problems before what is served": {
			slices.Concat(many(table.ToolServed, 600), many(table.ToolInvalid, 100)),
			map[mcpv1alpha1.ToolVerdict]int{mcpv1alpha1.VerdictInvalid: 100, mcpv1alpha1.VerdictServed: 412},
			601,
		},
		"what is served before what is held back": {
			slices.Concat(many(table.ToolDenied, 600), many(table.ToolServed, 100)),
			map[mcpv1alpha1.ToolVerdict]int{mcpv1alpha1.VerdictDenied: 411, mcpv1alpha1.VerdictServed: 101},
			101,
		},
		"no source hides another": {
			many(table.ToolDenied, 600), map[mcpv1alpha1.ToolVerdict]int{mcpv1alpha1.VerdictDenied: 511, mcpv1alpha1.VerdictServed: 1}, 1,
		},
		"no problems of one hide another that is served, nor what it serves itself": {
			slices.Concat(many(table.ToolConflict, 600), many(table.ToolServed, 1)),
			map[mcpv1alpha1.ToolVerdict]int{mcpv1alpha1.VerdictConflict: 510, mcpv1alpha1.VerdictServed: 2},
			2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lone := table.BackendStatus{Name: "tool-zoo", State: table.BackendReady, Tools: []table.ToolStatus{served("zoo")}}
			status := gatewayOf(web(table.BackendReady, "", tc.tools...), lone)
			got, count, _ := Effective(agentOf([]string{"web"}, "zoo"), originsOf([]string{"web"}, "zoo"), []Heard{status})
			kept := map[mcpv1alpha1.ToolVerdict]int{}
			for _, tool := range got {
				kept[tool.Verdict]++
			}
			if diff := cmp.Diff(tc.kept, kept); diff != "" || count != tc.served {
				t.Errorf("%d are served, want %d; kept (-want +got):\n%s", count, tc.served, diff)
			}
			if !slices.IsSortedFunc(got, byName) || !slices.Contains(got, effective("zoo", "tool/zoo", mcpv1alpha1.VerdictServed, "")) {
				t.Error("the tools are not sorted, or zoo is not among them")
			}
		})
	}
}

func TestADigestIsToldIfGatewaysAgreeOnIt(t *testing.T) {
	t.Parallel()
	with := func(digest string) Heard {
		tool := served("a")
		tool.Digest = digest
		return gatewayOf(web(table.BackendReady, "", tool))
	}
	for name, tc := range map[string]struct {
		statuses []Heard
		want     string
	}{
		"one":                         {[]Heard{with("d1")}, "d1"},
		"two that agree":              {[]Heard{with("d1"), with("d1")}, "d1"},
		"two that do not":             {[]Heard{with("d1"), with("d2")}, ""},
		"one does not know":           {[]Heard{with("d1"), with("")}, ""},
		"what is no digest":           {[]Heard{with("d\n1")}, ""},
		"longer than a status has it": {[]Heard{with(strings.Repeat("d", 81))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, _ := Effective(agentOf([]string{"web"}), originsOf([]string{"web"}), tc.statuses)
			if len(got) != 1 || got[0].Digest != tc.want {
				t.Errorf("got %v, want the digest %q", got, tc.want)
			}
		})
	}
}

func TestProblemsAreGroupedAndBounded(t *testing.T) {
	t.Parallel()
	var tools []table.ToolStatus
	for i := range 30 {
		tools = append(tools, toolStatus(fmt.Sprintf("same%02d", i), table.ToolInvalid, "the same"),
			toolStatus(fmt.Sprintf("own%02d", i), table.ToolInvalid, fmt.Sprintf("reason %02d", i)))
	}
	_, _, problems := Effective(agentOf([]string{"web"}), originsOf([]string{"web"}), []Heard{gatewayOf(web(table.BackendReady, "", tools...))})
	if len(problems) != maxProblems+1 || problems[maxProblems] != "and 21 more" {
		t.Fatalf("%d problems, the last is %q", len(problems), problems[len(problems)-1])
	}
	few := web(table.BackendReady, "", tools[0], tools[2], tools[4], tools[6], tools[8])
	_, _, problems = Effective(agentOf([]string{"web"}), originsOf([]string{"web"}), []Heard{gatewayOf(few)})
	if want := []string{"server/web (same00, same01, same02, 2 more) is Invalid: the same"}; !slices.Equal(want, problems) {
		t.Errorf("problems %q, want %q", problems, want)
	}
}

func FuzzLinesAreFitToBeShown(f *testing.F) {
	f.Add("a\u202eb\xff\n", 8)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 3 || limit > 1<<10 {
			t.Skip("no limit of this package")
		}
		got := line(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t\x00\x1b\u200b\u202e") || got != line(got, limit) {
			t.Errorf("line(%q, %d) = %q", text, limit, got)
		}
	})
}

package route

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// largeTools are http tools that are accepted, each with an input schema of about the size.
func largeTools(agent *mcpv1alpha1.MCPAgent, count, size int) map[string]*mcpv1alpha1.MCPTool {
	tools := map[string]*mcpv1alpha1.MCPTool{}
	text, err := json.Marshal(map[string]string{"$comment": strings.Repeat("<", size)})
	if err != nil {
		panic(err)
	}
	for i := range count {
		tool := &mcpv1alpha1.MCPTool{}
		tool.Name = fmt.Sprintf("tool-%d", i)
		tool.Spec.Type, tool.Spec.Endpoint = mcpv1alpha1.ToolHTTP, "https://a.example.com"
		tool.Spec.Schema = &mcpv1alpha1.ToolSchema{Inline: &mcpv1alpha1.InlineSchema{
			Input: &apiextensionsv1.JSON{Raw: []byte(strings.ReplaceAll(string(text), `\u003c`, "<"))},
		}}
		tool.Status.Conditions = []metav1.Condition{{Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
		tools[tool.Name] = tool
		agent.Spec.Tools = append(agent.Spec.Tools, mcpv1alpha1.ObjectName{Name: tool.Name})
	}
	return tools
}

// TestWhatATableHasNoRoomForCostsThatToolOnly: were the whole table refused, nothing could be withdrawn until somebody shortens something.
func TestWhatATableHasNoRoomForCostsThatToolOnly(t *testing.T) {
	t.Parallel()
	agent := agentOf(nil)
	agent.Spec.Auth.Type = mcpv1alpha1.AgentAuthNone
	// Four fill the table, what is no escape needs no more room in it; the fifth does not fit, and the last is small.
	tools := largeTools(agent, 5, 250_000)
	small := largeTools(agentOf(nil), 1, 1)["tool-0"]
	small.Name = "small"
	tools["small"] = small
	agent.Spec.Tools = append(agent.Spec.Tools, mcpv1alpha1.ObjectName{Name: "small"})
	out, err := Compile(Input{Agent: agent, Tools: tools, ClusterDomain: "cluster.local"})
	if err != nil || len(out.JSON) < 1_000_000 || len(out.JSON) > MaxTableBytes {
		t.Fatalf("%d bytes, %v", len(out.JSON), err)
	}
	var served []string
	for _, origin := range out.Origins {
		served = append(served, origin.Tool)
	}
	if diff := cmp.Diff([]string{"tool-0", "tool-1", "tool-2", "tool-3", "small"}, served); diff != "" {
		t.Errorf("served (-want +got)\n%s", diff)
	}
	if v := out.Verdicts; len(v) != 1 || v[0].Name != "tool-4" || v[0].Verdict != mcpv1alpha1.VerdictInvalid ||
		!strings.HasPrefix(v[0].Reason, "the routing table has ") || !strings.Contains(v[0].Reason, "grant fewer tools to one agent") {
		t.Errorf("verdicts %+v", v)
	}
}

func TestADefinitionThatNoCatalogHoldsCostsThatToolOnly(t *testing.T) {
	t.Parallel()
	agent := agentOf(nil)
	agent.Spec.Auth.Type = mcpv1alpha1.AgentAuthNone
	out, err := Compile(Input{Agent: agent, Tools: largeTools(agent, 1, 300_000), ClusterDomain: "cluster.local"})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Verdicts) != 1 || out.Verdicts[0].Verdict != mcpv1alpha1.VerdictInvalid || out.Verdicts[0].Reason != "schema.input: JSON too large" {
		t.Errorf("verdicts %v", out.Verdicts)
	}
}

func TestServersOfLongNamesHaveBackendsOfTheirOwn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 54)
	agent := agentOf([]string{long, long[:53]}, long)
	agent.Spec.Auth.Type = mcpv1alpha1.AgentAuthNone
	in := Input{Agent: agent, Servers: map[string]*mcpv1alpha1.MCPServer{}, Tools: map[string]*mcpv1alpha1.MCPTool{}, ClusterDomain: "cluster.local"}
	for _, name := range []string{long, long[:53]} {
		in.Servers[name] = &mcpv1alpha1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"}}
	}
	for _, tool := range largeTools(agentOf(nil), 1, 1) {
		tool.Name = long
		in.Tools[long] = tool
	}
	out, err := Compile(in)
	if err != nil || len(out.Table.Backends) != 3 {
		t.Errorf("%d backends, verdicts %v, %v", len(out.Origins), out.Verdicts, err)
	}
}

func TestRemoteServersAreNotAtTheGatewaysOwnHost(t *testing.T) {
	t.Parallel()
	for endpoint, tc := range map[string]struct{ public, private bool }{
		"https://mcp.example.com/mcp":     {true, true},
		"https://93.184.216.34/mcp":       {true, true},
		"https://10.0.0.7/mcp":            {false, true},
		"https://100.64.0.1/mcp":          {false, true},
		"https://[fd00::1]/mcp":           {false, true},
		"http://localhost:8081/mcp":       {false, false},
		"http://a.LOCALHOST.:8081/mcp":    {false, false},
		"http://127.0.0.1:8081/mcp":       {false, false},
		"http://[::1]:8081/mcp":           {false, false},
		"http://[::ffff:127.0.0.1]/mcp":   {false, false},
		"http://0.0.0.0/mcp":              {false, false},
		"http://169.254.169.254/mcp":      {false, false},
		"http://[fe80::1]/mcp":            {false, false},
		"http://224.0.0.1/mcp":            {false, false},
		"http://[::ffff:10.0.0.7]:80/mcp": {false, true},
	} {
		for allowPrivate, want := range map[bool]bool{false: tc.public, true: tc.private} {
			agent := agentOf(nil, "remote")
			agent.Spec.Auth.Type = mcpv1alpha1.AgentAuthNone
			tool := toolOf(t, "{type: mcp, endpoint: '"+endpoint+"'}")
			tool.Status.Conditions = []metav1.Condition{{Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
			out, err := Compile(Input{Agent: agent, Tools: map[string]*mcpv1alpha1.MCPTool{"remote": tool}, AllowPrivate: allowPrivate})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(out.Origins) == 1; got != want {
				t.Errorf("%s with private addresses allowed %t: it is routed: %t, want %t (%v)", endpoint, allowPrivate, got, want, out.Verdicts)
			}
		}
	}
}

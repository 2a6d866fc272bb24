package mcptool

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func remote(tool *mcpv1alpha1.MCPTool) { tool.Spec.Type = mcpv1alpha1.ToolMCP }

// toolsOf are so many tools of a backend, with one verdict.
func toolsOf(prefix string, count int, verdict table.ToolVerdict) []table.ToolStatus {
	var list []table.ToolStatus
	for i := range count {
		list = append(list, table.ToolStatus{Name: fmt.Sprintf("%s%03d", prefix, i), Verdict: verdict})
	}
	return list
}

// TestWhatAnAgentHasNoRoomForIsNotCountedAsNotThere: an agent's status lists 512 tools at most, of all that it is granted.
func TestWhatAnAgentHasNoRoomForIsNotCountedAsNotThere(t *testing.T) {
	t.Parallel()
	// agent is one that is granted petstore too, and serves these tools.
	agent := func(name string, petstore, weather []table.ToolStatus) *mcpv1alpha1.MCPAgent {
		out := route.Output{Origins: []route.Origin{
			{Backend: "tool-petstore", Source: "tool/petstore", Generation: 1}, {Backend: "tool-weather", Source: "tool/weather", Generation: 2},
		}}
		a := makeAgent(name)
		a.Spec.Tools = append(a.Spec.Tools, mcpv1alpha1.ObjectName{Name: "petstore"})
		var served int32
		a.Status.EffectiveTools, served, _ = route.Effective(a, out, []route.Heard{{Status: table.Status{Backends: []table.BackendStatus{
			{Name: "tool-petstore", State: table.BackendReady, Tools: petstore}, {Name: "tool-weather", State: table.BackendReady, Tools: weather},
		}}}})
		a.Status.ToolCount = &served
		return a
	}
	served, denied := table.ToolServed, table.ToolDenied
	full := agent("full", toolsOf("a", 512, served), toolsOf("w", 40, served))
	known := func(tool *mcpv1alpha1.MCPTool) {
		remote(tool)
		for i := range 40 {
			tool.Status.Tools = append(tool.Status.Tools, mcpv1alpha1.ToolStatus{Name: fmt.Sprintf("w%03d", i)})
		}
		tool.Status.ToolCount = new(int32(40))
	}
	const none = -1
	tests := map[string]struct {
		change      func(*mcpv1alpha1.MCPTool)
		agents      []client.Object
		count, list int
		cut         bool
	}{
		"all is listed": {agents: []client.Object{agent("a", toolsOf("a", 400, served), toolsOf("w", 40, served))}, count: 40, list: 40},
		"all is listed, and the list is full": {
			agents: []client.Object{agent("a", toolsOf("a", 472, served), toolsOf("w", 40, served))}, count: 40, list: 40,
		},
		"not all is listed":                     {agents: []client.Object{full}, count: none, list: 1, cut: true},
		"not all is listed, and all were known": {change: known, agents: []client.Object{full}, count: 40, list: 40, cut: true},
		"what is held back is not listed": {
			agents: []client.Object{agent("a", toolsOf("a", 10, served), append(toolsOf("x", 600, denied), toolsOf("w", 40, served)...))},
			count:  40, list: 40,
		},
		"not all that is wrong is listed": {
			agents: []client.Object{agent("a", toolsOf("a", 600, table.ToolInvalid), toolsOf("w", 40, table.ToolConflict))},
			count:  none, list: 1, cut: true,
		},
		"another agent lists all of them": {
			agents: []client.Object{full, agent("small", nil, toolsOf("w", 40, served))}, count: 40, list: 40,
		},
		"another agent does not tell yet": {agents: []client.Object{full, makeAgent("new")}, count: none, list: 1, cut: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.change == nil {
				tt.change = remote
			}
			s := newScope(makeWorld(t, copies(tt.agents)...).Reconciler, makeTool(tt.change))
			out := s.verify(t.Context())
			count := none
			if s.tool.Status.ToolCount != nil {
				count = int(*s.tool.Status.ToolCount)
			}
			if count != tt.count || len(s.tool.Status.Tools) != tt.list {
				t.Errorf("%d are counted, %d are listed; want %d and %d", count, len(s.tool.Status.Tools), tt.count, tt.list)
			}
			if told := s.cutBy != ""; told != tt.cut || out.IsDone() && strings.Contains(out.Message, "may not have all of its tools") != tt.cut {
				t.Errorf("that they may not be all is told: %t, in %q", told, out.Message)
			}
		})
	}
}

func copies(objects []client.Object) []client.Object {
	var list []client.Object
	for _, obj := range objects {
		list = append(list, obj.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of a client.Object is one
	}
	return list
}

func TestARemoteServerWithoutToolsIsToldOf(t *testing.T) {
	t.Parallel()
	routed := func(name string, status metav1.ConditionStatus, reason string, generation int64, told ...mcpv1alpha1.EffectiveTool) client.Object {
		agent := makeAgent(name, told...)
		agent.Generation = 3
		agent.Status.Conditions = []metav1.Condition{{Type: "Routed", Status: status, Reason: reason, ObservedGeneration: generation}}
		return agent
	}
	const untold, none = "No gateway has told yet", "The gateway of MCPAgent 'a' was told of no tools: the server offers none"
	tests := map[string]struct {
		agents []client.Object
		change func(*mcpv1alpha1.MCPTool)
		want   string
		ready  string
		isZero bool
	}{
		"it has none": {
			agents: []client.Object{routed("a", "True", "Routed", 3)}, want: none, isZero: true,
			ready: "The tool can be granted to agents; the gateway of MCPAgent 'a' was told of no tools: the server offers none",
		},
		"it has none, and something else is wrong": {agents: []client.Object{routed("a", "False", "ToolsUnavailable", 3)}, want: none, isZero: true},
		"gateways serve another table":             {agents: []client.Object{routed("a", "False", "TableRefused", 3)}, want: untold},
		"gateways were not heard":                  {agents: []client.Object{routed("a", "Unknown", "Pending", 3)}, want: untold},
		"an edit was not judged yet":               {agents: []client.Object{routed("a", "True", "Routed", 2)}, want: untold},
		"an older generation of the tool is told of": {
			agents: []client.Object{routed("a", "True", "Routed", 3, mcpv1alpha1.EffectiveTool{Verdict: "Served", SourceGeneration: 1})}, want: untold,
		},
		"another gateway cannot connect": {
			agents: []client.Object{routed("a", "True", "Routed", 3), routed("b", "False", "ToolsUnavailable", 3,
				mcpv1alpha1.EffectiveTool{Verdict: "Unavailable", Reason: "it is down"})},
			want: "The gateway of MCPAgent 'b' cannot serve it: it is down", isZero: true,
		},
		"of another type that says nothing": {
			agents: []client.Object{routed("a", "True", "Routed", 3)}, change: func(*mcpv1alpha1.MCPTool) {}, want: untold,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.change == nil {
				tt.change = remote
			}
			s := newScope(makeWorld(t, copies(tt.agents)...).Reconciler, makeTool(tt.change))
			if out := s.verify(t.Context()); out.Message != tt.want {
				t.Errorf("Verified: %q\nwant:     %q", out.Message, tt.want)
			}
			if count := s.tool.Status.ToolCount; (count != nil && *count == 0) != tt.isZero {
				t.Errorf("%v tools are counted, want none: %t", count, tt.isZero)
			}
			for _, kind := range []string{"Accepted", "Reachable"} {
				s.set(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind})
			}
			if ready := s.ready(); tt.ready != "" && (ready.Status != metav1.ConditionTrue || ready.Message != tt.ready) {
				t.Errorf("Ready is %s: %q", ready.Status, ready.Message)
			}
		})
	}
}

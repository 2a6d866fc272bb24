package mcptool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// condition reads "Type=Status/Reason", of the generation 2, or with "@1" at its end of that.
func condition(text string) metav1.Condition {
	kind, rest, _ := strings.Cut(text, "=")
	status, reason, _ := strings.Cut(rest, "/")
	reason, older := strings.CutSuffix(reason, "@1")
	c := metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "told", ObservedGeneration: 2}
	if older {
		c.ObservedGeneration = 1
	}
	return c
}

func TestReadyAndPhaseFollowFromTheConditions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		openAPI    bool
		conditions []string
		want       string // status/reason phase
	}{
		"nothing is known": {want: "Unknown/Initializing Pending"},
		"granted to nobody": {
			conditions: []string{"Accepted=True/Valid", "Reachable=True/Reachable", "Verified=Unknown/NoAgent"}, want: "True/Available Ready",
		},
		"served": {
			conditions: []string{"Accepted=True/Valid", "Reachable=True/Reachable", "Verified=True/Verified"}, want: "True/Available Ready",
		},
		"not accepted": {
			conditions: []string{"Accepted=False/Invalid", "Reachable=True/Reachable", "Verified=True/Verified"}, want: "False/ConfigurationInvalid Failed",
		},
		"accepted at an older generation": {
			conditions: []string{"Accepted=True/Valid@1", "Reachable=True/Reachable", "Verified=True/Verified"}, want: "Unknown/Initializing Pending",
		},
		"out of reach": {
			conditions: []string{"Accepted=True/Valid", "Reachable=False/DNSFailed", "Verified=Unknown/NoAgent"}, want: "False/EndpointUnreachable Failed",
		},
		"out of reach of the operator, and served": {
			conditions: []string{"Accepted=True/Valid", "Reachable=False/ConnectFailed", "Verified=True/Verified"}, want: "False/EndpointUnreachable Degraded",
		},
		"being connected to": {
			conditions: []string{"Accepted=True/Valid", "Reachable=Unknown/Connecting", "Verified=True/Verified"}, want: "Unknown/Initializing Pending",
		},
		"refused by a gateway": {
			conditions: []string{"Accepted=True/Valid", "Reachable=True/Reachable", "Verified=False/CheckFailed"}, want: "False/CheckFailed Failed",
		},
		"a document that is not written": {
			openAPI: true, conditions: []string{"Accepted=True/Valid", "Reachable=True/Reachable"}, want: "Unknown/Initializing Pending",
		},
		"a document that cannot be written": {
			openAPI: true, conditions: []string{"Accepted=True/Valid", "Applied=False/Rejected", "Reachable=True/Reachable"}, want: "False/Rejected Failed",
		},
		"a document that is written": {
			openAPI: true, conditions: []string{"Accepted=True/Valid", "Applied=True/Applied", "Reachable=True/Reachable"}, want: "True/Available Ready",
		},
		"what another type wrote does not count": {
			conditions: []string{"Accepted=True/Valid", "Applied=False/Rejected", "Reachable=True/Reachable"}, want: "True/Available Ready",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := makeTool()
			if tt.openAPI {
				openAPI(document)(tool)
			}
			for _, text := range tt.conditions {
				tool.Status.Conditions = append(tool.Status.Conditions, condition(text))
			}
			s := newScope(&Reconciler{}, tool)
			s.summarize()
			got := conditions(s.tool)["Ready"] + " " + string(s.tool.Status.Phase)
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if s.tool.Status.ObservedGeneration != 2 {
				t.Errorf("observed generation %d", s.tool.Status.ObservedGeneration)
			}
		})
	}
}

func TestReadyTellsOfARefusedAgentThatDoesNotServeTheTool(t *testing.T) {
	t.Parallel()
	for heldUp, want := range map[string]string{
		"": "The tool can be granted to agents; no gateway has served it yet",
		"MCPAgent 'team' does not serve it: it is refused": "The tool can be granted to agents; MCPAgent 'team' does not serve it: it is refused",
	} {
		s := newScope(&Reconciler{}, makeTool())
		for _, text := range []string{"Accepted=True/Valid", "Reachable=True/Reachable", "Verified=Unknown/Pending"} {
			s.set(condition(text))
		}
		s.heldUp = heldUp
		if s.summarize(); s.current("Ready").Message != want {
			t.Errorf("%q, want %q", s.current("Ready").Message, want)
		}
	}
}

func TestEventsTellChangesOnly(t *testing.T) {
	t.Parallel()
	with := func(list ...string) *mcpv1alpha1.MCPTool {
		return makeTool(func(tool *mcpv1alpha1.MCPTool) {
			for _, text := range list {
				tool.Status.Conditions = append(tool.Status.Conditions, condition(text))
			}
		})
	}
	partly := with("Accepted=True/Valid")
	partly.Status.Conditions[0].Message = validated
	defined := func(sha string) *mcpv1alpha1.MCPTool {
		tool := with("Accepted=True/Valid")
		tool.Status.Definitions = &mcpv1alpha1.ToolDefinitions{ObjectName: mcpv1alpha1.ObjectName{Name: "weather-" + sha}, SHA256: sha}
		return tool
	}
	tests := map[string]struct {
		before, after *mcpv1alpha1.MCPTool
		want          []string
	}{
		"nothing": {before: with("Accepted=True/Valid", "Ready=True/Available"), after: with("Accepted=True/Valid", "Ready=True/Available")},
		"it is accepted": {
			before: with(), after: partly, want: []string{"Normal Valid ConfigurationAccepted: MCPTool team/weather is valid"},
		},
		"not all of a document can be used": {
			before: partly, after: with("Accepted=True/Valid"), want: []string{"Warning DocumentIncomplete ConfigurationAccepted: told"},
		},
		"it is not accepted": {
			before: with("Accepted=True/Valid"), after: with("Accepted=False/Invalid", "Ready=False/ConfigurationInvalid"),
			want: []string{"Warning Invalid ConfigurationValidation: told"},
		},
		"it is ready": {
			before: with("Accepted=True/Valid"), after: with("Accepted=True/Valid", "Ready=True/Available"),
			want: []string{"Normal Available ToolReady: MCPTool team/weather is ready"},
		},
		"it is out of reach": {
			before: with("Accepted=True/Valid", "Ready=True/Available"), after: with("Accepted=True/Valid", "Ready=False/EndpointUnreachable"),
			want: []string{"Warning EndpointUnreachable ToolUnavailable: told"},
		},
		"a pause is not understood": {
			before: with("Accepted=True/Valid"), after: with("Accepted=True/Valid", "Paused=False/Invalid"),
			want: []string{"Warning Invalid PauseNotUnderstood: told"},
		},
		"it still is not": {before: with("Paused=False/Invalid"), after: with("Paused=False/Invalid")},
		"its tools changed": {
			before: defined("a"), after: defined("b"),
			want: []string{"Normal DefinitionsChanged DocumentCompiled: The tools of MCPTool team/weather changed: they are in ConfigMap weather-b"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range changes(tt.before, tt.after) {
				got = append(got, e.kind+" "+e.reason+" "+e.action+": "+e.note)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})
	}
}

func TestMetricsGoWithTheTool(t *testing.T) {
	t.Parallel()
	key := demo
	key.Name = "measured"
	recordConditions(key, []metav1.Condition{condition("Ready=True/Available")})
	recordConditions(key, []metav1.Condition{condition("Ready=False/CheckFailed")})
	if !conditionInfo.DeleteLabelValues("Ready", "False", "CheckFailed", "measured", "team") {
		t.Error("there is no series of the condition")
	}
	if conditionInfo.DeleteLabelValues("Ready", "True", "Available", "measured", "team") {
		t.Error("the series of before is still there")
	}
	recordConditions(key, []metav1.Condition{condition("Ready=True/Available")})
	deleteMetrics(key)
	if conditionInfo.DeleteLabelValues("Ready", "True", "Available", "measured", "team") {
		t.Error("the series of a tool that is gone is still there")
	}
}

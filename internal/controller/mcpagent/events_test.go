package mcpagent

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestOfAMessageThatChangesAllTheTimeOneEventAMinuteIsTold(t *testing.T) {
	t.Parallel()
	start := time.Now()
	told := told{}
	var at []time.Duration
	for after := time.Duration(0); after < 3*time.Minute; after += 700 * time.Millisecond {
		note := fmt.Sprintf("server/web: %d tools", after)
		if told.admits(event{"Warning", "ToolsUnavailable", "ToolsRouting", note}, start.Add(after)) {
			at = append(at, after.Truncate(time.Second))
		}
		if len(told) != 1 {
			t.Fatalf("%d events are remembered", len(told))
		}
	}
	if diff := cmp.Diff([]time.Duration{0, time.Minute, 2 * time.Minute}, at); diff != "" {
		t.Errorf("told after (-want +got)\n%s", diff)
	}
}

func TestEventsOfOtherReasonsAndOfTheSameNoteAreToldAtOnce(t *testing.T) {
	t.Parallel()
	first := event{"Warning", "ToolsUnavailable", "ToolsRouting", "one"}
	for name, tt := range map[string]struct {
		next  event
		after time.Duration
		want  bool
	}{
		"another note":        {event{"Warning", "ToolsUnavailable", "ToolsRouting", "two"}, 59 * time.Second, false},
		"another note, later": {event{"Warning", "ToolsUnavailable", "ToolsRouting", "two"}, time.Minute, true},
		"the same note":       {first, time.Second, true},
		"another reason":      {event{"Normal", "Routed", "ToolsRouting", "two"}, time.Second, true},
		"another thing of it": {event{"Warning", "ToolsUnavailable", "Other", "two"}, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told told
			start := time.Now()
			if !told.admits(first, start) {
				t.Error("the first is not told")
			}
			if got := told.admits(tt.next, start.Add(tt.after)); got != tt.want {
				t.Errorf("told: %t", got)
			}
		})
	}
}

func TestEventsOfAnAgentThatIsGoneAreForgotten(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t)
	recorder := events.NewFakeRecorder(10)
	r.Recorder = recorder
	s := newScope(r, makeAgent(), known)
	report := func(note string) int {
		s.agent.Status.Conditions = []metav1.Condition{condition("Routed", "False", "ToolsUnavailable", note)}
		s.report(t.Context(), reconcile.Result{})
		defer func() {
			for len(recorder.Events) > 0 {
				<-recorder.Events
			}
		}()
		return len(recorder.Events)
	}
	got := []int{report("one"), report("two"), report("one")}
	r.forget(s.key())
	if diff := cmp.Diff([]int{1, 0, 1, 1}, append(got, report("three"))); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

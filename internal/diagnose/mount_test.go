package diagnose

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestAStuckMountIsToldByTheNewestEventOfThePod(t *testing.T) {
	t.Parallel()
	event := func(reason, message string, age time.Duration) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: ago(age)}
	}
	stuck := Finding{Reason: mcpv1alpha1.ReasonMountFailed, Message: "Container has not been created (ContainerCreating) (pod: demo-1)"}
	slow := Finding{After: time.Minute}
	tests := map[string]struct {
		events []corev1.Event
		err    error
		want   Finding
	}{
		"no event: it is only slow":     {want: slow},
		"events of other things":        {events: []corev1.Event{event("Unhealthy", "x", 0)}, want: slow},
		"events that may not be listed": {err: errors.New("forbidden"), want: slow},
		"the newest of several is told": {
			events: []corev1.Event{
				event("FailedMount", "old", time.Minute), event("FailedMount", `secret "tls" not found`, time.Second),
				event("FailedAttachVolume", "older", time.Hour),
			},
			want: Finding{Reason: "MountFailed", Message: `FailedMount: secret "tls" not found (pod: demo-1)`, After: time.Minute},
		},
		"a sandbox that cannot be made": {
			events: []corev1.Event{event("FailedCreatePodSandBox", "no network", 0)},
			want:   Finding{Reason: "MountFailed", Message: "FailedCreatePodSandBox: no network (pod: demo-1)", After: time.Minute},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, explainMount(t.Context(), lists{events: tt.events, err: tt.err}, makePod(), stuck)); diff != "" {
				t.Errorf("finding (-want +got)\n%s", diff)
			}
		})
	}
}

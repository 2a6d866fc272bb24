package diagnose

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const notTrue = `the status of pod readiness gate "example.com/lb" is not "True", but False`

// gated makes a pod one whose containers have been ready for an hour, and which has a readiness gate that is not.
func gated(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", Message: notTrue, LastTransitionTime: ago(time.Hour)},
	}
	pod.Status.ContainerStatuses[0].Ready = true
}

func unscheduled(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = nil
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
	}
}

func TestAPodThatIsHeldBackByAGateIsToldOfAfterAWhile(t *testing.T) {
	t.Parallel()
	// since sets when the condition of an index took its status, and when the pod was made.
	since := func(index int, at metav1.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.Conditions[index].LastTransitionTime = at }
	}
	made := func(age time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.CreationTimestamp = ago(age) }
	}
	met := func(pod *corev1.Pod) { pod.Status.Conditions[1].Status = corev1.ConditionTrue }
	waits := Finding{Reason: "NotReady", Message: "Pod is not ready, though its containers are: " + notTrue + " (pod: demo-1)"}
	blocked := Finding{
		Reason:  "Unschedulable",
		Message: "Pod cannot be scheduled: SchedulingGated: blocked; who set its scheduling gates has to lift them (pod: demo-1)",
	}
	tests := map[string]struct {
		pod  *corev1.Pod
		want Finding
	}{
		"a readiness gate that is not there for long":    {makePod(gated), waits},
		"a readiness gate, just when the grace is over":  {makePod(gated, since(0, ago(gateGrace)), since(1, ago(gateGrace))), waits},
		"a readiness gate of a pod that becomes ready":   {makePod(gated, since(0, ago(30*time.Second))), Finding{After: 90 * time.Second}},
		"a readiness gate of a pod that was ready":       {makePod(gated, since(1, ago(time.Minute))), Finding{After: time.Minute}},
		"a readiness gate that is met":                   {makePod(gated, met), Finding{}},
		"a pod whose node is gone, of which nobody says": {makePod(gated, func(pod *corev1.Pod) { pod.Status.Conditions[1].Message = "" }), Finding{}},
		"a pod whose containers are not ready is told by them": {
			makePod(gated, func(pod *corev1.Pod) {
				pod.Status.Conditions[0].Status, pod.Status.ContainerStatuses[0].Ready = corev1.ConditionFalse, false
			}),
			Finding{Reason: "NotReady", Message: notListening + " (pod: demo-1)"},
		},
		"a scheduling gate of a pod that is an hour old": {makePod(unscheduled("SchedulingGated", "blocked")), blocked},
		"a scheduling gate of a pod that was just made":  {makePod(unscheduled("SchedulingGated", "blocked"), made(0)), Finding{After: gateGrace}},
		"a scheduler that fails for long": {
			makePod(unscheduled("SchedulerError", "no binding")),
			Finding{Reason: "Unschedulable", Message: "Pod cannot be scheduled: SchedulerError: no binding (pod: demo-1)"},
		},
		"a scheduler that tries again": {makePod(unscheduled("SchedulerError", "no binding"), since(0, ago(0))), Finding{After: gateGrace}},
		"a pod that no node takes is told of at once": {
			makePod(unscheduled("Unschedulable", "0/2 nodes"), made(0)),
			Finding{Reason: "Unschedulable", Message: "Pod cannot be scheduled: 0/2 nodes (pod: demo-1)"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, podOf(tt.pod, now)); diff != "" {
				t.Errorf("finding (-want +got)\n%s", diff)
			}
		})
	}
}

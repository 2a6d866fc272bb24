package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
)

func TestProgressingFollowsTheRollout(t *testing.T) {
	t.Parallel()
	progress := func(status corev1.ConditionStatus, reason string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: `ReplicaSet "demo-1" has timed out progressing.`,
			}}
		}
	}
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: mcpv1alpha1.ConditionProgressing, Status: status, Reason: reason, Message: message}
	}
	const under, over = "Pods are being added or replaced", "All pods are of the current specification"
	settled := is(metav1.ConditionFalse, "Settled", over)
	rollingOut := is(metav1.ConditionTrue, "RollingOut", under)
	crash := diagnose.Finding{Reason: "CrashLooping", Message: "Container crashing"}
	paused := func(d *appsv1.Deployment) { d.Spec.Paused = true }
	held := is(metav1.ConditionUnknown, "Paused", "No pods are replaced, the Deployment is paused: kubectl rollout resume deployment/demo")

	tests := map[string]struct {
		deployment *appsv1.Deployment
		conditions []metav1.Condition
		diagnosis  diagnose.Finding
		failing    diagnose.Finding
		paused     bool
		unapplied  bool
		want       metav1.Condition
	}{
		"there is no Deployment yet":           {want: rollingOut},
		"an invalid specification: no rollout": {conditions: []metav1.Condition{invalid}, want: is(metav1.ConditionFalse, "Settled", "Nothing is rolled out")},
		"a foreign Deployment: no rollout": {
			conditions: []metav1.Condition{accepted, conflict}, want: is(metav1.ConditionFalse, "Settled", "Nothing is rolled out"),
		},
		"a specification that cannot be judged: no rollout": {
			conditions: []metav1.Condition{unjudged}, want: is(metav1.ConditionFalse, "Settled", "Nothing is rolled out"),
		},
		"a child that cannot be written: no rollout": {
			conditions: []metav1.Condition{accepted, ending}, want: is(metav1.ConditionFalse, "Settled", "Nothing is rolled out"),
		},
		"somebody paused the Deployment": {
			deployment: makeDeployment(paused, progress(corev1.ConditionUnknown, "DeploymentPaused")), want: held,
		},
		"somebody paused the Deployment before an edit": {
			deployment: makeDeployment(paused, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), want: held,
		},
		"somebody paused a rollout that was stuck": {
			deployment: makeDeployment(paused, progress(corev1.ConditionFalse, "ProgressDeadlineExceeded")), diagnosis: crash,
			want: is(metav1.ConditionFalse, "ProgressDeadlineExceeded",
				"The rollout is stuck: Container crashing; the Deployment is paused: kubectl rollout resume deployment/demo"),
		},
		"all pods are new": {deployment: makeDeployment(), want: settled},
		"all pods are new and available": {
			deployment: makeDeployment(progress(corev1.ConditionTrue, "NewReplicaSetAvailable")), want: settled,
		},
		"all pods are new, and were not available yet": {
			deployment: makeDeployment(progress(corev1.ConditionTrue, "ReplicaSetUpdated")), want: rollingOut,
		},
		"the Deployment has not been observed": {
			deployment: makeDeployment(func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 4 }), want: rollingOut,
		},
		"an old pod is left": {
			deployment: makeDeployment(func(d *appsv1.Deployment) { d.Status.Replicas = 2 }), want: rollingOut,
		},
		"a pod is missing": {
			deployment: makeDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }), want: rollingOut,
		},
		"a Deployment without a number asks for one": {
			deployment: makeDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas = nil }), want: settled,
		},
		"a rollout tells what it waits for": {
			deployment: makeDeployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), diagnosis: crash,
			want: is(metav1.ConditionTrue, "RollingOut", under+"; Container crashing"),
		},
		"what does not pass is told before what may": {
			deployment: makeDeployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), failing: crash,
			diagnosis: diagnose.Finding{Reason: "NotReady", Message: "its probe fails"},
			want:      is(metav1.ConditionTrue, "RollingOut", under+"; Container crashing"),
		},
		"a rollout that is stuck tells why": {
			deployment: makeDeployment(progress(corev1.ConditionFalse, "ProgressDeadlineExceeded")), diagnosis: crash,
			want: is(metav1.ConditionFalse, "ProgressDeadlineExceeded", "The rollout is stuck: Container crashing"),
		},
		"a rollout that is stuck without a diagnosis": {
			deployment: makeDeployment(progress(corev1.ConditionFalse, "ProgressDeadlineExceeded")),
			want:       is(metav1.ConditionFalse, "ProgressDeadlineExceeded", `The rollout is stuck: ReplicaSet "demo-1" has timed out progressing.`),
		},
		"paused before the edit was applied": {
			deployment: makeDeployment(), paused: true, unapplied: true,
			want: is(metav1.ConditionUnknown, "Paused", "Reconciling is paused before the current generation was applied"),
		},
		"paused after the edit was applied": {deployment: makeDeployment(), paused: true, want: settled},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(tt.deployment, nil, tt.conditions)
			s.diagnosis, s.failing, s.paused, s.applied = tt.diagnosis, tt.failing, tt.paused, !tt.unapplied
			if diff := cmp.Diff(tt.want, s.progressing()); diff != "" {
				t.Errorf("Progressing (-want +got)\n%s", diff)
			}
		})
	}
}

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// failsForGood are the diagnoses that tell of a failure. Others may be those of a pod that starts, or waits for a node or a volume.
var failsForGood = []string{
	mcpv1alpha1.ReasonImagePullFailed, mcpv1alpha1.ReasonCrashLooping, mcpv1alpha1.ReasonConfigError, mcpv1alpha1.ReasonNonNumericUser,
	mcpv1alpha1.ReasonOOMKilled, mcpv1alpha1.ReasonPodRejected,
}

// A pod that is diagnosed and not ready for stuckAfter no longer starts: as long as a Deployment gives a rollout.
const stuckAfter = 10 * time.Minute

// failingPod returns what is wrong for good with one of the pods that the Deployment made, or when that may become so. diagnosis is that of all
// pods with its labels, the first of which may only be starting, or be somebody's copy.
func failingPod(diagnosis diagnose.Finding, pods []corev1.Pod, now time.Time) diagnose.Finding {
	if diagnosis.Reason == mcpv1alpha1.ReasonPodRejected {
		return diagnosis
	}
	var stuck diagnose.Finding
	var later time.Duration
	for i := range pods {
		found := diagnose.Subject{}.Pod(&pods[i], now)
		if found.Reason != "" && found.Reason == diagnosis.Reason && strings.Contains(diagnosis.Message, pods[i].Name) {
			found = diagnosis // it tells more: what events say, what does not exist
		}
		left := stuckAfter - now.Sub(unreadySince(&pods[i]))
		switch {
		case found.Reason == "":
			later = sooner(later, found.After)
		case slices.Contains(failsForGood, found.Reason):
			return found
		case left > 0:
			later = sooner(later, left)
		case stuck.Reason == "":
			stuck = found
		}
	}
	if stuck.Reason == "" {
		stuck.After = later
	}
	return stuck
}

// unreadySince is when a pod ceased to be ready, or was made.
func unreadySince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// sooner is the shorter of two times to wait; 0 waits for nothing.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// trouble is what is wrong with a pod, first what does not pass; empty if nothing is.
func (s *scope) trouble() string { return cmp.Or(s.failing.Message, s.diagnosis.Message) }

// attention says what of a server that is ready needs attention: in a word, and in a sentence. Empty if nothing does, or the server is not
// ready, which says more. failing is what is wrong for good with a pod.
func attention(conditions []metav1.Condition, failing diagnose.Finding) (what, why string) {
	progressing := reconcile.ConditionOf(conditions, mcpv1alpha1.ConditionProgressing)
	verified := reconcile.ConditionOf(conditions, mcpv1alpha1.ConditionVerified)
	switch {
	case reconcile.ConditionOf(conditions, mcpv1alpha1.ConditionReady).Status != metav1.ConditionTrue:
		return "", ""
	case progressing.Reason == mcpv1alpha1.ReasonProgressDeadlineExceeded:
		return progressing.Reason, progressing.Message
	case silentPods(verified) > 0:
		return "PodNotAnswering", verified.Message
	}
	return failing.Reason, failing.Message
}

// missingPullSecrets tells, after why an image cannot be pulled, which of imagePullSecrets do not exist. They are no references that hold a
// server up: an image may be public, or be on the node.
func (s *scope) missingPullSecrets(ctx context.Context) string {
	var missing []string
	for _, secret := range s.server.Spec.ImagePullSecrets {
		err := s.refs.metadata.Get(ctx, client.ObjectKey{Namespace: s.server.Namespace, Name: secret.Name}, partialMetadata("Secret"))
		if apierrors.IsNotFound(err) {
			missing = append(missing, "'"+secret.Name+"'")
		}
	}
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; imagePullSecrets %s does not exist in namespace '%s': create it", missing[0], s.server.Namespace)
	}
	return fmt.Sprintf("; imagePullSecrets %s do not exist in namespace '%s': create them", strings.Join(missing, ", "), s.server.Namespace)
}

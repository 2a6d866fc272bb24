package diagnose

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// held is what keeps a pod from being ready that none of its containers is to blame for.
type held struct {
	finding Finding
	// since is when that began, and grace for how long it is ordinary.
	since time.Time
	grace time.Duration
}

func (h held) after(now time.Time) Finding {
	if age := now.Sub(h.since); age < h.grace {
		return Finding{After: h.grace - age}
	}
	return h.finding
}

// heldBy says what holds a pod; the zero value if nothing is known to. That no node takes it is told at once, all else after a grace: the
// scheduler tries again by itself, and gates are lifted by whoever set them.
func heldBy(pod *corev1.Pod) held {
	scheduled, whole, ready := conditionOf(pod, corev1.PodScheduled), conditionOf(pod, corev1.ContainersReady), conditionOf(pod, corev1.PodReady)
	switch {
	case scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable:
		return held{finding: ofPod(pod, mcpv1alpha1.ReasonUnschedulable, "Pod cannot be scheduled: "+scheduled.Message)}
	case scheduled.Status == corev1.ConditionFalse:
		why := scheduled.Reason + ": " + scheduled.Message
		if scheduled.Reason == corev1.PodReasonSchedulingGated {
			why += "; who set its scheduling gates has to lift them"
		}
		return held{ofPod(pod, mcpv1alpha1.ReasonUnschedulable, "Pod cannot be scheduled: "+why), began(pod, scheduled), gateGrace}
	case whole.Status == corev1.ConditionTrue && ready.Status == corev1.ConditionFalse && ready.Message != "":
		since := began(pod, whole)
		if again := began(pod, ready); again.After(since) {
			since = again // it was ready before
		}
		return held{ofPod(pod, mcpv1alpha1.ReasonNotReady, "Pod is not ready, though its containers are: "+ready.Message), since, gateGrace}
	}
	return held{}
}

func ofPod(pod *corev1.Pod, reason, message string) Finding {
	return Finding{Reason: reason, Message: fmt.Sprintf("%s (pod: %s)", message, pod.Name)}
}

// conditionOf returns a condition of a pod, the zero value if it has none of that type.
func conditionOf(pod *corev1.Pod, of corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return corev1.PodCondition{}
}

// began is when a condition took its status: the API server dates none that a pod is made with.
func began(pod *corev1.Pod, c corev1.PodCondition) time.Time {
	if c.LastTransitionTime.IsZero() {
		return pod.CreationTimestamp.Time
	}
	return c.LastTransitionTime.Time
}

// awaited returns the containers that a pod may be waiting for. Init containers come first, but for those that have done their work, or
// that run, which is progress: unless others run beside them, which the kubelet allows sidecars alone. Then comes the workload's own
// container, before what may only wait for it.
func awaited(pod *corev1.Pod) []corev1.ContainerStatus {
	begun := slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.State.Running != nil })
	var first, own, others []corev1.ContainerStatus
	for _, status := range pod.Status.InitContainerStatuses {
		ended := status.State.Terminated
		switch {
		case status.State.Waiting != nil || ended != nil && ended.ExitCode != 0:
			first = append(first, status)
		case status.State.Running != nil && begun:
			others = append(others, status)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == nameOfOwn(pod) {
			own = append(own, status)
		} else {
			others = append(others, status)
		}
	}
	return slices.Concat(first, own, others)
}

// isUnbegun says whether no init container of a pod that has some was started yet.
func isUnbegun(pod *corev1.Pod) bool {
	statuses := pod.Status.InitContainerStatuses
	return len(statuses) > 0 && !slices.ContainsFunc(statuses, func(status corev1.ContainerStatus) bool {
		return status.State.Waiting == nil || status.State.Waiting.Reason != "PodInitializing" || status.LastTerminationState.Terminated != nil
	})
}

// IsOver says whether a pod is being deleted, or has ended for good, such as an evicted one. Neither tells of the server.
func IsOver(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// IsReady says whether a pod is ready, and not being deleted.
func IsReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero()
		}
	}
	return false
}

// OwnPods returns those of pods that the Deployment's ReplicaSets made. A label alone proves nothing: a debugging copy of a pod has it too.
func OwnPods(deployment *appsv1.Deployment, pods []corev1.Pod) []corev1.Pod {
	var own []corev1.Pod
	for _, pod := range pods {
		owner := metav1.GetControllerOf(&pod)
		if owner != nil && owner.Kind == "ReplicaSet" && owner.Name == deployment.Name+"-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] {
			own = append(own, pod)
		}
	}
	return own
}

package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// The kubelet's words for why a container waits or ended.
const (
	WaitingImagePullBackOff           = "ImagePullBackOff"
	WaitingErrImagePull               = "ErrImagePull"
	WaitingCrashLoopBackOff           = "CrashLoopBackOff"
	WaitingCreateContainerConfigError = "CreateContainerConfigError"
	TerminatedOOMKilled               = "OOMKilled"
)

const (
	// A container that runs and is not ready for less than startupGrace is starting, not failing.
	startupGrace = 10 * time.Second

	// A pod whose containers are not made for mountGrace may wait for a volume; its events tell.
	mountGrace = 15 * time.Second

	// A container that was started again less than restartGrace ago is still told by how it ended before.
	restartGrace = time.Minute
)

// diagnosis is why a pod is not ready. The zero value knows nothing.
type diagnosis struct {
	reason, message string
	after           time.Duration // when a look may tell more, 0 if only a change can
}

// diagnose looks for what is wrong, in the pods first: they know more than the Deployment.
func (s *scope) diagnose(ctx context.Context) diagnosis {
	slices.SortFunc(s.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	var later time.Duration
	for i := range s.pods {
		d := diagnosePod(&s.pods[i], time.Now())
		if d.reason == mcpv1alpha1.ReasonMountFailed {
			d = s.explainMount(ctx, &s.pods[i], d)
		}
		if d.reason != "" {
			return d
		}
		if d.after > 0 && (later == 0 || d.after < later) {
			later = d.after
		}
	}
	if d := diagnoseDeployment(s.deployment); d.reason != "" {
		return d
	}
	return diagnosis{after: later}
}

func diagnoseDeployment(d *appsv1.Deployment) diagnosis {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return diagnosis{reason: mcpv1alpha1.ReasonPodRejected, message: "Pods cannot be created: " + c.Message}
		}
	}
	return diagnosis{}
}

// diagnosePod says why a pod is not ready, or when to look again.
func diagnosePod(pod *corev1.Pod, now time.Time) diagnosis {
	if isReady(pod) {
		return diagnosis{}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return diagnosis{reason: mcpv1alpha1.ReasonUnschedulable, message: fmt.Sprintf("Pod cannot be scheduled: %s (pod: %s)", c.Message, pod.Name)}
		}
	}
	var later time.Duration
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		d := diagnoseContainer(pod, status, now)
		if d.reason != "" {
			return d
		}
		if d.after > 0 && (later == 0 || d.after < later) {
			later = d.after
		}
	}
	return diagnosis{after: later}
}

func diagnoseContainer(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time) diagnosis {
	told := func(reason, format string, args ...any) diagnosis {
		return diagnosis{reason: reason, message: fmt.Sprintf(format, args...) + fmt.Sprintf(" (pod: %s)", pod.Name)}
	}
	if waiting := status.State.Waiting; waiting != nil {
		return diagnoseWaiting(pod, status, now, told)
	}
	if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
		return diagnoseEnd(status, ended, told)
	}
	running := status.State.Running
	if running == nil || status.Ready {
		return diagnosis{}
	}
	age := now.Sub(running.StartedAt.Time)
	if last := status.LastTerminationState.Terminated; last != nil && age < restartGrace && last.ExitCode != 0 {
		return diagnoseEnd(status, last, told)
	}
	if age < startupGrace {
		return diagnosis{after: startupGrace - age}
	}
	if status.RestartCount > 0 {
		return told(mcpv1alpha1.ReasonNotReady, "Container not passing health checks: restarts: %d", status.RestartCount)
	}
	return told(mcpv1alpha1.ReasonNotReady,
		"Container not passing health checks: it runs and its readiness probe fails; does the server listen on spec.port and on all addresses?")
}

type teller func(reason, format string, args ...any) diagnosis

func diagnoseWaiting(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time, told teller) diagnosis {
	waiting := status.State.Waiting
	switch waiting.Reason {
	case WaitingImagePullBackOff, WaitingErrImagePull, "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
		return told(mcpv1alpha1.ReasonImagePullFailed, "Image pull failed for %q: %s", status.Image, waiting.Message)
	case WaitingCrashLoopBackOff:
		if last := status.LastTerminationState.Terminated; last != nil {
			return diagnoseEnd(status, last, told)
		}
		return told(mcpv1alpha1.ReasonCrashLooping, "Container crashing: restarts: %d", status.RestartCount)
	case WaitingCreateContainerConfigError, "CreateContainerError", "RunContainerError":
		return diagnoseConfig(waiting.Message, told)
	}
	started := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		started = pod.Status.StartTime.Time
	}
	if age := now.Sub(started); age < mountGrace {
		return diagnosis{after: mountGrace - age}
	}
	return told(mcpv1alpha1.ReasonMountFailed, "Container waits to be made (%s)", waiting.Reason)
}

// diagnoseConfig tells the two mistakes about users apart from others; the kubelet has no reasons for them.
func diagnoseConfig(message string, told teller) diagnosis {
	switch {
	case strings.Contains(message, "non-numeric user"):
		return told(mcpv1alpha1.ReasonNonNumericUser,
			"Container config error: %s; set spec.podSecurity.runAsUser to the number of the image's user", message)
	case strings.Contains(message, "image will run as root"):
		return told(mcpv1alpha1.ReasonNonNumericUser,
			"Container config error: %s; set spec.podSecurity.runAsUser to a number other than 0, or runAsNonRoot to false", message)
	}
	return told(mcpv1alpha1.ReasonConfigError, "Container config error: %s", message)
}

func diagnoseEnd(status corev1.ContainerStatus, ended *corev1.ContainerStateTerminated, told teller) diagnosis {
	if ended.Reason == TerminatedOOMKilled {
		return told(mcpv1alpha1.ReasonOOMKilled, "Container OOMKilled: exit code %d, restarts: %d; raise spec.resources.limits.memory",
			ended.ExitCode, status.RestartCount)
	}
	return told(mcpv1alpha1.ReasonCrashLooping, "Container crashing: exit code %d, restarts: %d", ended.ExitCode, status.RestartCount)
}

// explainMount asks the pod's events what it waits for: nothing else knows. Without such an event it is only slow.
func (s *scope) explainMount(ctx context.Context, pod *corev1.Pod, d diagnosis) diagnosis {
	list := &corev1.EventList{}
	err := s.APIReader.List(ctx, list, client.InNamespace(pod.Namespace), client.Limit(100),
		client.MatchingFields{"involvedObject.uid": string(pod.UID), "type": corev1.EventTypeWarning})
	if err != nil {
		return diagnosis{after: mountGrace}
	}
	var newest *corev1.Event
	for i := range list.Items {
		event := &list.Items[i]
		if event.Reason != "FailedMount" && event.Reason != "FailedAttachVolume" && event.Reason != "FailedCreatePodSandBox" {
			continue
		}
		if newest == nil || newest.LastTimestamp.Before(&event.LastTimestamp) {
			newest = event
		}
	}
	if newest == nil {
		return diagnosis{after: mountGrace}
	}
	d.message = fmt.Sprintf("%s: %s (pod: %s)", newest.Reason, newest.Message, pod.Name)
	d.after = mountGrace
	return d
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero()
		}
	}
	return false
}

// podPort is the port that a pod itself listens on: during a rollout it may differ from the specification's.
func podPort(pod *corev1.Pod) int32 {
	for _, c := range pod.Spec.Containers {
		if c.Name == desired.WorkloadName && len(c.Ports) > 0 {
			return c.Ports[0].ContainerPort
		}
	}
	return 0
}

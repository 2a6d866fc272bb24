package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

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

	// A pod's events are asked for at most once in eventsInterval.
	eventsInterval = time.Minute

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
			why := c.Message
			if _, cause, ok := strings.Cut(why, " is forbidden: "); ok {
				why = cause // what is cut off names a pod that never was, another one at each attempt
			}
			return diagnosis{reason: mcpv1alpha1.ReasonPodRejected, message: "Pods cannot be created: " + why}
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
	for _, status := range awaited(pod) {
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

// awaited returns the containers that a pod may be waiting for. Init containers come first, but for those that run, which is
// progress, or have done their work.
func awaited(pod *corev1.Pod) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for _, status := range pod.Status.InitContainerStatuses {
		ended := status.State.Terminated
		if status.State.Waiting != nil || ended != nil && ended.ExitCode != 0 {
			list = append(list, status)
		}
	}
	return append(list, pod.Status.ContainerStatuses...)
}

// diagnoseContainer says what is wrong with a container. A server that ends is as wrong with exit code 0 as with any other.
func diagnoseContainer(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time) diagnosis {
	told := func(reason, format string, args ...any) diagnosis {
		return diagnosis{reason: reason, message: fmt.Sprintf(format, args...) + fmt.Sprintf(" (pod: %s)", pod.Name)}
	}
	if !desired.IsBridged(pod) {
		status.LastTerminationState, status.State = withoutWords(status.LastTerminationState), withoutWords(status.State)
	}
	if waiting := status.State.Waiting; waiting != nil {
		return diagnoseWaiting(pod, status, now, told)
	}
	if ended := status.State.Terminated; ended != nil {
		return diagnoseEnd(status, ended, told)
	}
	running := status.State.Running
	if running == nil || status.Ready {
		return diagnosis{}
	}
	age := now.Sub(running.StartedAt.Time)
	if last := status.LastTerminationState.Terminated; last != nil && age < restartGrace {
		d := diagnoseEnd(status, last, told)
		d.after = restartGrace - age
		return d
	}
	if age < startupGrace {
		return diagnosis{after: startupGrace - age}
	}
	if desired.IsBridged(pod) {
		why := "its process has not answered MCP over its standard output; look at the container's log, and check spec.command"
		if last := status.LastTerminationState.Terminated; last != nil && last.Message != "" {
			why = "before, " + strings.Map(printable, last.Message)
		}
		return told(mcpv1alpha1.ReasonNotReady, "Container not passing health checks: restarts: %d: %s", status.RestartCount, why)
	}
	if status.RestartCount > 0 {
		return told(mcpv1alpha1.ReasonNotReady, "Container not passing health checks: restarts: %d", status.RestartCount)
	}
	return told(mcpv1alpha1.ReasonNotReady,
		"Container not passing health checks: it runs and its readiness probe fails; does the server listen on spec.port and on all addresses?")
}

// withoutWords takes out what a container said when it ended. Of the bridge of a Stdio server these are words of ours, which
// tell how its child failed; of any other they are foreign, and may be anything.
func withoutWords(state corev1.ContainerState) corev1.ContainerState {
	if state.Terminated != nil && state.Terminated.Message != "" {
		silent := *state.Terminated
		silent.Message = ""
		state.Terminated = &silent
	}
	return state
}

// printable replaces what could draw something else than text.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

type teller func(reason, format string, args ...any) diagnosis

func diagnoseWaiting(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time, told teller) diagnosis {
	waiting := status.State.Waiting
	switch waiting.Reason {
	case WaitingImagePullBackOff, WaitingErrImagePull, "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
		// The kubelet tells of one failure in two ways, in turns: as it is, and as what it backs off from.
		why := waiting.Message
		if _, cause, ok := strings.Cut(why, WaitingErrImagePull+": "); ok {
			why = cause
		}
		return told(mcpv1alpha1.ReasonImagePullFailed, "Image pull failed for %q: %s", status.Image, why)
	case WaitingCrashLoopBackOff:
		if last := status.LastTerminationState.Terminated; last != nil {
			return diagnoseEnd(status, last, told)
		}
		return told(mcpv1alpha1.ReasonCrashLooping, "Container crashing: restarts: %d", status.RestartCount)
	case WaitingCreateContainerConfigError, "CreateContainerError", "RunContainerError":
		return diagnoseConfig(waiting.Message, told)
	}
	if waiting.Reason != "ContainerCreating" {
		return diagnosis{} // an init container is at work, or a kubelet's word that we do not know
	}
	started := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		started = pod.Status.StartTime.Time
	}
	if age := now.Sub(started); age < mountGrace {
		return diagnosis{after: mountGrace - age}
	}
	return told(mcpv1alpha1.ReasonMountFailed, "Container has not been created (%s)", waiting.Reason)
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
	why := ""
	if ended.Message != "" {
		why = ": " + strings.Map(printable, ended.Message)
	}
	return told(mcpv1alpha1.ReasonCrashLooping, "Container crashing: exit code %d, restarts: %d%s", ended.ExitCode, status.RestartCount, why)
}

// explainMount asks the pod's events what it waits for: nothing else knows. Without such an event it is only slow.
func (s *scope) explainMount(ctx context.Context, pod *corev1.Pod, d diagnosis) diagnosis {
	list := &corev1.EventList{}
	err := s.APIReader.List(ctx, list, client.InNamespace(pod.Namespace), client.Limit(100),
		client.MatchingFields{"involvedObject.uid": string(pod.UID), "type": corev1.EventTypeWarning})
	if err != nil {
		return diagnosis{after: eventsInterval}
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
		return diagnosis{after: eventsInterval}
	}
	d.message = fmt.Sprintf("%s: %s (pod: %s)", newest.Reason, newest.Message, pod.Name)
	d.after = eventsInterval
	return d
}

// isOver says whether a pod is being deleted, or has ended for good, such as an evicted one. Neither tells of the server.
func isOver(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
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

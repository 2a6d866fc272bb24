// Package diagnose says why the pods of a Deployment are not ready, from what the kubelet and the scheduler tell.
//
// What a foreign container says when it ends is never told: it may be anything.
package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Finding is why a pod is not ready. The zero value knows nothing.
type Finding struct {
	// Reason is one of those of the condition Available.
	Reason, Message string
	// After is when a look may tell more, 0 if only a change can.
	After time.Duration
}

// Subject is whose pods are looked at. The zero value is an MCPServer.
type Subject struct {
	// Resources and Security are the fields that hold the pods' resources and security settings. Default: spec.resources and
	// spec.podSecurity.
	Resources, Security string
	// Unready is what may be wrong with a container that runs and is not ready. Default: what is about servers.
	Unready string
}

func (s Subject) resources() string { return cmp.Or(s.Resources, "spec.resources") }

func (s Subject) security() string { return cmp.Or(s.Security, "spec.podSecurity") }

func (s Subject) unready() string {
	return cmp.Or(s.Unready, "it runs and its readiness probe fails; does the server listen on spec.port and on all addresses?")
}

// Workload looks for what is wrong, in the pods first, which it sorts: they know more than the Deployment. events is where the events
// of a pod that waits for a volume are listed, one pod's in a look, and memory what they said before.
func (s Subject) Workload(ctx context.Context, events client.Reader, memory *Memory, deployment *appsv1.Deployment, pods []corev1.Pod) Finding {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	all, waiting := s.look(pods)
	memory.ask(ctx, events, waiting)
	var later time.Duration
	for _, of := range all {
		d := of.Finding
		if d.Reason == mcpv1alpha1.ReasonMountFailed {
			d = memory.explain(of.pod, d)
		}
		if d.Reason != "" {
			return d
		}
		if d.After > 0 && (later == 0 || d.After < later) {
			later = d.After
		}
	}
	if d := diagnoseDeployment(deployment); d.Reason != "" {
		return d
	}
	return Finding{After: later}
}

// found is what is found of a pod.
type found struct {
	Finding

	pod *corev1.Pod
}

// look says what is wrong with each pod up to the first that needs no more questions, and which of them wait for a volume.
func (s Subject) look(pods []corev1.Pod) (all []found, waiting []*corev1.Pod) {
	now := time.Now()
	for i := range pods {
		d := found{pod: &pods[i], Finding: s.Pod(&pods[i], now)}
		all = append(all, d)
		switch d.Reason {
		case "":
		case mcpv1alpha1.ReasonMountFailed:
			waiting = append(waiting, d.pod)
		default:
			return all, waiting
		}
	}
	return all, waiting
}

func diagnoseDeployment(d *appsv1.Deployment) Finding {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			why := c.Message
			if _, cause, ok := strings.Cut(why, " is forbidden: "); ok {
				why = cause // what is cut off names a pod that never was, another one at each attempt
			}
			return Finding{Reason: mcpv1alpha1.ReasonPodRejected, Message: "Pods cannot be created: " + why}
		}
	}
	return Finding{}
}

// Pod says why a pod is not ready, or when to look again.
func (s Subject) Pod(pod *corev1.Pod, now time.Time) Finding {
	if IsReady(pod) {
		return Finding{}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return Finding{Reason: mcpv1alpha1.ReasonUnschedulable, Message: fmt.Sprintf("Pod cannot be scheduled: %s (pod: %s)", c.Message, pod.Name)}
		}
	}
	var later time.Duration
	for _, status := range awaited(pod) {
		d := s.container(pod, status, now)
		if d.Reason != "" {
			return d
		}
		if d.After > 0 && (later == 0 || d.After < later) {
			later = d.After
		}
	}
	return Finding{After: later}
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

// container says what is wrong with a container. A server that ends is as wrong with exit code 0 as with any other.
func (s Subject) container(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time) Finding {
	told := func(reason, format string, args ...any) Finding {
		return Finding{Reason: reason, Message: fmt.Sprintf(format, args...) + fmt.Sprintf(" (pod: %s)", pod.Name)}
	}
	if !desired.IsBridged(pod) {
		status.LastTerminationState, status.State = withoutWords(status.LastTerminationState), withoutWords(status.State)
	}
	if waiting := status.State.Waiting; waiting != nil {
		return s.waiting(pod, status, now, told)
	}
	if ended := status.State.Terminated; ended != nil {
		return s.end(status, ended, told)
	}
	running := status.State.Running
	if running == nil || status.Ready {
		return Finding{}
	}
	age := now.Sub(running.StartedAt.Time)
	if last := status.LastTerminationState.Terminated; last != nil && age < restartGrace {
		d := s.end(status, last, told)
		d.After = restartGrace - age
		return d
	}
	if age < startupGrace {
		return Finding{After: startupGrace - age}
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
	return told(mcpv1alpha1.ReasonNotReady, "Container not passing health checks: %s", s.unready())
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

type teller func(reason, format string, args ...any) Finding

func (s Subject) waiting(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time, told teller) Finding {
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
			return s.end(status, last, told)
		}
		return told(mcpv1alpha1.ReasonCrashLooping, "Container crashing: restarts: %d", status.RestartCount)
	case WaitingCreateContainerConfigError, "CreateContainerError", "RunContainerError":
		return s.config(waiting.Message, told)
	}
	// In a pod with init containers the kubelet says PodInitializing of all containers, also before the first is created.
	if waiting.Reason != "ContainerCreating" && (waiting.Reason != "PodInitializing" || !isUnbegun(pod)) {
		return Finding{} // an init container is at work, or a kubelet's word that we do not know
	}
	started := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		started = pod.Status.StartTime.Time
	}
	if age := now.Sub(started); age < mountGrace {
		return Finding{After: mountGrace - age}
	}
	return told(mcpv1alpha1.ReasonMountFailed, "Container has not been created (%s)", waiting.Reason)
}

// isUnbegun says whether no init container of a pod that has some was started yet.
func isUnbegun(pod *corev1.Pod) bool {
	statuses := pod.Status.InitContainerStatuses
	return len(statuses) > 0 && !slices.ContainsFunc(statuses, func(status corev1.ContainerStatus) bool {
		return status.State.Waiting == nil || status.State.Waiting.Reason != "PodInitializing" || status.LastTerminationState.Terminated != nil
	})
}

// config tells the two mistakes about users apart from others; the kubelet has no reasons for them.
func (s Subject) config(message string, told teller) Finding {
	switch {
	case strings.Contains(message, "non-numeric user"):
		return told(mcpv1alpha1.ReasonNonNumericUser,
			"Container config error: %s; set %s.runAsUser to the number of the image's user", message, s.security())
	case strings.Contains(message, "image will run as root"):
		return told(mcpv1alpha1.ReasonNonNumericUser,
			"Container config error: %s; set %s.runAsUser to a number other than 0, or runAsNonRoot to false", message, s.security())
	}
	return told(mcpv1alpha1.ReasonConfigError, "Container config error: %s", message)
}

func (s Subject) end(status corev1.ContainerStatus, ended *corev1.ContainerStateTerminated, told teller) Finding {
	if ended.Reason == TerminatedOOMKilled {
		return told(mcpv1alpha1.ReasonOOMKilled, "Container OOMKilled: exit code %d, restarts: %d; raise %s.limits.memory",
			ended.ExitCode, status.RestartCount, s.resources())
	}
	why := ""
	if ended.Message != "" {
		why = ": " + strings.Map(printable, ended.Message)
	}
	return told(mcpv1alpha1.ReasonCrashLooping, "Container crashing: exit code %d, restarts: %d%s", ended.ExitCode, status.RestartCount, why)
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

package diagnose

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// container is one container of a pod that is not ready, at a time.
type container struct {
	Subject

	pod    *corev1.Pod
	status corev1.ContainerStatus
	now    time.Time
	// own says that it is the workload's own, which the fields of the object are about; not one that serves it, or that somebody else put
	// into the pod.
	own bool
	// bridged says that it is the bridge of a Stdio server.
	bridged bool
}

func (s Subject) at(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time) container {
	c := container{Subject: s, pod: pod, status: status, now: now, own: status.Name == nameOfOwn(pod)}
	c.bridged = c.own && desired.IsBridged(pod)
	if !c.bridged {
		c.status.LastTerminationState, c.status.State = withoutWords(c.status.LastTerminationState), withoutWords(c.status.State)
	}
	return c
}

// nameOfOwn is the name of the container that is the workload's own.
func nameOfOwn(pod *corev1.Pod) string {
	if name := pod.Labels[desired.LabelApp]; name != "" {
		return name
	}
	return desired.WorkloadName
}

// withoutWords takes out what a container said when it ended. Of the bridge of a Stdio server these are words of ours, which
// tell how its child failed; of one that never ran they are the runtime's. Of any other they are foreign, and may be anything.
func withoutWords(state corev1.ContainerState) corev1.ContainerState {
	if state.Terminated != nil && state.Terminated.Message != "" && !neverRan(state.Terminated) {
		silent := *state.Terminated
		silent.Message = ""
		state.Terminated = &silent
	}
	return state
}

// neverRan says whether a container ended because the runtime could not start it, in the words of containerd and of Docker.
func neverRan(ended *corev1.ContainerStateTerminated) bool {
	return ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun"
}

// printable replaces what could draw something else than text.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// look says what is wrong with a container. A server that ends is as wrong with exit code 0 as with any other.
func (c container) look() Finding {
	if c.status.State.Waiting != nil {
		return c.waiting()
	}
	if ended := c.status.State.Terminated; ended != nil {
		return c.end(ended)
	}
	running := c.status.State.Running
	if running == nil || c.status.Ready {
		return Finding{}
	}
	age := c.now.Sub(running.StartedAt.Time)
	if last := c.status.LastTerminationState.Terminated; last != nil && !neverRan(last) && age < restartGrace {
		d := c.end(last)
		d.After = restartGrace - age
		return d
	}
	if !c.own {
		age = c.besideOwn(age)
	}
	if age < startupGrace {
		return Finding{After: startupGrace - age}
	}
	return c.unready()
}

// besideOwn is how long a container of an age has been running beside the workload's own: it may be ready no sooner than that is.
func (c container) besideOwn(age time.Duration) time.Duration {
	for _, status := range c.pod.Status.ContainerStatuses {
		if running := status.State.Running; running != nil && status.Name == nameOfOwn(c.pod) {
			return min(age, c.now.Sub(running.StartedAt.Time))
		}
	}
	return age
}

func (c container) waiting() Finding {
	waiting := c.status.State.Waiting
	switch waiting.Reason {
	case WaitingImagePullBackOff, WaitingErrImagePull, "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
		// The kubelet tells of one failure in two ways, in turns: as it is, and as what it backs off from.
		why := waiting.Message
		if _, cause, ok := strings.Cut(why, WaitingErrImagePull+": "); ok {
			why = cause
		}
		return c.says(mcpv1alpha1.ReasonImagePullFailed, fmt.Sprintf("Image pull failed for %q: %s", c.status.Image, why), "")
	case WaitingCrashLoopBackOff:
		if last := c.status.LastTerminationState.Terminated; last != nil {
			return c.end(last)
		}
		return c.says(mcpv1alpha1.ReasonCrashLooping, fmt.Sprintf("Container crashing: restarts: %d", c.status.RestartCount), c.log("--previous"))
	case WaitingCreateContainerConfigError, "CreateContainerError", "RunContainerError":
		return c.config(waiting.Message)
	}
	// In a pod with init containers the kubelet says PodInitializing of all containers, also before the first is created.
	if waiting.Reason != "ContainerCreating" && (waiting.Reason != "PodInitializing" || !isUnbegun(c.pod)) {
		return Finding{} // an init container is at work, or a kubelet's word that we do not know
	}
	started := c.pod.CreationTimestamp.Time
	if c.pod.Status.StartTime != nil {
		started = c.pod.Status.StartTime.Time
	}
	if age := c.now.Sub(started); age < mountGrace {
		return Finding{After: mountGrace - age}
	}
	return ofPod(c.pod, mcpv1alpha1.ReasonMountFailed, fmt.Sprintf("Container has not been created (%s)", waiting.Reason))
}

// says makes a Finding of what is known of old to be said, and of what is added to that. A container that is not the workload's own is named:
// no field of the object is about it.
func (c container) says(reason, known, added string) Finding {
	if !c.own {
		added = fmt.Sprintf("; this is the container %q, which is not the workload's own", c.status.Name) + added
	}
	d := ofPod(c.pod, reason, known+added)
	if added != "" {
		d.Known = ofPod(c.pod, reason, known).Message
	}
	return d
}

// log says where the words of a container are that is not the workload's own; nothing of the workload's, which the documentation tells.
func (c container) log(flags ...string) string {
	if c.own {
		return ""
	}
	command := []string{"kubectl", "logs", "-n", c.pod.Namespace, c.pod.Name, "-c", c.status.Name}
	return ": " + strings.Join(append(command, flags...), " ")
}

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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
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

	// A pod that is held back by a gate for less than gateGrace is not told of: who set the gate, such as a load balancer's controller, needs
	// that long in an ordinary rollout.
	gateGrace = 2 * time.Minute
)

// Finding is why a pod is not ready. The zero value knows nothing.
type Finding struct {
	// Reason is one of those of the condition Available.
	Reason, Message string
	// Known is the message as users of the compatibility API know it, whose scripts look for it; empty if Message is.
	Known string
	// After is when a look may tell more, 0 if only a change can.
	After time.Duration
}

// Subject is whose pods are looked at. The zero value is an MCPServer.
type Subject struct {
	// Resources and Security are the fields that hold the pods' resources and security settings. Default: spec.resources and
	// spec.podSecurity.
	Resources, Security string
	// Unready is what may be wrong with a container that runs and is not ready. Default: what is about servers, and about their probes.
	Unready string
}

func (s Subject) resources() string { return cmp.Or(s.Resources, "spec.resources") }

func (s Subject) security() string { return cmp.Or(s.Security, "spec.podSecurity") }

// probes is the field that holds the probes. It is not of the compatibility API: what names it has a message that is Known.
func (s Subject) probes() string { return "spec.probes" }

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
	if h := heldBy(pod); h.finding.Reason != "" {
		return h.after(now)
	}
	var later time.Duration
	for _, status := range awaited(pod) {
		d := s.at(pod, status, now).look()
		if d.Reason != "" {
			return d
		}
		if d.After > 0 && (later == 0 || d.After < later) {
			later = d.After
		}
	}
	return Finding{After: later}
}

// config tells the two mistakes about users apart from others; the kubelet has no reasons for them.
func (c container) config(why string) Finding {
	told := "Container config error: " + strings.Map(printable, why)
	switch {
	case strings.Contains(why, "non-numeric user"):
		if c.own {
			told += fmt.Sprintf("; set %s.runAsUser to the number of the image's user", c.security())
		}
		return c.says(mcpv1alpha1.ReasonNonNumericUser, told, "")
	case strings.Contains(why, "image will run as root"):
		if c.own {
			told += fmt.Sprintf("; set %s.runAsUser to a number other than 0, or runAsNonRoot to false", c.security())
		}
		return c.says(mcpv1alpha1.ReasonNonNumericUser, told, "")
	}
	return c.says(mcpv1alpha1.ReasonConfigError, told, "")
}

// end tells how a container ended.
func (c container) end(ended *corev1.ContainerStateTerminated) Finding {
	restarts, words := c.status.RestartCount, strings.Map(printable, ended.Message)
	if ended.Reason == TerminatedOOMKilled {
		told := fmt.Sprintf("Container OOMKilled: exit code %d, restarts: %d", ended.ExitCode, restarts)
		if !c.own {
			return c.says(mcpv1alpha1.ReasonOOMKilled, told, ": its memory limit is set where it comes from")
		}
		return c.says(mcpv1alpha1.ReasonOOMKilled, told+fmt.Sprintf("; raise %s.limits.memory", c.resources()), "")
	}
	crashing := fmt.Sprintf("Container crashing: exit code %d, restarts: %d", ended.ExitCode, restarts)
	switch {
	case words == "" && c.own:
		return c.says(mcpv1alpha1.ReasonCrashLooping, crashing, c.suspects(ended))
	case words == "":
		return c.says(mcpv1alpha1.ReasonCrashLooping, crashing, c.log("--previous"))
	case neverRan(ended):
		d := c.config(words)
		d.Known = ofPod(c.pod, "", crashing).Message
		return d
	}
	return c.says(mcpv1alpha1.ReasonCrashLooping, crashing+": "+words, "")
}

// unready tells of a container that runs for long and is not ready.
func (c container) unready() Finding {
	const failing = "Container not passing health checks: "
	restarts, again := fmt.Sprintf("restarts: %d", c.status.RestartCount), c.status.RestartCount > 0
	why := c.whyUnready()
	switch {
	case c.bridged:
		return c.says(mcpv1alpha1.ReasonNotReady, failing+restarts+": "+why, "")
	case again && c.own:
		return c.says(mcpv1alpha1.ReasonNotReady, failing+restarts, "; "+why)
	case again:
		return c.says(mcpv1alpha1.ReasonNotReady, failing+restarts, c.log())
	case !c.own:
		return c.says(mcpv1alpha1.ReasonNotReady, failing+why, c.log())
	}
	d := c.says(mcpv1alpha1.ReasonNotReady, failing+why, "")
	if why != c.Subject.unready() {
		d.Known = ofPod(c.pod, "", failing+c.Subject.unready()).Message
	}
	return d
}

// whyUnready is what may be wrong with a container that runs for long and is not ready.
func (c container) whyUnready() string {
	starting := c.status.Started != nil && !*c.status.Started // the kubelet says so as long as a startup probe has not succeeded
	switch {
	case c.bridged:
		if last := c.status.LastTerminationState.Terminated; last != nil && last.Message != "" {
			return "before, " + strings.Map(printable, last.Message)
		}
		return "its process has not answered MCP over its standard output; look at the container's log, and check spec.command"
	case c.Unready != "" && c.own:
		return c.Unready
	case starting && !c.own:
		return "it runs and its startup probe has not succeeded"
	case !c.own:
		return "it runs and its readiness probe fails"
	case starting:
		probe := c.spec().StartupProbe
		return "it runs and its startup probe has not succeeded: " + c.field("startup", probe) + "; " + does(c.path(probe))
	case c.path(c.spec().ReadinessProbe) != "":
		probe := c.spec().ReadinessProbe
		return "it runs and its readiness probe fails: " + c.field("readiness", probe) + "; " + does(c.path(probe))
	}
	return c.Subject.unready()
}

// does asks what a server whose probe fails may not do.
func does(path string) string {
	if path == "" {
		return "does the server listen on spec.port and on all addresses?"
	}
	return "does the server listen on spec.port and on all addresses, and answer there with a status from 200 to 399?"
}

// killed are the exit codes of a process that was killed, or asked to end: the last is of Go programs that make nothing of being asked.
var killed = []int32{0, 128 + 9, 128 + 15, 2}

// suspects names the probes that may have had a server killed, or asked to end.
func (c container) suspects(ended *corev1.ContainerStateTerminated) string {
	if c.Unready != "" || !slices.Contains(killed, ended.ExitCode) {
		return ""
	}
	own := c.spec()
	var kinds, fields []string
	for _, of := range []struct {
		kind  string
		probe *corev1.Probe
	}{{"startup", own.StartupProbe}, {"liveness", own.LivenessProbe}} {
		if of.probe != nil && hadTime(of.probe, ended) {
			kinds, fields = append(kinds, of.kind), append(fields, c.field(of.kind, of.probe))
		}
	}
	if kinds == nil {
		return ""
	}
	return fmt.Sprintf("; its %s probe may have killed it: check %s", strings.Join(kinds, " or "), strings.Join(fields, " and "))
}

// hadTime says whether a container ran long enough for a probe to fail as often as it may. Its times are whole seconds.
func hadTime(probe *corev1.Probe, ended *corev1.ContainerStateTerminated) bool {
	needed := time.Duration(probe.InitialDelaySeconds+(probe.FailureThreshold-1)*probe.PeriodSeconds) * time.Second
	return ended.FinishedAt.Sub(ended.StartedAt.Time)+time.Second >= needed
}

// spec returns the container as the pod specifies it, for its probes.
func (c container) spec() corev1.Container {
	for _, spec := range c.pod.Spec.Containers {
		if spec.Name == c.status.Name {
			return spec
		}
	}
	return corev1.Container{}
}

// field names the field of a probe, with its path if it has one.
func (c container) field(kind string, probe *corev1.Probe) string {
	name := c.probes() + "." + kind
	if path := c.path(probe); path != "" {
		name += fmt.Sprintf(" (path %q)", path)
	}
	return name
}

// path returns the path that a probe asks for; none of a probe that only connects, or of the bridge's, whose path nobody chose.
func (c container) path(probe *corev1.Probe) string {
	if probe == nil || probe.HTTPGet == nil || c.bridged {
		return ""
	}
	return probe.HTTPGet.Path
}

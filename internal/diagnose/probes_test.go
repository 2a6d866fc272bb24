package diagnose

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe returns a probe of a path, or, without one, of the port.
func probe(path string) *corev1.Probe {
	port := intstr.FromInt32(8080)
	if path == "" {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}}
	}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: port}}}
}

func TestAProbeThatFailsIsNamedWithItsPath(t *testing.T) {
	t.Parallel()
	const (
		listens = "does the server listen on spec.port and on all addresses?"
		answers = "does the server listen on spec.port and on all addresses, and answer there with a status from 200 to 399?"
	)
	type probes struct{ startup, readiness, liveness *corev1.Probe }
	ready := probes{readiness: probe("")}
	runs := corev1.ContainerStatus{State: running(time.Hour)}
	starts := corev1.ContainerStatus{State: running(time.Hour), Started: new(false)}
	killed := func(exitCode, restarts int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: waiting("CrashLoopBackOff", ""), LastTerminationState: ended(exitCode, "Error"), RestartCount: restarts}
	}
	again := func(status corev1.ContainerStatus) corev1.ContainerStatus {
		status.RestartCount, status.LastTerminationState = 2, ended(143, "Error")
		return status
	}
	// patient is a probe that fails for 20 s before anything comes of it; ran gives an end the time that the container ran.
	patient := probe("/live")
	patient.InitialDelaySeconds, patient.PeriodSeconds, patient.FailureThreshold = 10, 5, 3
	ran := func(status corev1.ContainerStatus, age time.Duration) corev1.ContainerStatus {
		last := status.LastTerminationState.Terminated
		last.StartedAt, last.FinishedAt = ago(time.Minute+age), ago(time.Minute)
		return status
	}
	const unready = "Container not passing health checks: "
	tests := map[string]struct {
		probes    probes
		status    corev1.ContainerStatus
		is, known string
	}{
		"readiness by a connection": {ready, runs, unready + "it runs and its readiness probe fails; " + listens, ""},
		"readiness by a path": {
			probes{readiness: probe("/ready")},
			runs,
			unready + `it runs and its readiness probe fails: spec.probes.readiness (path "/ready"); ` + answers,
			unready + "it runs and its readiness probe fails; " + listens,
		},
		"readiness by a path after restarts": {
			probes{readiness: probe("/ready")},
			again(runs),
			unready + `restarts: 2; it runs and its readiness probe fails: spec.probes.readiness (path "/ready"); ` + answers, unready + "restarts: 2",
		},
		"startup by a connection": {
			probes{readiness: probe("/ready"), startup: probe("")},
			starts,
			unready + "it runs and its startup probe has not succeeded: spec.probes.startup; " + listens,
			unready + "it runs and its readiness probe fails; " + listens,
		},
		"startup by a path": {
			probes{readiness: probe("/ready"), startup: probe("/up")},
			starts,
			unready + `it runs and its startup probe has not succeeded: spec.probes.startup (path "/up"); ` + answers,
			unready + "it runs and its readiness probe fails; " + listens,
		},
		"startup by a path after it was killed for it": {
			probes{readiness: probe(""), startup: probe("/up")},
			again(starts),
			unready + `restarts: 2; it runs and its startup probe has not succeeded: spec.probes.startup (path "/up"); ` + answers, unready + "restarts: 2",
		},
		"readiness, once it has started": {
			probes{readiness: probe(""), startup: probe("/up")},
			corev1.ContainerStatus{State: running(time.Hour), Started: new(true)},
			unready + "it runs and its readiness probe fails; " + listens, "",
		},
		"it ended itself when asked to, and liveness may have had it asked": {
			probes{readiness: probe(""), liveness: probe("/live")},
			killed(0, 2),
			`Container crashing: exit code 0, restarts: 2; its liveness probe may have killed it: check spec.probes.liveness (path "/live")`,
			"Container crashing: exit code 0, restarts: 2",
		},
		"it was asked to end": {
			probes{liveness: probe("")},
			killed(143, 1),
			"Container crashing: exit code 143, restarts: 1; its liveness probe may have killed it: check spec.probes.liveness",
			"Container crashing: exit code 143, restarts: 1",
		},
		"it was killed, and two probes may have had it killed": {
			probes{startup: probe("/up"), liveness: probe("/live")},
			killed(137, 2),
			"Container crashing: exit code 137, restarts: 2; its startup or liveness probe may have killed it: " +
				`check spec.probes.startup (path "/up") and spec.probes.liveness (path "/live")`,
			"Container crashing: exit code 137, restarts: 2",
		},
		"it was killed, and startup may have had it killed": {
			probes{startup: probe("/up")},
			killed(137, 2),
			`Container crashing: exit code 137, restarts: 2; its startup probe may have killed it: check spec.probes.startup (path "/up")`,
			"Container crashing: exit code 137, restarts: 2",
		},
		"it ended before its liveness could have it killed": {
			probes{liveness: patient}, ran(killed(143, 2), 18*time.Second), "Container crashing: exit code 143, restarts: 2", "",
		},
		"it ended as soon as its liveness could have it killed": {
			probes{liveness: patient},
			ran(killed(143, 2), 19*time.Second),
			`Container crashing: exit code 143, restarts: 2; its liveness probe may have killed it: check spec.probes.liveness (path "/live")`,
			"Container crashing: exit code 143, restarts: 2",
		},
		"a Go program that makes nothing of SIGTERM": {
			probes{liveness: probe("/live")},
			killed(2, 2),
			`Container crashing: exit code 2, restarts: 2; its liveness probe may have killed it: check spec.probes.liveness (path "/live")`,
			"Container crashing: exit code 2, restarts: 2",
		},
		"it was asked to end for the first time, which the first event tells": {
			probes{liveness: probe("/live")},
			killed(143, 0),
			`Container crashing: exit code 143, restarts: 0; its liveness probe may have killed it: check spec.probes.liveness (path "/live")`,
			"Container crashing: exit code 143, restarts: 0",
		},
		"it ended with an error, which no probe makes": {
			probes{startup: probe("/up"), liveness: probe("/live")}, killed(1, 2), "Container crashing: exit code 1, restarts: 2", "",
		},
		"it was killed, and no probe kills": {probes{readiness: probe("/ready")}, killed(137, 2), "Container crashing: exit code 137, restarts: 2", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := makePod(func(pod *corev1.Pod) {
				own := &pod.Spec.Containers[0]
				own.StartupProbe, own.ReadinessProbe, own.LivenessProbe = tt.probes.startup, tt.probes.readiness, tt.probes.liveness
				tt.status.Name = own.Name
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{tt.status}
			})
			got := podOf(pod, now)
			got.Reason = ""
			want := Finding{Message: tt.is + " (pod: demo-1)"}
			if tt.known != "" {
				want.Known = tt.known + " (pod: demo-1)"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("finding (-want +got)\n%s", diff)
			}
		})
	}
}

func TestOfTheBridgesOwnProbesNoPathIsTold(t *testing.T) {
	t.Parallel()
	pod := makePod(func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mcp-gateway", State: ended(0, "Completed")}}
		own := &pod.Spec.Containers[0]
		own.StartupProbe, own.ReadinessProbe, own.LivenessProbe = probe("/readyz"), probe("/readyz"), probe("/livez")
		c := &pod.Status.ContainerStatuses[0]
		c.State, c.LastTerminationState, c.RestartCount = waiting("CrashLoopBackOff", ""), ended(137, "Error"), 2
	})
	want := Finding{
		Reason: "CrashLooping", Known: "Container crashing: exit code 137, restarts: 2 (pod: demo-1)",
		Message: "Container crashing: exit code 137, restarts: 2; its startup or liveness probe may have killed it: " +
			"check spec.probes.startup and spec.probes.liveness (pod: demo-1)",
	}
	if diff := cmp.Diff(want, podOf(pod, now)); diff != "" {
		t.Errorf("finding (-want +got)\n%s", diff)
	}
}

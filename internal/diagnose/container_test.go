package diagnose

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// notOwn ends what is told of a container that is not the server's own.
func notOwn(name, added string) string {
	return `; this is the container "` + name + `", which is not the workload's own` + added + " (pod: demo-1)"
}

func TestInitContainersAreDiagnosedFirst(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		init        corev1.ContainerState
		ready       bool
		main        corev1.ContainerState
		isMainReady bool
		want        Finding
	}{
		"one that failed hides that the others wait for it": {
			init: ended(1, "Error"), main: waiting("PodInitializing", ""),
			want: Finding{
				Reason: "CrashLooping", Known: "Container crashing: exit code 1, restarts: 0 (pod: demo-1)",
				Message: "Container crashing: exit code 1, restarts: 0" + notOwn("init", ": kubectl logs -n team demo-1 -c init --previous"),
			},
		},
		"one that cannot be pulled": {
			init: waiting("ImagePullBackOff", "Back-off"), main: waiting("PodInitializing", ""),
			want: Finding{
				Reason: "ImagePullFailed", Known: `Image pull failed for "init:1": Back-off (pod: demo-1)`,
				Message: `Image pull failed for "init:1": Back-off` + notOwn("init", ""),
			},
		},
		"one that has done its work says nothing": {
			init: ended(0, "Completed"), main: ended(4, "Error"),
			want: Finding{Reason: "CrashLooping", Message: "Container crashing: exit code 4, restarts: 0 (pod: demo-1)"},
		},
		"one that is not even made, of a pod an hour old, waits for a volume": {
			init: waiting("PodInitializing", ""), main: waiting("PodInitializing", ""),
			want: Finding{Reason: "MountFailed", Message: "Container has not been created (PodInitializing) (pod: demo-1)"},
		},
		"one that runs for long is progress": {init: running(time.Hour), main: waiting("PodInitializing", "")},
		"one that runs beside the server, and is ready, is no server that does not listen": {
			init: running(time.Hour), ready: true, main: running(time.Second), want: Finding{After: 9 * time.Second},
		},
		"one that runs beside the server may be ready no sooner than that": {
			init: running(time.Hour), main: running(time.Second), isMainReady: true, want: Finding{After: 9 * time.Second},
		},
		"one that runs beside a server which is not ready may wait for that": {
			init: running(time.Hour), main: ended(4, "Error"),
			want: Finding{Reason: "CrashLooping", Message: "Container crashing: exit code 4, restarts: 0 (pod: demo-1)"},
		},
		"one that runs beside the server, and is not ready, is a sidecar that fails": {
			init: running(time.Hour), main: running(10 * time.Second), isMainReady: true,
			want: Finding{
				Reason: "NotReady", Known: "Container not passing health checks: it runs and its readiness probe fails (pod: demo-1)",
				Message: "Container not passing health checks: it runs and its readiness probe fails" + notOwn("init", ": kubectl logs -n team demo-1 -c init"),
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := podOf(makePod(func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", Image: "init:1", State: tt.init, Ready: tt.ready}}
				pod.Status.ContainerStatuses[0].State, pod.Status.ContainerStatuses[0].Ready = tt.main, tt.isMainReady
			}), now)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("finding (-want +got)\n%s", diff)
			}
		})
	}
}

func TestOfSeveralContainersTheFirstThatFailsIsTold(t *testing.T) {
	t.Parallel()
	pod := makePod(func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State = running(time.Second)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: "starting", State: running(7 * time.Second)},
			corev1.ContainerStatus{Name: "sidecar", State: ended(9, "Error")})
	})
	want := Finding{
		Reason: "CrashLooping", Known: "Container crashing: exit code 9, restarts: 0 (pod: demo-1)",
		Message: "Container crashing: exit code 9, restarts: 0" + notOwn("sidecar", ": kubectl logs -n team demo-1 -c sidecar --previous"),
	}
	if diff := cmp.Diff(want, podOf(pod, now)); diff != "" {
		t.Errorf("finding (-want +got)\n%s", diff)
	}
	pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[:2]
	pod.Status.ContainerStatuses[0].State, pod.Status.ContainerStatuses[1].State = running(7*time.Second), running(time.Second)
	if got := podOf(pod, now); got != (Finding{After: 3 * time.Second}) {
		t.Errorf("got %+v, want the container that is due first", got)
	}
}

func TestWhatIsWrongWithTheServerGoesBeforeASidecarThatMayWaitForIt(t *testing.T) {
	t.Parallel()
	pod := makePod(func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a-proxy", State: running(time.Hour)}, {Name: "mcp-server", State: ended(3, "Error")}}
	})
	want := Finding{Reason: "CrashLooping", Message: "Container crashing: exit code 3, restarts: 0 (pod: demo-1)"}
	if diff := cmp.Diff(want, podOf(pod, now)); diff != "" {
		t.Errorf("finding (-want +got)\n%s", diff)
	}
}

func TestAContainerThatIsNotTheWorkloadsOwnIsNamedWithoutAdviceOnFieldsThatAreNotAboutIt(t *testing.T) {
	t.Parallel()
	logs := ": kubectl logs -n team demo-1 -c proxy"
	tests := map[string]struct {
		is            corev1.ContainerStatus
		reason, known string
		added         string
	}{
		"it is not ready": {
			corev1.ContainerStatus{State: running(time.Hour)},
			"NotReady",
			"Container not passing health checks: it runs and its readiness probe fails", logs,
		},
		"it does not start up": {
			corev1.ContainerStatus{State: running(time.Hour), Started: new(false)},
			"NotReady",
			"Container not passing health checks: it runs and its startup probe has not succeeded", logs,
		},
		"it is not ready after restarts": {
			corev1.ContainerStatus{State: running(time.Hour), RestartCount: 2}, "NotReady", "Container not passing health checks: restarts: 2", logs,
		},
		"it wants more memory than it may have": {
			corev1.ContainerStatus{State: waiting("CrashLoopBackOff", ""), LastTerminationState: ended(137, "OOMKilled"), RestartCount: 3},
			"OOMKilled",
			"Container OOMKilled: exit code 137, restarts: 3", ": its memory limit is set where it comes from",
		},
		"it crashes": {
			corev1.ContainerStatus{State: waiting("CrashLoopBackOff", ""), LastTerminationState: ended(2, "Error"), RestartCount: 3},
			"CrashLooping",
			"Container crashing: exit code 2, restarts: 3", logs + " --previous",
		},
		"it crashes, and it is not known how": {
			corev1.ContainerStatus{State: waiting("CrashLoopBackOff", ""), RestartCount: 3},
			"CrashLooping",
			"Container crashing: restarts: 3", logs + " --previous",
		},
		"its image is not there": {
			corev1.ContainerStatus{State: waiting("ErrImagePull", "no"), Image: "proxy:1"}, "ImagePullFailed", `Image pull failed for "proxy:1": no`, "",
		},
		"its user is a name": {
			corev1.ContainerStatus{State: waiting("CreateContainerConfigError", "non-numeric user (node)")},
			"NonNumericUser",
			"Container config error: non-numeric user (node)", "",
		},
		"it runs as root": {
			corev1.ContainerStatus{State: waiting("CreateContainerConfigError", "image will run as root")},
			"NonNumericUser",
			"Container config error: image will run as root", "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.is.Name = "proxy"
			want := Finding{Reason: tt.reason, Message: tt.known + notOwn("proxy", tt.added), Known: tt.known + " (pod: demo-1)"}
			for where, change := range map[string]func(*corev1.Pod){
				"before the server": func(*corev1.Pod) {},
				"beside the bridge": func(pod *corev1.Pod) {
					pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mcp-gateway", State: ended(0, "")}}
				},
				"in a pod that says no name": func(pod *corev1.Pod) { delete(pod.Labels, desired.LabelApp) },
			} {
				pod := makePod(change, func(pod *corev1.Pod) {
					pod.Status.ContainerStatuses[0].Ready = true
					pod.Status.ContainerStatuses = append([]corev1.ContainerStatus{tt.is}, pod.Status.ContainerStatuses...)
				})
				if diff := cmp.Diff(want, podOf(pod, now)); diff != "" {
					t.Errorf("%s: finding (-want +got)\n%s", where, diff)
				}
			}
		})
	}
}

func TestTheContainerOfAGatewayIsTheWorkloadsOwn(t *testing.T) {
	t.Parallel()
	pod := makePod(func(pod *corev1.Pod) {
		pod.Labels[desired.LabelApp], pod.Status.ContainerStatuses[0].Name = desired.GatewayContainerName, desired.GatewayContainerName
		pod.Spec.Containers[0] = corev1.Container{Name: desired.GatewayContainerName, LivenessProbe: probe("/livez"), ReadinessProbe: probe("/readyz")}
	})
	subject := Subject{Resources: "spec.gateway.resources", Unready: "look at its log"}
	tests := map[string]struct {
		change func(*corev1.ContainerStatus)
		want   Finding
	}{
		"it is not ready": {
			func(*corev1.ContainerStatus) {},
			Finding{Reason: "NotReady", Message: "Container not passing health checks: look at its log (pod: demo-1)"},
		},
		"it is not ready after a restart": {
			func(c *corev1.ContainerStatus) { c.RestartCount = 1 },
			Finding{
				Reason: "NotReady", Message: "Container not passing health checks: restarts: 1; look at its log (pod: demo-1)",
				Known: "Container not passing health checks: restarts: 1 (pod: demo-1)",
			},
		},
		"it was killed": {
			func(c *corev1.ContainerStatus) { c.State, c.RestartCount = ended(137, "Error"), 1 },
			Finding{Reason: "CrashLooping", Message: "Container crashing: exit code 137, restarts: 1 (pod: demo-1)"},
		},
		"it wants more memory than it may have": {
			func(c *corev1.ContainerStatus) { c.State = ended(137, "OOMKilled") },
			Finding{Reason: "OOMKilled", Message: "Container OOMKilled: exit code 137, restarts: 0; raise spec.gateway.resources.limits.memory (pod: demo-1)"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := pod.DeepCopy()
			tt.change(&pod.Status.ContainerStatuses[0])
			if diff := cmp.Diff(tt.want, subject.Pod(pod, now)); diff != "" {
				t.Errorf("finding (-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatTheRuntimeCouldNotStartIsAMistakeInTheConfigurationHoweverOftenItIsTried(t *testing.T) {
	t.Parallel()
	const why = `OCI runtime create failed: exec: "/not-there": stat /not-there: no such file or directory`
	saying := func(reason, words string) corev1.ContainerState {
		state := ended(128, reason)
		state.Terminated.Message = words
		return state
	}
	said := Finding{Reason: "ConfigError", Message: "Container config error: " + why + " (pod: demo-1)"}
	again := said
	again.Known = "Container crashing: exit code 128, restarts: 4 (pod: demo-1)"
	starting := Finding{After: 6 * time.Second}
	silent := Finding{Reason: "CrashLooping", Message: "Container crashing: exit code 128, restarts: 4 (pod: demo-1)"}
	tests := map[string]struct {
		state, last corev1.ContainerState
		want        Finding
	}{
		"when it is tried":    {waiting("RunContainerError", why), saying("StartError", why), said},
		"when it ended":       {saying("StartError", why), corev1.ContainerState{}, again},
		"when it is put off":  {waiting("CrashLoopBackOff", "back-off 40s"), saying("StartError", why), again},
		"when Docker says it": {waiting("CrashLoopBackOff", "back-off 40s"), saying("ContainerCannotRun", why), again},
		"when it is tried, without its control characters": {
			waiting("RunContainerError", why[:10]+"\x1b"+why[11:]), corev1.ContainerState{}, changed(said, why[:10]+" "+why[11:]),
		},
		"without its control characters":      {saying("StartError", why[:10]+"\x1b"+why[11:]), corev1.ContainerState{}, changed(again, why[:10]+" "+why[11:])},
		"a runtime that does not say why":     {saying("StartError", ""), corev1.ContainerState{}, silent},
		"that it runs at last ends it":        {running(4 * time.Second), saying("StartError", why), starting},
		"what a container says is not a word": {waiting("CrashLoopBackOff", ""), saying("Error", why), silent},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := makePod(func(pod *corev1.Pod) {
				c := &pod.Status.ContainerStatuses[0]
				c.State, c.LastTerminationState, c.RestartCount = tt.state, tt.last, 4
			})
			if diff := cmp.Diff(tt.want, podOf(pod, now)); diff != "" {
				t.Errorf("finding (-want +got)\n%s", diff)
			}
		})
	}
}

func changed(d Finding, why string) Finding {
	d.Message = "Container config error: " + why + " (pod: demo-1)"
	return d
}

package diagnose

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestAPodIsDiagnosedFromWhatTheKubeletTells(t *testing.T) {
	t.Parallel()
	// of changes the one container of a pod.
	of := func(change func(*corev1.ContainerStatus)) *corev1.Pod {
		return makePod(func(pod *corev1.Pod) { change(&pod.Status.ContainerStatuses[0]) })
	}
	state := func(state corev1.ContainerState) *corev1.Pod {
		return of(func(c *corev1.ContainerStatus) { c.State = state })
	}
	// again is a container that was started again after it had ended.
	again := func(state, last corev1.ContainerState, restarts int32) *corev1.Pod {
		return of(func(c *corev1.ContainerStatus) {
			c.State, c.LastTerminationState, c.RestartCount = state, last, restarts
		})
	}
	aged := func(pod *corev1.Pod, age time.Duration) *corev1.Pod {
		pod.CreationTimestamp = ago(age)
		return pod
	}
	is := func(reason, message string) Finding {
		return Finding{Reason: reason, Message: message + " (pod: demo-1)"}
	}
	// after makes a Finding one that is looked at again.
	after := func(d Finding, after time.Duration) Finding {
		d.After = after
		return d
	}
	none := corev1.ContainerState{}
	saying := func(words string) corev1.ContainerState {
		state := ended(1, "Error")
		state.Terminated.Message = words
		return state
	}
	bridged := func(pod *corev1.Pod) *corev1.Pod {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mcp-gateway", State: ended(0, "Completed")}}
		return pod
	}

	tests := map[string]struct {
		pod  *corev1.Pod
		want Finding
	}{
		"an image that cannot be pulled": {
			state(waiting("ErrImagePull", "not found")), is("ImagePullFailed", `Image pull failed for "registry.example.com/server:1": not found`),
		},
		"a pull that is put off": {
			state(waiting("ImagePullBackOff", "Back-off")), is("ImagePullFailed", `Image pull failed for "registry.example.com/server:1": Back-off`),
		},
		"a pull that is put off is told by its cause, as before": {
			state(waiting("ImagePullBackOff", `Back-off pulling image "x:1": ErrImagePull: not found`)),
			is("ImagePullFailed", `Image pull failed for "registry.example.com/server:1": not found`),
		},
		"an image that cannot be named so": {
			state(waiting("InvalidImageName", "bad")), is("ImagePullFailed", `Image pull failed for "registry.example.com/server:1": bad`),
		},
		"an image that may not be pulled and is not there": {
			state(waiting("ErrImageNeverPull", "absent")), is("ImagePullFailed", `Image pull failed for "registry.example.com/server:1": absent`),
		},
		"a crash loop tells the exit code of the last run": {
			again(waiting("CrashLoopBackOff", ""), ended(3, "Error"), 4), is("CrashLooping", "Container crashing: exit code 3, restarts: 4"),
		},
		"the bridge of a Stdio server tells how its child ended": {
			bridged(again(waiting("CrashLoopBackOff", ""), saying("the server's process ended at its start,\x1b[31m 5 times"), 4)),
			is("CrashLooping", "Container crashing: exit code 1, restarts: 4: the server's process ended at its start, [31m 5 times"),
		},
		"a Stdio server that is silent": {
			bridged(again(running(30*time.Second), none, 0)), is("NotReady", "Container not passing health checks: restarts: 0: "+
				"its process has not answered MCP over its standard output; look at the container's log, and check spec.command"),
		},
		"a Stdio server that was silent and is again": {
			bridged(again(running(2*time.Minute), saying("the server did not answer MCP"), 1)),
			is("NotReady", "Container not passing health checks: restarts: 1: before, the server did not answer MCP"),
		},
		"what any other container says at its end is not told": {
			again(waiting("CrashLoopBackOff", ""), saying("password=hunter2"), 4), is("CrashLooping", "Container crashing: exit code 1, restarts: 4"),
		},
		"a crash loop of a server that ends without an error": {
			again(waiting("CrashLoopBackOff", ""), ended(0, "Completed"), 4), is("CrashLooping", "Container crashing: exit code 0, restarts: 4"),
		},
		"a crash loop without a last run": {
			again(waiting("CrashLoopBackOff", ""), none, 4), is("CrashLooping", "Container crashing: restarts: 4"),
		},
		"a crash loop by the memory limit": {
			again(waiting("CrashLoopBackOff", ""), ended(137, "OOMKilled"), 2),
			is("OOMKilled", "Container OOMKilled: exit code 137, restarts: 2; raise spec.resources.limits.memory"),
		},
		"a container that ended":                  {state(ended(1, "Error")), is("CrashLooping", "Container crashing: exit code 1, restarts: 0")},
		"a container that ended without an error": {state(ended(0, "Completed")), is("CrashLooping", "Container crashing: exit code 0, restarts: 0")},
		"a container that was just killed for its memory": {
			state(ended(137, "OOMKilled")), is("OOMKilled", "Container OOMKilled: exit code 137, restarts: 0; raise spec.resources.limits.memory"),
		},
		"a container that runs again is told by how it ended": {
			again(running(time.Second), ended(2, "Error"), 3), after(is("CrashLooping", "Container crashing: exit code 2, restarts: 3"), 59*time.Second),
		},
		"a container that runs again after it ended without an error": {
			again(running(time.Second), ended(0, "Completed"), 3),
			after(is("CrashLooping", "Container crashing: exit code 0, restarts: 3"), 59*time.Second),
		},
		"a container that runs again after it was killed for its memory": {
			again(running(59*time.Second), ended(137, "OOMKilled"), 1),
			after(is("OOMKilled", "Container OOMKilled: exit code 137, restarts: 1; raise spec.resources.limits.memory"), time.Second),
		},
		"a container that runs for long has its last end forgotten": {
			again(running(time.Minute), ended(2, "Error"), 3), restartedNotReady("3"),
		},
		"a missing key": {
			state(waiting("CreateContainerConfigError", `couldn't find key TOKEN in Secret team/api`)),
			is("ConfigError", "Container config error: couldn't find key TOKEN in Secret team/api"),
		},
		"an image whose user is a name": {
			state(waiting("CreateContainerConfigError", "image has non-numeric user (node), cannot verify user is non-root")),
			is("NonNumericUser", "Container config error: image has non-numeric user (node), cannot verify user is non-root; "+
				"set spec.podSecurity.runAsUser to the number of the image's user"),
		},
		"an image that runs as root": {
			state(waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")),
			is("NonNumericUser", "Container config error: container has runAsNonRoot and image will run as root; "+
				"set spec.podSecurity.runAsUser to a number other than 0, or runAsNonRoot to false"),
		},
		"a command that is not there": {
			state(waiting("RunContainerError", `exec: "serve": not found`)), is("ConfigError", `Container config error: exec: "serve": not found`),
		},
		"a container that has just started is given time": {state(running(4 * time.Second)), Finding{After: 6 * time.Second}},
		"a container that is not ready after the grace":   {state(running(10 * time.Second)), is("NotReady", notListening)},
		"a container that is not ready after a restart": {
			again(running(20*time.Second), none, 2), restartedNotReady("2"),
		},
		"a container that is ready in a pod that is not": {of(func(c *corev1.ContainerStatus) { c.Ready = true }), Finding{}},
		"a container that is being made":                 {aged(state(waiting("ContainerCreating", "")), 5*time.Second), Finding{After: 10 * time.Second}},
		"a container that is being made for long": {
			aged(state(waiting("ContainerCreating", "")), 15*time.Second), is("MountFailed", "Container has not been created (ContainerCreating)"),
		},
		"a container that waits for init containers is no stuck mount": {state(waiting("PodInitializing", "")), Finding{}},
		"a word of the kubelet that is not known tells nothing":        {state(waiting("Pondering", "x")), Finding{}},
		"the time to be made begins when the kubelet does": {
			startedAt(state(waiting("ContainerCreating", "")), 3*time.Second), Finding{After: 12 * time.Second},
		},
		"a pod that no node takes": {
			makePod(func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses = nil
				pod.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available",
				}}
			}),
			is("Unschedulable", "Pod cannot be scheduled: 0/2 nodes are available"),
		},
		"a ready pod is not diagnosed, whatever it went through": {
			makePod(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].LastTerminationState = ended(1, "Error") }, ready), Finding{},
		},
		"a pod that the kubelet has not seen": {makePod(func(pod *corev1.Pod) { pod.Status = corev1.PodStatus{} }), Finding{}},
		"a container without a state":         {state(none), Finding{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := podOf(tt.pod, now)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("finding (-want +got)\n%s", diff)
			}
		})
	}
}

func podOf(pod *corev1.Pod, at time.Time) Finding { return Subject{}.Pod(pod, at) }

// restartedNotReady is the Finding of a server that was started again, and is not ready.
func restartedNotReady(restarts string) Finding {
	known := "Container not passing health checks: restarts: " + restarts
	return Finding{
		Reason: "NotReady", Known: known + " (pod: demo-1)",
		Message: known + "; it runs and its readiness probe fails; does the server listen on spec.port and on all addresses? (pod: demo-1)",
	}
}

const notListening = "Container not passing health checks: it runs and its readiness probe fails; " +
	"does the server listen on spec.port and on all addresses?"

func startedAt(pod *corev1.Pod, age time.Duration) *corev1.Pod {
	pod.Status.StartTime = new(ago(age))
	return pod
}

func TestADeploymentThatMayNotMakePodsIsTold(t *testing.T) {
	t.Parallel()
	replicaFailure := func(status corev1.ConditionStatus) *appsv1.Deployment {
		return makeDeployment(func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "too few"},
				{Type: appsv1.DeploymentReplicaFailure, Status: status, Message: `pods "demo-1" is forbidden: exceeded quota`},
			}
		})
	}
	tests := map[string]struct {
		deployment *appsv1.Deployment
		want       Finding
	}{
		"refused": {
			replicaFailure(corev1.ConditionTrue),
			Finding{Reason: "PodRejected", Message: `Pods cannot be created: exceeded quota`},
		},
		"refused before":       {replicaFailure(corev1.ConditionFalse), Finding{}},
		"without any trouble":  {makeDeployment(), Finding{}},
		"not looked after yet": {makeDeployment(func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} }), Finding{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, diagnoseDeployment(tt.deployment)); diff != "" {
				t.Errorf("finding (-want +got)\n%s", diff)
			}
		})
	}
}

package diagnose

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestOnlyChangesOfPodsThatTellSomethingAreNews(t *testing.T) {
	t.Parallel()
	container := func(change func(*corev1.ContainerStatus)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { change(&pod.Status.ContainerStatuses[0]) }
	}
	state := func(state corev1.ContainerState) *corev1.Pod {
		return makePod(container(func(c *corev1.ContainerStatus) { c.State = state }))
	}
	tests := map[string]struct {
		was, is *corev1.Pod
		want    bool
	}{
		"nothing":                     {makePod(), makePod(), false},
		"another resource version":    {makePod(), makePod(func(pod *corev1.Pod) { pod.ResourceVersion = "9" }), false},
		"a heartbeat of a condition":  {makePod(ready), makePod(ready, func(pod *corev1.Pod) { pod.Status.Conditions[0].LastProbeTime = ago(0) }), false},
		"a label":                     {makePod(), makePod(func(pod *corev1.Pod) { pod.Labels["team"] = "a" }), false},
		"it becomes ready":            {makePod(), makePod(ready), true},
		"it is no longer ready":       {makePod(ready), makePod(), true},
		"it is being deleted":         {makePod(), makePod(func(pod *corev1.Pod) { pod.DeletionTimestamp = new(ago(0)) }), true},
		"it gets an address":          {makePod(func(pod *corev1.Pod) { pod.Status.PodIP = "" }), makePod(), true},
		"its kubelet refuses it":      {makePod(), makePod(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }), true},
		"its image cannot be pulled":  {makePod(), state(waiting("ErrImagePull", "not found")), true},
		"it crashes once more":        {makePod(container(crashed(1))), makePod(container(crashed(2))), true},
		"it starts after it was made": {state(waiting("PodInitializing", "")), state(running(0)), true},
		"it runs, and says so again":  {state(running(time.Hour)), state(running(time.Hour)), false},
		"it was started again":        {state(running(time.Hour)), state(running(time.Minute)), true},
		"its startup probe succeeds": {
			makePod(container(func(c *corev1.ContainerStatus) { c.Started = new(false) })),
			makePod(container(func(c *corev1.ContainerStatus) { c.Started = new(true) })), true,
		},
		"one of its containers becomes ready": {makePod(), makePod(container(func(c *corev1.ContainerStatus) { c.Ready = true })), true},
		"its gate is all that it waits for":   {makePod(), makePod(gated), true},
		"it waits for its gate, and says so again": {
			makePod(gated), makePod(gated, func(pod *corev1.Pod) { pod.Status.Conditions[0].LastProbeTime = ago(0) }), false,
		},
		"its gate is not met for another reason": {
			makePod(gated), makePod(gated, func(pod *corev1.Pod) { pod.Status.Conditions[1].Message = "it does not exist" }), true,
		},
		"its scheduling is gated": {
			makePod(unscheduled("", ""), func(pod *corev1.Pod) { pod.Status.Conditions = nil }), makePod(unscheduled("SchedulingGated", "blocked")), true,
		},
		"an init container ended and the next one runs, told at once": {
			makePod(func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "bridge", State: running(time.Minute)}}
				pod.Status.ContainerStatuses[0].State = waiting("PodInitializing", "")
			}),
			makePod(func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "bridge", State: ended(0, "Completed")}}
				pod.Status.ContainerStatuses[0].State = running(0)
			}), true,
		},
		"the kubelet begins with it": {
			makePod(func(pod *corev1.Pod) { pod.Status = corev1.PodStatus{} }),
			makePod(func(pod *corev1.Pod) {
				pod.Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "mcp-server", State: waiting("ContainerCreating", "")}}}
			}), true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := News().Update(event.UpdateEvent{ObjectOld: tt.was, ObjectNew: tt.is}); got != tt.want {
				t.Errorf("news: %t, want %t", got, tt.want)
			}
		})
	}
	p := News()
	if !p.Create(event.CreateEvent{Object: makePod()}) || !p.Delete(event.DeleteEvent{Object: makePod()}) {
		t.Error("a pod that comes or goes is no news")
	}
}

func crashed(restarts int32) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		c.State, c.LastTerminationState, c.RestartCount = waiting("CrashLoopBackOff", ""), ended(1, "Error"), restarts
	}
}

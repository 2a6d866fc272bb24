package diagnose

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// News lets those changes of pods pass that a status, or who asks the pods, depends on.
func News() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, okWas := e.ObjectOld.(*corev1.Pod)
		is, okIs := e.ObjectNew.(*corev1.Pod)
		return okWas && okIs && tellsOf(was) != tellsOf(is)
	}}
}

// tells is what of a pod matters.
type tells struct {
	ready, deleting bool
	address         string
	phase           corev1.PodPhase // a pod that a kubelet does not admit fails without a word of its containers
	// known is how many containers the kubelet tells of: from then on it is judged how long one is being made.
	known int
	// running names the containers that run, each with its start: from then on it is judged how long one has been running without being
	// ready. A count would not do: a busy kubelet tells in one update that an init container ended and the next container runs.
	running string
	// health names the containers that have started, and says which are ready: of one that has not, another probe fails; and where all are,
	// the pod waits for something else.
	health string
	// held is what else the pod waits for, however short.
	held    Finding
	finding Finding
}

func tellsOf(pod *corev1.Pod) tells {
	finding := Subject{}.Pod(pod, pod.CreationTimestamp.Time)
	finding.After = 0
	t := tells{
		ready: IsReady(pod), deleting: !pod.DeletionTimestamp.IsZero(), address: pod.Status.PodIP, phase: pod.Status.Phase,
		held: heldBy(pod).finding, finding: finding,
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		t.known++
		if running := status.State.Running; running != nil {
			t.running += status.Name + "@" + running.StartedAt.UTC().Format(time.RFC3339) + " "
		}
		if status.Ready || status.Started != nil && *status.Started {
			t.health += fmt.Sprintf("%s: %t ", status.Name, status.Ready)
		}
	}
	return t
}

package diagnose

import (
	"slices"

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
	// known is how many containers the kubelet tells of, running how many of them run: from then on it is judged how long one is being
	// made, or has been running without being ready.
	known, running int
	finding        Finding
}

func tellsOf(pod *corev1.Pod) tells {
	finding := Subject{}.Pod(pod, pod.CreationTimestamp.Time)
	finding.After = 0
	t := tells{ready: IsReady(pod), deleting: !pod.DeletionTimestamp.IsZero(), address: pod.Status.PodIP, finding: finding}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		t.known++
		if status.State.Running != nil {
			t.running++
		}
	}
	return t
}

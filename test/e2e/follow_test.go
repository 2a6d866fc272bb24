package e2e

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditioned is an object of ours.
type conditioned interface {
	client.Object
	GetConditions() *[]metav1.Condition
}

// followed is an object in the cluster, with every state that it ever had.
type followed[T conditioned] struct {
	*fixture

	name    string
	created time.Time
	history *history
	newObj  func() T
}

// follow creates an object and begins its history.
func follow[T conditioned](f *fixture, object T, list client.ObjectList, newObj func() T) *followed[T] {
	f.t.Helper()
	o := &followed[T]{fixture: f, name: object.GetName(), newObj: newObj}
	o.history = record(f.t, list, client.InNamespace(f.namespace), client.MatchingFields{"metadata.name": o.name})
	o.created = time.Now()
	f.create(object)
	return o
}

// await waits until the newest state passes all checks, counting from now. A check returns what is the case instead, or nothing.
func (o *followed[T]) await(what string, promised time.Duration, checks ...func(T) string) T {
	o.t.Helper()
	return o.awaitOf(newest, time.Now(), what, promised, checks)
}

// awaitSince is await, counting from begin, and of any state since then.
func (o *followed[T]) awaitSince(begin time.Time, what string, promised time.Duration, checks ...func(T) string) T {
	o.t.Helper()
	return o.awaitOf(since(begin), begin, what, promised, checks)
}

func (o *followed[T]) awaitOf(which choice, begin time.Time, what string, promised time.Duration, checks []func(T) string) T {
	o.t.Helper()
	var found T
	o.history.await(o.t, o.name+" "+what, begin, promised, func(states []state) string {
		object, instead := passing(which(states), checks)
		found = object
		return instead
	})
	return found
}

// passing returns the first of the states that passes all checks, or what the last of them has instead.
func passing[T client.Object, C ~func(T) string](states []state, checks []C) (found T, instead string) {
	instead = "the API server told nothing of it yet"
	for _, s := range states {
		object, ok := s.object.(T)
		if !ok {
			return found, fmt.Sprintf("the API server told of a %T", s.object)
		}
		instead = ""
		for _, check := range checks {
			if instead = check(object); instead != "" {
				break
			}
		}
		if instead == "" {
			return object, ""
		}
	}
	return found, instead
}

// now is the object as the API server has it.
func (o *followed[T]) now() T {
	o.t.Helper()
	object := o.newObj()
	o.read(o.name, object)
	return object
}

// change edits the object.
func (o *followed[T]) change(edit func(T)) {
	o.t.Helper()
	object := o.newObj()
	o.patch(o.name, object, func() { edit(object) })
}

// stayedReady reports each state since mark in which Ready was not True.
func (o *followed[T]) stayedReady(mark int) {
	o.t.Helper()
	all, err := o.history.snapshot()
	if err != nil {
		o.t.Fatal(err)
	}
	for _, s := range all[mark:] {
		if object, ok := s.object.(T); ok && conditionOf(object, "Ready").Status != metav1.ConditionTrue {
			o.t.Errorf("%s flickered: Ready became %+v", o.name, conditionOf(object, "Ready"))
		}
	}
}

// mark returns how many states there are by now, for stayedReady.
func (o *followed[T]) mark() int {
	o.t.Helper()
	all, err := o.history.snapshot()
	if err != nil {
		o.t.Fatal(err)
	}
	return len(all)
}

func conditionOf(object conditioned, conditionType string) metav1.Condition {
	if c := apimeta.FindStatusCondition(*object.GetConditions(), conditionType); c != nil {
		return *c
	}
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown, Reason: "NotThere"}
}

// says asks for a condition of the newest generation whose message contains all of the words; an empty reason is any.
func says[T conditioned](conditionType string, status metav1.ConditionStatus, reason string, words ...string) func(T) string {
	return func(object T) string {
		c := conditionOf(object, conditionType)
		if c.Status != status || reason != "" && c.Reason != reason || missing(c.Message, words) != nil || c.ObservedGeneration != object.GetGeneration() {
			return fmt.Sprintf("%s is %s at generation %d of %d: %s: %s; wanted is %s: %s with %q",
				conditionType, c.Status, c.ObservedGeneration, object.GetGeneration(), c.Reason, c.Message, status, reason, words)
		}
		return ""
	}
}

package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestAStuckMountIsToldByTheNewestEventOfThePod(t *testing.T) {
	t.Parallel()
	event := func(reason, message string, age time.Duration) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: ago(age)}
	}
	stuck := Finding{Reason: mcpv1alpha1.ReasonMountFailed, Message: "Container has not been created (ContainerCreating) (pod: demo-1)"}
	slow := Finding{After: time.Minute}
	tests := map[string]struct {
		events []corev1.Event
		err    error
		want   Finding
	}{
		"no event: it is only slow":     {want: slow},
		"events of other things":        {events: []corev1.Event{event("Unhealthy", "x", 0)}, want: slow},
		"events that may not be listed": {err: errors.New("forbidden"), want: slow},
		"the newest of several is told": {
			events: []corev1.Event{
				event("FailedMount", "old", time.Minute), event("FailedMount", `secret "tls" not found`, time.Second),
				event("FailedAttachVolume", "older", time.Hour),
			},
			want: Finding{Reason: "MountFailed", Message: `FailedMount: secret "tls" not found (pod: demo-1)`, After: time.Minute},
		},
		"a sandbox that cannot be made": {
			events: []corev1.Event{event("FailedCreatePodSandBox", "no network", 0)},
			want:   Finding{Reason: "MountFailed", Message: "FailedCreatePodSandBox: no network (pod: demo-1)", After: time.Minute},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				memory, pod := &Memory{}, makePod()
				memory.ask(t.Context(), &lists{events: tt.events, err: tt.err}, []*corev1.Pod{pod})
				if diff := cmp.Diff(tt.want, memory.explain(pod, stuck)); diff != "" {
					t.Errorf("finding (-want +got)\n%s", diff)
				}
			})
		})
	}
}

// stuckPods returns pods whose containers have been made for an hour.
func stuckPods(n int) []corev1.Pod {
	var list []corev1.Pod
	for i := range n {
		list = append(list, *makePod(func(pod *corev1.Pod) {
			pod.Name, pod.UID = fmt.Sprintf("demo-%d", i), types.UID(fmt.Sprintf("uid-%d", i))
			pod.CreationTimestamp.Time = time.Now().Add(-time.Hour)
			pod.Status.ContainerStatuses[0].State = waiting("ContainerCreating", "")
		}))
	}
	return list
}

func TestALookAsksForTheEventsOfOnePodAndOfEachOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, memory := &lists{}, &Memory{}
		look := func(what string, pods []corev1.Pod, want Finding, asked ...string) {
			t.Helper()
			events.asked = nil
			got := Subject{}.Workload(t.Context(), events, memory, makeDeployment(), pods)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: finding (-want +got)\n%s", what, diff)
			}
			if diff := cmp.Diff(asked, events.asked); diff != "" {
				t.Errorf("%s: pods whose events were listed (-want +got)\n%s", what, diff)
			}
		}
		pods := stuckPods(3)
		later := func(d time.Duration) Finding { return Finding{After: d} }
		look("the first look", pods, later(10*time.Second), "uid-0")
		look("another at once", pods, later(10*time.Second), "uid-1")
		look("a third at once", pods, later(time.Minute), "uid-2")
		for range 5 {
			look("whatever else wakes the object", pods, later(time.Minute))
		}
		events.events = []corev1.Event{{Reason: "FailedMount", Message: "no volume"}}
		<-time.After(59 * time.Second)
		look("before the minute is over", pods, later(time.Second))
		<-time.After(time.Second)
		stuck := Finding{Reason: "MountFailed", Message: "FailedMount: no volume (pod: demo-0)", After: time.Minute}
		look("once it is", pods, stuck, "uid-0")
		stuck.After -= 30 * time.Second
		<-time.After(30 * time.Second)
		look("what was heard is told without asking", pods, stuck)
		events.err = errors.New("forbidden")
		<-time.After(31 * time.Second)
		stuck.After = time.Minute
		look("events that cannot be listed leave what was heard", pods[:1], stuck, "uid-0")
		look("they are not asked for again at once", pods[:1], stuck)
		events.err, events.events = nil, nil
		<-time.After(time.Minute)
		look("there are none any more", pods[:1], later(time.Minute), "uid-0")
	})
}

// TestWhatAPodWaitsForIsToldOnWhileAnotherOneIsAskedAbout, which waits for something that no event tells, such as a large image.
func TestWhatAPodWaitsForIsToldOnWhileAnotherOneIsAskedAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, memory, pods := &lists{only: "uid-1"}, &Memory{}, stuckPods(2)
		events.events = []corev1.Event{{Reason: "FailedMount", Message: "no volume"}}
		look := func() Finding { return Subject{}.Workload(t.Context(), events, memory, makeDeployment(), pods) }
		next := look()
		if next.Reason != "" || next.After != nextPodInterval {
			t.Fatalf("after the first look: %+v", next)
		}
		for range 10 {
			<-time.After(next.After)
			next = look()
			if next.Message != "FailedMount: no volume (pod: demo-1)" || next.After == 0 {
				t.Errorf("after %d looks: %+v", len(events.asked), next)
			}
		}
		if want := []string{"uid-0", "uid-1", "uid-0", "uid-1", "uid-0"}; !slices.Equal(events.asked[:5], want) {
			t.Errorf("asked about %v", events.asked)
		}
	})
}

// TestEachPodIsAskedAboutInItsTurn, however many there are: a minute is over before all were asked about.
func TestEachPodIsAskedAboutInItsTurn(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 40} {
		t.Run(fmt.Sprint(n, " pods"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				events, memory, pods := &lists{}, &Memory{}, stuckPods(n)
				for look := range 3 * n {
					if got := (Subject{}).Workload(t.Context(), events, memory, makeDeployment(), pods); got != (Finding{After: nextPodInterval}) {
						t.Fatalf("look %d: %+v", look, got)
					}
					<-time.After(nextPodInterval)
				}
				times := map[string]int{}
				for _, pod := range events.asked {
					times[pod]++
				}
				for _, pod := range pods {
					if times[string(pod.UID)] != 3 {
						t.Errorf("pod %s was asked about %d times of %d, want 3", pod.Name, times[string(pod.UID)], len(events.asked))
					}
				}
			})
		})
	}
}

// TestWhatAPodSaidAnswersForItUntilItsTurn: of more pods than can be asked about in memoryAge, the last one tells.
func TestWhatAPodSaidAnswersForItUntilItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, memory, pods := &lists{only: "uid-39"}, &Memory{}, stuckPods(40)
		events.events = []corev1.Event{{Reason: "FailedMount", Message: "no volume"}}
		told := 0
		for range 120 {
			d := Subject{}.Workload(t.Context(), events, memory, makeDeployment(), pods)
			switch {
			case d.Reason != "":
				told++
			case told > 0:
				t.Fatalf("it is not told any more after %d looks", told)
			}
			<-time.After(d.After)
		}
		if told < 60 {
			t.Errorf("told in %d of 120 looks", told)
		}
	})
}

// TestWhatAPodSaidOnceIsNotToldForEver: events may be forbidden from some time on.
func TestWhatAPodSaidOnceIsNotToldForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, memory, pods := &lists{}, &Memory{}, stuckPods(1)
		events.events = []corev1.Event{{Reason: "FailedMount", Message: "no volume"}}
		for age := time.Duration(0); age < 2*memoryAge; age += eventsInterval {
			d := Subject{}.Workload(t.Context(), events, memory, makeDeployment(), pods)
			if (d.Reason == "MountFailed") != (age < memoryAge) || d.After != eventsInterval {
				t.Errorf("%s after the last answer: %+v", age, d)
			}
			events.err, events.events = errors.New("forbidden"), nil
			<-time.After(eventsInterval)
		}
	})
}

func TestPodsThatAreGoneAreNotRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		for _, pod := range stuckPods(50) {
			Subject{}.Workload(t.Context(), &lists{}, memory, makeDeployment(), []corev1.Pod{pod})
		}
		if n := len(memory.pods); n != 50 {
			t.Fatalf("%d pods are remembered, want 50", n)
		}
		<-time.After(memoryAge)
		other := stuckPods(51)[50:]
		Subject{}.Workload(t.Context(), &lists{}, memory, makeDeployment(), other)
		if _, kept := memory.pods["uid-50"]; len(memory.pods) != 1 || !kept {
			t.Errorf("remembered are %v, want the one that was asked about a short while ago", memory.pods)
		}
	})
}

// lists is a client whose lists of events are as given, or fail with err. It notes the pods that it is asked about.
type lists struct {
	client.Client

	events []corev1.Event
	only   string // whose they are; empty: those of every pod
	err    error
	asked  []string
}

func (c *lists) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(opts)
	pod, _ := asked.FieldSelector.RequiresExactMatch("involvedObject.uid")
	c.asked = append(c.asked, pod)
	if events, ok := list.(*corev1.EventList); ok && (c.only == "" || c.only == pod) {
		events.Items = c.events
	}
	return c.err
}

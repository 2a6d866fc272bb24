package probe

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

func TestForgottenServerIsNotAskedAnyMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{takes: time.Second})
		p.Observe(server("a", "pod-1"))
		p.Observe(server("b", "pod-2"))
		p.pass(500 * time.Millisecond)
		p.Forget(types.NamespacedName{Namespace: "test", Name: "a"}) // while it is being asked
		p.pass(time.Hour)
		if got := len(p.asked("pod-1:8080")); got != 1 || len(p.notifications("a")) != 0 {
			t.Errorf("asked %d times, notified at %v", got, p.notifications("a"))
		}
		if v := p.Verdict("uid-a"); !v.equal(Verdict{}) {
			t.Errorf("verdict: %+v", v)
		}
		if got := len(p.asked("pod-2:8080")); got < 70 || len(p.notifications("b")) != 1 {
			t.Errorf("the other server was asked %d times in an hour, notified at %v", got, p.notifications("b"))
		}
	})
}

func TestServerMadeAnewIsProbedAsNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{takes: time.Second})
		p.Observe(server("a", "pod-1"))
		p.pass(500 * time.Millisecond)
		p.Forget(types.NamespacedName{Namespace: "test", Name: "a"})
		again := server("a", "pod-2")
		again.UID = "uid-again"
		p.Observe(again)
		p.pass(time.Second)
		if v := p.Verdict("uid-again"); v.Generation != 1 || p.asked("pod-2:8080")[0].Kind != "probe" {
			t.Errorf("verdict: %+v, calls: %+v", v, p.calls)
		}
		if v := p.Verdict("uid-a"); v.Known {
			t.Errorf("the verdict of the old one is still there: %+v", v)
		}
	})
}

func TestStartReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		notifying := make(chan struct{})
		p := start(t, Options{Notify: func(ctx context.Context, _ types.NamespacedName) {
			close(notifying)
			<-ctx.Done() // nobody listens
		}})
		p.answer("pod-1:8080", reply{takes: 24 * time.Hour})
		p.Observe(server("slow", "pod-1"))
		p.Observe(server("a", "pod-2"))
		<-notifying
		p.pass(time.Minute)
		before := time.Now()
		p.stop()
		if took := time.Since(before); took != 0 {
			t.Errorf("Start returned after %s", took)
		}
		if v := p.Verdict("uid-slow"); v.Known {
			t.Errorf("a probe that was stopped counts: %+v", v)
		}
	})
}

func TestProbeThatWasStoppedIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		p.answer("pod-1:8080", reply{err: errRefused})
		for len(p.asked("pod-1:8080")) < 2 {
			p.pass(100 * time.Millisecond)
		}
		p.answer("pod-1:8080", reply{takes: time.Hour}) // one more failure would be reported
		p.pass(time.Second)
		p.stop()
		if v := p.Verdict("uid-a"); v.Failure != nil || len(p.asked("pod-1:8080")) != 3 {
			t.Errorf("verdict: %+v", v)
		}
	})
}

// What Observe changes, its caller sees. Only what a probe changes has to be told, even if it restores what was before.
func TestAnswerIsToldThoughThePodHadGoneAndComeBackMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		p.answer("pod-1:8080", reply{takes: 10 * time.Second})
		for len(p.asked("pod-1:8080")) < 2 {
			p.pass(time.Second)
		}
		p.Observe(server("a")) // not ready
		if p.Verdict("uid-a").Known {
			t.Fatal("a server without pods is known")
		}
		p.Observe(server("a", "pod-1"))
		if p.Verdict("uid-a").Known {
			t.Fatal("a pod that came back is known before it was asked")
		}
		p.pass(11 * time.Second)
		if v := p.Verdict("uid-a"); !v.Known || len(p.notifications("a")) != 2 {
			t.Errorf("verdict %+v, notified at %v: want a second notification", v, p.notifications("a"))
		}
	})
}

func TestPodsThatAllWentMakeTheServerUnknownSinceThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Minute)
		p.answer("pod-2:8080", reply{takes: time.Second})
		p.Observe(server("a", "pod-2"))
		p.pass(500 * time.Millisecond)
		v := p.Verdict("uid-a")
		if v.Known || v.Serving || !v.Since.Equal(p.start.Add(time.Minute)) || v.Generation != 0 {
			t.Errorf("before the new pod answered: %+v", v)
		}
		p.pass(time.Second)
		if v := p.Verdict("uid-a"); !v.Known || !v.Serving || !v.Since.IsZero() {
			t.Errorf("after the new pod answered: %+v", v)
		}
	})
}

func TestAPodKeepsItsGenerationWhileItIsNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		away := server("a")
		away.Settled, away.Generation, away.Others = false, 2, server("a", "pod-1").podUIDs()
		p.Observe(away)
		p.pass(time.Minute)
		back := server("a", "pod-1")
		back.Settled, back.Generation = false, 2
		p.Observe(back)
		p.pass(time.Second)
		if v := p.Verdict("uid-a"); !v.Serving || v.Generation != 1 {
			t.Errorf("after it came back: %+v", v)
		}
	})
}

func TestAPodThatIsReadyNowAndThenIsStillReportedWhenItNeverAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{err: errRefused})
		away := server("a")
		away.Others = server("a", "pod-1").podUIDs()
		for range 3 {
			p.Observe(server("a", "pod-1"))
			p.pass(time.Second)
			p.Observe(away)
			p.pass(time.Second)
		}
		p.Observe(server("a", "pod-1"))
		if v := p.Verdict("uid-a"); v.Failure != errRefused {
			t.Errorf("verdict: %+v", v)
		}
	})
}

func TestSlowServersThatAnswerDoNotDelayTheChecksOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		for i := range 500 {
			name := fmt.Sprintf("slow-%d", i)
			p.answer(name+":8080", reply{takes: 4900 * time.Millisecond})
			p.Observe(server(name, name))
		}
		p.pass(time.Hour)
		p.Observe(server("honest", "honest"))
		p.pass(time.Hour)
		last := time.Duration(0)
		for i, c := range p.asked("honest:8080") {
			if wait := c.At - last; i > 0 && wait > 50*time.Second {
				t.Errorf("asked again after %s", wait)
			}
			last = c.At
		}
	})
}

func TestAnObjectCreatedAgainReplacesTheOldOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		again := server("a", "pod-2")
		again.UID = "uid-of-the-second"
		p.Observe(again)
		p.pass(10 * time.Minute)
		if n := len(p.asked("pod-1:8080")); n != 1 {
			t.Errorf("the pod of the old object was asked %d times", n)
		}
		if p.Verdict("uid-a").Known || !p.Verdict(again.UID).Known {
			t.Error("the old verdict is there, or the new one is not")
		}
	})
}

func (s Server) podUIDs() []types.UID {
	var uids []types.UID
	for _, pod := range s.Pods {
		uids = append(uids, pod.UID)
	}
	return uids
}

func TestEveryFieldOfAVerdictCountsForAChange(t *testing.T) {
	t.Parallel()
	other := Verdict{
		Known: true, Since: time.Unix(1, 0), Serving: true, Generation: 1, Result: &mcp.Result{ProtocolVersion: "2025-11-25"},
		Failure: errRefused, FailedPod: "pod-1", Failed: 1, Undecided: true, ServiceFailure: errRefused, Attempts: 1,
	}
	for field := range reflect.TypeFor[Verdict]().Fields() {
		changed := Verdict{}
		reflect.ValueOf(&changed).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(other).FieldByIndex(field.Index))
		if changed.equal(Verdict{}) {
			t.Errorf("a change of %s is no change: %+v", field.Name, changed)
		}
	}
	if !other.equal(other) {
		t.Error("a verdict differs from itself")
	}
}

// Everything at once, for the race detector.
func TestSchedulerIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{Interval: time.Second, FullInterval: 5 * time.Second})
		var users sync.WaitGroup
		for i := range 20 {
			name := fmt.Sprint("server-", i)
			if i%3 == 0 {
				p.answer(name+":8080", reply{takes: 50 * time.Millisecond, err: errRefused})
			}
			users.Go(func() {
				for generation := range int64(50) {
					s := server(name, name, name+"-2")
					s.Generation, s.Settled, s.Service = generation+1, generation%2 == 0, "service:8080"
					p.Observe(s)
					<-time.After(100 * time.Millisecond)
					if p.Verdict(s.UID).Generation > s.Generation {
						t.Error("an answer counts for a generation that nobody has seen")
					}
					if generation%20 == 19 {
						p.Forget(s.Key)
					}
				}
			})
		}
		users.Wait()
	})
}

package probe

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestServiceThatDoesNotAnswerIsReportedAndWithholdsTheGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("a-svc:8080", reply{err: errRefused})
		s := server("a", "pod-1")
		s.Service = "a-svc:8080"
		p.Observe(s)
		p.pass(settles - time.Millisecond)
		if v := p.Verdict("uid-a"); v.ServiceFailure != nil || v.Generation != 0 || !v.Serving {
			t.Errorf("while the network may not know the pod yet: %+v", v)
		}
		p.pass(time.Millisecond)
		if v := p.Verdict("uid-a"); v.ServiceFailure != errRefused || v.Generation != 0 || !v.Serving || v.Failure != nil {
			t.Errorf("after that: %+v", v)
		}
		p.answer("a-svc:8080", reply{})
		p.pass(8 * time.Second)
		if v := p.Verdict("uid-a"); v.ServiceFailure != nil || v.Generation != 1 {
			t.Errorf("after an answer: %+v", v)
		}
		if diff := cmp.Diff(seconds(0, 5, 13), p.notifications("a")); diff != "" {
			t.Errorf("notifications (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(seconds(0.2, 0.5, 1, 2, 1.3, 8), gaps(p.asked("a-svc:8080"))); diff != "" {
			t.Errorf("times between calls (-want +got)\n%s", diff)
		}
	})
}

// TestServiceThatTheNetworkLearnsLateIsNotReported: after an edit of the port the pods are there a moment before the Service leads to them.
func TestServiceThatTheNetworkLearnsLateIsNotReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		s := server("a", "old")
		s.Service = "a-svc:8080"
		p.Observe(s)
		p.pass(time.Minute)
		s.Generation, s.Settled, s.Service, s.Pods = 2, false, "a-svc:9090", append(s.Pods, pod("new"))
		p.Observe(s)
		p.pass(10 * time.Second)
		p.answer(s.Service, reply{err: errRefused})
		s.Settled, s.Pods = true, s.Pods[1:]
		p.Observe(s)
		for range 49 {
			p.pass(100 * time.Millisecond)
			if v := p.Verdict(s.UID); v.ServiceFailure != nil || !v.Serving || v.Failure != nil {
				t.Fatalf("after %s: %+v", time.Since(p.start), v)
			}
		}
		if n := len(p.asked(s.Service)); n < newFailures {
			t.Errorf("it failed %d times: too few to tell in any case", n)
		}
		p.answer(s.Service, reply{})
		p.pass(200 * time.Millisecond)
		if v := p.Verdict(s.UID); v.Generation != 2 || v.ServiceFailure != nil {
			t.Errorf("once the network knows: %+v", v)
		}
	})
}

func TestServiceIsGivenTimeAnewWhenItsPodsWereAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("a-svc:8080", reply{err: errRefused})
		s, away := server("a", "pod-1"), server("a")
		s.Service, away.Service, away.Others = "a-svc:8080", "a-svc:8080", s.podUIDs()
		p.Observe(s)
		p.pass(4 * time.Second)
		p.answer("a-svc:8080", reply{takes: 2 * time.Second, err: errRefused})
		p.pass(time.Second) // it is being asked
		p.Observe(away)
		p.pass(time.Minute)
		if v := p.Verdict(s.UID); v.ServiceFailure != nil {
			t.Errorf("a Service without pods is told not to answer: %+v", v)
		}
		p.answer("a-svc:8080", reply{err: errRefused})
		p.Observe(s)
		p.pass(settles - time.Millisecond)
		if v := p.Verdict(s.UID); v.ServiceFailure != nil {
			t.Errorf("right after the pod came back: %+v", v)
		}
		p.pass(time.Millisecond)
		if v := p.Verdict(s.UID); v.ServiceFailure != errRefused {
			t.Errorf("later: %+v", v)
		}
	})
}

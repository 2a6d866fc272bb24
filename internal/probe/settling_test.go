package probe

import (
	"testing"
	"testing/synctest"
	"time"
)

// arriving is a server whose pod answered, and is replaced by one that comes when this is observed: a-new.
func (p *play) arriving() Server {
	s := server("a", "a-old")
	p.Observe(s)
	p.pass(time.Minute)
	s.Generation, s.Pods = 2, []Pod{pod("a-new")}
	return s
}

// TestPodThatTheNetworkLearnsLateIsNotReported: the last pod of before may be gone while the operator does not reach the new one yet.
func TestPodThatTheNetworkLearnsLateIsNotReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		late time.Duration // that the new pod takes connections
		told bool
	}{
		"a moment late":  {late: settles - 100*time.Millisecond},
		"as good as not": {late: time.Hour, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := start(t, Options{})
				s := server("a", "old")
				p.Observe(s)
				p.pass(time.Minute)
				p.answer("new:8080", reply{err: errRefused})
				s.Generation, s.Settled, s.Pods = 2, false, append(s.Pods, pod("new"))
				p.Observe(s)
				p.pass(time.Second)
				s.Settled, s.Pods = true, s.Pods[1:]
				p.Observe(s)
				p.pass(tt.late - time.Second - time.Millisecond)
				if v := p.Verdict(s.UID); v.Known != tt.told || (v.Failure == errRefused) != tt.told {
					t.Errorf("before it does: %+v", v)
				}
				p.answer("new:8080", reply{})
				p.pass(2 * time.Minute)
				if v := p.Verdict(s.UID); !v.Known || !v.Serving || v.Failure != nil || v.Generation != 2 {
					t.Errorf("after it does: %+v", v)
				}
			})
		})
	}
}

// TestWhatWasToldOfANewPodIsNotTakenBackByAConnectionThatFails: the network is excused for nothing any more.
func TestWhatWasToldOfANewPodIsNotTakenBackByAConnectionThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		s := p.arriving()
		p.answer("a-new:8080", reply{err: errNotMCP})
		p.Observe(s)
		p.pass(time.Second)
		if v := p.Verdict(s.UID); v.Failure != errNotMCP {
			t.Fatalf("after three answers that are not MCP: %+v", v)
		}
		p.answer("a-new:8080", reply{err: errRefused})
		p.pass(time.Second)
		if v := p.Verdict(s.UID); !v.Known || v.Failure != errRefused {
			t.Errorf("after a connection that failed: %+v", v)
		}
		p.answer("a-new:8080", reply{err: errNotMCP})
		p.pass(settles)
		if v := p.Verdict(s.UID); !v.Known || v.Failure != errNotMCP {
			t.Errorf("after one more answer: %+v", v)
		}
	})
}

// TestANewPodIsGivenThreeFailuresOfItsOwn: those before, while the network may not know it, are not its.
func TestANewPodIsGivenThreeFailuresOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ refused, until time.Duration }{
		"after one refusal":           {refused: 0, until: 900 * time.Millisecond},
		"after three of them":         {refused: 700 * time.Millisecond, until: 2400 * time.Millisecond},
		"after all of its time is up": {refused: 4 * time.Second, until: 5700 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := start(t, Options{})
				s := p.arriving()
				p.answer("a-new:8080", reply{err: errRefused})
				p.Observe(s)
				p.pass(tt.refused)
				p.answer("a-new:8080", reply{err: errNotMCP})
				p.pass(tt.until - tt.refused - time.Millisecond)
				if v := p.Verdict(s.UID); v.Known || v.Failure != nil {
					t.Errorf("before the third failure of its own: %+v", v)
				}
				p.pass(time.Millisecond)
				if v := p.Verdict(s.UID); v.Failure != errNotMCP {
					t.Errorf("after it: %+v", v)
				}
			})
		})
	}
}

// TestANewPodThatClosesItsConnectionsIsReported as any other that fails: it was reached.
func TestANewPodThatClosesItsConnectionsIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		s := p.arriving()
		p.answer("a-new:8080", reply{err: errClosed})
		p.Observe(s)
		p.pass(700 * time.Millisecond)
		if v := p.Verdict(s.UID); v.Failure != errClosed {
			t.Errorf("after three failures: %+v", v)
		}
	})
}

// hang fills the failing lane with servers that hang: each of two namespaces may keep half of the workers busy.
func (p *play) hang() {
	for _, name := range []string{"one", "other"} {
		h := p.hostile(name, 1000)
		h.edit(p, reply{takes: 15 * time.Second, err: errRefused})
	}
	p.pass(2 * time.Hour)
}

// TestServersThatHangDoNotDelayWhatIsToldOfAService: until it is told, it waits for none of those that fail.
func TestServersThatHangDoNotDelayWhatIsToldOfAService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.hang()
		p.answer("a-svc:8080", reply{err: errRefused})
		s := server("a", "pod-1")
		s.Service = "a-svc:8080"
		p.Observe(s)
		p.pass(settles)
		if v := p.Verdict(s.UID); v.ServiceFailure != errRefused {
			t.Errorf("verdict: %+v", v)
		}
	})
}

func TestServersThatHangDoNotDelayWhatIsToldOfANewPod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.hang()
		s := p.arriving()
		p.answer("a-new:8080", reply{err: errRefused})
		p.Observe(s)
		p.pass(settles)
		if v := p.Verdict(s.UID); v.Failure != errRefused {
			t.Errorf("verdict: %+v", v)
		}
	})
}

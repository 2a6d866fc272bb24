package probe

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnswerCountsForAGenerationOnlyIfSettledBeforeAndAfter(t *testing.T) {
	t.Parallel()
	at := func(generation int64, settled bool) Server {
		s := server("a", "pod-1")
		s.Generation, s.Settled = generation, settled
		return s
	}
	tests := map[string]struct {
		before, during Server
		want           int64 // the generation that the first answer counts for
		wantSecond     int64 // and the one that the next answer, at once where somebody waits, counts for
	}{
		"settled all the time":       {before: at(1, true), during: at(1, true), want: 1, wantSecond: 1},
		"settled only before":        {before: at(1, true), during: at(1, false), want: 0, wantSecond: 0},
		"settled only after":         {before: at(1, false), during: at(1, true), want: 0, wantSecond: 1},
		"never settled":              {before: at(1, false), during: at(1, false), want: 0, wantSecond: 0},
		"a new generation meanwhile": {before: at(1, true), during: at(2, true), want: 0, wantSecond: 2},
		"a new one, not settled":     {before: at(1, true), during: at(2, false), want: 0, wantSecond: 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := start(t, Options{})
				p.answer("pod-1:8080", reply{takes: time.Second})
				p.Observe(tt.before)
				p.pass(500 * time.Millisecond)
				p.Observe(tt.during)
				p.pass(500 * time.Millisecond)
				if got := p.Verdict("uid-a"); got.Generation != tt.want || !got.Known || !got.Serving {
					t.Errorf("the answer counts for generation %d, want %d: %+v", got.Generation, tt.want, got)
				}
				p.pass(time.Second)
				if got := p.Verdict("uid-a"); got.Generation != tt.wantSecond || (got.Result != nil) != (tt.wantSecond > 0) {
					t.Errorf("the second answer counts for generation %d, want %d: %+v", got.Generation, tt.wantSecond, got)
				}
				if asked := len(p.asked("pod-1:8080")); (asked == 2) != (tt.wantSecond != tt.want) {
					t.Errorf("asked %d times", asked)
				}
			})
		})
	}
}

func TestNewGenerationIsCheckedAtOnceWhenItHasSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		first := server("a", "pod-1")
		p.Observe(first)
		p.pass(5 * time.Second)
		second := server("a", "pod-1")
		second.Generation, second.Settled = 2, false
		p.Observe(second)
		p.pass(5 * time.Second)
		if got := p.Verdict("uid-a").Generation; got != 1 || len(p.calls) != 1 {
			t.Errorf("before it settled: generation %d, %d calls", got, len(p.calls))
		}
		second.Settled = true
		p.Observe(second)
		p.pass(0)
		if got := p.Verdict("uid-a").Generation; got != 2 || len(p.calls) != 2 || p.calls[1].Kind != "check" {
			t.Errorf("after it settled: generation %d, calls %+v", got, p.calls)
		}
	})
}

func TestOldPodsAreAskedAsBeforeUntilTheRolloutIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "old-1", "old-2"))
		p.pass(time.Second)

		rollout := server("a", "old-1", "old-2", "new-1")
		rollout.Generation, rollout.Settled, rollout.Path, rollout.Host = 2, false, "/new", "localhost:8080"
		p.Observe(rollout)
		p.pass(3 * time.Minute)
		for _, old := range []string{"old-1:8080", "old-2:8080"} {
			calls := p.asked(old)
			if len(calls) < 2 {
				t.Errorf("%s was asked %d times", old, len(calls))
			}
			for _, c := range calls {
				if c.Path != "/mcp" || c.Host != "a-svc:8080" {
					t.Errorf("%s was asked for %s of %s, which it does not serve yet", old, c.Path, c.Host)
				}
			}
		}
		for _, c := range p.asked("new-1:8080") {
			if c.Path != "/new" || c.Host != "localhost:8080" {
				t.Errorf("the new pod was asked for %s of %s", c.Path, c.Host)
			}
		}
		if got := p.Verdict("uid-a"); got.Generation != 1 || !got.Serving || got.Failure != nil {
			t.Errorf("during the rollout: %+v", got)
		}
	})
}

func TestPodIsProbedInFullForAnotherPathWithoutARollout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		edited := server("a", "pod-1")
		edited.Generation, edited.Path = 2, "/new"
		p.Observe(edited)
		p.pass(0)
		want := []call{
			{At: 0, Kind: "probe", Address: "pod-1:8080", Path: "/mcp", Host: "a-svc:8080"},
			{At: time.Second, Kind: "probe", Address: "pod-1:8080", Path: "/new", Host: "a-svc:8080"},
		}
		if diff := cmp.Diff(want, p.calls); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if got := p.Verdict("uid-a").Generation; got != 2 {
			t.Errorf("generation %d, want 2", got)
		}
	})
}

func TestAnswerFromAnAddressThatAPodHasLeftCountsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{takes: time.Second})
		p.answer("moved:8080", reply{err: errRefused})
		p.Observe(server("a", "pod-1"))
		p.pass(500 * time.Millisecond)
		moved := server("a", "pod-1")
		moved.Pods[0].Address = "moved:8080"
		p.Observe(moved)
		p.pass(600 * time.Millisecond)
		if v := p.Verdict("uid-a"); v.Known || v.Serving || v.Generation != 0 {
			t.Errorf("verdict: %+v", v)
		}
	})
}

func TestServiceIsAskedOnceAGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{takes: time.Second})
		s := server("a", "pod-1")
		s.Service = "a-svc:8080"
		p.Observe(s)
		p.pass(time.Second)
		want := []call{{At: time.Second, Kind: "check", Address: "a-svc:8080", Path: "/mcp", Host: "a-svc:8080"}}
		if diff := cmp.Diff(want, p.asked("a-svc:8080")); diff != "" {
			t.Errorf("after the pod answered (-want +got)\n%s", diff)
		}
		p.pass(time.Hour)
		if got := len(p.asked("a-svc:8080")); got != 1 || p.Verdict("uid-a").Generation != 1 {
			t.Errorf("the Service was asked %d times, want once; verdict %+v", got, p.Verdict("uid-a"))
		}
		s.Generation = 2
		p.Observe(s)
		p.pass(time.Hour)
		if got := len(p.asked("a-svc:8080")); got != 2 || p.Verdict("uid-a").Generation != 2 {
			t.Errorf("the Service was asked %d times, want once more; verdict %+v", got, p.Verdict("uid-a"))
		}
	})
}

func TestServiceThatAnswersDifferentlyThanThePodAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("a-svc:8080", reply{stale: true})
		s := server("a", "pod-1")
		s.Service = "a-svc:8080"
		p.Observe(s)
		p.pass(time.Minute)
		if v := p.Verdict("uid-a"); v.Generation != 1 || v.ServiceFailure != nil || len(p.asked("a-svc:8080")) != 1 {
			t.Errorf("verdict: %+v, calls %+v", v, p.calls)
		}
	})
}

func TestAnswerForAPathThatIsNotAskedForAnyMoreCountsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{takes: time.Second})
		p.Observe(server("a", "pod-1"))
		p.pass(500 * time.Millisecond)
		p.answer("pod-1:8080", reply{takes: time.Hour})
		edited := server("a", "pod-1")
		edited.Path = "/new"
		p.Observe(edited)
		p.pass(time.Second)
		if v := p.Verdict("uid-a"); v.Known || v.Generation != 0 || p.calls[1].Path != "/new" || p.calls[1].At != time.Second {
			t.Errorf("verdict: %+v, calls: %+v", v, p.calls)
		}
	})
}

func TestServiceOfANewGenerationStartsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("a-svc:8080", reply{takes: 100 * time.Millisecond, err: errRefused})
		s := server("a", "pod-1")
		s.Service = "a-svc:8080"
		p.Observe(s)
		p.pass(time.Minute)
		if p.Verdict("uid-a").ServiceFailure == nil {
			t.Fatal("the failure is not reported")
		}
		s.Generation = 2
		p.Observe(s)
		if v := p.Verdict("uid-a"); v.ServiceFailure != nil {
			t.Errorf("the failure of the old generation is told of the new one: %+v", v)
		}
		p.pass(50 * time.Millisecond)
		s.Generation = 3 // while the Service is asked for generation 2
		p.Observe(s)
		p.pass(time.Second)
		calls := p.asked("a-svc:8080")
		for i, c := range calls {
			if c.At < time.Minute {
				continue
			}
			at := calls[i].At - time.Minute
			want := []time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond} // the second is the first of generation 3
			if got := []time.Duration{at, calls[i+1].At - time.Minute, calls[i+2].At - time.Minute}; cmp.Diff(want, got) != "" {
				t.Errorf("asked after %v, want %v", got, want)
			}
			return
		}
		t.Error("the Service was not asked for the new generations")
	})
}

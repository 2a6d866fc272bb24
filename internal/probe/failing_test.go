package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

func seconds(list ...float64) []time.Duration {
	var durations []time.Duration
	for _, s := range list {
		durations = append(durations, time.Duration(s*float64(time.Second)))
	}
	return durations
}

func TestNewServerIsProbedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.pass(time.Hour)
		p.Observe(server("a", "pod-1"))
		p.pass(0)
		want := []call{{At: time.Hour, Kind: "probe", Address: "pod-1:8080", Path: "/mcp", Host: "a-svc:8080"}}
		if diff := cmp.Diff(want, p.asked("pod-1:8080")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		v := p.Verdict("uid-a")
		if !v.Known || !v.Serving || v.Generation != 1 || v.Result == nil || v.Failure != nil {
			t.Errorf("verdict: %+v", v)
		}
	})
}

func TestNothingIsAskedOfAServerWithoutReadyPods(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		empty := server("a")
		empty.Service = "a-svc:8080"
		p.Observe(empty)
		p.pass(time.Hour)
		if len(p.calls) > 0 {
			t.Errorf("calls: %v", p.calls)
		}
		if v := p.Verdict("uid-a"); v.Known || v.Serving || !v.Since.Equal(p.start) {
			t.Errorf("verdict: %+v", v)
		}
	})
}

func TestNewPodThatFailsIsAskedLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{err: errRefused})
		p.Observe(server("a", "pod-1"))
		p.pass(9 * time.Minute)
		want := seconds(0.2, 0.5, 1, 2, 4, 8, 16, 32, 64, 120, 120, 120)
		if diff := cmp.Diff(want, gaps(p.asked("pod-1:8080"))); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestNewPodIsReportedAfterThreeFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{err: errRefused})
		p.Observe(server("a", "pod-1"))
		p.pass(699 * time.Millisecond) // two failures: at 0 and 0.2 s
		if diff := cmp.Diff(Verdict{Since: p.start, Undecided: true}, p.Verdict("uid-a")); diff != "" {
			t.Errorf("after two failures (-want +got)\n%s", diff)
		}
		p.pass(time.Millisecond) // the third
		got := p.Verdict("uid-a")
		if !got.Known || got.Serving || got.Failure != errRefused || got.FailedPod != "pod-1" || !got.Since.IsZero() {
			t.Errorf("after three failures: %+v", got)
		}
		p.pass(time.Hour)
		if diff := cmp.Diff(seconds(0.7), p.notifications("a")); diff != "" {
			t.Errorf("notifications (-want +got)\n%s", diff)
		}
	})
}

func TestPodThatAnsweredIsReportedAfterTwoFailuresAndBackAfterOneAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		p.answer("pod-1:8080", reply{err: errRefused})
		first := func() time.Duration { // passes until the pod was asked n times
			n := len(p.asked("pod-1:8080"))
			for len(p.asked("pod-1:8080")) == n {
				p.pass(100 * time.Millisecond)
			}
			return p.asked("pod-1:8080")[n].At
		}
		failedAt := first()
		if v := p.Verdict("uid-a"); v.Failure != nil || !v.Serving {
			t.Errorf("after one failure: %+v", v)
		}
		if again := first(); again != failedAt+200*time.Millisecond {
			t.Errorf("asked again after %s", again-failedAt)
		}
		if v := p.Verdict("uid-a"); v.Failure != errRefused || v.Serving || !v.Known || v.Generation != 0 {
			t.Errorf("after two failures: %+v", v)
		}
		p.answer("pod-1:8080", reply{})
		first()
		if v := p.Verdict("uid-a"); v.Failure != nil || !v.Serving || v.Generation != 1 {
			t.Errorf("after an answer: %+v", v)
		}
		if got := len(p.notifications("a")); got != 3 {
			t.Errorf("%d notifications, want 3: verified, failed, back", got)
		}
	})
}

func TestOneOfTwoPodsThatFailsIsReportedWhileTheServerServes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-2:8080", reply{err: errRefused})
		p.Observe(server("a", "pod-1", "pod-2"))
		p.pass(time.Minute)
		if v := p.Verdict("uid-a"); !v.Serving || v.Failure != errRefused || v.FailedPod != "pod-2" || v.Failed != 1 || v.Generation != 1 {
			t.Errorf("verdict: %+v", v)
		}
		p.answer("pod-3:8080", reply{err: errRefused})
		p.Observe(server("a", "pod-1", "pod-2", "pod-3"))
		p.pass(time.Minute)
		if v := p.Verdict("uid-a"); v.FailedPod != "pod-2" || v.Failed != 2 {
			t.Errorf("verdict of three: %+v", v)
		}
	})
}

func TestAPodThatComesToAServerThatAnswersIsGivenTimeToStart(t *testing.T) {
	t.Parallel()
	early := &mcp.Error{Reason: mcp.ServerError, Message: "The server answers initialize with HTTP 503."}
	tests := map[string]struct {
		slow time.Duration // when it begins to answer; 0: never
		told bool          // that it does not
	}{
		"it answers after twenty seconds": {slow: 20 * time.Second},
		"it never answers":                {told: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := start(t, Options{})
				p.Observe(server("a", "pod-1"))
				p.pass(time.Minute)
				p.answer("pod-2:8080", reply{err: early})
				p.Observe(server("a", "pod-1", "pod-2"))
				before, told := len(p.notifications("a")), false
				for passed := time.Duration(0); passed < time.Minute; passed += 100 * time.Millisecond {
					if tt.slow > 0 && passed >= tt.slow {
						p.answer("pod-2:8080", reply{})
					}
					v := p.Verdict("uid-a")
					told = told || v.Failed > 0
					if !v.Serving || v.Failed > 0 && passed < starts {
						t.Fatalf("after %s: %+v", passed, v)
					}
					p.pass(100 * time.Millisecond)
				}
				if told != tt.told || len(p.notifications("a")) != before+1 { // that it answers, or does not
					t.Errorf("told: %t, notified at %v", told, p.notifications("a"))
				}
			})
		})
	}
}

func TestErrorThatIsNotOfMCPIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-1:8080", reply{err: fmt.Errorf("refused: %w", errors.New("by a dialer"))})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		want := &mcp.Error{Reason: mcp.ProtocolError, Message: "refused: by a dialer"}
		if got := p.Verdict("uid-a").Failure; !sameFailure(want, got) {
			t.Errorf("failure is %+v, want %+v", got, want)
		}
	})
}

// The error below a failure names another port each time; what is said to users is the same.
func TestSameFailureIsNotNotifiedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		p := start(t, Options{
			Client: &mcp.Client{},
			Transport: func(Server, *Pod) *http.Transport {
				attempts++
				n := attempts
				return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					return nil, fmt.Errorf("from port %d: refused", n)
				}}
			},
		})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Hour)
		if attempts < 10 || len(p.notifications("a")) != 1 {
			t.Errorf("%d failures, notified at %v: want one notification", attempts, p.notifications("a"))
		}
	})
}

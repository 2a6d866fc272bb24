package probe

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// The interval between two checks of a server: 45 s, spread by a tenth.
const shortest, longest = 40*time.Second + 500*time.Millisecond, 49*time.Second + 500*time.Millisecond

func TestHealthyServerIsCheckedCheaplyPodByPod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1", "pod-2", "pod-3"))
		p.pass(9 * time.Minute)
		if len(p.calls) < 3+10 {
			t.Fatalf("%d calls in nine minutes", len(p.calls))
		}
		for i, c := range p.calls {
			if i < 3 {
				if c.Kind != "probe" || c.At != 0 {
					t.Errorf("call %d: %+v, want a full probe at once of each pod", i, c)
				}
				continue
			}
			if c.Kind != "check" {
				t.Errorf("call %d: %+v, want a cheap check", i, c)
			}
			if gap := c.At - p.calls[i-1].At; gap < shortest || gap > longest {
				t.Errorf("call %d came after %s, want %s to %s", i, gap, shortest, longest)
			}
			if i >= 6 && c.Address != p.calls[i-3].Address {
				t.Errorf("call %d: asked %s, want %s, whose turn it is", i, c.Address, p.calls[i-3].Address)
			}
			if c.Address == p.calls[i-1].Address {
				t.Errorf("call %d: %s was asked twice in a row", i, c.Address)
			}
		}
	})
}

func TestListsAreReadAgainEveryTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(61 * time.Minute)
		var full []call
		for _, c := range p.calls {
			if c.Kind == "probe" {
				full = append(full, c)
			}
		}
		if len(full) < 6 {
			t.Fatalf("%d full probes in 61 minutes", len(full))
		}
		for _, gap := range gaps(full) {
			if gap < 10*time.Minute || gap > 10*time.Minute+longest {
				t.Errorf("lists were read again after %s", gap)
			}
		}
		if got := len(p.notifications("a")); got != 1 {
			t.Errorf("%d notifications for a server that never changed, want 1", got)
		}
	})
}

func TestNewPodIsProbedInFullAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(5 * time.Second)
		p.Observe(server("a", "pod-1", "pod-2"))
		p.pass(time.Second)
		want := []call{{At: 5 * time.Second, Kind: "probe", Address: "pod-2:8080", Path: "/mcp", Host: "a-svc:8080"}}
		if diff := cmp.Diff(want, p.asked("pod-2:8080")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if got := len(p.asked("pod-1:8080")); got != 1 {
			t.Errorf("the old pod was asked %d times, want 1", got)
		}
	})
}

func TestServerThatAnswersDifferentlyIsProbedInFullAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		changed := &mcp.Result{ProtocolVersion: "2026-07-28"}
		p.answer("pod-1:8080", reply{stale: true, result: changed})
		p.pass(longest)
		calls := p.asked("pod-1:8080")
		if len(calls) != 3 || calls[1].Kind != "check" || calls[2].Kind != "probe" || calls[1].At != calls[2].At {
			t.Errorf("calls: %+v, want a check and at once a probe", calls)
		}
		if got := p.Verdict("uid-a"); got.Result != changed || len(p.notifications("a")) != 2 {
			t.Errorf("verdict: %+v, notified at %v", got, p.notifications("a"))
		}
	})
}

func TestCheapCheckDoesNotBringBackWhatAnotherPodSaidBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		older, newer := &mcp.Result{ProtocolVersion: "older"}, &mcp.Result{ProtocolVersion: "newer"}
		p.answer("pod-1:8080", reply{result: older})
		p.answer("pod-2:8080", reply{result: newer})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Minute)
		p.Observe(server("a", "pod-1", "pod-2"))
		p.pass(5 * time.Minute) // both are checked in turn
		if got := p.Verdict("uid-a").Result; got != newer {
			t.Errorf("result is %+v, want that of the last full probe", got)
		}
		if got := len(p.notifications("a")); got != 2 {
			t.Errorf("%d notifications, want 2", got)
		}
	})
}

func TestHealthyPodKeepsItsRhythmWhileAnotherFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("pod-2:8080", reply{takes: 5 * time.Second, err: errRefused})
		p.Observe(server("a", "pod-1", "pod-2"))
		p.pass(30 * time.Minute)
		for _, gap := range gaps(p.asked("pod-1:8080")) {
			if gap > longest+5*time.Second { // one thing at a time is asked of a server
				t.Errorf("the healthy pod was not asked for %s", gap)
			}
		}
	})
}

func TestEveryProbeIsObserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var observed []string
		p := start(t, Options{Ended: func(attempt Attempt, took time.Duration, result *mcp.Result, err error) {
			key := attempt.Server.Key
			observed = append(observed, fmt.Sprintf("%s %s asks about: %v result: %t error: %v", key, took, versionOf(attempt.Last), result != nil, err))
		}})
		p.answer("pod-1:8080", reply{takes: 300 * time.Millisecond})
		p.Observe(server("a", "pod-1"))
		p.pass(time.Second)
		p.answer("pod-1:8080", reply{takes: 400 * time.Millisecond, err: errRefused})
		p.pass(longest)
		want := []string{
			"test/a 300ms asks about: nothing result: true error: <nil>",
			"test/a 400ms asks about: 2025-11-25 result: false error: " + errRefused.Message,
		}
		if len(observed) < 2 {
			t.Fatalf("observed: %q", observed)
		}
		if diff := cmp.Diff(want, observed[:2]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// versionOf names a result by its protocol version.
func versionOf(result *mcp.Result) string {
	if result == nil {
		return "nothing"
	}
	return result.ProtocolVersion
}

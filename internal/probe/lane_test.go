package probe

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// blackHoles are servers that keep a worker waiting and then fail.
func (p *play) blackHoles(n int, takes time.Duration) {
	for i := range n {
		name := fmt.Sprintf("hole-%04d", i)
		p.answer(name+":8080", reply{takes: takes, err: errRefused})
		p.Observe(server(name, name))
	}
}

func TestDeadServersDelayANewOneByOneProbeAtMost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		holes   int
		takes   time.Duration
		arrives time.Duration // when the new server comes after them
	}{
		"right after a hundred":         {holes: 100, takes: 2 * time.Second, arrives: time.Millisecond},
		"during their first probes":     {holes: 100, takes: 2 * time.Second, arrives: 5 * time.Second},
		"while they back off":           {holes: 100, takes: 2 * time.Second, arrives: time.Minute},
		"long after":                    {holes: 100, takes: 2 * time.Second, arrives: time.Hour},
		"right after a thousand slow":   {holes: 1000, takes: 15 * time.Second, arrives: time.Millisecond},
		"an hour after a thousand slow": {holes: 1000, takes: 15 * time.Second, arrives: time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := start(t, Options{})
				p.blackHoles(tt.holes, tt.takes)
				p.pass(tt.arrives)
				p.Observe(server("new", "new"))
				p.pass(tt.takes)
				asked := p.asked("new:8080")
				if len(asked) == 0 {
					t.Fatalf("the new server was not asked within %s", tt.takes)
				}
				if v := p.Verdict("uid-new"); v.Generation != 1 {
					t.Errorf("asked after %s; verdict %+v", asked[0].At-tt.arrives, v)
				}
			})
		})
	}
}

// While the dead ones back off, workers of the fresh lane are free: no wait at all.
func TestDeadServersThatAreKnownDelayANewOneNotAtAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.blackHoles(100, 2*time.Second)
		p.pass(51 * time.Second) // each kept a worker once: 100 × 2 s ÷ 4
		p.Observe(server("new", "new"))
		p.pass(0)
		if got := len(p.asked("new:8080")); got != 1 {
			t.Errorf("the new server was asked %d times at once, want once", got)
		}
	})
}

func TestDeadServersDoNotChangeTheRhythmOfHealthyOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.Observe(server("a", "pod-1"))
		p.answer("half-2:8080", reply{takes: 15 * time.Second, err: errRefused})
		p.Observe(server("half", "half-1", "half-2"))
		p.blackHoles(1000, 15*time.Second) // more than the failing lane can ask within their back-off
		p.pass(time.Hour)
		for _, gap := range gaps(p.asked("pod-1:8080")) {
			if gap > longest {
				t.Errorf("a healthy server was not asked for %s", gap)
			}
		}
		for _, gap := range gaps(p.asked("half-1:8080")) {
			if gap > longest+15*time.Second { // one thing at a time is asked of a server
				t.Errorf("a healthy pod beside a dead one was not asked for %s", gap)
			}
		}
	})
}

func TestServersThatHangAfterTheyWereHealthyDelayNobodyWhoIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.blackHoles(200, 0)
		for i := range 200 {
			p.answer(fmt.Sprintf("hole-%04d:8080", i), reply{})
		}
		edited := server("edited", "edited")
		p.Observe(edited)
		p.pass(30 * time.Second)
		for i := range 200 {
			p.answer(fmt.Sprintf("hole-%04d:8080", i), reply{takes: 15 * time.Second, err: errRefused})
		}
		p.pass(25 * time.Second) // all checks are due
		asked := len(p.asked("edited:8080"))
		edited.Generation = 2
		p.Observe(edited)
		p.Observe(server("new", "new"))
		p.pass(0)
		if got := len(p.asked("new:8080")); got != 1 {
			t.Errorf("the new server was asked %d times at once, want once", got)
		}
		if got := len(p.asked("edited:8080")); got != asked+1 {
			t.Errorf("the new generation was asked %d times at once, want once", got-asked)
		}
	})
}

// Most servers need only moments to start: they are asked again quickly, whatever the failing lane has to do.
func TestServerThatFailsFastStaysInTheFreshLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.blackHoles(1000, 15*time.Second)
		p.pass(2 * time.Hour) // the failing lane is full, the fresh one empty
		p.answer("starting:8080", reply{err: errRefused})
		p.Observe(server("starting", "starting"))
		p.pass(4 * time.Second)
		if diff := cmp.Diff(seconds(0.2, 0.5, 1, 2), gaps(p.asked("starting:8080"))); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestOneThingAtATimeIsAskedOfAServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.answer("half-2:8080", reply{takes: 30 * time.Second, err: errRefused})
		p.Observe(server("half", "half-1", "half-2"))
		p.pass(time.Hour)
		for i, c := range p.calls[1:] {
			if before := p.calls[i]; before.Address == "half-2:8080" && c.At-before.At < 30*time.Second {
				t.Errorf("%s was asked %s after %s, which takes 30 s", c.Address, c.At-before.At, before.Address)
			}
		}
	})
}

func TestAddressesAreInTheLaneOfTheirHistory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		streak streak
		want   lane
	}{
		"never asked":              {streak{}, fresh},
		"began to fail":            {streak{failures: 1}, fresh},
		"failed four times":        {streak{failures: 4}, fresh},
		"failed five times":        {streak{failures: 5, told: true}, failing},
		"is not told yet":          {streak{failures: 5, excused: true}, fresh},
		"not told, and slow":       {streak{failures: 5, excused: true, slow: true}, failing},
		"kept a worker waiting":    {streak{failures: 1, slow: true}, failing},
		"answered, began to fail":  {streak{answered: true, failures: 1}, fresh},
		"answered, dead for a day": {streak{answered: true, failures: 700, told: true}, failing},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := laneOf(&tt.streak); got != tt.want {
				t.Errorf("lane %d, want %d", got, tt.want)
			}
		})
	}
}

func TestFreshLaneServesTheLastToComeFirst(t *testing.T) {
	t.Parallel()
	tests := map[lane][]types.UID{fresh: {"c", "b", "a"}, healthy: {"a", "b", "c"}, failing: {"a", "b", "c"}}
	for l, want := range tests {
		t.Run(fmt.Sprint("lane ", l), func(t *testing.T) {
			t.Parallel()
			s := New(Options{})
			entries := map[types.UID]*entry{}
			for _, uid := range []types.UID{"a", "b", "c", "a"} { // the last keeps its place
				if entries[uid] == nil {
					entries[uid] = &entry{server: Server{UID: uid}}
				}
				s.enqueue(l, entries[uid])
			}
			var got []types.UID
			for _, uid, ok := s.queues[l].Pop(); ok; _, uid, ok = s.queues[l].Pop() {
				got = append(got, uid)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

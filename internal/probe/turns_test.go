package probe

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// tenant is a namespace with servers whose pods hang.
type tenant struct {
	name    string
	servers []Server
}

// hostile returns a tenant, of whose servers none is observed yet.
func (p *play) hostile(name string, servers int) *tenant {
	h := &tenant{name: name}
	for i := range servers {
		s := server(fmt.Sprintf("%s-%d", name, i))
		s.Key.Namespace = name
		h.servers = append(h.servers, s)
	}
	h.edit(p, reply{takes: 15 * time.Second, err: errRefused})
	return h
}

// edit gives every server a new generation with a new pod that answers so.
func (h *tenant) edit(p *play, r reply) {
	for i := range h.servers {
		s := &h.servers[i]
		s.Generation++
		s.Pods = []Pod{pod(fmt.Sprintf("%s-%d", s.Key.Name, s.Generation))}
		p.answer(s.Pods[0].Address, r)
		p.Observe(*s)
	}
}

func TestServersOfOneNamespaceThatHangAndAreEditedAllTheTimeDelayNobodyElse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tenants int
		within  time.Duration
	}{
		"of one namespace, not at all":           {tenants: 1},
		"of many, until one worker has its turn": {tenants: 4, within: 15 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := start(t, Options{})
				var tenants []*tenant
				for i := range tt.tenants {
					tenants = append(tenants, p.hostile(fmt.Sprint("hostile-", i), 20))
				}
				pass := func(d time.Duration) {
					for range d / time.Second {
						for _, h := range tenants {
							h.edit(p, reply{takes: 15 * time.Second, err: errRefused})
						}
						p.pass(time.Second)
					}
					p.pass(0)
				}
				pass(time.Minute)
				honest := server("honest", "honest-1")
				p.Observe(honest)
				pass(tt.within)
				if v := p.Verdict(honest.UID); v.Generation != 1 {
					t.Errorf("a new server, after %s: %+v", tt.within, v)
				}
				pass(time.Minute)
				honest.Generation, honest.Pods = 2, []Pod{pod("honest-2")}
				p.Observe(honest)
				pass(tt.within)
				if v := p.Verdict(honest.UID); v.Generation != 2 {
					t.Errorf("a new generation, after %s: %+v", tt.within, v)
				}
			})
		})
	}
}

func TestManyDeadServersOfOneNamespaceDoNotKeepAnotherThatCameBackFromBeingSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		p.hostile("hostile", 2000)
		p.answer("honest:8080", reply{err: errRefused})
		honest := server("honest", "honest")
		p.Observe(honest)
		p.pass(time.Hour)
		p.answer("honest:8080", reply{})
		p.pass(maxBackoff)
		if v := p.Verdict(honest.UID); !v.Serving {
			t.Errorf("after the longest pause: %+v", v)
		}
	})
}

func TestServersOfOneNamespaceThatBeginToHangDoNotChangeTheRhythmOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{})
		h := p.hostile("hostile", 400)
		h.edit(p, reply{})
		p.Observe(server("honest", "honest"))
		p.pass(4 * time.Minute)
		for _, s := range h.servers {
			p.answer(s.Pods[0].Address, reply{takes: 15 * time.Second, err: errRefused})
		}
		p.pass(10 * time.Minute)
		for _, gap := range gaps(p.asked("honest:8080")) {
			if gap > longest {
				t.Errorf("a healthy server was not asked for %s", gap)
			}
		}
	})
}

func TestOneNamespaceKeepsAtMostHalfOfTheWorkersOfALaneBusy(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]int{1: 1, 2: 1, 5: 2, 8: 4} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, Options{Workers: workers})
			p.blackHoles(20, 3*time.Second)
			p.pass(0)
			if len(p.calls) != want {
				t.Errorf("of %d workers %d are busy, want %d", workers, len(p.calls), want)
			}
		})
	}
}

// TestTimersDoNotPileUp, however often a server is told of.
func TestTimersDoNotPileUp(t *testing.T) {
	t.Parallel()
	tests := map[string]func(p *play, s Server){
		"when a server is told of again":    func(p *play, s Server) { p.Observe(s) },
		"when it is forgotten":              func(p *play, s Server) { p.Forget(s.Key) },
		"when another one has its name now": func(p *play, s Server) { p.Observe(Server{UID: "uid-of-the-second", Key: s.Key}) },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := start(t, Options{})
				s := server("a", "pod-1")
				p.Observe(s)
				p.pass(time.Second)
				p.Scheduler.mu.Lock()
				timer := p.entries[s.UID].timers[healthy]
				p.Scheduler.mu.Unlock()
				end(p, s)
				if timer.Stop() {
					t.Error("the timer until the next probe still ran")
				}
			})
		})
	}
}

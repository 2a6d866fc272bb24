package probe

import (
	"crypto/tls"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// task is one thing to ask, of a pod or of the Service.
type task struct {
	at     time.Time // zero: there is no task
	server Server
	pod    *Pod // nil: the Service
	asked  endpoint
	tls    *tls.Config // of asked; nil: plain HTTP
	last   *mcp.Result // nil: a full probe; else whether this still holds
}

func (t task) exists() bool { return !t.at.IsZero() }

func (t task) target() mcp.Target {
	address := t.server.Service
	if t.pod != nil {
		address = t.pod.Address
	}
	return mcp.Target{URL: t.asked.scheme + "://" + address + t.asked.path, Host: t.asked.host, SSE: t.asked.sse}
}

// next returns the earliest thing to ask in each lane.
func (e *entry) next(opts Options) [lanes]task {
	var best [lanes]task
	offer := func(l lane, t task) {
		if !best[l].exists() || t.at.Before(best[l].at) {
			t.server = e.server
			best[l] = t
		}
	}
	var due *podState // the healthy pod that was asked longest ago
	for _, p := range e.sorted() {
		switch {
		case p.full.IsZero(), p.failures > 0:
			offer(laneOf(&p.streak), task{at: atLeastOne(p.next), pod: &p.pod, asked: p.asked, tls: p.tls, last: p.lastFor(opts)})
		case due == nil || p.next.Before(due.next):
			due = p
		}
	}
	if due != nil {
		at, l := e.nextRound, healthy
		if e.server.Settled && e.generation() < e.server.Generation {
			at, l = time.Time{}, fresh // somebody waits for the new generation
		}
		if due.slow {
			l = failing // it answers, and keeps a worker waiting all the same
		}
		offer(l, task{at: atLeastOne(at), pod: &due.pod, asked: due.asked, tls: due.tls, last: due.lastFor(opts)})
	}
	if e.server.Service != "" && e.generation() == e.server.Generation && e.serviceCounted < e.server.Generation && e.result != nil {
		offer(laneOf(&e.service), task{at: atLeastOne(e.service.next), asked: e.server.endpoint(), tls: e.server.TLS, last: e.result})
	}
	return best
}

// lastFor returns what to compare with: nothing when a full probe is due.
func (p *podState) lastFor(opts Options) *mcp.Result {
	if p.full.IsZero() || time.Since(p.full) >= opts.FullInterval {
		return nil
	}
	return p.result
}

// answer is what came of a task.
type answer struct {
	result *mcp.Result // of a full probe
	err    *mcp.Error  // nil: it answers
	took   time.Duration
}

// atLeastOne keeps "at once" apart from "nothing to do".
func atLeastOne(t time.Time) time.Time {
	if t.IsZero() {
		return time.Unix(1, 0)
	}
	return t
}

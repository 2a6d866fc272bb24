package front

import (
	"fmt"
	"sync"
	"time"
)

const (
	// After hanging calls in a row that were not answered in time, and none that was, a backend hangs.
	hanging = 5
	// A backend that hangs is sent one call in trial, to see whether it has come back; all others are refused at once.
	trial = time.Second
	// knownHanging is how long after the last call a backend is said to hang.
	knownHanging = 2 * time.Minute
)

// gate keeps a backend that hangs from holding up its callers, and what they ask of other backends.
type gate struct {
	mu sync.Mutex
	// held is how many calls of each caller are under way.
	held map[string]int
	// late is how many calls in a row were not answered in time.
	late int
	// sent is when a call was let through last since the backend hangs.
	sent time.Time
	// quiet, if somebody waits for it, is closed when no call is under way.
	quiet chan struct{}
}

func newGate() *gate { return &gate{held: map[string]int{}} }

// gateVerdict says whether a call is let through.
type gateVerdict int

const (
	gateOpen gateVerdict = iota
	// gateCallerFull is for a caller with too many calls under way at the backend.
	gateCallerFull
	// gateHangs is for a backend that answers nobody.
	gateHangs
)

// enter lets a call through, of a caller who may have most of them under way; if it is let through, leave must follow.
func (g *gate) enter(caller string, most int, now time.Time) gateVerdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[caller] >= most {
		return gateCallerFull
	}
	if g.late >= hanging {
		if now.Sub(g.sent) < trial {
			return gateHangs
		}
		g.sent = now
	}
	g.held[caller]++
	return gateOpen
}

func (g *gate) leave(caller string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[caller]--; g.held[caller] == 0 {
		delete(g.held, caller)
	}
	if len(g.held) == 0 && g.quiet != nil {
		close(g.quiet)
		g.quiet = nil
	}
}

// Quiet is closed once no call to the backend is under way: a server that has moved may be closed at its old place then.
func (b *Backend) Quiet() <-chan struct{} {
	g := b.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.held) == 0 {
		quiet := make(chan struct{})
		close(quiet)
		return quiet
	}
	if g.quiet == nil {
		g.quiet = make(chan struct{})
	}
	return g.quiet
}

// note notes whether a call was answered, with whatever, or not in time. It says whether the backend hangs since now.
func (g *gate) note(answered bool, now time.Time) (hangs bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if answered {
		g.late = 0
		return false
	}
	if g.late++; g.late == hanging {
		g.sent = now
		return true
	}
	return false
}

// hangs says whether calls are refused, but for those in trial. Of a backend that nobody calls any more it is not known.
func (g *gate) hangs(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.late >= hanging && now.Sub(g.sent) < knownHanging
}

// share is how many calls to one backend a caller may have under way: where there are others, not all that it may have at all.
func (v *visit) share() int {
	if v.lone(v.state) != nil {
		return v.limits.Calls
	}
	return max(v.limits.Calls/2, 1)
}

// busy is what a caller is told who has all of its share under way.
func busy(backend string) string {
	return fmt.Sprintf("backend %q: too many requests of this caller at it at once; the request was not sent, it is safe to try again", backend)
}

// hung is what a caller of a backend that hangs is told.
func hung(backend string) string {
	return fmt.Sprintf("backend %q: it answered none of the last calls in time; the request was not sent, it is safe to try again", backend)
}

package front

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

const (
	// firstRetry is the pause after a backend's first failure. It doubles up to soonRetry, and after soonFor up to lastRetry: a server
	// that starts is found within seconds, and one that is dead costs little.
	firstRetry = 200 * time.Millisecond
	soonRetry  = 2 * time.Second
	soonFor    = time.Minute
	lastRetry  = 15 * time.Second
	// grace is how long a backend that refuses the first connections still counts as not asked: a network may take a moment to let a
	// gateway in that has just started.
	grace = time.Second
	// settling is how long a gateway that has just started may wait until its backends were asked.
	settling = 3 * time.Second
)

// retry is the state of a backend that fails.
type retry struct {
	since time.Time
	pause time.Duration
	said  string
}

// next is the pause before the next attempt.
func (r *retry) next(now time.Time) time.Duration {
	if r.since.IsZero() {
		r.since = now
	}
	most := soonRetry
	if now.Sub(r.since) >= soonFor {
		most = lastRetry
	}
	r.pause = min(max(2*r.pause, firstRetry), most)
	return r.pause
}

// isNews says whether the backend failed otherwise before.
func (r *retry) isNews(err error) bool {
	isNews := r.said != err.Error()
	r.said = err.Error()
	return isNews
}

// missed notes that a backend could not be looked at, and waits until it is worth another look: not for long if somebody asks for it.
func (f *Front) missed(ctx context.Context, b *Backend, r *retry, err error) {
	now := time.Now()
	pause := r.next(now)
	if now.Sub(r.since) >= grace {
		b.onceAsked.Do(func() { close(b.asked) })
	}
	log := f.options.Logger.Debug
	if r.isNews(err) {
		log = f.options.Logger.Info
	}
	log("backend is not available", "backend", b.Config.Name, "error", err)
	rest := time.NewTimer(pause)
	defer rest.Stop()
	select {
	case <-ctx.Done():
	case <-renewed(b.Server):
	case <-rest.C:
	case <-b.kicked:
		backend.Pause(ctx, min(firstLook, pause-min(time.Since(now), pause)))
	}
}

// IsSettled says whether clients are served as well as they will be: every backend was asked, or had the time of a start for it.
func (f *Front) IsSettled() bool {
	f.swapping.Lock()
	s, begun := f.state.Load(), f.begun
	f.swapping.Unlock()
	if s == nil || time.Since(begun) >= settling {
		return s != nil
	}
	for _, b := range s.Backends {
		select {
		case <-b.asked:
		default:
			return false
		}
	}
	return true
}

// bell tells whoever waits that something changed.
type bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

// next is closed by the next ring.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

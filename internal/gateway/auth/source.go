package auth

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
)

const (
	// fetchTimeout bounds one fetch of keys, and with it how long a request waits for one.
	fetchTimeout = 5 * time.Second
	// refreshAfter is when keys are fetched again though nobody missed one, so that a withdrawn key is noticed.
	refreshAfter = 15 * time.Minute
	// maxAge is how long keys are used while their issuer cannot be reached: longer than tokens live.
	maxAge = 24 * time.Hour
	// minPause is the least time between a good fetch and the next, and the most between a failed one and the next.
	minPause = 10 * time.Second
	// firstPause follows the first failure; each further one doubles it.
	firstPause = time.Second
)

// keySource has the keys of one issuer. It fetches when somebody needs it to, and so has no goroutine to stop: at the start,
// when keys are old, and when a token was signed with a key it does not know; one fetch at a time, with pauses, whatever is
// presented. Verifiers of later tables go on using it.
type keySource struct {
	// provider is where the keys come from; zero for fixed ones.
	provider provider
	// fetch is nil for fixed keys.
	fetch  func() (*keySet, error)
	logger *slog.Logger
	panics *panics.Recorder
	have   atomic.Pointer[fetchedKeys]

	mu sync.Mutex
	// running is closed when the fetch that runs has ended; nil if none runs.
	running  chan struct{}
	notUntil time.Time
	failures int
}

// fetchedKeys are keys and when they were fetched; fixed ones have no such time.
type fetchedKeys struct {
	set *keySet
	at  time.Time
}

// fixedKeys is a source of keys that the table gives.
func fixedKeys(set *keySet) *keySource {
	s := &keySource{}
	s.have.Store(&fetchedKeys{set: set})
	return s
}

// remoteKeys is a source that fetches from a provider under ctx.
func remoteKeys(ctx context.Context, p provider, o *Options) *keySource {
	client := p.client()
	return &keySource{provider: p, logger: o.Logger.With("issuer", p.issuer), panics: o.Panics, fetch: func() (*keySet, error) {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		return p.fetch(ctx, client)
	}}
}

// current is the keys in use, nil if there are none. It does not wait.
func (s *keySource) current() *keySet {
	have := s.have.Load()
	if have == nil {
		return nil
	}
	if s.fetch == nil {
		return have.set
	}
	age := time.Since(have.at)
	if age > refreshAfter {
		s.refresh()
	}
	if age > maxAge {
		return nil
	}
	return have.set
}

// refresh begins a fetch, unless it is too early for one, and returns the running one's end: nil if none runs.
func (s *keySource) refresh() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil || s.fetch == nil || time.Now().Before(s.notUntil) {
		return s.running
	}
	s.running = make(chan struct{})
	go func() {
		set, err := s.attempt()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settle(set, err)
		close(s.running)
		s.running = nil
	}()
	return s.running
}

// attempt fetches once. What the issuer sent is foreign.
func (s *keySource) attempt() (set *keySet, err error) {
	defer s.panics.Catch("", &err)
	return s.fetch()
}

// settle takes the outcome of a fetch.
func (s *keySource) settle(set *keySet, err error) {
	if err != nil {
		pause := min(firstPause<<min(s.failures, 10), minPause)
		s.failures++
		s.notUntil = time.Now().Add(pause)
		s.logger.Warn("cannot fetch the issuer's keys: its tokens are refused unless their keys are known", "error", err)
		return
	}
	s.failures = 0
	s.notUntil = time.Now().Add(minPause)
	// The same keys stay the same set, so that tokens verified by them stay so.
	if have := s.have.Load(); have != nil && have.set.digest == set.digest {
		set = have.set
	}
	s.have.Store(&fetchedKeys{set: set, at: time.Now()})
}

// verify checks the signature of a token and returns the keys it did so with. An issuer may have changed its keys just now,
// so a token they do not fit waits for newer ones, if those may be fetched.
func (s *keySource) verify(ctx context.Context, t *token) (*keySet, *Error) {
	before := s.current()
	failure := before.verify(t)
	if failure == nil {
		return before, nil
	}
	if ended := s.refresh(); ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, failure
		}
	}
	after := s.current() // it may be another though no fetch runs: one may have ended meanwhile
	if after == before {
		return nil, failure
	}
	return after, after.verify(t)
}

// verify checks a signature with one key, or none.
func (s *keySet) verify(t *token) *Error {
	if s == nil {
		return unavailable()
	}
	k := s.find(t)
	if k == nil {
		return fail(ReasonKey, "the token is signed with a key or algorithm that its issuer does not name")
	}
	if _, err := t.jws.Verify(k.public); err != nil {
		return fail(ReasonSignature, "the token's signature is wrong")
	}
	return nil
}

package upstream

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// rotating is the transport of a backend. Requests that follow each other closely would keep a connection, and with it the pod at its
// other end, for ever: past pods that were added, and until one that ends cuts a call off. So a transport takes new requests for a
// while only. What its connections carry then goes on; each is closed after that, one of HTTP/2 when it was idle for a while.
type rotating struct {
	make func() *http.Transport
	// age is for how long.
	age time.Duration

	now atomic.Pointer[generation]
	mu  sync.Mutex // of who replaces it
}

type generation struct {
	*http.Transport

	since time.Time
}

// RoundTrip is that of the transport of now.
func (r *rotating) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.get().RoundTrip(request)
}

// CloseIdleConnections closes what no request uses.
func (r *rotating) CloseIdleConnections() {
	if g := r.now.Load(); g != nil {
		g.CloseIdleConnections()
	}
}

func (r *rotating) get() *http.Transport {
	if g := r.now.Load(); r.isCurrent(g) {
		return g.Transport
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.now.Load()
	if r.isCurrent(old) {
		return old.Transport
	}
	next := &generation{Transport: r.make(), since: time.Now()}
	r.now.Store(next)
	if old != nil {
		// Beside everybody: closing a TLS connection writes to it. Who took the old one just now, and asks it only after this, leaves a
		// connection that its idle time ends.
		go old.CloseIdleConnections()
	}
	return next.Transport
}

func (r *rotating) isCurrent(g *generation) bool {
	return g != nil && time.Since(g.since) <= r.age
}

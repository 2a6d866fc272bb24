package upstream

import (
	"net/http"
	"sync"
	"time"
)

// rotating is the transport of a backend. Requests that follow each other closely would keep a connection, and with it the pod at its
// other end, for ever: past pods that were added, and until one that ends cuts a call off. So a transport takes new requests for a
// while only; connections that are in use then are closed once they are not.
type rotating struct {
	make func() *http.Transport
	age  time.Duration

	mu    sync.Mutex
	now   *http.Transport
	since time.Time
}

// RoundTrip is that of the transport of now.
func (r *rotating) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.get().RoundTrip(request)
}

// CloseIdleConnections closes what no request uses; what one uses is closed after it.
func (r *rotating) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		r.now.CloseIdleConnections()
	}
}

func (r *rotating) get() *http.Transport {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.now == nil || now.Sub(r.since) > r.age {
		if r.now != nil {
			// Who took it just now and asks it only after this leaves a connection that its idle time ends.
			r.now.CloseIdleConnections()
		}
		r.now, r.since = r.make(), now
	}
	return r.now
}

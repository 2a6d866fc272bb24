package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// errTotalBytes is returned by the connections of a wire once the server has
// sent more than Limits.TotalBytes.
var errTotalBytes = errors.New("the server sent more than allowed in total")

// wire is the transport of one Probe or Check. It makes connections of its own
// and leaves none behind, counts what they read, and remembers how
// far a request came, since the errors of net/http do not tell.
type wire struct {
	http   *http.Transport
	limits Limits

	mu       sync.Mutex
	closed   bool
	total    int64 // bytes read since the start
	received int64 // bytes read since the request was begun
	tlsErr   error // how the last TLS handshake failed
}

// errWireClosed is the error of a dial that was still going on at the end.
var errWireClosed = errors.New("the probe is over")

// dialError marks the error of a dial.
type dialError struct{ err error }

func (e *dialError) Error() string { return "dial: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// newWire takes DialContext and TLSClientConfig of base, and nothing else: no
// proxy, no compression, no idle connection of somebody else. HTTP/1.1 only.
func newWire(base *http.Transport, limits Limits) *wire {
	w := &wire{limits: limits}
	dial := (&net.Dialer{}).DialContext
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if base != nil && base.DialContext != nil {
		dial = base.DialContext
	}
	if base != nil && base.TLSClientConfig != nil {
		config = base.TLSClientConfig.Clone()
	}
	config.NextProtos = []string{"http/1.1"}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	w.http = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return w.dial(ctx, dial, network, address)
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    limits.Connect,
		Protocols:              protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: limits.HeaderBytes,
		MaxIdleConns:           2,
	}
	return w
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (w *wire) dial(ctx context.Context, dial dialFunc, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, w.limits.Connect)
	defer cancel()
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, &dialError{err: err}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		// net/http would keep it for a request to come.
		return nil, errors.Join(&dialError{err: errWireClosed}, conn.Close())
	}
	return &countedConn{Conn: conn, wire: w}, nil
}

// close ends all connections: none is in use by then.
func (w *wire) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.http.CloseIdleConnections()
}

// roundTrip sends one request. Redirects are answers like any other.
func (w *wire) roundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.received, w.tlsErr = 0, nil
	w.mu.Unlock()
	trace := &httptrace.ClientTrace{TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tlsErr = err
	}}
	return w.http.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
}

// progress is how far a failed request came.
type progress struct {
	tlsErr    error
	received  int64
	exhausted bool // more than Limits.TotalBytes was sent
}

func (w *wire) progress() progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return progress{tlsErr: w.tlsErr, received: w.received, exhausted: w.total > w.limits.TotalBytes}
}

// count adds n bytes read, and reports whether more may be read.
func (w *wire) count(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total += int64(n)
	w.received += int64(n)
	return w.total <= w.limits.TotalBytes
}

// countedConn is a connection of a wire.
type countedConn struct {
	net.Conn

	wire *wire
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.wire.count(n) {
		return 0, errTotalBytes
	}
	return n, err
}

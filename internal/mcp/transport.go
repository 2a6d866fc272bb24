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

// errTotalBytes is returned by the connections of a transport once the server has
// sent more than Limits.TotalBytes.
var errTotalBytes = errors.New("the server sent more than allowed in total")

// transport is the transport of one Probe or Check. It makes connections of its own
// and leaves none behind, counts what they read, and remembers how
// far a request came, since the errors of net/http do not tell.
type transport struct {
	http   *http.Transport
	limits Limits

	mu       sync.Mutex
	closed   bool
	total    int64 // bytes read since the start
	received int64 // bytes read since the request was begun
	tlsErr   error // how the last TLS handshake failed
}

// errTransportClosed is the error of a dial that was still going on at the end.
var errTransportClosed = errors.New("the probe is over")

// dialError marks the error of a dial.
type dialError struct{ err error }

func (e *dialError) Error() string { return "dial: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// newTransport takes DialContext and TLSClientConfig of base, and nothing else: no
// proxy, no compression, no idle connection of somebody else. HTTP/1.1 only.
func newTransport(base *http.Transport, limits Limits) *transport {
	t := &transport{limits: limits}
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
	t.http = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return t.dial(ctx, dial, network, address)
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    limits.Connect,
		Protocols:              protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: limits.HeaderBytes,
		MaxIdleConns:           2,
	}
	return t
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (t *transport) dial(ctx context.Context, dial dialFunc, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.limits.Connect)
	defer cancel()
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, &dialError{err: err}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		// net/http would keep it for a request to come.
		return nil, errors.Join(&dialError{err: errTransportClosed}, conn.Close())
	}
	return &countedConn{Conn: conn, transport: t}, nil
}

// close ends all connections: none is in use by then.
func (t *transport) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.http.CloseIdleConnections()
}

// roundTrip sends one request. Redirects are answers like any other.
func (t *transport) roundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	t.received, t.tlsErr = 0, nil
	t.mu.Unlock()
	trace := &httptrace.ClientTrace{TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.tlsErr = err
	}}
	return t.http.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
}

// progress is how far a failed request came.
type progress struct {
	tlsErr    error
	received  int64
	exhausted bool // more than Limits.TotalBytes was sent
}

func (t *transport) progress() progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return progress{tlsErr: t.tlsErr, received: t.received, exhausted: t.total > t.limits.TotalBytes}
}

// count adds n bytes read, and reports whether more may be read.
func (t *transport) count(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(n)
	t.received += int64(n)
	return t.total <= t.limits.TotalBytes
}

// countedConn is a connection of a transport.
type countedConn struct {
	net.Conn

	transport *transport
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.transport.count(n) {
		return 0, errTotalBytes
	}
	return n, err
}

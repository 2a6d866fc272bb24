package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/certs"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// newTransport makes a transport of a backend. It knows no proxy, asks for no compression, and has nobody's connections
// but its own.
func (b *Backend) newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true) // by ALPN, so over TLS only
	return &http.Transport{
		DialContext:    b.dials.dial,
		DialTLSContext: b.dials.dialTLS,
		Protocols:      protocols,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second,
			// What a client does not read yet is held here, so that it does not hold up other streams of the connection.
			MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 64 << 20,
		},
		DisableCompression:     true,
		MaxResponseHeaderBytes: b.limits.Headers,
		MaxIdleConns:           b.limits.IdleConns,
		MaxIdleConnsPerHost:    b.limits.IdleConns,
		IdleConnTimeout:        b.limits.IdleConn,
	}
}

// dialError is the error of a connection that was not made: nothing was sent.
type dialError struct {
	class string
	err   error
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// failureMemory is how long the failure of a dial answers for the next ones to the same address, so that a thousand calls on
// hold do not dial a thousand times.
const failureMemory = 50 * time.Millisecond

// dialer makes the connections of a backend, a bounded number at once.
type dialer struct {
	*Backend

	slots chan struct{}

	mu     sync.Mutex
	failed map[string]dialFailure // by address
	named  namedAddress
}

// nameMemory is how long after DNS last named an address it is used while DNS fails: longer than DNS servers take to be replaced, and not
// so long that it is likely to be somebody else's.
const nameMemory = time.Minute

// namedAddress is what the backend's name led to last.
type namedAddress struct {
	name, address string
	at            time.Time
}

type dialFailure struct {
	at  time.Time
	err *dialError
}

func newDialer(b *Backend) *dialer {
	return &dialer{Backend: b, slots: make(chan struct{}, b.limits.Dials), failed: map[string]dialFailure{}}
}

func (d *dialer) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	defer d.options.Panics.Catch(d.config.Name, &err) // it runs in a goroutine of net/http's
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, &dialError{class: classConnect, err: context.Cause(ctx)}
	}
	if err := d.lately(address); err != nil {
		return nil, err
	}
	conn, err = d.connect(ctx, network, address)
	if known := d.knownAs(address); known != "" && isDNSOutage(err) && ctx.Err() == nil {
		conn, err = d.connect(ctx, network, known)
	} else if err == nil {
		d.learn(address, conn.RemoteAddr())
	}
	if err != nil {
		return nil, d.remember(address, err)
	}
	return conn, nil
}

func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limits.Connect)
	defer cancel()
	return d.options.Dial(ctx, network, address)
}

// isDNSOutage says that nobody told what a name leads to, not even that it leads nowhere.
func isDNSOutage(err error) bool {
	_, isDNS := errors.AsType[*net.DNSError](err)
	return isDNS && !isNotFound(err)
}

// isNotFound says that DNS told that a name leads nowhere.
func isNotFound(err error) bool {
	failure, isDNS := errors.AsType[*net.DNSError](err)
	return isDNS && failure.IsNotFound
}

// learn notes what a name led to.
func (d *dialer) learn(name string, to net.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if to != nil && to.String() != name { // else it is an address
		d.named = namedAddress{name: name, address: to.String(), at: time.Now()}
	}
}

// knownAs is what a name led to a moment ago, or empty.
func (d *dialer) knownAs(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.named.name != name || time.Since(d.named.at) > nameMemory {
		return ""
	}
	return d.named.address
}

// lately returns how a dial to the address failed a moment ago, or nil.
func (d *dialer) lately(address string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, ok := d.failed[address]; ok && time.Since(f.at) < failureMemory {
		return f.err
	}
	return nil
}

// remember notes a failure. Old ones go, since the addresses of pods come and go.
func (d *dialer) remember(address string, err error) error {
	failure := &dialError{class: classConnect, err: err}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		failure.class = classDNS
	}
	if errors.Is(err, mcp.ErrAddressDenied) {
		failure.class = classDenied
	}
	if errors.Is(err, context.Canceled) {
		return failure // by the caller: it says nothing of the address
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for other, f := range d.failed {
		if now.Sub(f.at) >= failureMemory {
			delete(d.failed, other)
		}
	}
	d.failed[address] = dialFailure{at: now, err: failure}
	return failure
}

// dialTLS demands the certificate of the URL's host, also of a pod that is dialled by address.
func (d *dialer) dialTLS(ctx context.Context, network, address string) (conn net.Conn, err error) {
	defer d.options.Panics.Catch(d.config.Name, &err)
	config, err := d.options.TLS()
	if err != nil {
		return nil, &dialError{class: classCredential, err: err}
	}
	config.ServerName, config.NextProtos = d.url.Hostname(), []string{"h2", "http/1.1"}
	plain, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn, err = certs.Handshake(ctx, plain, config, d.limits.Handshake)
	if err != nil {
		return nil, &dialError{class: classTLS, err: err}
	}
	return conn, nil
}

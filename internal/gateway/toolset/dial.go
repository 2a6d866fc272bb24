package toolset

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/certs"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

const (
	connectTimeout = 5 * time.Second
	// idleConn is how long an unused connection is kept: less than what the usual servers do.
	idleConn           = 4 * time.Second
	defaultHeaderBytes = 64 << 10
)

// dialFunc makes a connection.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newDial dials addresses that the guard admits, whatever a name resolves to at that moment.
func newDial(guard mcp.Guard, dial dialFunc) dialFunc {
	if dial == nil {
		dialer := &net.Dialer{
			Timeout: connectTimeout, Control: guard.Control,
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
		}
		dial = dialer.DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
}

// only dials one host and port.
func only(target string, dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != target {
			return nil, &dialError{fmt.Errorf("dial %s: %w: the backend is %s", address, mcp.ErrAddressDenied, target)}
		}
		return dial(ctx, network, address)
	}
}

// dialError is the error of a connection that was not made: nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// tlsError is the error of a handshake.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return e.err.Error() }
func (e *tlsError) Unwrap() error { return e.err }

// newClient makes the HTTP client of a backend. It knows no proxy, asks for no compression, keeps no cookies and follows no
// redirect.
func newClient(b *Backend, base *url.URL, o Options) *http.Client {
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	dial := only(net.JoinHostPort(base.Hostname(), port), newDial(mcp.GuardFor(b.config.AllowPrivate), o.Dial))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true) // by ALPN, so over TLS only
	return &http.Client{
		Transport: &http.Transport{
			// These run in goroutines of net/http's.
			DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
				defer b.panics.Catch(b.config.Name, &err)
				return dial(ctx, network, address)
			},
			DialTLSContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
				defer b.panics.Catch(b.config.Name, &err)
				return dialTLS(ctx, dial, o.TLS, network, address, base.Hostname())
			},
			Protocols:              protocols,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			DisableCompression:     true,
			MaxResponseHeaderBytes: o.HeaderBytes,
			MaxIdleConnsPerHost:    64,
			IdleConnTimeout:        idleConn,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func dialTLS(ctx context.Context, dial dialFunc, tlsConfig func() (*tls.Config, error), network, address, host string) (net.Conn, error) {
	config, err := tlsConfig()
	if err != nil {
		return nil, &tlsError{err}
	}
	config.ServerName, config.NextProtos = host, []string{"h2", "http/1.1"}
	plain, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn, err := certs.Handshake(ctx, plain, config, certs.HandshakeTimeout)
	if err != nil {
		return nil, &tlsError{err}
	}
	return conn, nil
}

// unreachable classes the error of an exchange that brought no answer. What net/url puts around it, which quotes the URL and so the
// arguments, is left out.
func (b *Backend) unreachable(ctx context.Context, err error) *backend.Error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	_, isOwn := errors.AsType[*credential.TLSError](err)
	_, isDial := errors.AsType[*dialError](err)
	_, isTLS := errors.AsType[*tlsError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isOwn:
		return b.unready("", err)
	case errors.Is(err, mcp.ErrAddressDenied):
		return b.failure(classDenied, false, "its host has an address that may not be dialled", err)
	case ctx.Err() != nil:
		return b.failure(classTimeout, !isDial && !isTLS, "", context.Cause(ctx))
	case isTLS:
		return b.failure(classTLS, false, "", err)
	case isDNS:
		return b.failure(classDNS, false, "", err)
	case isDial:
		return b.failure(classConnect, false, "", err)
	}
	return b.failure(classServerError, true, "the connection broke off", err)
}

// Package certs makes TLS configurations from mounted files that are read again when they change, so that neither a
// certificate nor a CA that was renewed needs a restart.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/mounted"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	// maxPair is the largest certificate chain or key, in bytes.
	maxPair = 256 << 10
	// maxBundle is the largest CA bundle: those of the distributions have about 250 KiB.
	maxBundle = 2 << 20
)

// HandshakeTimeout bounds the handshake with a server that accepted the connection. It stands here since a transport's
// TLSHandshakeTimeout does not hold for its DialTLSContext.
const HandshakeTimeout = 5 * time.Second

// Server is the configuration of a server: TLS 1.2 or newer, HTTP/2 and HTTP/1.1. It fails if the files are no pair of
// certificate and key. Later, a pair that is none (one of two files is replaced before the other) is told to report, which
// may be nil, and the last good one is served on.
func Server(certFile, keyFile string, report func(error)) (*tls.Config, error) {
	pair := mounted.New(mounted.Paths(maxPair, certFile, keyFile), pairOf(certFile, keyFile), report)
	if _, err := pair.Get(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			certificate, _ := pair.Get() // the error was told to report, and the last good pair serves
			return certificate, nil
		},
	}, nil
}

// Client makes the configurations of connections to servers. It is safe for concurrent use.
type Client struct {
	roots *mounted.Value[*x509.CertPool]
	// pair is shown to servers that ask for it; nil shows none.
	pair *mounted.Value[*tls.Certificate]
}

// NewClient verifies servers with the CA bundle of a file and nothing else; without a file, with the system's roots. It shows
// a certificate to servers that ask for one; nil shows none. The files need not exist yet.
func NewClient(caFile string, own *table.ClientCertificate) *Client {
	c := newClient(caFile, func() (*x509.CertPool, error) { return x509.NewCertPool(), nil })
	if own != nil {
		c.pair = mounted.New(mounted.Paths(maxPair, own.CertFile, own.KeyFile), pairOf(own.CertFile, own.KeyFile), nil)
	}
	return c
}

// NewClientBesideSystem verifies servers with the CA bundle of a file and with the system's roots.
func NewClientBesideSystem(caFile string) *Client {
	return newClient(caFile, x509.SystemCertPool)
}

// pairOf parses a certificate and its key.
func pairOf(certFile, keyFile string) func(mounted.Files) (*tls.Certificate, error) {
	return func(files mounted.Files) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(files[certFile], files[keyFile])
		if err != nil {
			return nil, fmt.Errorf("certificate %s and key %s: %w", certFile, keyFile, err)
		}
		return &pair, nil
	}
}

func newClient(caFile string, base func() (*x509.CertPool, error)) *Client {
	if caFile == "" {
		return &Client{}
	}
	return &Client{roots: mounted.New(mounted.Paths(maxBundle, caFile), func(files mounted.Files) (*x509.CertPool, error) {
		pool, err := base()
		if err != nil {
			return nil, fmt.Errorf("the system's CA certificates: %w", err)
		}
		if !pool.AppendCertsFromPEM(files[caFile]) {
			return nil, fmt.Errorf("CA bundle %s holds no certificate in PEM form", caFile)
		}
		return pool, nil
	}, nil)}
}

// Config is the configuration for the next connection: TLS 1.2 or newer, the caller's to change. It fails while the CA
// bundle or the own certificate cannot be used: a bundle that was taken away verifies nothing, and one proves nothing with a
// certificate that was.
func (c *Client) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.pair != nil {
		pair, err := c.pair.Get()
		if err != nil {
			return nil, err
		}
		// Shown whatever CAs the server names: a chain to them may be one that only the server knows.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	if c.roots == nil {
		return config, nil
	}
	roots, err := c.roots.Get()
	if err != nil {
		return nil, err
	}
	config.RootCAs = roots
	return config, nil
}

// Dialer dials a network address.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// DialTLS is for http.Transport.DialTLSContext: it dials, and shakes hands with the configuration of that moment, offering
// the protocols (ALPN). The server must prove the host name of the address, whatever dial makes of it. A transport that is
// to use "h2" needs ForceAttemptHTTP2.
func (c *Client) DialTLS(dial Dialer, protocols ...string) Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		config, err := c.Config()
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("dial %q: %w", address, err)
		}
		config.ServerName, config.NextProtos = host, protocols
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn, err := Handshake(ctx, plain, config, HandshakeTimeout)
		if err != nil {
			return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
		}
		return conn, nil
	}
}

// Handshake makes a TLS connection of one that was dialled, within a time. When it fails the connection is closed.
func Handshake(ctx context.Context, plain net.Conn, config *tls.Config, within time.Duration) (net.Conn, error) {
	conn := tls.Client(plain, config)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close() // the handshake's error says more
		return nil, err
	}
	return conn, nil
}

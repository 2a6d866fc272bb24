package reach

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// speakTLS answers a handshake.
func speakTLS(config *tls.Config) func(net.Conn) {
	return func(conn net.Conn) {
		secured := tls.Server(conn, config)
		if secured.Handshake() == nil {
			_, _ = io.Copy(io.Discard, secured)
		}
	}
}

// speakPostgres answers an SSLRequest with a letter, and then a handshake.
func speakPostgres(letter string, config *tls.Config) func(net.Conn) {
	return func(conn net.Conn) {
		request := make([]byte, 8)
		if _, err := io.ReadFull(conn, request); err != nil || string(request) != "\x00\x00\x00\x08\x04\xd2\x16\x2f" {
			return
		}
		if _, err := io.WriteString(conn, letter); err == nil && letter == "S" {
			speakTLS(config)(conn)
		}
	}
}

func TestAnAttemptTellsWhatItFound(t *testing.T) {
	t.Parallel()
	certificate, pool := makeCertificate(t, "api.example.com")
	_, strangers := makeCertificate(t, "api.example.com")
	other, otherPool := makeCertificate(t, "other.example.com")
	expired, expiredPool := makeCertificate(t, "api.example.com", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	serving := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	demanding := serving(certificate)
	demanding.ClientAuth = tls.RequireAnyClientCert
	demanding.MaxVersion = tls.VersionTLS12 // where the client learns of it in the handshake
	discard := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	tests := map[string]struct {
		serve        func(net.Conn)
		dial         dialFunc // in place of serve
		allowPrivate bool
		change       func(*Endpoint)
		want         Verdict
	}{
		"a port that is open": {
			serve: discard, change: func(e *Endpoint) { e.Security = Plain },
			want: Verdict{Reason: "Reachable", Message: "api.example.com:443 accepts connections"},
		},
		"a certificate that is trusted": {
			serve: speakTLS(serving(certificate)), change: func(e *Endpoint) { e.Trust.Roots = pool },
			want: Verdict{Reason: "Reachable", Message: "api.example.com:443 accepts connections and TLS was agreed on"},
		},
		"one by a stranger": {
			serve: speakTLS(serving(certificate)), change: func(e *Endpoint) { e.Trust.Roots = strangers },
			want: Verdict{
				Reason:  "TLSFailed",
				Message: "api.example.com:443 has a certificate by an authority that is not trusted: name the authority's certificate in caBundle",
			},
		},
		"one by a stranger to the given bundle": {
			serve: speakTLS(serving(certificate)), change: func(e *Endpoint) { e.Trust.Roots, e.Trust.Bundle = strangers, ReadBundle },
			want: Verdict{
				Reason: "TLSFailed",
				Message: "api.example.com:443 has a certificate by an authority that is not trusted: " +
					"the certificates in caBundle are none of that authority's, so put its own there",
			},
		},
		"one that only gateways can judge": {
			serve: speakTLS(serving(other)), change: func(e *Endpoint) { e.Trust.Blind = true },
			want: Verdict{Reason: "Reachable", Message: "api.example.com:443 accepts connections and TLS was agreed on"},
		},
		"one for another host": {
			serve: speakTLS(serving(other)), change: func(e *Endpoint) { e.Trust.Roots = otherPool },
			want: Verdict{Reason: "TLSFailed", Message: `api.example.com:443 has a certificate that is not for "api.example.com"`},
		},
		"one for whatever host": {
			serve: speakTLS(serving(other)), change: func(e *Endpoint) { e.Trust = Trust{Roots: otherPool, AnyHost: true} },
			want: Verdict{Reason: "Reachable", Message: "api.example.com:443 accepts connections and TLS was agreed on"},
		},
		"one for whatever host, by a stranger": {
			serve: speakTLS(serving(other)), change: func(e *Endpoint) { e.Trust = Trust{Roots: strangers, AnyHost: true} },
			want: Verdict{
				Reason:  "TLSFailed",
				Message: "api.example.com:443 has a certificate by an authority that is not trusted: name the authority's certificate in caBundle",
			},
		},
		"one that has expired": {
			serve: speakTLS(serving(expired)), change: func(e *Endpoint) { e.Trust.Roots = expiredPool },
			want: Verdict{Reason: "TLSFailed", Message: "api.example.com:443 has a certificate that has expired, or is not valid yet"},
		},
		"a port without TLS": {
			serve: func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n"); discard(conn) },
			want:  Verdict{Reason: "TLSFailed", Message: "api.example.com:443 does not speak TLS"},
		},
		"a port that hangs up": {
			serve: func(net.Conn) {}, want: Verdict{Reason: "TLSFailed", Message: "api.example.com:443 broke the TLS handshake off"},
		},
		"one that wants a certificate, which the operator does not have": {
			serve: speakTLS(demanding), change: func(e *Endpoint) { e.Trust.Roots, e.ClientCertificate = pool, true },
			want: Verdict{Reason: "Reachable", Message: "api.example.com:443 accepts connections and TLS was agreed on"},
		},
		"one that wants a certificate of a tool that shows none": {
			serve: speakTLS(demanding), change: func(e *Endpoint) { e.Trust.Roots = pool },
			want: Verdict{Reason: "TLSFailed", Message: "api.example.com:443 broke the TLS handshake off"},
		},
		"one that wants a certificate and is not trusted itself": {
			serve: speakTLS(demanding), change: func(e *Endpoint) { e.Trust.Roots, e.ClientCertificate = strangers, true },
			want: Verdict{
				Reason:  "TLSFailed",
				Message: "api.example.com:443 has a certificate by an authority that is not trusted: name the authority's certificate in caBundle",
			},
		},
		"a database with TLS": {
			serve: speakPostgres("S", serving(certificate)), change: func(e *Endpoint) { e.Security, e.Trust.Roots = PostgresTLS, pool },
			want: Verdict{Reason: "Reachable", Message: "api.example.com:443 accepts connections and TLS was agreed on"},
		},
		"a database without TLS": {
			serve: speakPostgres("N", nil), change: func(e *Endpoint) { e.Security = PostgresTLS },
			want: Verdict{Reason: "TLSFailed", Message: "api.example.com:443 does not speak TLS"},
		},
		"a name without address": {
			dial: fails(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.example.com"}}),
			want: Verdict{Reason: "DNSFailed", Message: "api.example.com has no address: correct the name in endpoint, or create its DNS record"},
		},
		"an address that is denied": {
			dial: fails(fmt.Errorf("dial: %w", mcp.ErrAddressDenied)),
			want: Verdict{Reason: "AddressDenied", Message: "api.example.com has an address that is not of the public Internet: the operator admits " +
				"such endpoints when started with --allow-private-endpoints, but for loopback, link-local and metadata addresses"},
		},
		"an address that is always denied": {
			dial: fails(fmt.Errorf("dial: %w", mcp.ErrAddressDenied)), allowPrivate: true,
			want: Verdict{
				Reason: "AddressDenied", Message: "api.example.com has a loopback, link-local or metadata address, and those are never connected to",
			},
		},
		"a port that is closed": {
			dial: fails(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
			want: Verdict{Reason: "ConnectFailed", Message: "api.example.com:443 refuses connections: nothing listens on that port"},
		},
		"nobody answers": {
			dial: fails(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}),
			want: Verdict{Reason: "ConnectFailed", Message: "api.example.com:443 does not answer: it is down, or a firewall or NetworkPolicy is between"},
		},
		"anything else": {dial: fails(errBroken), want: Verdict{Reason: "ConnectFailed", Message: "api.example.com:443 cannot be connected to"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dial := tt.dial
			if tt.serve != nil {
				dial = listen(t, tt.serve)
			}
			e := Endpoint{Subject: demo, Host: "api.example.com", Port: "443", Security: TLS}
			if tt.change != nil {
				tt.change(&e)
			}
			var told string
			c := NewChecker(CheckerOptions{Dial: dial, AllowPrivate: tt.allowPrivate, Ended: func(reason string) { told = reason }})
			got, ok := c.attempt(t.Context(), e, Verdict{})
			tt.want.Known = true
			got.failures = 0
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Verdict{})); diff != "" {
				t.Errorf("verdict (-want +got)\n%s", diff)
			}
			if ok != (tt.want.Reason == "Reachable") || told != tt.want.Reason {
				t.Errorf("went well: %t, told: %s", ok, told)
			}
		})
	}
}

func TestAddressesAreGuardedWhateverTheName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		host         string
		allowPrivate bool
	}{
		"loopback":                       {host: "127.0.0.1"},
		"loopback, private admitted":     {host: "127.0.0.1", allowPrivate: true},
		"metadata, private admitted":     {host: "169.254.169.254", allowPrivate: true},
		"a private address":              {host: "10.0.0.1"},
		"IPv6 loopback":                  {host: "::1", allowPrivate: true},
		"loopback inside an IPv6 prefix": {host: "64:ff9b::7f00:1", allowPrivate: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewChecker(CheckerOptions{AllowPrivate: tt.allowPrivate})
			got, _ := c.attempt(t.Context(), Endpoint{Host: tt.host, Port: "80", Security: Plain}, Verdict{})
			if got.Reason != "AddressDenied" {
				t.Errorf("%s: %s", got.Reason, got.Message)
			}
		})
	}
}

func TestOneFailureOfWhatWasReachedIsNotToldYet(t *testing.T) {
	t.Parallel()
	c := NewChecker(CheckerOptions{Dial: fails(errBroken)})
	e := Endpoint{Subject: demo, Host: "api.example.com", Port: "443"}
	reached := Verdict{Known: true, Reason: "Reachable", Message: "fine"}
	first, ok := c.attempt(t.Context(), e, reached)
	if first.Reason != "Reachable" || ok {
		t.Errorf("after one failure: %+v, went well: %t", first, ok)
	}
	second, _ := c.attempt(t.Context(), e, first)
	if second.Reason != "ConnectFailed" {
		t.Errorf("after two failures: %+v", second)
	}
}

func TestTheTLSProfileHoldsButNeverBelowTLS12(t *testing.T) {
	t.Parallel()
	for version, want := range map[uint16]uint16{tls.VersionTLS10: tls.VersionTLS12, tls.VersionTLS13: tls.VersionTLS13} {
		config, _ := tlsConfig("api.example.com", Trust{}, func(c *tls.Config) { c.MinVersion = version })
		if config.MinVersion != want {
			t.Errorf("a profile of %x gives %x, want %x", version, config.MinVersion, want)
		}
	}
}

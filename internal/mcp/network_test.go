package mcp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// dialing returns a transport whose dials do what the test says.
func dialing(dial func(ctx context.Context) (net.Conn, error)) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
}

func dialError(err error) *http.Transport {
	return dialing(func(context.Context) (net.Conn, error) { return nil, err })
}

func TestAConnectionThatFailsSaysHow(t *testing.T) {
	t.Parallel()
	operr := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	guard := mcp.Guard{Allow: mcp.AllowCluster}
	cases := map[string]struct {
		transport *http.Transport
		reason    mcp.Reason
		message   string
	}{
		"no such name": {
			dialError(operr(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true})), mcp.DNSFailed,
			`The name "demo.example.com" does not exist in DNS.`,
		},
		"DNS server away": {
			dialError(operr(&net.DNSError{Err: "i/o timeout", Name: "x", IsTimeout: true})), mcp.DNSFailed,
			`The name "demo.example.com" could not be resolved: the DNS server did not answer or failed.`,
		},
		"refused": {
			dialError(operr(syscall.ECONNREFUSED)), mcp.ConnectionFailed,
			"Nothing listens on port 8080 (connection refused). " +
				"Set spec.port to the port of the server, and let it listen on all addresses (0.0.0.0), not only on localhost.",
		},
		"no route":       {dialError(operr(syscall.EHOSTUNREACH)), mcp.ConnectionFailed, "There is no route to the server (port 8080)."},
		"something else": {dialError(errors.New("port forwarding to pod x failed")), mcp.ConnectionFailed, "Port 8080 could not be connected to."},
		"dropped packets": {dialing(func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, operr(ctx.Err())
		}), mcp.ConnectTimeout, "Port 8080 did not accept a connection within 100ms: a network policy or firewall may drop the packets."},
		"denied": {&http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return guard.DialContext(ctx, network, "169.254.169.254:80")
		}}, mcp.AddressDenied, "The address is one that is never dialled, such as a loopback, link-local or metadata address."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := mcp.Limits{Connect: 10 * time.Second}
			if tc.reason == mcp.ConnectTimeout { // the others would fail by it on a machine that pauses
				limits.Connect = 100 * time.Millisecond
			}
			c := &mcp.Client{Limits: limits}
			_, err := c.Probe(t.Context(), mcp.Target{URL: "http://demo.example.com:8080/mcp", Transport: tc.transport})
			if got := mcp.ReasonOf(err); got != tc.reason {
				t.Errorf("reason %q, want %q", got, tc.reason)
			}
			if diff := cmp.Diff(tc.message, fmt.Sprint(err)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			failed, _ := errors.AsType[*mcp.Error](err)
			if want := tc.reason == mcp.ConnectionFailed || tc.reason == mcp.ConnectTimeout; failed.Unreached != want {
				t.Errorf("unreached: %t, want %t", failed.Unreached, want)
			}
		})
	}
}

// TestAServerThatClosesItsConnectionsWasReached: it fails by itself, and no network is late.
func TestAServerThatClosesItsConnectionsWasReached(t *testing.T) {
	t.Parallel()
	c := &mcp.Client{}
	_, err := c.Probe(t.Context(), mcp.Target{URL: "http://demo.example.com:8080/mcp", Transport: dialing(func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		return ours, theirs.Close()
	})})
	if failed, _ := errors.AsType[*mcp.Error](err); failed == nil || failed.Reason != mcp.ConnectionFailed || failed.Unreached {
		t.Errorf("got %+v, want a failed connection that came about", failed)
	}
}

func TestTLSFailsClosed(t *testing.T) {
	t.Parallel()
	server := mcptest.ServeTLS(t, mcptest.Modern(nil))
	plain := mcptest.Serve(t, mcptest.Modern(nil))
	trusting := func(change func(*tls.Config)) *http.Transport {
		transport := server.Transport()
		change(transport.TLSClientConfig)
		return transport
	}
	cases := map[string]struct {
		url       string
		transport *http.Transport
		message   string // "" = no error; PORT is the server's port
	}{
		"trusted":     {server.URL, trusting(func(*tls.Config) {}), ""},
		"self-signed": {server.URL, nil, "its certificate is signed by an authority that is not trusted."},
		"other name": {
			server.URL, trusting(func(c *tls.Config) { c.ServerName = "other.example" }),
			"its certificate is for another name.",
		},
		"expired": {
			server.URL, trusting(func(c *tls.Config) { c.Time = func() time.Time { return time.Now().AddDate(200, 0, 0) } }),
			"its certificate has expired or is not valid yet.",
		},
		"no common version": {
			server.URL, trusting(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10 }),
			"the TLS handshake failed.",
		},
		"no TLS": {"https" + plain.URL[len("http"):], nil, "it does not speak TLS on this port: the URL should begin with http."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client.Probe(t.Context(), mcp.Target{URL: tc.url, Transport: tc.transport})
			if tc.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := mcp.ReasonOf(err); got != mcp.TLSFailed {
				t.Errorf("reason %q", got)
			}
			_, port, splitErr := net.SplitHostPort(mustAddress(t, tc.url))
			if splitErr != nil {
				t.Fatal(splitErr)
			}
			want := "No TLS connection to the server on port " + port + ": " + tc.message
			if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func mustAddress(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req.URL.Host
}

func TestTheCauseOfAFailureCanBeFound(t *testing.T) {
	t.Parallel()
	server := mcptest.ServeTLS(t, mcptest.Modern(nil))
	_, err := client.Probe(t.Context(), target(server))
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
		t.Errorf("no UnknownAuthorityError in the chain of %v", err)
	}
	_, err = client.Probe(t.Context(), mcp.Target{URL: "http://x/", Transport: dialError(mcp.ErrAddressDenied)})
	if !errors.Is(err, mcp.ErrAddressDenied) {
		t.Errorf("no ErrAddressDenied in the chain of %v", err)
	}
	if got := mcp.ReasonOf(errors.New("another error")); got != "" {
		t.Errorf("a reason for an error of somebody else: %q", got)
	}
}

func TestABannerIsNotHTTP(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-" + mcptest.Canary + "\r\n"))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-served
	})
	_, err = client.Probe(t.Context(), mcp.Target{URL: "http://" + listener.Addr().String()})
	if got := mcp.ReasonOf(err); got != mcp.NotMCP && got != mcp.ConnectionFailed {
		t.Errorf("reason %q", got)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		checkMessage(t, err.Error())
	}
}

func TestOnlyPlainTargetsAreDialled(t *testing.T) {
	t.Parallel()
	never := dialing(func(context.Context) (net.Conn, error) {
		t.Error("a bad target was dialled")
		return nil, errors.New("no")
	})
	for _, url := range []string{
		"", "/mcp", "demo:8080/mcp", "file:///etc/passwd", "unix:///run/x.sock", "gopher://x/", "http:///mcp", "http:x",
		"http://user:" + mcptest.Canary + "@x/", "http://@x/", "http://x/#y", "http://x/#", "http://x%2fy/", "http://x y/", "http://[fe80::1%25eth0]/",
		"http://x/%zz" + mcptest.Canary, "http://a\\b/", "http://ex\u0430mple.com/", "http://x,y/", "http://x/\r\nX: y",
	} {
		_, err := client.Probe(t.Context(), mcp.Target{URL: url, Transport: never})
		if got := mcp.ReasonOf(err); got != mcp.InvalidTarget {
			t.Errorf("%q: reason %q", url, got)
		}
		checkMessage(t, fmt.Sprint(err))
	}
	for _, host := range []string{"a b", "a/b", "a\r\nX: y", "a@b", "a?b"} {
		_, err := client.Probe(t.Context(), mcp.Target{URL: "http://x/", Host: host, Transport: never})
		if got := mcp.ReasonOf(err); got != mcp.InvalidTarget {
			t.Errorf("Host %q: reason %q", host, got)
		}
	}
}

func TestAGuardLooksAtTheAddressThatIsDialled(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, mcptest.Modern(nil))
	guarded := func(allow func(netip.Addr) bool) *http.Transport {
		return &http.Transport{DialContext: mcp.Guard{Allow: allow}.DialContext}
	}
	// The name resolves to loopback only when it is dialled.
	u := "http://localhost:" + mustPort(t, server.URL) + "/mcp"
	_, err := client.Probe(t.Context(), mcp.Target{URL: u, Transport: guarded(mcp.AllowCluster)})
	if got := mcp.ReasonOf(err); got != mcp.AddressDenied || !errors.Is(err, mcp.ErrAddressDenied) {
		t.Errorf("loopback by name: %q, %v", got, err)
	}
	if calls := server.Calls(); calls != nil {
		t.Errorf("a denied server was sent %v", calls)
	}
	if _, err := client.Probe(t.Context(), mcp.Target{URL: server.URL, Transport: guarded(netip.Addr.IsLoopback)}); err != nil {
		t.Error(err)
	}
}

func mustPort(t *testing.T, url string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(mustAddress(t, url))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

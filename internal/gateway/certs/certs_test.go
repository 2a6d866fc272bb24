package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// authority signs certificates for "server.example".
type authority struct {
	name        string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(100 * 365 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{name: name, key: key, certificate: certificate}
}

func (a *authority) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue makes a certificate and a key.
func (a *authority) issue(t *testing.T, serial int64) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"server.example"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(100 * 365 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// files of a test, by short names.
type files struct {
	t      *testing.T
	folder string
}

func (f files) path(name string) string { return filepath.Join(f.folder, name) }

func (f files) write(name string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), content, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func pass() { time.Sleep(time.Second) } //nolint:forbidigo // in a bubble

// connect shakes hands over a pipe, and tells what was agreed on.
func connect(t *testing.T, server *tls.Config, client *Client, address string, protocols ...string) (tls.ConnectionState, error) {
	t.Helper()
	dial := client.DialTLS(func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			conn := tls.Server(far, server)
			_ = conn.HandshakeContext(ctx) // the client's error is looked at
			_ = far.Close()
		}()
		return near, nil
	}, protocols...)
	conn, err := dial(t.Context(), "tcp", address)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	agreed, isTLS := conn.(*tls.Conn)
	if !isTLS {
		t.Fatalf("got a %T, from which a transport cannot tell the protocol", conn)
	}
	defer agreed.NetConn().Close()
	return agreed.ConnectionState(), nil
}

func TestAServerFollowsItsCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, f := newAuthority(t, "ca"), files{t, t.TempDir()}
		f.write("ca", ca.bundle())
		certificate, key := ca.issue(t, 1)
		f.write("crt", certificate)
		f.write("key", key)
		var told []error
		server, err := Server(f.path("crt"), f.path("key"), func(err error) { told = append(told, err) })
		if err != nil {
			t.Fatal(err)
		}
		serial := func() int64 {
			state, err := connect(t, server, NewClient(f.path("ca"), nil), "server.example:443")
			if err != nil {
				t.Fatal(err)
			}
			return state.PeerCertificates[0].SerialNumber.Int64()
		}
		if got := serial(); got != 1 {
			t.Errorf("served certificate %d", got)
		}
		certificate, key = ca.issue(t, 2)
		f.write("crt", certificate)
		pass()
		if got := serial(); got != 1 || len(told) != 1 {
			t.Errorf("while half of the pair is new: served certificate %d, told %v", got, told)
		}
		f.write("key", key)
		pass()
		if got := serial(); got != 2 || len(told) != 1 {
			t.Errorf("with the new pair: served certificate %d, told %v", got, told)
		}
	})
}

func TestAServerWithoutAPairDoesNotStart(t *testing.T) {
	ca, f := newAuthority(t, "ca"), files{t, t.TempDir()}
	certificate, _ := ca.issue(t, 1)
	_, other := ca.issue(t, 2)
	f.write("crt", certificate)
	f.write("other", other)
	f.write("empty", nil)
	for name, key := range map[string]string{"missing": "none", "empty": "empty", "of another pair": "other"} {
		t.Run(name, func(t *testing.T) {
			if _, err := Server(f.path("crt"), f.path(key), nil); err == nil {
				t.Error("started")
			}
		})
	}
}

func TestWhatIsAgreedOn(t *testing.T) {
	ca, f := newAuthority(t, "ca"), files{t, t.TempDir()}
	f.write("ca", ca.bundle())
	certificate, key := ca.issue(t, 1)
	f.write("crt", certificate)
	f.write("key", key)
	server, err := Server(f.path("crt"), f.path("key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, protocols := range map[string][]string{"h2": {"h2", "http/1.1"}, "http/1.1": {"http/1.1"}} {
		state, err := connect(t, server, NewClient(f.path("ca"), nil), "server.example:443", protocols...)
		if err != nil || state.NegotiatedProtocol != name {
			t.Errorf("got %q, %v, want %q", state.NegotiatedProtocol, err, name)
		}
	}
	old := server.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, err := connect(t, old, NewClient(f.path("ca"), nil), "server.example:443"); err == nil {
		t.Error("a client spoke TLS 1.1")
	}
	if server.MinVersion != tls.VersionTLS12 {
		t.Error("a server speaks less than TLS 1.2")
	}
}

func TestAClientBelievesItsBundleAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other, f := newAuthority(t, "ca"), newAuthority(t, "other"), files{t, t.TempDir()}
		certificate, key := ca.issue(t, 1)
		f.write("crt", certificate)
		f.write("key", key)
		server, err := Server(f.path("crt"), f.path("key"), nil)
		if err != nil {
			t.Fatal(err)
		}
		client := NewClient(f.path("ca"), nil)
		for _, step := range []struct {
			reason   string
			change   func()
			accepted bool
		}{
			{"no bundle yet", func() {}, false},
			{"the right bundle", func() { f.write("ca", ca.bundle()) }, true},
			{"another bundle", func() { f.write("ca", other.bundle()) }, false},
			{"both", func() { f.write("ca", append(other.bundle(), ca.bundle()...)) }, true},
			{"no certificate in it", func() { f.write("ca", []byte("x")) }, false},
			{"the right bundle again", func() { f.write("ca", ca.bundle()) }, true},
			{"taken away", func() { _ = os.Remove(f.path("ca")) }, false},
		} {
			step.change()
			pass()
			if _, err := connect(t, server, client, "server.example:443"); (err == nil) != step.accepted {
				t.Errorf("%s: %v", step.reason, err)
			}
		}
		f.write("ca", ca.bundle())
		pass()
		f.write("none", []byte("x"))
		if _, err := NewClient(f.path("none"), nil).Config(); err == nil {
			t.Error("a bundle without a certificate is not told")
		}
		if _, err := connect(t, server, client, "other.example:443"); err == nil {
			t.Error("a server proved a name that is not its own")
		}
		if _, err := connect(t, server, NewClient("", nil), "server.example:443"); err == nil {
			t.Error("the system's roots vouch for the test's authority")
		}
		if _, err := connect(t, server, NewClientBesideSystem(f.path("ca")), "server.example:443"); err != nil {
			t.Errorf("beside the system's roots: %v", err)
		}
	})
}

func TestAClientShowsTheCertificateOfTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, f := newAuthority(t, "ca"), files{t, t.TempDir()}
		f.write("ca", ca.bundle())
		certificate, key := ca.issue(t, 1)
		f.write("crt", certificate)
		f.write("key", key)
		server, err := Server(f.path("crt"), f.path("key"), nil)
		if err != nil {
			t.Fatal(err)
		}
		server.ClientAuth = tls.RequireAnyClientCert
		shown := make(chan int64, 1)
		server.VerifyConnection = func(state tls.ConnectionState) error {
			shown <- state.PeerCertificates[0].SerialNumber.Int64()
			return nil
		}
		client := NewClient(f.path("ca"), &table.ClientCertificate{CertFile: f.path("own.crt"), KeyFile: f.path("own.key")})
		if _, err := client.Config(); err == nil {
			t.Error("without the files it says nothing")
		}
		for _, serial := range []int64{7, 8} {
			certificate, key := ca.issue(t, serial)
			f.write("own.crt", certificate)
			pass()
			if _, err := client.Config(); err == nil {
				t.Errorf("%d: half a pair is shown", serial)
			}
			f.write("own.key", key)
			pass()
			if _, err := connect(t, server, client, "server.example:443"); err != nil {
				t.Fatal(err)
			}
			if got := <-shown; got != serial {
				t.Errorf("showed %d, want %d", got, serial)
			}
		}
		if err := os.Remove(f.path("own.key")); err != nil {
			t.Fatal(err)
		}
		pass()
		if _, err := client.Config(); err == nil {
			t.Error("a certificate that was taken away is shown on")
		}
	})
}

func TestASilentServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		dial := NewClient("", nil).DialTLS(func(context.Context, string, string) (net.Conn, error) { return near, nil })
		start := time.Now()
		_, err := dial(t.Context(), "tcp", "server.example:443")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != HandshakeTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

package toolset

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// leadTo dials a server whatever is asked for.
func leadTo(server *httptest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return plainDialer.DialContext(ctx, network, server.Listener.Addr().String())
	}
}

func fails(err error) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return nil, &dialError{err} }
}

// FuzzARequestHoldsEachArgumentWhereItBelongsAndNothingElse reads what is sent as a server does: one request, at the host and path of the
// table, with the headers of the table and no other, and each argument as it was.
func FuzzARequestHoldsEachArgumentWhereItBelongsAndNothingElse(f *testing.F) {
	for _, seed := range []string{
		"a", "a\r\nX-Evil: 1", "a\r\n\r\nGET /admin HTTP/1.1\r\nHost: evil\r\n\r\n", "\n", "\x00", "&admin=true", `","admin":true,"x":"`, "#", "?x=1",
		"a=b;c=d", "../admin", "%2e%2e%2f", "%0d%0aX-Evil:%201", "ü\u2028", "\u0085", "[a]=1", " a ", "'; DROP TABLE x; --", "${jndi:ldap://x}", "{id}",
		"{{.}}", "\ud7ff\ue000", "+", "%",
	} {
		f.Add(seed, "key", seed, seed)
		f.Add("1", seed, seed, "note")
	}
	base, err := url.Parse("https://api.example.com/v1")
	if err != nil {
		f.Fatal(err)
	}
	a := &api{Backend: &Backend{version: "1"}, base: base}
	f.Fuzz(func(t *testing.T, id, key, q, note string) {
		id, key, q, note = mended(id), mended(key), mended(q), mended(note)
		deep := "{" + string(quoted(t, key)) + ":" + string(quoted(t, q)) + "}"
		args := arguments{"id": quoted(t, id), "q": quoted(t, q), "note": quoted(t, note), "deep": json.RawMessage(deep)}
		for _, kind := range []table.BodyType{table.BodyJSON, table.BodyForm} {
			tool := &table.HTTPTool{
				Method: "POST", Path: "/users/{id}/notes",
				Query: []table.Param{
					{Name: "q"}, {Name: "d", Argument: "deep", Style: table.StyleDeep}, {Name: "j", Argument: "deep", Style: table.StyleJSON},
				},
				Header: []table.Param{{Name: "X-Note", Argument: "note"}},
				Body:   &table.Body{Type: kind, Members: []table.Param{{Name: "text", Argument: "q"}, {Name: "fixed", Value: json.RawMessage(`"yes"`)}}},
			}
			request, err := a.request(t.Context(), tool, args)
			if err != nil {
				continue // nothing is sent
			}
			received, body := received(t, request)
			want := url.Values{"q": {q}, "d[" + key + "]": {q}, "j": {string(args["deep"])}}
			if diff := cmp.Diff(want, received.URL.Query()); diff != "" {
				t.Errorf("query -want +got:\n%s", diff)
			}
			if received.Host != "api.example.com" || received.URL.Path != "/v1/users/"+id+"/notes" || strings.Count(received.URL.EscapedPath(), "/") != 4 {
				t.Errorf("sent to %s at %s", received.URL.EscapedPath(), received.Host)
			}
			media := map[table.BodyType]string{table.BodyJSON: "application/json", table.BodyForm: "application/x-www-form-urlencoded"}[kind]
			headers := http.Header{
				"Accept": {accept}, "User-Agent": {"mcp-gateway/1"}, "Content-Type": {media}, "X-Note": {note},
				"Content-Length": received.Header["Content-Length"],
			}
			if diff := cmp.Diff(headers, received.Header); diff != "" {
				t.Errorf("headers -want +got:\n%s", diff)
			}
			judgeBody(t, kind, body, q)
		}
	})
}

func judgeBody(t *testing.T, kind table.BodyType, body []byte, text string) {
	t.Helper()
	if kind == table.BodyForm {
		values, err := url.ParseQuery(string(body))
		if diff := cmp.Diff(url.Values{"text": {text}, "fixed": {"yes"}}, values); diff != "" || err != nil {
			t.Errorf("form %v -want +got:\n%s", err, diff)
		}
		return
	}
	var members map[string]string
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("the body %q: %v", body, err)
	}
	if diff := cmp.Diff(map[string]string{"text": text, "fixed": "yes"}, members); diff != "" {
		t.Errorf("body -want +got:\n%s", diff)
	}
}

func mended(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func quoted(t *testing.T, s string) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// received is what a server reads of a request; there must be one alone.
func received(t *testing.T, request *http.Request) (*http.Request, []byte) {
	t.Helper()
	var sent bytes.Buffer
	if err := request.Write(&sent); err != nil {
		t.Fatalf("it cannot be sent: %v", err)
	}
	in := bufio.NewReader(&sent)
	got, err := http.ReadRequest(in)
	if err != nil {
		t.Fatalf("it cannot be read: %v", err)
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Fatalf("after it there is %q (%v)", rest, err)
	}
	return got, body
}

// TestACertificateThatDoesNotHoldEndsTheCallUnsent: nothing but what the authority of the table vouches for, for this host and now.
func TestACertificateThatDoesNotHoldEndsTheCallUnsent(t *testing.T) {
	const host = "api.example.com"
	for name, tc := range map[string]struct {
		change    func(*x509.Certificate)
		highest   uint16
		strangers bool
		good      bool
	}{
		"as it should be":       {good: true},
		"for another host":      {change: func(c *x509.Certificate) { c.DNSNames = []string{"other.example.com"} }},
		"for the common name":   {change: func(c *x509.Certificate) { c.DNSNames = nil }},
		"for all hosts":         {change: func(c *x509.Certificate) { c.DNSNames = []string{"*"} }},
		"that has expired":      {change: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }},
		"that is not valid yet": {change: func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }},
		"for clients":           {change: func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }},
		"of its own":            {strangers: true},
		"by an old TLS":         {highest: tls.VersionTLS11},
	} {
		certificate, pemFile := certificateFor(t, host, tc.change)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
			if !tc.good {
				t.Errorf("%s: a request was sent", name)
			}
		}))
		server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS10, MaxVersion: tc.highest}
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		config := table.Backend{URL: "https://" + host, CAFile: pemFile, Toolset: &table.Toolset{HTTP: []table.HTTPTool{plainTool}}}
		if tc.strangers {
			_, config.CAFile = certificateFor(t, host, nil)
		}
		_, err := ask(t, open(t, config, Options{Credential: bearer{}, Dial: leadTo(server)}), "tools/call", `{"name":"do"}`)
		failure, failed := errors.AsType[*backend.Error](err)
		if tc.good && err != nil || !tc.good && (!failed || failure.Class != classTLS || failure.Sent) {
			t.Errorf("a certificate %s: %v", name, err)
		}
	}
}

// certificateFor makes a certificate that signed itself, and a file with it.
func certificateFor(t *testing.T, host string, change func(*x509.Certificate)) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	template.Subject.CommonName = host
	if change != nil {
		change(template)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	write(t, file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, file
}

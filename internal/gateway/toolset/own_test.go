package toolset

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// What is wrong with what the gateway brings itself is told before anything is called, and is not blamed on the server.
func TestWhatIsWrongWithOurOwnCertificatesIsNotTheServers(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	write(t, folder+"/ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	write(t, folder+"/text", []byte("no certificate"))
	certificate := func(cert, key string) *table.ClientCertificate {
		return &table.ClientCertificate{CertFile: folder + cert, KeyFile: folder + key}
	}
	definition := json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`)
	sets := map[string]table.Backend{
		"http": {URL: server.URL, Toolset: &table.Toolset{HTTP: []table.HTTPTool{{Method: "GET", Definition: definition}}}},
		"postgres": {Toolset: &table.Toolset{Postgres: &table.PostgresTool{
			Definition: definition, Statement: "SELECT 1 AS a", Host: "127.0.0.1", Port: 1, Database: "d", User: "u",
		}}},
	}
	const unread = " cannot be read: the object that holds it or the key in that is missing, or has not reached the gateway's pod yet"
	for name, tc := range map[string]struct {
		ca     string
		own    *table.ClientCertificate
		wanted string
	}{
		"a bundle that is not there": {ca: folder + "/typo.crt", wanted: "the bundle in caBundle" + unread},
		"a bundle of no kind":        {ca: folder + "/text", wanted: "caBundle holds no certificate in PEM form, or more than 2 MiB"},
		"a certificate that is not there": {
			ca: folder + "/ca.crt", own: certificate("/typo.crt", "/typo.key"), wanted: "the client certificate or its key" + unread,
		},
		"a key that is not there": {ca: folder + "/ca.crt", own: certificate("/ca.crt", "/typo.key"), wanted: "the client certificate or its key" + unread},
		"a key of no kind": {
			own: certificate("/ca.crt", "/text"), wanted: "the client certificate and its key are no pair in PEM form of at most 256 KiB each",
		},
	} {
		for kind, config := range sets {
			t.Run(name+"/"+kind, func(t *testing.T) {
				config.CAFile, config.ClientCertificate = tc.ca, tc.own
				b := open(t, config, Options{})
				for _, method := range []string{"tools/list", "tools/call"} {
					_, err := ask(t, b, method, `{"name":"do"}`)
					failure, ok := errors.AsType[*backend.Error](err)
					if !ok || failure.Class != classCredential || failure.Sent || failure.Told != tc.wanted {
						t.Errorf("%s: %v, told %+v\nwant told %s", method, err, failure, tc.wanted)
					}
				}
			})
		}
	}
}

func TestCertificatesThatCameAreUsed(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	synctest.Test(t, func(t *testing.T) {
		file := t.TempDir() + "/ca.crt"
		b := open(t, table.Backend{URL: "https://a.example", CAFile: file, Toolset: &table.Toolset{HTTP: []table.HTTPTool{
			{Method: "GET", Definition: json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`)},
		}}}, Options{})
		if _, err := b.Describe(testContext(t)); err == nil {
			t.Error("it is served without its bundle")
		}
		write(t, file, bundle)
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		if _, err := b.Describe(testContext(t)); err != nil {
			t.Error(err)
		}
	})
}

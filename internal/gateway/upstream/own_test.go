package upstream

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// What is wrong with what the gateway brings itself is not blamed on the server, and nobody waits for it to pass.
func TestWhatIsWrongWithOurOwnCredentialsIsNotTheServers(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	t.Cleanup(s.Close)
	folder, text := t.TempDir(), filePEM(t, "TEXT", []byte("no certificate"))
	missing, own := filepath.Join(folder, "typo"), pair(t)
	source, err := credential.New(&table.Credential{Type: table.CredentialBearer, ValueFile: text})
	if err != nil {
		t.Fatal(err)
	}
	unread, err := credential.New(&table.Credential{Type: table.CredentialBearer, ValueFile: missing})
	if err != nil {
		t.Fatal(err)
	}
	const place = " cannot be read: the object that holds it or the key in that is missing, or has not reached the gateway's pod yet"
	for name, tc := range map[string]struct {
		change func(*table.Backend, *Options)
		told   string
	}{
		"a bundle that is not there": {func(b *table.Backend, _ *Options) { b.CAFile = missing }, "the bundle in caBundle" + place},
		"a bundle of no kind": {
			func(b *table.Backend, _ *Options) { b.CAFile = text }, "caBundle holds no certificate in PEM form, or more than 2 MiB",
		},
		"a certificate that is not there": {func(b *table.Backend, _ *Options) {
			b.ClientCertificate = &table.ClientCertificate{CertFile: missing, KeyFile: own.KeyFile}
		}, "the client certificate or its key" + place},
		"a key of no kind": {func(b *table.Backend, _ *Options) {
			b.ClientCertificate = &table.ClientCertificate{CertFile: own.CertFile, KeyFile: text}
		}, "the client certificate and its key are no pair in PEM form of at most 256 KiB each"},
		"a token of many lines": {
			func(_ *table.Backend, o *Options) { o.Credential = source },
			"the token of the credential has a line feed or another control character inside, which a header cannot carry",
		},
		"a token that is not there": {func(_ *table.Backend, o *Options) { o.Credential = unread }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, s.URL, tc.change, func(_ *table.Backend, o *Options) { o.Hold = time.Hour })
			for what, ask := range map[string]func() error{
				"describe": func() error { _, err := b.Describe(testContext(t)); return err },
				"open":     func() error { _, _, err := b.Open(testContext(t), backend.Client{}); return err },
				"call": func() error {
					return b.modern().Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
				},
			} {
				if failure := classOf(t, ask()); failure.Class != "Credential" || failure.Sent || failure.Told != tc.told {
					t.Errorf("%s: %v, told %q\nwant told %q", what, failure, failure.Told, tc.told)
				}
			}
		})
	}
}

// A server that looks at the Host header answers 421 to a name that it does not know: it speaks MCP, and not to the gateway.
func TestAServerThatDoesNotKnowItsNameRefusesTheGateway(t *testing.T) {
	for _, body := range []string{"Invalid Host header", failed1} {
		b := open(t, serve(t, asStatus(http.StatusMisdirectedRequest, body)).URL)
		for what, ask := range map[string]func() error{
			"describe": func() error { _, err := b.Describe(testContext(t)); return err },
			"call": func() error {
				return b.modern().Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
			},
		} {
			failure := classOf(t, ask())
			const want = "it answers with HTTP status 421: it takes no requests for the host name in its URL; allow that name in the server's own settings"
			if failure.Class != "Forbidden" || failure.Detail != want || failure.Status != http.StatusMisdirectedRequest {
				t.Errorf("%s: %v, detail %q", what, failure, failure.Detail)
			}
		}
	}
}

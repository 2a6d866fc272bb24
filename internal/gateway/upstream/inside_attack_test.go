package upstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// TestWhereAServerSendsItsCallersForATokenNobodyGoes: the gateway has its credential or none, and asks no authorization server.
func TestWhereAServerSendsItsCallersForATokenNobodyGoes(t *testing.T) {
	var elsewhere recorder
	elsewhere.Handler = asJSON(`{"resource":"x","authorization_servers":["http://169.254.169.254"]}`)
	other := serve(t, &elsewhere)
	for _, challenge := range []string{
		`Bearer resource_metadata="%s/.well-known/oauth-protected-resource"`, `Bearer authorization_uri="%s/token", realm="%[1]s"`,
		`Negotiate, Basic realm="%s"`, `Bearer error="insufficient_scope", scope="admin", resource_metadata="%s"`,
	} {
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
			asked := &recorder{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(challenge, other.URL))
				w.Header().Set("Link", "<"+other.URL+`>; rel="service-desc"`)
				w.WriteHeader(status)
			})}
			b := open(t, serve(t, asked).URL, func(_ *table.Backend, o *Options) { o.Credential = fixedCredential{} })
			want := map[int]string{http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden"}[status]
			for way, channel := range ways(b) {
				err := channel.Call(testContext(t), toolCall(`1`, "echo", "", channel.Era()), &sink{})
				if failure := classOf(t, err); failure.Class != want {
					t.Errorf("%s: %v", way, err)
				}
			}
			if n := len(asked.with("tools/call")); n != 2 {
				t.Errorf("the server was called %d times by two callers", n)
			}
		}
	}
	if n := len(elsewhere.with("")); n != 0 {
		t.Errorf("%d requests went where the server pointed", n)
	}
}

// TestAGuardedServerIsJudgedByWhatItsNameStandsForNow: a name that led to it before may lead inside a moment later.
func TestAGuardedServerIsJudgedByWhatItsNameStandsForNow(t *testing.T) {
	listener, port := mcptest.Everywhere(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was reached", r.Host) }))
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	stand := mcptest.Names(t)
	for _, address := range []string{"127.0.0.1", "::1", "169.254.169.254", "64:ff9b::7f00:1", "fd00:ec2::254", "0.0.0.0"} {
		stand(address)
		for _, transport := range []table.Transport{table.TransportHTTP, table.TransportSSE} {
			b := open(t, "http://mcp.example.com:"+port+"/mcp", func(config *table.Backend, o *Options) {
				config.Transport, config.Guarded, config.AllowPrivate, o.Credential = transport, true, true, fixedCredential{}
			})
			_, err := b.Describe(testContext(t))
			if failure := classOf(t, err); failure.Class != "Denied" || failure.Sent {
				t.Errorf("%s at %s: class %q, sent %t: %v", transport, address, failure.Class, failure.Sent, err)
			}
		}
	}
}

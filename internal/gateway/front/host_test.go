package front

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/auth"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// guarded is a gateway that wants tokens, not on a loopback address, and what it logs.
func guarded(t *testing.T, endpoint table.Endpoint, audiences ...string) (*Front, *logged) {
	t.Helper()
	endpoint.Path = table.DefaultPath
	a := table.Auth{Type: table.AuthTokens, Audiences: audiences, OIDC: []table.OIDC{{Issuer: "https://127.0.0.1:1"}}}
	verifier, err := auth.New(t.Context(), a, auth.Options{PublicURL: endpoint.PublicURL, Path: endpoint.Path, LoopbackIssuers: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := new(logged)
	f := New(Options{Logger: slog.New(slog.NewTextHandler(lines, nil)), Telemetry: telemetry.New(telemetry.Options{})})
	f.Use(&State{Table: &table.Table{Endpoint: endpoint, Auth: a}, Verifier: verifier})
	return f, lines
}

// visits sends a request to a host, and returns the answer.
func visits(f *Front, method, host, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	r.Host = host
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func TestWhichHostsAreServedIsToldToWhoRunsTheGatewayAndToNobodyElse(t *testing.T) {
	t.Parallel()
	f, lines := guarded(t, table.Endpoint{AllowedHosts: []string{"team-gateway.team.svc"}}, "http://team-gateway.team.svc:8080/mcp")
	for range 3 {
		w := visits(f, http.MethodPost, "evil.example", "/mcp")
		answer := w.Body.String()
		if w.Code != http.StatusForbidden || strings.Contains(answer, "team") || strings.Contains(answer, "evil") {
			t.Errorf("answered %d: %s", w.Code, answer)
		}
		if !strings.Contains(answer, "gateway.publicURL") {
			t.Errorf("it does not say what to set: %s", answer)
		}
	}
	log := lines.String()
	for _, want := range []string{"host=evil.example", "allowed=team-gateway.team.svc", "gateway.publicURL", "gateway.allowedHosts"} {
		if strings.Count(log, want) != 1 {
			t.Errorf("%q is not logged once:\n%s", want, log)
		}
	}
}

func TestAnAddressThatIsToldIsNeverTheHostThatWasAsked(t *testing.T) {
	t.Parallel()
	const at = "/.well-known/oauth-protected-resource"
	for name, tc := range map[string]struct {
		endpoint  table.Endpoint
		audience  string
		resource  string
		challenge string // where it points to
	}{
		"a public URL": {
			endpoint: table.Endpoint{PublicURL: "https://x.example/te%20am"}, audience: "a",
			resource: "https://x.example/te%20am", challenge: "https://x.example" + at + "/te%20am",
		},
		"none": {audience: "http://team.svc:8080/mcp", resource: "http://team.svc:8080/mcp", challenge: "http://team.svc:8080" + at + "/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := guarded(t, tc.endpoint, tc.audience)
			refused := visits(f, http.MethodPost, "evil.example", "/mcp")
			challenge := refused.Header().Get("WWW-Authenticate")
			if refused.Code != http.StatusUnauthorized || !strings.Contains(challenge, `resource_metadata="`+tc.challenge+`"`) {
				t.Errorf("refused with %d and %s", refused.Code, challenge)
			}
			_, path, _ := strings.Cut(tc.challenge, at)
			for _, path := range []string{at + path, at + "/mcp", at} {
				w := visits(f, http.MethodGet, "evil.example", path)
				var got struct {
					Resource string `json:"resource"`
				}
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Resource != tc.resource {
					t.Errorf("%s: %d, %v: %s", path, w.Code, err, w.Body)
				}
			}
		})
	}
}

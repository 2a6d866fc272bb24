package auth

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	metadataAt = `Bearer resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`
	invalid    = `, error="invalid_token", error_description=`
)

func TestARefusalSaysWhereToGetAToken(t *testing.T) {
	expired := fail(ReasonExpired, "the token has expired")
	for name, c := range map[string]struct {
		err    error
		claims map[string]string
		status int
		// header is WWW-Authenticate, code the error in the body.
		header, code, retry string
	}{
		"no token": {err: missing(), status: 401, header: metadataAt, code: "unauthorized"},
		"no token, scope needed": {
			err: missing(), claims: map[string]string{"scope": "a b"}, status: 401, code: "unauthorized",
			header: metadataAt + `, scope="a b"`,
		},
		"bad token": {
			err: expired, status: 401, code: "invalid_token",
			header: metadataAt + invalid + `"the token has expired"`,
		},
		"bad token, wrapped": {
			err: errors.Join(errors.New("x"), expired), status: 401, code: "invalid_token",
			header: metadataAt + invalid + `"the token has expired"`,
		},
		"two tokens": {
			err: badRequest("twice"), status: 400, code: "invalid_request",
			header: metadataAt + `, error="invalid_request", error_description="twice"`,
		},
		"not let in": {err: forbidden(ReasonSubject, "no"), status: 403, code: "access_denied"},
		"no scope": {
			err: insufficientScope("a"), status: 403, code: "insufficient_scope",
			header: metadataAt + `, error="insufficient_scope", error_description="the token lacks a scope that is needed here", scope="a"`,
		},
		"issuer away": {err: unavailable(), status: 503, code: "temporarily_unavailable", retry: "5"},
		"some other error": {
			err: errors.New("secret"), status: 401, code: "invalid_token",
			header: metadataAt + invalid + `"the token cannot be verified"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerifier(t, oidcAuth(table.OIDC{Issuer: "https://127.0.0.1:1", Claims: c.claims}), nil)
			w := httptest.NewRecorder()
			v.Challenge(w, c.err)
			var body map[string]string
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if body["error_description"] == "" {
				t.Error("the body does not say why")
			}
			h := w.Header()
			got := []any{w.Code, h.Get("WWW-Authenticate"), body["error"], h.Get("Retry-After"), h.Get("Content-Type"), h.Get("Cache-Control")}
			want := []any{c.status, c.header, c.code, c.retry, "application/json", "no-store"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMetadataIsWhereAClientLooksForIt(t *testing.T) {
	issuers := []table.OIDC{{Issuer: "https://127.0.0.1:1", Claims: map[string]string{"scope": "call"}}, {Issuer: "https://127.0.0.1:2"}}
	for name, c := range map[string]struct {
		public    string
		audiences []string
		// resource is what the metadata says, url where a challenge says it is; empty where there is none.
		resource, url string
	}{
		"public URL": {
			public: endpoint, audiences: []string{"https://other.example/mcp"},
			resource: endpoint,
			url:      "https://tools.example.com" + wellKnown + "/mcp",
		},
		"public URL, longer": {
			public:   "https://x.example/agents/a/mcp",
			resource: "https://x.example/agents/a/mcp",
			url:      "https://x.example" + wellKnown + "/agents/a/mcp",
		},
		"public URL, slash": {
			public:   "https://x.example/",
			resource: "https://x.example/",
			url:      "https://x.example" + wellKnown,
		},
		"public URL, quotes": {
			public:   `https://x.example/a"b`,
			resource: `https://x.example/a"b`,
			url:      "https://x.example" + wellKnown + "/a%22b",
		},
		"public URL, escapes": {
			public:   "https://x.example/te%20am/%2Dm",
			resource: "https://x.example/te%20am/%2Dm",
			url:      "https://x.example" + wellKnown + "/te%20am/%2Dm",
		},
		"an audience that is a URL": {
			audiences: []string{"http://tools.team.svc.cluster.local:8080/mcp", "http://second.example/mcp"},
			resource:  "http://tools.team.svc.cluster.local:8080/mcp",
			url:       "http://tools.team.svc.cluster.local:8080" + wellKnown + "/mcp",
		},
		"an audience that is none before it": {
			audiences: []string{"tools", "urn:x:y", "https://u:p@x.example/mcp", "http://[::1]:80/mcp"},
			resource:  "http://[::1]:80/mcp",
			url:       "http://[::1]:80" + wellKnown + "/mcp",
		},
		"an audience of another path before it": {
			audiences: []string{"https://api.example.com", "https://x.example/mcp"},
			resource:  "https://x.example/mcp",
			url:       "https://x.example" + wellKnown + "/mcp",
		},
		"an audience of another path": {
			audiences: []string{"https://api.example.com/", "https://api.example.com/v2"},
			resource:  "https://api.example.com/",
			url:       "https://api.example.com" + wellKnown,
		},
		"no audience that is a URL": {audiences: []string{"tools", `https://evil", x="/mcp`, "https://a b/mcp", "https://x.example/mcp?a"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := oidcAuth(issuers...)
			a.Audiences = append([]string{"x"}, c.audiences...)
			v, err := New(t.Context(), a, Options{PublicURL: c.public, Path: "/mcp"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.metadataURL(); got != c.url {
				t.Errorf("the challenge points to %q, want %q", got, c.url)
			}
			challenged := httptest.NewRecorder()
			if v.Challenge(challenged, missing()); c.url == "" && challenged.Header().Get("WWW-Authenticate") != `Bearer scope="call"` {
				t.Errorf("the challenge is %s", challenged.Header().Get("WWW-Authenticate"))
			}
			_, path, hasMetadata := strings.Cut(c.url, wellKnown)
			if !hasMetadata {
				path = "/mcp"
			}
			r := httptest.NewRequest(http.MethodGet, wellKnown+path, http.NoBody)
			r.Host = "evil.example"
			w := httptest.NewRecorder()
			v.MetadataHandler().ServeHTTP(w, r)
			if c.resource == "" {
				if w.Code != http.StatusNotFound {
					t.Errorf("answered with %d", w.Code)
				}
				return
			}
			var got map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"resource":                 c.resource,
				"authorization_servers":    []any{"https://127.0.0.1:1", "https://127.0.0.1:2"},
				"scopes_supported":         []any{"call"},
				"bearer_methods_supported": []any{"header"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatTheMetadataHandlerServes(t *testing.T) {
	v, err := New(t.Context(), clusterAuth(), Options{PublicURL: "https://x.example/agents/a/mcp", Path: "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	open := newVerifier(t, table.Auth{Type: table.AuthNone}, nil)
	for name, c := range map[string]struct {
		v            *Verifier
		method, path string
		want         int
	}{
		"root form":          {v, http.MethodGet, wellKnown, 200},
		"path":               {v, http.MethodGet, wellKnown + "/mcp", 200},
		"public path":        {v, http.MethodGet, wellKnown + "/agents/a/mcp", 200},
		"HEAD":               {v, http.MethodHead, wellKnown + "/mcp", 200},
		"a browser asks":     {v, http.MethodOptions, wellKnown + "/mcp", 204},
		"POST":               {v, http.MethodPost, wellKnown + "/mcp", 405},
		"another path":       {v, http.MethodGet, wellKnown + "/other", 404},
		"a longer word":      {v, http.MethodGet, wellKnown + "x", 404},
		"everybody may call": {open, http.MethodGet, wellKnown + "/mcp", 404},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			c.v.MetadataHandler().ServeHTTP(w, httptest.NewRequest(c.method, c.path, http.NoBody))
			if w.Code != c.want {
				t.Errorf("answered with %d, want %d", w.Code, c.want)
			}
			if w.Code < 300 && w.Header().Get("Access-Control-Allow-Origin") != "*" {
				t.Error("a browser may not read it")
			}
		})
	}
}

// An audience taken from the Host header would be whatever a caller wants it to be.
func TestTheHostHeaderIsNoAudience(t *testing.T) {
	a := clusterAuth()
	a.Audiences = []string{"mine"}
	v, err := New(t.Context(), a, Options{Path: "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(t, v, signedBy("ed")); got != ReasonAudience {
		t.Errorf("refused for %q", got)
	}
}

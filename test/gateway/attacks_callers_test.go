package gateway

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

const (
	clusterIssuer = "https://kubernetes.default.svc.cluster.local"
	endpointURL   = "https://agent.example.com/mcp"
)

// issuer signs tokens of ServiceAccounts.
type issuer struct {
	t   *testing.T
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{t, key}
}

func account(name string) string { return "system:serviceaccount:team:" + name }

// auth lets in accounts, at endpointURL.
func (i *issuer) auth(names ...string) table.Auth {
	i.t.Helper()
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	if err != nil {
		i.t.Fatal(err)
	}
	accounts := &table.ServiceAccounts{Issuer: clusterIssuer, Keys: keys}
	for _, name := range names {
		accounts.Subjects = append(accounts.Subjects, account(name))
	}
	return table.Auth{Type: table.AuthTokens, Audiences: []string{endpointURL}, ServiceAccounts: accounts}
}

// claims are those of a good token, changed.
func claims(name string, changes map[string]any) map[string]any {
	now := time.Now()
	all := map[string]any{
		"iss": clusterIssuer, "sub": account(name), "aud": []string{endpointURL}, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for claim, value := range changes {
		if all[claim] = value; value == nil {
			delete(all, claim)
		}
	}
	return all
}

func (i *issuer) token(name string, changes map[string]any) string {
	i.t.Helper()
	payload, err := json.Marshal(claims(name, changes))
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// forged is a token of any header; mac signs it, if given.
func (i *issuer) forged(header string, mac []byte) string {
	i.t.Helper()
	payload, err := json.Marshal(claims("alice", nil))
	if err != nil {
		i.t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode(payload)
	if mac == nil {
		return signed + "."
	}
	h := hmac.New(sha256.New, mac)
	h.Write([]byte(signed))
	return signed + "." + encode(h.Sum(nil))
}

func (i *issuer) publicPEM() []byte {
	i.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(i.key.Public())
	if err != nil {
		i.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// TestABadTokenIsRefusedAndNothingIsAskedOfABackend: whatever is wrong with it, and whatever the request is; there is no way from a bad
// token to an anonymous caller.
func TestABadTokenIsRefusedAndNothingIsAskedOfABackend(t *testing.T) {
	good, stranger := newIssuer(t), newIssuer(t)
	seen := &witness{Handler: both(small("server", "who"))}
	g := serveTable(t, table.Table{Auth: good.auth("alice"), Backends: []table.Backend{{Name: "server", URL: serve(t, seen)}}})
	body, headers := modernCall("who", `{}`)
	ahead, ago := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	bearers := map[string]string{
		"nothing": "", "no token": "Bearer", "words": "Bearer undefined", "another scheme": "Basic YWxpY2U6eA==",
		"none":                 "Bearer " + good.forged(`{"alg":"none","kid":"k"}`, nil),
		"a secret of everyone": "Bearer " + good.forged(`{"alg":"HS256","kid":"k"}`, good.publicPEM()),
		"a key of its own":     "Bearer " + stranger.token("alice", nil),
		"a key that it names":  "Bearer " + good.forged(`{"alg":"RS256","jku":"http://127.0.0.1:1/keys"}`, []byte("x")),
		"another audience":     "Bearer " + good.token("alice", map[string]any{"aud": []string{clusterIssuer}}),
		"no audience":          "Bearer " + good.token("alice", map[string]any{"aud": nil}),
		"another issuer":       "Bearer " + good.token("alice", map[string]any{"iss": "https://evil.example"}),
		"expired":              "Bearer " + good.token("alice", map[string]any{"exp": ago}),
		"not yet":              "Bearer " + good.token("alice", map[string]any{"nbf": ahead}),
		"no expiry":            "Bearer " + good.token("alice", map[string]any{"exp": nil}),
		"huge":                 "Bearer " + good.token("alice", map[string]any{"x": strings.Repeat("x", 20<<10)}),
		"two":                  "Bearer " + good.token("alice", nil) + ", Bearer " + good.token("alice", nil),
	}
	asked := len(seen.with("tools/call"))
	for name, bearer := range bearers {
		for method, content := range map[string]string{http.MethodPost: body, http.MethodGet: "", http.MethodDelete: ""} {
			r, answer := request(t, method, g.URL, content, append([]string{"Authorization", bearer}, headers...)...)
			if r.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%s, %s: %s, %q: %s", name, method, r.Status, r.Header.Get("WWW-Authenticate"), answer)
			}
		}
	}
	as := func(name string) []string {
		return append([]string{"Authorization", "Bearer " + good.token(name, nil)}, headers...)
	}
	if r, answer := post(t, g.URL, body, as("mallory")...); r.StatusCode != http.StatusForbidden {
		t.Errorf("an account that is not listed: %s: %s", r.Status, answer)
	}
	if n := len(seen.with("tools/call")) - asked; n != 0 {
		t.Errorf("the backend was called %d times", n)
	}
	if r, answer := post(t, g.URL, body, as("alice")...); r.StatusCode != http.StatusOK {
		t.Errorf("a good token: %s: %s", r.Status, answer)
	}
}

// TestASessionIsWorthNothingToAnotherCaller: neither to read, nor to end it, nor to end what runs in it.
func TestASessionIsWorthNothingToAnotherCaller(t *testing.T) {
	i := newIssuer(t)
	seen := &witness{Handler: streamable(nil)(newServer("server"))}
	g := serveTable(t, table.Table{Auth: i.auth("alice", "bob"), Backends: []table.Backend{{Name: "server", URL: serve(t, seen)}}})
	as := func(name string) []string { return []string{"Authorization", "Bearer " + i.token(name, nil)} }
	call, session := legacyCall(t, g.URL, "echo", `{"text":"hers"}`, as("alice")...)
	if r, answer := post(t, g.URL, call, append(as("alice"), session...)...); r.StatusCode != http.StatusOK || !strings.Contains(answer, "hers") {
		t.Fatalf("its owner, before: %s: %s", r.Status, answer)
	}
	// The gateway asks the server for its lists meanwhile, in a session of its own.
	hers := seen.with(`"hers"`)[0].Header.Get("Mcp-Session-Id")
	heard := func() (n int) {
		for _, r := range seen.with("") {
			if r.Header.Get("Mcp-Session-Id") == hers {
				n++
			}
		}
		return n
	}
	before := heard()
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	for name, ask := range map[string]struct{ method, body string }{
		"a call": {http.MethodPost, call}, "a cancellation": {http.MethodPost, cancel}, "an answer": {http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		"a list": {http.MethodPost, list}, "a stream": {http.MethodGet, ""}, "the end": {http.MethodDelete, ""},
	} {
		r, answer := request(t, ask.method, g.URL, ask.body, append(as("bob"), session...)...)
		if r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s: %s", name, r.Status, answer)
		}
	}
	if n := heard() - before; n != 0 || len(seen.with(`"hers"`)) != 1 {
		t.Errorf("the backend heard of it %d times, and was sent the call %d times", n, len(seen.with(`"hers"`)))
	}
	if r, answer := post(t, g.URL, call, append(as("alice"), session...)...); r.StatusCode != http.StatusOK || !strings.Contains(answer, "hers") {
		t.Errorf("its owner: %s: %s", r.Status, answer)
	}
}

// TestASessionIdThatWasNotGivenOutIsNone: changed anywhere, cut, of another gateway, or too old.
func TestASessionIdThatWasNotGivenOutIsNone(t *testing.T) {
	backends := []table.Backend{{Name: "server", URL: serve(t, streamable(nil)(small("server", "who")))}}
	g, other := launch.Serve(t, binary, backends), launch.Serve(t, binary, backends)
	idAt := func(url string) string {
		r, _ := post(t, url, initialize)
		return r.Header.Get("Mcp-Session-Id")
	}
	id := idAt(g.URL)
	forged := map[string]string{"another gateway's": idAt(other.URL), "a word": "admin", "a path": "../../etc/passwd", "the id twice": id + id}
	for at := 0; at < len(id); at += max(1, len(id)/20) {
		letter := byte('A')
		if id[at] == letter {
			letter = 'B'
		}
		forged[fmt.Sprintf("changed at %d", at)] = id[:at] + string(letter) + id[at+1:]
		if at > 0 {
			forged[fmt.Sprintf("cut at %d", at)] = id[:at]
		}
	}
	for name, wrong := range forged {
		if r, answer := post(t, g.URL, list, "Mcp-Session-Id", wrong); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s: %s", name, r.Status, answer)
		}
	}
	if r, answer := post(t, g.URL, list, "Mcp-Session-Id", id); r.StatusCode != http.StatusOK {
		t.Errorf("the id itself: %s: %s", r.Status, answer)
	}
	short := launch.Serve(t, binary, backends, "--session-age", "1s")
	old := idAt(short.URL)
	launch.Await(t, func() error {
		if r, answer := post(t, short.URL, list, "Mcp-Session-Id", old); r.StatusCode != http.StatusNotFound {
			return fmt.Errorf("a session that is too old: %s: %s", r.Status, answer)
		}
		return nil
	})
}

func TestWithoutAKeyForSessionsTheGatewayDoesNotStart(t *testing.T) {
	file, empty, weak := filepath.Join(t.TempDir(), "table.json"), t.TempDir(), t.TempDir()
	launch.WriteTable(t, file, table.Backend{Name: "server", URL: "http://127.0.0.1:1"})
	launch.Write(t, filepath.Join(weak, "k1"), []byte("changeme"))
	for name, args := range map[string][]string{
		"no key": nil, "an empty folder": {"--session-keys", empty}, "a short key": {"--session-keys", weak}, "no folder": {"--session-keys", file + "/none"},
	} {
		command := exec.CommandContext(inTime(t), binary, append([]string{
			"serve", "--table", file, "--listen", launch.FreeAddress(t), "--health-listen", "0",
		}, args...)...)
		out, err := command.CombinedOutput()
		if command.ProcessState.ExitCode() < 1 || !strings.Contains(string(out), "key") {
			t.Errorf("with %s: %v: %s", name, err, out)
		}
	}
}

// TestWhoOpensSessionsOnAndOnIsBounded: the unused ones of that caller make room, at the backend too.
func TestWhoOpensSessionsOnAndOnIsBounded(t *testing.T) {
	seen := &witness{Handler: streamable(nil)(small("server", "who"))}
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, seen)}}, "--max-sessions", "5")
	var last string
	for n := range 100 {
		r, answer := post(t, g.URL, initialize, "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", n))
		if r.StatusCode != http.StatusOK {
			t.Fatalf("the session %d: %s: %s", n, r.Status, answer)
		}
		last = r.Header.Get("Mcp-Session-Id")
	}
	launch.Await(t, func() error {
		_, metrics := request(t, http.MethodGet, g.Health+"/metrics", "")
		for line := range strings.Lines(metrics) {
			if n := 0; strings.HasPrefix(line, "mcp_gateway_sessions ") {
				if _, err := fmt.Sscanf(line, "mcp_gateway_sessions %d", &n); err != nil || n > 5 || n < 1 {
					return fmt.Errorf("after 100 sessions: %s (%w)", line, err)
				}
				return nil
			}
		}
		return fmt.Errorf("sessions are not counted: %s", metrics)
	})
	if r, answer := post(t, g.URL, list, "Mcp-Session-Id", last); r.StatusCode != http.StatusOK {
		t.Errorf("the last session: %s: %s", r.Status, answer)
	}
}

package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	cluster  = "https://kubernetes.default.svc.cluster.local"
	endpoint = "https://tools.example.com/mcp"
	agent    = "system:serviceaccount:team:agent"
)

var (
	rsaKey      = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	otherRSAKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	weakRSAKey  = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 1024)) })
	p256Key     = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	p384Key     = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	edKey       = sync.OnceValue(func() ed25519.PrivateKey { _, key, err := ed25519.GenerateKey(rand.Reader); return must(key, err) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// claimsOf are those of a good token of the agent, with changes; a nil value takes a claim out.
func claimsOf(changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": cluster, "sub": agent, "aud": []string{endpoint},
		"exp": now.Add(10 * time.Minute).Unix(), "nbf": now.Unix(), "iat": now.Unix(),
	}
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// sign makes a token; headers are added to alg and kid.
func sign(key any, algorithm jose.SignatureAlgorithm, keyID string, claims any, headers map[string]any) string {
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	if keyID != "" {
		options.WithHeader("kid", keyID)
	}
	for name, value := range headers {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	payload, isRaw := claims.([]byte)
	if !isRaw {
		payload = must(json.Marshal(claims))
	}
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options))
	return must(must(signer.Sign(payload)).CompactSerialize())
}

// raw makes a token of any header and signature.
func raw(header, claims map[string]any, signature []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode(must(json.Marshal(header))) + "." + encode(must(json.Marshal(claims))) + "." + encode(signature)
}

// publicKey is an entry of a key set.
func publicKey(id string, key crypto.Signer, changes map[string]any) map[string]any {
	entry := map[string]any{}
	data := must(json.Marshal(jose.JSONWebKey{Key: key.Public(), KeyID: id}))
	if err := json.Unmarshal(data, &entry); err != nil {
		panic(err)
	}
	maps.Copy(entry, changes)
	return entry
}

func keySetOf(keys ...map[string]any) json.RawMessage {
	return must(json.Marshal(map[string]any{"keys": keys}))
}

// clusterAuth lets in the agent's ServiceAccount, with keys of every type.
func clusterAuth() table.Auth {
	return table.Auth{Type: table.AuthTokens, ServiceAccounts: &table.ServiceAccounts{
		Issuer: cluster, Subjects: []string{agent},
		Keys: keySetOf(
			publicKey("rsa", rsaKey(), nil), publicKey("p256", p256Key(), nil), publicKey("p384", p384Key(), nil),
			publicKey("ed", edKey(), nil), publicKey("rsa-256-only", otherRSAKey(), map[string]any{"alg": "RS256"}),
			publicKey("weak", weakRSAKey(), nil), publicKey("for-encryption", otherRSAKey(), map[string]any{"use": "enc"}),
			map[string]any{"kty": "oct", "kid": "symmetric", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"},
			map[string]any{"kty": "OKP", "crv": "Ed448", "kid": "unknown-curve", "x": "AAAA"},
		),
	}}
}

func newVerifier(tb testing.TB, a table.Auth, previous *Verifier) *Verifier {
	tb.Helper()
	v, err := New(tb.Context(), a, Options{PublicURL: endpoint, Path: "/mcp", LoopbackIssuers: true}, previous)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func request(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, endpoint, http.NoBody)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// provider of OpenID Connect, in this process.
type fakeProvider struct {
	server  *httptest.Server
	keys    json.RawMessage
	fetches atomic.Int32
	// discovery is served in place of the right document, if set.
	discovery http.HandlerFunc
}

// newProvider serves keys over TLS, with a certificate of no known authority.
func newProvider(t *testing.T, keys json.RawMessage) *fakeProvider {
	t.Helper()
	p := &fakeProvider{keys: keys}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /realm/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		if p.discovery != nil {
			p.discovery(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.issuer(), "jwks_uri": p.server.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.fetches.Add(1)
		_, _ = w.Write(p.keys)
	})
	p.server = httptest.NewTLSServer(mux)
	t.Cleanup(p.server.Close)
	return p
}

func (p *fakeProvider) issuer() string { return p.server.URL + "/realm" }

// oidc lets in all whom the provider knows.
func (p *fakeProvider) oidc(t *testing.T) table.OIDC {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(file, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	return table.OIDC{Issuer: p.issuer(), CAFile: file}
}

// token is one of the provider's for a user, signed with the P-256 key under the name "k".
func (p *fakeProvider) token(changes map[string]any) string {
	claims := claimsOf(map[string]any{"iss": p.issuer(), "sub": "alice"})
	maps.Copy(claims, changes)
	return sign(p256Key(), jose.ES256, "k", claims, nil)
}

func oidcAuth(entries ...table.OIDC) table.Auth {
	return table.Auth{Type: table.AuthTokens, OIDC: entries}
}

// reasonOf is why a token is refused; empty if it is not.
func reasonOf(tb testing.TB, v *Verifier, token string) Reason {
	tb.Helper()
	p, err := v.Verify(request(token))
	if err == nil {
		if p == (Principal{}) || p == anonymous {
			tb.Fatalf("a token was accepted as %+v", p)
		}
		return ""
	}
	if p != (Principal{}) {
		tb.Errorf("a refused token gave the principal %+v", p)
	}
	var refusal *Error
	if !errors.As(err, &refusal) {
		tb.Fatalf("a token was refused with %v", err)
	}
	return refusal.Reason
}

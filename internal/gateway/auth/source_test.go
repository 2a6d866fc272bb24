package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestAnIssuerIsFoundByDiscoveryOverTLS(t *testing.T) {
	p := newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
	v := newVerifier(t, oidcAuth(p.oidc(t)), nil)
	for range 3 {
		if got := reasonOf(t, v, p.token(nil)); got != "" {
			t.Fatalf("refused for %q", got)
		}
	}
	if got := p.fetches.Load(); got != 1 {
		t.Errorf("keys were fetched %d times", got)
	}
}

func TestAnIssuerOfNoKnownAuthorityIsNotBelieved(t *testing.T) {
	p := newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
	for name, caFile := range map[string]string{"the system's roots": "", "no such file": filepath.Join(t.TempDir(), "none")} {
		t.Run(name, func(t *testing.T) {
			v := newVerifier(t, oidcAuth(table.OIDC{Issuer: p.issuer(), CAFile: caFile}), nil)
			if got := reasonOf(t, v, p.token(nil)); got != ReasonUnavailable {
				t.Errorf("refused for %q", got)
			}
		})
	}
	if p.fetches.Load() != 0 {
		t.Error("keys were fetched")
	}
}

func TestAnIssuerOnThisHostMaySpeakPlainHTTPWhereThatIsAsked(t *testing.T) {
	p := newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
	plain := httptest.NewServer(p.server.Config.Handler)
	defer plain.Close()
	p.server = plain
	v := newVerifier(t, oidcAuth(table.OIDC{Issuer: p.issuer()}), nil)
	if got := reasonOf(t, v, p.token(nil)); got != "" {
		t.Errorf("refused for %q", got)
	}
}

func TestADeadIssuerCostsItsOwnTokensOnly(t *testing.T) {
	dead, alive := newProvider(t, nil), newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
	a := oidcAuth(dead.oidc(t), alive.oidc(t))
	a.ServiceAccounts = clusterAuth().ServiceAccounts
	dead.server.Close()
	v := newVerifier(t, a, nil)
	if got := reasonOf(t, v, dead.token(nil)); got != ReasonUnavailable {
		t.Errorf("the dead one's: refused for %q", got)
	}
	if got := reasonOf(t, v, alive.token(nil)); got != "" {
		t.Errorf("the other one's: refused for %q", got)
	}
	if got := reasonOf(t, v, sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), nil)); got != "" {
		t.Errorf("the cluster's: refused for %q", got)
	}
}

func TestANewTableKeepsTheKeysOfAnIssuerThatDidNotChange(t *testing.T) {
	p := newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
	entry := p.oidc(t)
	before := newVerifier(t, oidcAuth(entry), nil)
	if got := reasonOf(t, before, p.token(nil)); got != "" {
		t.Fatalf("refused for %q", got)
	}
	p.server.Close()
	entry.Subjects = []string{"bob"}
	after := newVerifier(t, oidcAuth(entry), before)
	if got := reasonOf(t, after, p.token(map[string]any{"sub": "bob"})); got != "" {
		t.Errorf("refused for %q", got)
	}
	if got := reasonOf(t, after, p.token(nil)); got != ReasonSubject {
		t.Errorf("the new table's rule: refused for %q", got)
	}
	entry.CAFile = ""
	if got := reasonOf(t, newVerifier(t, oidcAuth(entry), after), p.token(nil)); got != ReasonUnavailable {
		t.Errorf("with another CA file: refused for %q", got)
	}
}

// What a provider sends decides who gets in, so it must be the provider's own and of sane size.
func TestAnIssuerThatMisbehavesIsNotBelieved(t *testing.T) {
	evil := newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
	object := func(issuer, keys string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"issuer":"` + issuer + `","jwks_uri":"` + keys + `"}`))
		}
	}
	for name, c := range map[string]struct {
		discovery func(p *fakeProvider) http.HandlerFunc
		keys      string
		want      string
	}{
		"another issuer":   {func(p *fakeProvider) http.HandlerFunc { return object(evil.issuer(), p.server.URL+"/keys") }, "", "another issuer"},
		"a slash more":     {func(p *fakeProvider) http.HandlerFunc { return object(p.issuer()+"/", p.server.URL+"/keys") }, "", "another issuer"},
		"keys over HTTP":   {func(p *fakeProvider) http.HandlerFunc { return object(p.issuer(), "http://keys.example/k") }, "", "not an https URL"},
		"keys over FTP":    {func(p *fakeProvider) http.HandlerFunc { return object(p.issuer(), "ftp://127.0.0.1/k") }, "", "not an https URL"},
		"keys in a file":   {func(p *fakeProvider) http.HandlerFunc { return object(p.issuer(), "file:///etc/passwd") }, "", "not an absolute URL"},
		"no keys":          {func(p *fakeProvider) http.HandlerFunc { return object(p.issuer(), "") }, "", "not an absolute URL"},
		"keys at metadata": {func(p *fakeProvider) http.HandlerFunc { return object(p.issuer(), "https://169.254.169.254/k") }, "", "address denied"},
		"redirect": {func(*fakeProvider) http.HandlerFunc {
			return http.RedirectHandler(evil.server.URL, http.StatusFound).ServeHTTP
		}, "", "redirects"},
		"redirect for ever": {func(*fakeProvider) http.HandlerFunc {
			return http.RedirectHandler("/realm/.well-known/openid-configuration", http.StatusFound).ServeHTTP
		}, "", "redirects"},
		"error": {func(*fakeProvider) http.HandlerFunc { return http.NotFound }, "", "status 404"},
		"no JSON": {func(*fakeProvider) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
		}, "", "no JSON object"},
		"endless":             {func(*fakeProvider) http.HandlerFunc { return endless }, "", "more than"},
		"huge headers":        {func(*fakeProvider) http.HandlerFunc { return hugeHeaders }, "", "exceeded"},
		"keys are no set":     {nil, `[]`, "not a JSON Web Key Set"},
		"no usable key":       {nil, `{"keys":[{"kty":"oct","k":"AAAA"}]}`, "no public key"},
		"keys twice":          {nil, `{"keys":[],"keys":[]}`, "not a JSON Web Key Set"},
		"more keys than sane": {nil, `{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`, "more than 100"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, []byte(c.keys))
			if c.discovery != nil {
				p.discovery = c.discovery(p)
			}
			var log bytes.Buffer
			v, err := New(t.Context(), oidcAuth(p.oidc(t)), Options{
				PublicURL: endpoint, LoopbackIssuers: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := reasonOf(t, v, p.token(nil)); got != ReasonUnavailable {
				t.Errorf("refused for %q", got)
			}
			if !strings.Contains(log.String(), c.want) {
				t.Errorf("the log does not say %q: %s", c.want, log.String())
			}
		})
	}
	if evil.fetches.Load() != 0 {
		t.Error("another host was asked")
	}
}

func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write(bytes.Repeat([]byte(" "), 64<<10)); err != nil {
			return
		}
	}
}

func hugeHeaders(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X", strings.Repeat("x", maxHeaders))
}

func TestAnIssuerOnThisHostIsNotDialledUnlessAsked(t *testing.T) {
	p := newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
	v, err := New(t.Context(), oidcAuth(p.oidc(t)), Options{PublicURL: endpoint}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(t, v, p.token(nil)); got != ReasonUnavailable {
		t.Errorf("refused for %q", got)
	}
}

// scripted is a source whose fetches are a function of the test's, in the test's time.
type scripted struct {
	*keySource

	mu      sync.Mutex
	fetches []time.Time
	answer  func() (*keySet, error)
}

func newScripted(keys *keySet) *scripted {
	s := &scripted{answer: func() (*keySet, error) { return keys, nil }}
	s.keySource = &keySource{logger: slog.New(slog.DiscardHandler), fetch: func() (*keySet, error) {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the network's time, in a bubble
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetches = append(s.fetches, time.Now())
		return s.answer()
	}}
	return s
}

func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fetches)
}

func (s *scripted) becomes(keys *keySet, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func() (*keySet, error) { return keys, err }
}

func (s *scripted) judge(t *testing.T, token string) Reason {
	t.Helper()
	parsed, failure := parseToken(token)
	if failure != nil {
		t.Fatal(failure)
	}
	if _, failure = s.verify(t.Context(), parsed); failure != nil {
		return failure.Reason
	}
	return ""
}

func setOf(entries ...map[string]any) *keySet { return must(parseKeys(keySetOf(entries...))) }

func signedBy(keyID string) string { return sign(edKey(), jose.EdDSA, keyID, claimsOf(nil), nil) }

func TestARotatedKeyIsFetchedWhenItIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(setOf(publicKey("old", edKey(), nil)))
		if got := s.judge(t, signedBy("old")); got != "" {
			t.Fatalf("refused for %q", got)
		}
		time.Sleep(minPause) //nolint:forbidigo // in a bubble
		s.becomes(setOf(publicKey("new", edKey(), nil)), nil)
		if got := s.judge(t, signedBy("new")); got != "" {
			t.Errorf("the new key's: refused for %q", got)
		}
		if got := s.judge(t, signedBy("old")); got != ReasonKey {
			t.Errorf("the withdrawn key's: refused for %q", got)
		}
	})
}

func TestAKeyReplacedUnderItsNameIsFetchedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(setOf(publicKey("k", p256Key(), map[string]any{"kid": "k"})))
		_ = s.judge(t, sign(p256Key(), jose.ES256, "k", claimsOf(nil), nil))
		time.Sleep(minPause) //nolint:forbidigo // in a bubble
		s.becomes(setOf(publicKey("k", edKey(), nil)), nil)
		if got := s.judge(t, signedBy("k")); got != "" {
			t.Errorf("refused for %q", got)
		}
	})
}

func TestUnknownKeysFetchOnceInTenSecondsHoweverManyThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(setOf(publicKey("k", edKey(), nil)))
		token := signedBy("unknown")
		flood := func() {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if got := s.judge(t, token); got != ReasonKey {
						t.Errorf("refused for %q", got)
					}
				})
			}
			all.Wait()
		}
		for range 30 {
			flood()
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		}
		if got := s.count(); got > 4 {
			t.Errorf("%d fetches in 30 s", got)
		}
		for i := 1; i < len(s.fetches); i++ {
			if pause := s.fetches[i].Sub(s.fetches[i-1]); pause < minPause {
				t.Errorf("fetched again after %v", pause)
			}
		}
	})
}

func TestAFailedFetchIsTriedAgainWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(nil)
		s.becomes(nil, errors.New("away"))
		start := time.Now()
		for time.Since(start) < 40*time.Second {
			if got := s.judge(t, signedBy("k")); got != ReasonUnavailable {
				t.Fatalf("refused for %q", got)
			}
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
		}
		if got := s.count(); got < 5 || got > 8 {
			t.Errorf("%d attempts in 40 s", got)
		}
		s.becomes(setOf(publicKey("k", edKey(), nil)), nil)
		time.Sleep(minPause) //nolint:forbidigo // in a bubble
		if got := s.judge(t, signedBy("k")); got != "" {
			t.Errorf("back again: refused for %q", got)
		}
	})
}

func TestKeysOutliveTheirIssuerForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(setOf(publicKey("k", edKey(), nil)))
		_ = s.judge(t, signedBy("k"))
		s.becomes(nil, errors.New("away"))
		time.Sleep(maxAge - time.Minute) //nolint:forbidigo // in a bubble
		if got := s.judge(t, signedBy("k")); got != "" {
			t.Errorf("within the day: refused for %q", got)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
		if got := s.judge(t, signedBy("k")); got != ReasonUnavailable {
			t.Errorf("after the day: refused for %q", got)
		}
	})
}

// slowToJudge is a key whose signatures take until something has happened.
type slowToJudge struct{ until func() }

func (k slowToJudge) VerifyPayload([]byte, []byte, jose.SignatureAlgorithm) error {
	k.until()
	return errors.New("another key signed it")
}

func TestKeysThatComeWhileATokenIsJudgedByTheOldOnesCountForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(setOf(publicKey("k", edKey(), nil)))
		until := func() { <-s.refresh() }
		replaced := &keySet{keys: []key{{id: "k", public: slowToJudge{until}, algorithms: []jose.SignatureAlgorithm{jose.EdDSA}}}}
		s.have.Store(&fetchedKeys{set: replaced, at: time.Now()})
		if got := s.judge(t, signedBy("k")); got != "" {
			t.Errorf("refused for %q", got)
		}
	})
}

func TestARequestThatIsGivenUpWaitsForNoKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(setOf(publicKey("k", edKey(), nil)))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		parsed, _ := parseToken(signedBy("k"))
		if _, failure := s.verify(ctx, parsed); failure == nil || failure.Reason != ReasonUnavailable {
			t.Errorf("got %v", failure)
		}
		synctest.Wait()
		time.Sleep(time.Second) //nolint:forbidigo // the fetch that runs ends in the bubble
	})
}

package auth

import (
	"testing"
	"testing/synctest"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

func TestATokenThatWasVerifiedEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVerifier(t, clusterAuth(), nil)
		token := sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), nil)
		if got := reasonOf(t, v, token); got != "" {
			t.Fatalf("refused for %q", got)
		}
		time.Sleep(10*time.Minute + defaultSkew - time.Second) //nolint:forbidigo // in a bubble
		if got := reasonOf(t, v, token); got != "" {
			t.Errorf("before its end: refused for %q", got)
		}
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		if got := reasonOf(t, v, token); got != ReasonExpired {
			t.Errorf("after its end: refused for %q", got)
		}
	})
}

func TestATokenThatWasVerifiedEndsWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(setOf(publicKey("k", edKey(), nil)))
		v := newVerifier(t, clusterAuth(), nil)
		v.issuers[cluster].keys = s.keySource
		token := sign(edKey(), jose.EdDSA, "k", claimsOf(map[string]any{"exp": time.Now().Add(24 * time.Hour).Unix()}), nil)
		if got := reasonOf(t, v, token); got != "" {
			t.Fatalf("refused for %q", got)
		}
		s.becomes(setOf(publicKey("another", edKey(), nil)), nil)
		time.Sleep(refreshAfter + time.Second) //nolint:forbidigo // in a bubble
		if got := reasonOf(t, v, token); got != "" {
			t.Errorf("the request that begins the refresh: refused for %q", got)
		}
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		if got := reasonOf(t, v, token); got != ReasonKey {
			t.Errorf("after the refresh: refused for %q", got)
		}
	})
}

func TestTokensThatAreRememberedAreBounded(t *testing.T) {
	v := newVerifier(t, clusterAuth(), nil)
	for i := range maxSeen + 10 {
		if got := reasonOf(t, v, sign(edKey(), jose.EdDSA, "ed", claimsOf(map[string]any{"jti": i}), nil)); got != "" {
			t.Fatalf("refused for %q", got)
		}
	}
	if got := len(v.seen.tokens); got > maxSeen {
		t.Errorf("%d are remembered", got)
	}
}

func TestRefusedTokensAreNotRemembered(t *testing.T) {
	v := newVerifier(t, clusterAuth(), nil)
	_ = reasonOf(t, v, sign(otherRSAKey(), jose.RS256, "rsa", claimsOf(nil), nil))
	if got := len(v.seen.tokens); got != 0 {
		t.Errorf("%d are remembered", got)
	}
}

// The call path has a budget, and this is its first step.
func TestAKnownTokenCostsNoMemory(t *testing.T) {
	v := newVerifier(t, clusterAuth(), nil)
	r := request(sign(rsaKey(), jose.RS256, "rsa", claimsOf(nil), nil))
	if got := testing.AllocsPerRun(100, func() {
		if _, err := v.Verify(r); err != nil {
			t.Fatal(err)
		}
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkVerify(b *testing.B) {
	for name, token := range map[string]string{
		"RS256":   sign(rsaKey(), jose.RS256, "rsa", claimsOf(nil), nil),
		"ES256":   sign(p256Key(), jose.ES256, "p256", claimsOf(nil), nil),
		"garbage": sign(otherRSAKey(), jose.RS256, "rsa", claimsOf(nil), nil),
	} {
		v := newVerifier(b, clusterAuth(), nil)
		r := request(token)
		b.Run(name+"/first", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				clear(v.seen.tokens)
				_, _ = v.Verify(r)
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = v.Verify(r)
			}
		})
	}
}

package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxSeen is how many verified tokens are remembered, about half a KiB each.
const maxSeen = 1024

// seenTokens remembers tokens that were verified, by their digest, so that a caller's next request costs no signature. What
// is remembered ends with the token, and with the keys it was verified by: a key that its issuer withdrew lets nobody in.
type seenTokens struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]seenToken
}

type seenToken struct {
	principal Principal
	until     time.Time
	source    *keySource
	keys      *keySet
}

func newSeenTokens() *seenTokens {
	return &seenTokens{tokens: map[[sha256.Size]byte]seenToken{}}
}

func digestOf(token string) [sha256.Size]byte {
	var usual [2048]byte // most tokens fit, and then nothing is allocated
	return sha256.Sum256(append(usual[:0], token...))
}

func (s *seenTokens) get(digest [sha256.Size]byte) (Principal, bool) {
	s.mu.RLock()
	t, ok := s.tokens[digest]
	s.mu.RUnlock()
	if !ok || !time.Now().Before(t.until) || t.source.current() != t.keys {
		return Principal{}, false
	}
	return t.principal, true
}

func (s *seenTokens) put(digest [sha256.Size]byte, t seenToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Starting over is rare, and costs each caller one signature.
	if len(s.tokens) >= maxSeen {
		clear(s.tokens)
	}
	s.tokens[digest] = t
}

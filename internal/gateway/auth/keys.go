package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

const (
	// maxKeys is how many keys an issuer may have.
	maxKeys = 100
	// minRSA and maxRSA bound an RSA modulus, in bits: a shorter one is weak (RFC 7518, section 3.3), a longer one slow.
	minRSA, maxRSA = 2048, 8192
)

// keySet is what one issuer signs with. It never changes.
type keySet struct {
	keys   []key
	digest [sha256.Size]byte
}

type key struct {
	id     string
	public any
	// algorithms are what a token verified by this key may have been signed with.
	algorithms []jose.SignatureAlgorithm
}

// parseKeys reads a JSON Web Key Set (RFC 7517). Keys it cannot use are left out, as the RFC wants it: symmetric, private,
// weak, of other types, or for encryption. A set without any other is an error.
func parseKeys(data []byte) (*keySet, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("not a JSON Web Key Set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the JSON Web Key Set has more than %d keys", maxKeys)
	}
	keys := &keySet{digest: sha256.Sum256(data)}
	for _, raw := range set.Keys {
		var jwk jose.JSONWebKey
		if err := json.Unmarshal(raw, &jwk); err != nil || jwk.Use != "" && jwk.Use != "sig" {
			continue
		}
		able := algorithmsOf(jwk.Key)
		if jwk.Algorithm != "" {
			able = slices.DeleteFunc(able, func(a jose.SignatureAlgorithm) bool { return string(a) != jwk.Algorithm })
		}
		if len(able) > 0 {
			keys.keys = append(keys.keys, key{id: jwk.KeyID, public: jwk.Key, algorithms: able})
		}
	}
	if len(keys.keys) == 0 {
		return nil, errors.New("the JSON Web Key Set has no public key for RS*, PS*, ES* or EdDSA signatures")
	}
	return keys, nil
}

// algorithmsOf ties algorithms to a public key's type, so that a token cannot choose how a key is used.
func algorithmsOf(public any) []jose.SignatureAlgorithm {
	switch public := public.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits >= minRSA && bits <= maxRSA {
			return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
		}
	case *ecdsa.PublicKey:
		switch public.Curve {
		case elliptic.P256():
			return []jose.SignatureAlgorithm{jose.ES256}
		case elliptic.P384():
			return []jose.SignatureAlgorithm{jose.ES384}
		case elliptic.P521():
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}

// find is the one key a token can have been signed with, or nil. A token that names no key is signed by the only one that
// has its algorithm; where a name is there twice (RFC 7517, section 4.5), the algorithm decides as well.
func (s *keySet) find(t *token) *key {
	var found *key
	for i := range s.keys {
		k := &s.keys[i]
		if t.keyID != "" && k.id != t.keyID || !slices.Contains(k.algorithms, t.algorithm) {
			continue
		}
		if found != nil {
			return nil
		}
		found = k
	}
	return found
}

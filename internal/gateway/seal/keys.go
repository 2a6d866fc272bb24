package seal

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/mcp-operator/mcp-operator/internal/gateway/mounted"
)

const (
	// minKey and maxKey bound the size of a key file, in bytes.
	minKey = 32
	maxKey = 4 << 10
	// maxID is the longest key id, in bytes.
	maxID = 64
	// currentFile names the key that seals.
	currentFile = "current"
)

type keySet struct {
	current *key
	byID    map[string]*key
}

type key struct {
	id       string
	material []byte

	mu sync.Mutex
	// ciphers are derived once per purpose.
	ciphers map[string]cipher.AEAD
}

// parseKeys makes keys of the files of a folder.
func parseKeys(files mounted.Files) (*keySet, error) {
	files = maps.Clone(files)
	current, isChosen := files[currentFile]
	delete(files, currentFile)
	if len(files) == 0 {
		return nil, errors.New("there is no key: put a file of at least 32 random bytes there")
	}
	ids := slices.Sorted(maps.Keys(files))
	for _, id := range ids {
		if !isID(id) {
			return nil, fmt.Errorf("file name %q is no key id: use 1 to %d of A-Z, a-z, 0-9, '-', '_', '.'", id, maxID)
		}
		if len(files[id]) < minKey {
			return nil, fmt.Errorf("key %q has %d bytes: at least %d are needed", id, len(files[id]), minKey)
		}
	}
	id := ids[len(ids)-1]
	if isChosen {
		id = strings.TrimSpace(string(current))
		if _, exists := files[id]; !exists {
			return nil, errors.New("the file \"current\" names no key of the folder")
		}
	}
	return newKeySet(files, id), nil
}

// newKeySet makes keys of valid files; current is one of them.
func newKeySet(files mounted.Files, current string) *keySet {
	set := &keySet{byID: make(map[string]*key, len(files))}
	for id, material := range files {
		set.byID[id] = &key{id: id, material: material, ciphers: map[string]cipher.AEAD{}}
	}
	set.current = set.byID[current]
	return set
}

// cipher is the key's cipher for one purpose.
func (k *key) cipher(purpose string) cipher.AEAD {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.ciphers[purpose]; ok {
		return known
	}
	derived, err := hkdf.Key(sha256.New, k.material, nil, "mcp-gateway seal "+version+" "+purpose, chacha20poly1305.KeySize)
	if err != nil {
		panic(err) // only for a key longer than HKDF gives
	}
	// A nonce of 192 bits: a random one never repeats, however long a key lives and however many replicas use it.
	made, err := chacha20poly1305.NewX(derived)
	if err != nil {
		panic(err) // only for a key of another size
	}
	k.ciphers[purpose] = made
	return made
}

func isID(name string) bool {
	for _, c := range name {
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !isLetter && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return name != "" && len(name) <= maxID
}

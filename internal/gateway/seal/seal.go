// Package seal makes strings that a client keeps for the gateway, such as session ids: encrypted and authenticated, bound to
// what they are for, to the caller they were given to and to a time, so that any replica can open them and nobody else.
package seal

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/mcp-operator/mcp-operator/internal/gateway/mounted"
)

const (
	// MaxPlaintext is the most that can be sealed, in bytes. Sealed that is 7 KiB of text: clients and proxies refuse
	// headers of more than 8 KiB.
	MaxPlaintext = 5 << 10
	// MaxLength is longer than any sealed string; what is longer is refused unseen.
	MaxLength = 48 << 10

	// version begins each sealed string: version "." key id "." base64url(nonce, ciphertext). The plaintext begins with the
	// expiry, big-endian Unix seconds; the subject is the associated data, and the purpose is in the cipher's key.
	version    = "1"
	expirySize = 8
)

var (
	// ErrInvalid is every failure of Open: a caller who forges learns nothing from it.
	ErrInvalid = errors.New("the sealed string is not valid")
	// ErrTooLarge is returned by Seal for more than MaxPlaintext.
	ErrTooLarge = fmt.Errorf("more than %d bytes cannot be sealed", MaxPlaintext)
)

// Keyring seals with one key and opens with all it has. It is safe for concurrent use.
type Keyring struct {
	// keys is behind a pointer so that no way of formatting a Keyring reaches them.
	keys *mounted.Value[*keySet]
}

// Load reads the keys of a folder: each file is a key of 32 to 4096 bytes, and its name (1 to 64 of A-Z, a-z, 0-9, '-', '_',
// '.') the key's id. The key named by the content of the file "current" seals, or without that file the one whose name is
// the last in byte order; all of them open. It fails if there is no key: there is none by default.
//
// The folder is read again when it changes. Keys that are not fit then are told to report, which may be nil, and the last
// good ones are used on. To change keys without a break, add one that is not current, wait until every replica has it, and
// make it current; remove the old one once what it sealed has expired.
func Load(folder string, report func(error)) (*Keyring, error) {
	parse := func(files mounted.Files) (*keySet, error) {
		keys, err := parseKeys(files)
		if err != nil {
			return nil, fmt.Errorf("sealing keys in %s: %w", folder, err)
		}
		return keys, nil
	}
	k := &Keyring{keys: mounted.New(mounted.Folder(maxKey, folder), parse, report)}
	if _, err := k.keys.Get(); err != nil {
		return nil, err
	}
	return k, nil
}

// Ephemeral makes a random key for a single process that runs alone: what it seals dies with it.
func Ephemeral() *Keyring {
	key := make([]byte, minKey)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the process instead
	keys := newKeySet(mounted.Files{"ephemeral": key}, "ephemeral")
	return &Keyring{keys: mounted.New(
		func() (mounted.Files, error) { return mounted.Files{}, nil },
		func(mounted.Files) (*keySet, error) { return keys, nil }, nil)}
}

// Seal makes a string of visible ASCII, safe in a URL, that Open with the same purpose and subject turns back into
// plaintext until expiry, which counts in whole seconds. Purposes are the program's own constants, each with a key of its
// own; the subject is the caller. Sealing the same twice gives two strings. It fails with ErrTooLarge only.
func (k *Keyring) Seal(purpose, subject string, plaintext []byte, expiry time.Time) (string, error) {
	if len(plaintext) > MaxPlaintext {
		return "", ErrTooLarge
	}
	keys, _ := k.keys.Get() // the error was told to report, and the last good keys are used on
	key := keys.current
	const sizeOfRest = chacha20poly1305.Overhead + expirySize
	sealed := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(plaintext)+sizeOfRest)
	_, _ = rand.Read(sealed) // never fails: crypto/rand ends the process instead
	open, err := binary.Append(make([]byte, 0, expirySize+len(plaintext)), binary.BigEndian, expiry.Unix())
	if err != nil {
		panic(err) // only for a type of no fixed size
	}
	open = append(open, plaintext...)
	sealed = key.cipher(purpose).Seal(sealed, sealed, open, []byte(subject))
	return version + "." + key.id + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns what was sealed. Whatever is wrong with the string, its purpose, its subject or its age, it is ErrInvalid.
func (k *Keyring) Open(purpose, subject, sealed string) ([]byte, error) {
	if len(sealed) > MaxLength {
		return nil, ErrInvalid
	}
	rest, isOurs := strings.CutPrefix(sealed, version+".")
	dot := strings.LastIndexByte(rest, '.')
	if !isOurs || dot < 0 {
		return nil, ErrInvalid
	}
	keys, _ := k.keys.Get() // the error was told to report, and the last good keys are used on
	key, isKnown := keys.byID[rest[:dot]]
	if !isKnown {
		return nil, ErrInvalid
	}
	data, err := decode(rest[dot+1:])
	if err != nil || len(data) < chacha20poly1305.NonceSizeX {
		return nil, ErrInvalid
	}
	nonce, data := data[:chacha20poly1305.NonceSizeX], data[chacha20poly1305.NonceSizeX:]
	open, err := key.cipher(purpose).Open(data[:0], nonce, data, []byte(subject))
	if err != nil {
		return nil, ErrInvalid
	}
	var expiry int64
	if _, err := binary.Decode(open, binary.BigEndian, &expiry); err != nil || time.Now().Unix() >= expiry {
		return nil, ErrInvalid
	}
	return open[expirySize:], nil
}

// decode takes exactly what Seal encodes, so that no two strings mean the same: the decoder alone would skip line feeds.
func decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, ErrInvalid
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}

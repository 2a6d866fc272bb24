package wire

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"
)

// key is where the inside of a key is in the text that is checked.
type key struct {
	start, end uint32
	escaped    bool
}

// keyStack is the keys of the objects that a checker is inside of, outermost first. It asks for memory only for more than most
// messages have on one path.
type keyStack struct {
	n    int
	near [32]key
	far  []key
}

func (s *keyStack) at(i int) key {
	if i < len(s.near) {
		return s.near[i]
	}
	return s.far[i-len(s.near)]
}

func (s *keyStack) push(k key) {
	if s.n < len(s.near) {
		s.near[s.n] = k
	} else {
		s.far = append(s.far, k)
	}
	s.n++
}

// pop leaves the first n keys.
func (s *keyStack) pop(n int) {
	s.n = n
	s.far = s.far[:max(0, n-len(s.near))]
}

// fewKeys is the number of keys that are compared with one another; an object with more gets a set.
const fewKeys = 16

// remember adds a key to those of its object, which begin at base, and fails if it is there already or holds NUL.
func (c *checker) remember(k key, base int, seen *keySet) bool {
	inside := c.insideOf(k)
	if k.escaped && bytes.IndexByte(inside, 0) >= 0 {
		c.cause = badKey
		return false
	}
	if c.keys.n-base < fewKeys {
		for i := base; i < c.keys.n; i++ {
			if bytes.Equal(c.insideOf(c.keys.at(i)), inside) {
				c.cause = duplicateKey
				return false
			}
		}
		c.keys.push(k)
		return true
	}
	if seen.slots == nil {
		for i := base; i < c.keys.n; i++ {
			seen.add(c, c.insideOf(c.keys.at(i)), i)
		}
	}
	if !seen.add(c, inside, c.keys.n) {
		c.cause = duplicateKey
		return false
	}
	c.keys.push(k)
	return true
}

// insideOf returns what a key stands for.
func (c *checker) insideOf(k key) []byte {
	if k.escaped {
		return decodeText(nil, c.data[k.start:k.end])
	}
	return c.data[k.start:k.end]
}

// keySet is the keys of one large object: a hash table of their places in checker.keys, with a seed nobody can guess.
type keySet struct {
	slots []uint64 // the upper half of the hash, and the place plus 1; zero is free
	used  int
}

var keySeed = maphash.MakeSeed()

// add adds the key at a place, and returns false if its like is there already.
func (s *keySet) add(c *checker, inside []byte, at int) bool {
	if 2*s.used >= len(s.slots) {
		s.grow(c)
	}
	hash := maphash.Bytes(keySeed, inside)
	mask := len(s.slots) - 1
	i := int(hash) & mask //nolint:gosec // any bits will do
	for ; s.slots[i] != 0; i = (i + 1) & mask {
		if s.slots[i]>>32 == hash>>32 && bytes.Equal(c.insideOf(c.keys.at(placeIn(s.slots[i]))), inside) {
			return false
		}
	}
	s.slots[i] = hash>>32<<32 | uint64(at+1) //nolint:gosec // there are fewer keys than bytes of text
	s.used++
	return true
}

// placeIn returns the place of the key in a slot.
func placeIn(slot uint64) int { return int(slot&(1<<32-1)) - 1 }

func (s *keySet) grow(c *checker) {
	old := s.slots
	s.slots = make([]uint64, max(64, 2*len(old)))
	mask := len(s.slots) - 1
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		i := int(maphash.Bytes(keySeed, c.insideOf(c.keys.at(placeIn(slot))))) & mask //nolint:gosec // any bits will do
		for s.slots[i] != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = slot
	}
}

// vocabulary is the keys an object of the protocol gives a meaning to, and that of the object under one of them.
type vocabulary struct {
	keys   []string
	within int // of keys
	inside *vocabulary
}

// Places of the members of an envelope in envelope.keys.
const (
	inVersion = iota
	inID
	inMethod
	inParams
	inResult
	inError
	envelopeLen
)

// paramKeys are the members of params whose places a message remembers, paramsLen of them; the vocabulary has them first.
var paramKeys = [paramsLen]string{metaKey, "name", "uri", "arguments"}

const paramsLen = 4

// envelope is the members JSON-RPC 2.0 gives a meaning to, with those of params and params._meta that are decided on.
var envelope = vocabulary{
	keys:   []string{"jsonrpc", "id", "method", "params", "result", "error"},
	within: inParams,
	inside: &vocabulary{
		keys: []string{
			metaKey, "name", "uri", "arguments", "cursor", "level", "requestId", "progressToken",
			"protocolVersion", "capabilities", "clientInfo", "requestState", "inputResponses",
		},
		inside: &vocabulary{
			keys: []string{
				"progressToken", MetaProtocolVersion, MetaClientCapabilities, MetaClientInfo, MetaLogLevel, MetaServerInfo,
				MetaSubscriptionID, "traceparent", "tracestate", "baggage",
			},
			within: unknownName,
		},
	},
}

// What lookUp says of a key that is not in the vocabulary.
const (
	unknownName = -1
	misspelt    = -2
)

// lookUp returns the place of a key among names, and the names inside of its value.
func (c *checker) lookUp(k key, names *vocabulary) (*vocabulary, int) {
	inside := c.insideOf(k)
	for i, name := range names.keys {
		if string(inside) != name {
			continue
		}
		if i == names.within {
			return names.inside, i
		}
		return nil, i
	}
	if foldsToAny(inside, names.keys) {
		return nil, misspelt
	}
	return nil, unknownName
}

// Misspelt reports whether an object has a key that is one of names, which are ASCII, but for its case. There are readers to
// whom that makes no difference.
func Misspelt(object json.RawMessage, names ...string) bool {
	for i := firstMember(object); i >= 0; {
		var m member
		if m, i = nextMember(object, i); m.end == 0 {
			break
		}
		inside := object[m.key+1 : m.keyEnd-1]
		if indexEscape(inside) >= 0 {
			inside = decodeText(nil, inside)
		}
		if !slices.Contains(names, string(inside)) && foldsToAny(inside, names) {
			return true
		}
	}
	return false
}

func foldsToAny(s []byte, names []string) bool {
	for _, name := range names {
		if foldsTo(s, name) {
			return true
		}
	}
	return false
}

// foldsTo reports whether s is name, which is ASCII, but for its case. Some characters outside of ASCII are another case of one in it.
func foldsTo(s []byte, name string) bool {
	for i := range len(name) {
		if i >= len(s) {
			return false
		}
		if s[i] >= utf8.RuneSelf {
			return len(s) <= utf8.UTFMax*len(name) && strings.EqualFold(string(s), name)
		}
		if lower(s[i]) != lower(name[i]) {
			return false
		}
	}
	return len(s) == len(name)
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b | 0x20
	}
	return b
}

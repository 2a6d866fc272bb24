package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// collector sorts the entries of one list into valid and invalid ones.
type collector struct {
	kind    Kind
	digests *mcp.Digester
	names   map[string]bool
	entries []Entry
	invalid []Invalid
}

// digestBytes is what may be looked at to digest the entries of one list, as internal/mcp counts it.
const digestBytes = 64 << 20

func newCollector(k Kind) *collector {
	return &collector{kind: k, digests: mcp.NewDigester(digestBytes), names: map[string]bool{}}
}

func (c *collector) add(raw json.RawMessage) {
	e, err := readEntry(c.kind, raw, c.digests)
	switch {
	case err != nil:
		c.drop(raw, err.Error())
	case c.names[e.Name]:
		c.drop(raw, "listed before under the same "+lists[c.kind].key)
	default:
		c.names[e.Name] = true
		c.entries = append(c.entries, e)
	}
}

func (c *collector) drop(raw json.RawMessage, reason string) {
	c.invalid = append(c.invalid, Invalid{Name: shown(wire.Field(raw, lists[c.kind].key)), Reason: reason})
}

// sum computes the sum of each entry. One that is too much for the budget is dropped.
func (c *collector) sum() {
	kept := c.entries[:0]
	for _, e := range c.entries {
		var err error
		if e.sum, err = c.digests.Value(e.Raw); err != nil {
			c.drop(e.Raw, err.Error())
			continue
		}
		kept = append(kept, e)
	}
	c.entries = kept
}

// pack copies what is kept into memory of its size, so that it holds on to nothing of the responses that it came in.
func (c *collector) pack() {
	size := 0
	for i := range c.entries {
		size += len(c.entries[i].Raw)
	}
	packed, entries := make([]byte, 0, size), make([]Entry, 0, len(c.entries))
	for _, e := range c.entries {
		at := len(packed)
		packed = append(packed, e.Raw...)
		e.Raw = packed[at:len(packed):len(packed)]
		entries = append(entries, e)
	}
	c.entries = entries
}

// digest covers what is served of a catalog, in an order of its own: servers that keep their tools in a map list them in
// another order each time.
func (c *Catalog) digest() string {
	var sums [][]byte
	for k, entries := range c.Entries {
		for _, e := range entries {
			sums = append(sums, append([]byte{byte(k)}, e.sum[:]...))
		}
	}
	slices.SortFunc(sums, bytes.Compare)
	sum := sha256.Sum256(bytes.Join(sums, nil))
	return "sha256:" + hex.EncodeToString(sum[:])
}

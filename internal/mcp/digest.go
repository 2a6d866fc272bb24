package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Digester computes digests of definitions, for a probe and for whoever else read them. What a text can make it hold is a few bytes
// for each member of the objects it is inside of.
type Digester struct {
	sum hash.Hash
	out *wire.Canonical
}

// NewDigester makes a Digester that looks at no more than budget bytes in all; see [Limits.DigestBytes].
func NewDigester(budget int64) *Digester {
	sum := sha256.New()
	return &Digester{sum: sum, out: wire.NewCanonical(sum, budget)}
}

// digestedMembers are the members of a tool that its digest covers, sorted.
var digestedMembers = []string{"annotations", "description", "inputSchema", "name", "outputSchema", "title"}

// Tool returns [Tool.Digest] of a definition, which is JSON that was checked, without white space around it. The error is
// wire.ErrBudget or wire.ErrDuplicateKey.
func (d *Digester) Tool(definition json.RawMessage) (string, error) {
	sum, err := d.tool(definition)
	if err != nil {
		return "", err
	}
	return digestText(sum), nil
}

// tool is the SHA-256 over the canonical JSON of the digested members.
func (d *Digester) tool(definition json.RawMessage) (sum [sha256.Size]byte, err error) {
	values, err := wire.Pick(definition, digestedMembers...)
	if err != nil {
		return sum, err
	}
	d.sum.Reset()
	if err := d.out.Object(digestedMembers, values); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(d.sum.Sum(nil)), nil
}

// digestOf is the SHA-256 over all tools, which are sorted: each one's name, which
// has no zero byte, a zero byte, and its digest.
func digestOf(tools []listedTool) string {
	sum := sha256.New()
	for _, tool := range tools {
		sum.Write(append([]byte(tool.name), 0))
		sum.Write(tool.digest[:])
	}
	return digestText([sha256.Size]byte(sum.Sum(nil)))
}

// digestText is how a digest is shown.
func digestText(sum [sha256.Size]byte) string { return "sha256:" + hex.EncodeToString(sum[:]) }

// Value returns the SHA-256 over the canonical JSON of a whole value, to which key order, white space and the way strings are
// escaped make no difference. The value and the error are as those of Tool.
func (d *Digester) Value(value json.RawMessage) (sum [sha256.Size]byte, err error) {
	d.sum.Reset()
	if err := d.out.Value(value); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(d.sum.Sum(nil)), nil
}

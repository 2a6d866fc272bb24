package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxToolName is MCP's limit of a tool's name.
const maxToolName = 128

// origin is what a name is made of. A name that several operations claim goes to the one of the lowest origin, so that no other
// operation that is added takes the name of one that has it as its operationId.
type origin int

const (
	byID      origin = iota // the operationId as it is
	byWords                 // the operationId, made legal
	byRequest               // method and path
)

// name sets the names of operations.
func name(clock *clock, operations []operation, prefix string) error {
	claims := map[string][]int{}
	for i := range operations {
		op := &operations[i]
		if err := clock.now(); err != nil { // an operation that many paths share may have a long one
			return err
		}
		op.name, op.origin = claim(op)
		op.name = shorten(prefix + op.name)
		claims[op.name] = append(claims[op.name], i)
	}
	for wanted, claimants := range claims {
		slices.SortStableFunc(claimants, func(a, b int) int { return int(operations[a].origin) - int(operations[b].origin) })
		for _, i := range claimants[1:] {
			op := &operations[i]
			op.name = wanted[:min(len(wanted), maxToolName-nameHash-1)] + "_" + hashOf(op.method+" "+op.path)
		}
	}
	return nil
}

func claim(op *operation) (string, origin) {
	id := text(op.object["operationId"])
	legal := words(id, isNameRune)
	switch {
	case id != "" && legal == id:
		return id, byID
	case legal != "":
		return legal, byWords
	}
	parts := []string{strings.ToLower(op.method)}
	for segment := range strings.SplitSeq(op.path, "/") {
		inner, isVariable := strings.CutPrefix(segment, "{")
		if isVariable {
			segment = "by_" + inner
		}
		if word := words(segment, isWordRune); word != "" {
			parts = append(parts, word)
		}
	}
	return strings.Join(parts, "_"), byRequest
}

// nameHash is the length of a hash in a name.
const nameHash = 8

// shorten keeps a name within the limit; what is cut off is told by a hash.
func shorten(name string) string {
	if len(name) <= maxToolName {
		return name
	}
	return name[:maxToolName-nameHash-1] + "_" + hashOf(name)
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:nameHash/2])
}

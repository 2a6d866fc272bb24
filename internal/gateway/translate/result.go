package translate

import (
	"encoding/json"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// addedMembers are what results of 2026-07-28 have and older ones lack, in the order they are added in. The first one goes into
// every result, all of them into those a client may keep.
var addedMembers = [...]struct {
	key   string
	value json.RawMessage
}{
	{"resultType", json.RawMessage(`"complete"`)},
	{"ttlMs", json.RawMessage(`0`)},
	{"cacheScope", json.RawMessage(`"private"`)},
}

// added returns how many of addedMembers belong in a result of the method.
func added(method string) int {
	switch method {
	case "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read":
		return len(addedMembers)
	}
	return 1
}

const resourcesRead = "resources/read"

// CannotCarry is the answer in place of a result that asks a legacy client for input.
func CannotCarry(id json.RawMessage) *wire.Message {
	return wire.NewError(id, wire.CodeInternal,
		"the server asks for input, which takes a client of protocol version "+wire.Version20260728+"; nothing was completed", nil)
}

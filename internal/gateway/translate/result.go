package translate

import (
	"encoding/json"
	"strconv"

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

// ResultToModern returns the response of a legacy backend to a request of the method as one for a modern client. A result that
// is no object, and everything the backend said itself, stays.
func ResultToModern(m *wire.Message, method string) *wire.Message {
	if notFound(m, method) {
		return wire.NewError(m.ID, wire.CodeInvalidParams, messageOf(m.Error), wire.Field(m.Error, "data"))
	}
	if !wire.IsObject(m.Result) {
		return m
	}
	var edits []wire.Edit
	for _, member := range addedMembers[:added(method)] {
		if m.ResultField(member.key) == nil {
			edits = append(edits, wire.SetResult(member.key, member.value))
		}
	}
	if len(edits) == 0 {
		return m
	}
	return m.With(edits...)
}

// notFound reports whether a response says by its old code that there is no such resource.
func notFound(m *wire.Message, method string) bool {
	return method == resourcesRead && string(wire.Field(m.Error, "code")) == strconv.Itoa(wire.CodeResourceNotFoundLegacy)
}

const resourcesRead = "resources/read"

func messageOf(rpcError json.RawMessage) string {
	message, _ := wire.String(wire.Field(rpcError, "message"))
	return message
}

// ResultToLegacy returns the response of a modern backend as one for a legacy client. A result other than a complete one asks
// the client to go on in a way its version does not have; it becomes [CannotCarry].
func ResultToLegacy(m *wire.Message) *wire.Message {
	if kind := m.ResultField("resultType"); len(kind) > 0 && kind[0] == '"' && !wire.TextIs(kind, "complete") {
		return CannotCarry(m.ID)
	}
	return m
}

// CannotCarry is the answer in place of a result that asks a legacy client for input.
func CannotCarry(id json.RawMessage) *wire.Message {
	return wire.NewError(id, wire.CodeInternal,
		"the server asks for input, which takes a client of protocol version "+Version20260728+"; nothing was completed", nil)
}

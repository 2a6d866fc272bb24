package translate

import (
	"encoding/json"
	"strconv"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// resultToModern is what [StreamToModern] does, to a message that is held. The tests compare the two.
func resultToModern(m *wire.Message, method string) *wire.Message {
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

func messageOf(rpcError json.RawMessage) string {
	message, _ := wire.String(wire.Field(rpcError, "message"))
	return message
}

// resultToLegacy is what [StreamToLegacy] does, to a message that is held.
func resultToLegacy(m *wire.Message) *wire.Message {
	if kind := m.ResultField("resultType"); len(kind) > 0 && kind[0] == '"' && !wire.TextIs(kind, "complete") {
		return CannotCarry(m.ID)
	}
	return m
}

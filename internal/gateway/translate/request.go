package translate

import (
	"encoding/json"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// ToModern returns a legacy client's request as one of the modern version given: with the _meta keys in which it says what the
// session said before. Whatever the client itself put under those keys is replaced. An empty logLevel asks for no log messages.
func ToModern(m *wire.Message, c backend.Client, version, logLevel string) *wire.Message {
	edits := []wire.Edit{
		wire.SetMeta(wire.MetaProtocolVersion, wire.Quote(version)),
		wire.SetMeta(wire.MetaClientCapabilities, ClientCapabilities(c.Capabilities)),
		wire.RemoveMeta(wire.MetaClientInfo),
		wire.RemoveMeta(wire.MetaLogLevel),
	}
	if wire.IsObject(c.Info) {
		edits[2] = wire.SetMeta(wire.MetaClientInfo, c.Info)
	}
	if logLevel != "" {
		edits[3] = wire.SetMeta(wire.MetaLogLevel, wire.Quote(logLevel))
	}
	return m.With(edits...)
}

// ToLegacy returns a modern client's request as a legacy one: without the _meta keys that are the session's affair there.
func ToLegacy(m *wire.Message) *wire.Message {
	return m.With(
		wire.RemoveMeta(wire.MetaProtocolVersion),
		wire.RemoveMeta(wire.MetaClientCapabilities),
		wire.RemoveMeta(wire.MetaClientInfo),
		wire.RemoveMeta(wire.MetaLogLevel),
	)
}

// ClientCapabilities returns what is left of a client's capabilities across versions, an object. Elicitation, sampling and
// roots need the server to ask the client, and tasks differ: a server must not count on them. What is not known here is left
// out for the same reason.
func ClientCapabilities(capabilities json.RawMessage) json.RawMessage {
	return object(capabilities, func(key string, value json.RawMessage) json.RawMessage {
		if key == "extensions" {
			return carriedExtensions(value)
		}
		return nil
	})
}

// carriedExtensions returns those of a capability object's extensions whose whole traffic is requests of the client and their
// results, which pass between versions; nil if there are none.
func carriedExtensions(extensions json.RawMessage) json.RawMessage {
	const apps = "io.modelcontextprotocol/ui" // MCP Apps: metadata of tools, and resources to read
	carried := object(extensions, func(key string, value json.RawMessage) json.RawMessage {
		if key == apps {
			return value
		}
		return nil
	})
	if len(carried) == len(`{}`) {
		return nil
	}
	return carried
}

// object returns a JSON object with the members of another one, each value replaced by what keep returns for it, and left out
// if that is nil. What is no object has no members.
func object(raw json.RawMessage, keep func(key string, value json.RawMessage) json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	for key, value := range wire.Fields(raw) {
		if value = keep(key, value); value != nil {
			out = appendMember(out, key, value)
		}
	}
	return append(out, '}')
}

// appendMember appends a member to the text of an object that is still open.
func appendMember(out []byte, key string, value json.RawMessage) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	out = append(out, wire.Quote(key)...)
	out = append(out, ':')
	return append(out, value...)
}

package translate

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Action is what a gateway does with a client's request.
type Action int

const (
	// Forward sends it to the backend: both sides know the method, or neither is known to, and the backend tells.
	Forward Action = iota
	// Answer answers it in the gateway: the method is about client and gateway, or the other version does it another way.
	Answer
	// Refuse answers [MethodNotFound]: the client's version has no such method, or what it is about cannot be carried.
	Refuse
)

// oneEra are the methods that exist in one era only. What most of them are about the other one does in another way: a level of
// logging is in the _meta of each request there, and subscribing is a matter of subscriptions/listen.
var oneEra = map[string]backend.Era{
	"initialize":            backend.Legacy,
	"ping":                  backend.Legacy,
	"logging/setLevel":      backend.Legacy,
	"resources/subscribe":   backend.Legacy,
	"resources/unsubscribe": backend.Legacy,
	"server/discover":       backend.Modern,
	"subscriptions/listen":  backend.Modern,
}

// Method returns what becomes of a client's request to a backend. Tasks are an experiment in 2025-11-25 and an extension in
// 2026-07-28, under the same names but different, so they pass within an era only.
func Method(name string, client, server backend.Era) Action {
	era, one := oneEra[name]
	switch {
	case one && era != client:
		return Refuse
	case name == "initialize" || name == "ping" || name == "server/discover":
		return Answer
	case one && client != server:
		return Answer
	case client != server && strings.HasPrefix(name, "tasks/"):
		return Refuse
	}
	return Forward
}

// MethodNotFound is the answer to a request that is refused. In 2026-07-28 it goes with HTTP status 404.
func MethodNotFound(id json.RawMessage, method string) *wire.Message {
	const longest = 64
	if len(method) > longest {
		method = method[:longest] + "…"
	}
	return wire.NewError(id, wire.CodeMethodNotFound, "method "+strconv.Quote(method)+" is not supported", nil)
}

// AnswerServer is the gateway's own answer to a request of a backend, for sessions in which no client is there to answer: ping
// is answered, and nothing else was offered. It is nil for other messages.
func AnswerServer(m *wire.Message) *wire.Message {
	switch {
	case m.Kind != wire.Request:
		return nil
	case m.Method == "ping":
		return wire.NewResult(m.ID, json.RawMessage(`{}`))
	}
	return MethodNotFound(m.ID, m.Method)
}

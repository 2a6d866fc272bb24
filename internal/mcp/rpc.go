package mcp

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// errNotRPC is returned for JSON that is no message.
var errNotRPC = errors.New("not a JSON-RPC 2.0 message")

// rpcMessage is the envelope of one JSON-RPC 2.0 message. Its values are parts
// of the text it was read from.
type rpcMessage struct {
	id     json.RawMessage // nil if absent
	method json.RawMessage // nil for responses
	result json.RawMessage // nil unless it is a result
	err    *rpcError       // nil unless it is an error
}

// rpcError is the error of a JSON-RPC response.
type rpcError struct {
	code    int64
	message string // cleaned, at most maxRPCMessageBytes
	data    json.RawMessage
}

// maxRPCMessageBytes is how much of a server's error message is shown.
const maxRPCMessageBytes = 256

// envelopeKeys are the members JSON-RPC 2.0 gives a meaning to.
var envelopeKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// parseMessage reads one JSON-RPC message. Batches are none. A key twice, or one
// that differs from a known one only in case, makes a message that two readers
// understand differently, and is refused.
func parseMessage(data []byte, limits Limits) (rpcMessage, error) {
	v, err := wire.CheckSyntax(data, wire.Limits{Bytes: len(data), Depth: limits.Depth, Members: limits.Members})
	if err != nil {
		return rpcMessage{}, err
	}
	if !wire.IsObject(v) || wire.Misspelt(v, envelopeKeys...) {
		return rpcMessage{}, errNotRPC
	}
	f, err := wire.Pick(v, envelopeKeys...)
	if err != nil {
		return rpcMessage{}, err
	}
	m := rpcMessage{id: f[1], method: f[2], result: f[4]}
	if f[5] != nil {
		if m.err, err = parseRPCError(f[5]); err != nil {
			return rpcMessage{}, err
		}
	}
	return m, checkEnvelope(f[0], m)
}

// checkEnvelope demands a request, a notification, a result or an error, and
// nothing in between.
func checkEnvelope(version json.RawMessage, m rpcMessage) error {
	if !wire.TextIs(version, "2.0") {
		return errNotRPC
	}
	kinds := 0
	for _, present := range []bool{wire.IsText(m.method), m.result != nil, m.err != nil} {
		if present {
			kinds++
		}
	}
	if kinds != 1 || m.method != nil && !wire.IsText(m.method) {
		return errNotRPC
	}
	return nil
}

func parseRPCError(v json.RawMessage) (*rpcError, error) {
	f, err := wire.Pick(v, "code", "message", "data")
	if err != nil {
		return nil, err
	}
	code, err := strconv.ParseInt(string(f[0]), 10, 64)
	if err != nil || !wire.IsText(f[1]) {
		return nil, errNotRPC
	}
	return &rpcError{code: code, message: cleanLine(wire.Text(f[1], 4*maxRPCMessageBytes), maxRPCMessageBytes), data: f[2]}, nil
}

// supported returns the protocol versions a refusal lists in data.supported.
func (e *rpcError) supported() []string {
	return textList(wire.Field(e.data, "supported"))
}

// textList returns the strings of an array, as many as a list of protocol
// versions may have.
func textList(v json.RawMessage) []string {
	var out []string
	for element := range wire.Elements(v) {
		if len(out) == maxVersions {
			break
		}
		if s := wire.Text(element, 64); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// answers reports whether m is the response to the request with the given id.
func (m rpcMessage) answers(id int) bool {
	return m.method == nil && string(m.id) == strconv.Itoa(id)
}

// refuses reports whether m is an error that names no request, as servers send
// it when they refuse a request before reading its id.
func (m rpcMessage) refuses() bool {
	return m.err != nil && (m.id == nil || string(m.id) == "null")
}

package mcp

import (
	"strconv"
	"strings"
)

// JSON-RPC error codes that say something about the protocol version.
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// rpcMessage is the envelope of one JSON-RPC 2.0 message. Its values are parts
// of the text it was read from.
type rpcMessage struct {
	id     jsonValue // nil if absent
	method jsonValue // nil for responses
	result jsonValue // nil unless it is a result
	err    *rpcError // nil unless it is an error
}

// rpcError is the error of a JSON-RPC response.
type rpcError struct {
	code    int64
	message string // cleaned, at most maxRPCMessageBytes
	data    jsonValue
}

// maxRPCMessageBytes is how much of a server's error message is shown.
const maxRPCMessageBytes = 256

// envelopeKeys are the members JSON-RPC 2.0 gives a meaning to.
var envelopeKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// parseMessage reads one JSON-RPC message. Batches are none. A key twice, or one
// that differs from a known one only in case, makes a message that two readers
// understand differently, and is refused.
func parseMessage(data []byte, limits Limits) (rpcMessage, error) {
	v, err := parseJSON(data, limits)
	if err != nil {
		return rpcMessage{}, err
	}
	if !v.isObject() {
		return rpcMessage{}, errNotRPC
	}
	for key := range v.members() {
		if len(key) <= maxFoldedKeyBytes && misspelt(key.text(maxFoldedKeyBytes)) {
			return rpcMessage{}, errNotRPC
		}
	}
	f, err := v.pick(envelopeKeys...)
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

// maxFoldedKeyBytes is longer than any envelope key however it is escaped.
const maxFoldedKeyBytes = 64

func misspelt(key string) bool {
	for _, known := range envelopeKeys {
		if key != known && strings.EqualFold(key, known) {
			return true
		}
	}
	return false
}

// checkEnvelope demands a request, a notification, a result or an error, and
// nothing in between.
func checkEnvelope(version jsonValue, m rpcMessage) error {
	if !version.isText() || !version.textIs("2.0") {
		return errNotRPC
	}
	kinds := 0
	for _, present := range []bool{m.method.isText(), m.result != nil, m.err != nil} {
		if present {
			kinds++
		}
	}
	if kinds != 1 || m.method != nil && !m.method.isText() {
		return errNotRPC
	}
	return nil
}

func parseRPCError(v jsonValue) (*rpcError, error) {
	f, err := v.pick("code", "message", "data")
	if err != nil {
		return nil, err
	}
	code, err := strconv.ParseInt(string(f[0]), 10, 64)
	if err != nil || !f[1].isText() {
		return nil, errNotRPC
	}
	return &rpcError{code: code, message: cleanLine(f[1].text(4*maxRPCMessageBytes), maxRPCMessageBytes), data: f[2]}, nil
}

// supported returns the protocol versions a refusal lists in data.supported.
func (e *rpcError) supported() []string {
	return textList(e.data.member("supported"))
}

// textList returns the strings of an array, as many as a list of protocol
// versions may have.
func textList(v jsonValue) []string {
	var out []string
	for element := range v.elements() {
		if len(out) == maxVersions {
			break
		}
		if s := element.text(64); s != "" {
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

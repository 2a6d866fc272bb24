package wire

import (
	"encoding/json"
	"strconv"
)

// NewRequest makes a request. The id is a JSON string or integer, params a JSON object, or nil for none.
func NewRequest(id json.RawMessage, method string, params json.RawMessage) *Message {
	b := newBuilder(len(id) + 6*len(method) + len(params))
	b.part(inID, `,"id":`, id)
	b.method(method, params)
	return b.finish()
}

// NewNotification makes a notification. Params is a JSON object, or nil for none.
func NewNotification(method string, params json.RawMessage) *Message {
	b := newBuilder(6*len(method) + len(params))
	b.m.Kind = Notification
	b.method(method, params)
	return b.finish()
}

// NewResult makes a response that is a result. Both are JSON values; a result of nil is an empty object.
func NewResult(id, result json.RawMessage) *Message {
	if result == nil {
		result = json.RawMessage("{}")
	}
	b := newBuilder(len(id) + len(result))
	b.m.Kind = Response
	b.part(inID, `,"id":`, orNull(id))
	b.part(inResult, `,"result":`, result)
	return b.finish()
}

// NewError makes a response that is an error. The id is nil if the request had none that could be read; data is a JSON value, or
// nil for none.
func NewError(id json.RawMessage, code int, message string, data json.RawMessage) *Message {
	b := newBuilder(len(id) + 6*len(message) + len(data))
	b.m.Kind = Response
	b.part(inID, `,"id":`, orNull(id))
	b.raw = append(b.raw, `,"error":`...)
	start := len(b.raw)
	b.raw = strconv.AppendInt(append(b.raw, `{"code":`...), int64(code), 10)
	b.raw = appendText(append(b.raw, `,"message":`...), message)
	if data != nil {
		b.raw = append(append(b.raw, `,"data":`...), data...)
	}
	b.raw = append(b.raw, '}')
	b.mark(inError, start)
	return b.finish()
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// builder writes a message.
type builder struct {
	m   *Message
	raw []byte
}

// builderExtra is more than all that is written beside ids, names and values.
const builderExtra = 128

func newBuilder(size int) *builder {
	b := &builder{m: &Message{}, raw: make([]byte, 0, size+builderExtra)}
	b.raw = append(b.raw, `{"jsonrpc":`...)
	b.part(inVersion, "", json.RawMessage(`"2.0"`))
	return b
}

// part appends a member of the envelope.
func (b *builder) part(name int, key string, value json.RawMessage) {
	b.raw = append(b.raw, key...)
	start := len(b.raw)
	b.raw = append(b.raw, value...)
	b.mark(name, start)
}

// mark says that a member of the envelope is what was written from start on.
func (b *builder) mark(name, start int) {
	b.m.at[name] = span{uint32(start), uint32(len(b.raw))} //nolint:gosec // messages are far smaller than 4 GiB
}

func (b *builder) method(method string, params json.RawMessage) {
	method = validText(method)
	b.m.Method = method
	b.raw = append(b.raw, `,"method":`...)
	start := len(b.raw)
	b.raw = appendText(b.raw, method)
	b.mark(inMethod, start)
	if params != nil {
		b.part(inParams, `,"params":`, params)
	}
}

func (b *builder) finish() *Message {
	b.raw = append(b.raw, '}')
	b.m.take(b.raw)
	b.m.find()
	return b.m
}

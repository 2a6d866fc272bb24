package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// Kind is what a message is.
type Kind int

const (
	// Request has a method and an id, and wants a response.
	Request Kind = iota
	// Notification has a method and no id.
	Notification
	// Response has a result or an error.
	Response
)

// Message is one JSON-RPC 2.0 message. Parse, With, NewRequest and its like make it; it is not changed after, and neither may
// its bytes be.
type Message struct {
	// Raw is the whole message, as it was received.
	Raw []byte
	// Kind is what the message is.
	Kind Kind
	// ID is the id as written, a string or an integer; nil if absent, and null at most in a response.
	ID json.RawMessage
	// Method is empty in responses.
	Method string
	// Params is an object or null, or nil if absent.
	Params json.RawMessage
	// Result is what a response brought, or nil if it is an error.
	Result json.RawMessage
	// Error is the object a response brought in place of a result, or nil.
	Error json.RawMessage

	at [envelopeLen]span // where the members of the envelope are in Raw
	in [paramsLen]span   // where those of params are, in Params, that are asked for again and again
}

// ParseError says why a text is no message.
type ParseError struct {
	// Code is the code of the answer it deserves: CodeParse or CodeInvalidRequest.
	Code int
	// Reason is a stable sentence for that answer, without a word of the text.
	Reason string
	// ID is the id of the message if it has a good one, for the answer; else nil.
	ID json.RawMessage

	err error
}

// Error is the reason.
func (e *ParseError) Error() string { return e.Reason }

// Unwrap gives one of the errors of Check, or nil.
func (e *ParseError) Unwrap() error { return e.err }

// ErrBatch is the *ParseError of an array of messages, which protocol version 2025-06-18 removed.
var ErrBatch error = &ParseError{Code: CodeInvalidRequest, Reason: "batches of messages are not accepted: send them one by one"}

// Parse reads one message. Its parts are parts of raw. The error is a *ParseError, which is an errors.Is of one of the errors of
// Check if the text is at fault.
//
// Beyond Check it refuses ids that are neither strings nor integers, a method or id that holds NUL, params that are
// no object, anything between request, notification, result and error, and members of the envelope, of params and of
// params._meta whose key is one of the protocol's but for its case, since readers exist to whom that makes no difference.
func Parse(raw []byte, l Limits) (*Message, error) {
	if start := skipSpace(raw, 0); start < len(raw) && raw[start] == '[' {
		return nil, ErrBatch
	}
	c := checker{data: raw, unique: true}
	start, end := c.run(l, &envelope)
	value, err := c.cause.judge(raw, start, end)
	if err != nil {
		return nil, textError(err)
	}
	if !IsObject(value) {
		return nil, invalid("a message is a JSON object", nil)
	}
	before := uint32(start) //nolint:gosec // run bounds the text
	m := &Message{}
	for name, at := range c.found {
		if at.end > 0 {
			m.at[name] = span{at.start - before, at.end - before}
		}
	}
	for name, at := range c.params {
		if at.end > 0 {
			m.in[name] = span{at.start - c.found[inParams].start, at.end - c.found[inParams].start}
		}
	}
	m.take(value)
	if err := m.judge(); err != nil {
		return nil, err
	}
	return m, nil
}

// textError makes the error of a text that was refused by Check.
func textError(err error) *ParseError {
	if errors.Is(err, ErrSyntax) {
		return &ParseError{Code: CodeParse, Reason: ErrSyntax.Error(), err: err}
	}
	return &ParseError{Code: CodeInvalidRequest, Reason: err.Error(), err: err}
}

func invalid(reason string, id json.RawMessage) *ParseError {
	return &ParseError{Code: CodeInvalidRequest, Reason: reason, ID: id}
}

// take sets the parts of m to those of raw, which are at m.at.
func (m *Message) take(raw []byte) {
	m.Raw = slices.Clip(raw)
	m.ID, m.Params, m.Result, m.Error = m.part(inID), m.part(inParams), m.part(inResult), m.part(inError)
}

// part returns the value of a member of the envelope.
func (m *Message) part(name int) json.RawMessage {
	at := m.at[name]
	if at.end == 0 {
		return nil
	}
	return m.Raw[at.start:at.end:at.end]
}

// judge demands a request, a notification, a result or an error, and nothing in between.
func (m *Message) judge() error {
	if m.ID != nil && !isNull(m.ID) && !validID(m.ID) {
		return invalid("the id is neither a string nor an integer", nil)
	}
	var id json.RawMessage // for the answer
	if !isNull(m.ID) {
		id = m.ID
	}
	if !TextIs(m.part(inVersion), "2.0") {
		return invalid(`jsonrpc is not "2.0"`, id)
	}
	if method := m.part(inMethod); method != nil {
		return m.asCall(method, id)
	}
	return m.asResponse(id)
}

func (m *Message) asCall(method, id json.RawMessage) error {
	if m.Result != nil || m.Error != nil {
		return invalid("a message has either a method, or a result, or an error", id)
	}
	name, ok := methodName(method)
	switch {
	case !ok:
		return invalid("the method is no name", id)
	case m.Params != nil && !IsObject(m.Params) && !isNull(m.Params):
		return invalid("params is no object", id)
	case isNull(m.ID):
		return invalid("the id of a request is null", nil)
	}
	m.Method = name
	if m.ID == nil {
		m.Kind = Notification
	}
	return nil
}

func (m *Message) asResponse(id json.RawMessage) error {
	m.Kind = Response
	switch {
	case (m.Result == nil) == (m.Error == nil):
		return invalid("a message has either a method, or a result, or an error", id)
	case m.Error != nil && !IsObject(m.Error):
		return invalid("error is no object", id)
	case m.Result != nil && m.ID == nil:
		return invalid("a result without an id answers nothing", nil)
	case m.Params != nil:
		return invalid("a response has no params", id)
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// validID reports whether raw is a string without NUL, or an integer without fraction and exponent.
func validID(raw json.RawMessage) bool {
	if IsText(raw) {
		return indexEscape(raw) < 0 || !hasNUL(raw)
	}
	for i, b := range raw {
		if (b < '0' || b > '9') && (b != '-' || i > 0) {
			return false
		}
	}
	return len(raw) > 0
}

func hasNUL(text []byte) bool {
	return bytes.IndexByte(decodeText(nil, text[1:len(text)-1]), 0) >= 0
}

// methodName returns what a method stands for: not empty, without NUL, one text to all readers.
func methodName(raw json.RawMessage) (string, bool) {
	if !IsText(raw) {
		return "", false
	}
	inside := raw[1 : len(raw)-1]
	if known, ok := knownMethod(inside); ok {
		return known, true
	}
	name, ok := decodedText(raw)
	return name, ok && name != "" && !hasNUL(raw)
}

// knownMethod returns a method of the protocol without making a copy of it.
func knownMethod(inside []byte) (string, bool) {
	for _, method := range knownMethods {
		if string(inside) == method {
			return method, true
		}
	}
	return "", false
}

var knownMethods = [...]string{
	"tools/call", "tools/list", "ping", "initialize", "notifications/initialized", "notifications/progress",
	"notifications/message", "notifications/cancelled", "server/discover", "subscriptions/listen", "resources/read",
	"resources/list", "resources/templates/list", "resources/subscribe", "resources/unsubscribe", "prompts/get",
	"prompts/list", "completion/complete", "logging/setLevel", "sampling/createMessage", "elicitation/create", "roots/list",
	"notifications/tools/list_changed", "notifications/resources/list_changed", "notifications/resources/updated",
	"notifications/prompts/list_changed", "notifications/roots/list_changed", "notifications/elicitation/complete",
	"notifications/subscriptions/acknowledged",
}

// Param returns a member of params, or nil if it is absent.
func (m *Message) Param(key string) json.RawMessage {
	for name, known := range paramKeys {
		if known != key {
			continue
		}
		if at := m.in[name]; at.end > 0 {
			return m.Params[at.start:at.end:at.end]
		}
		return nil
	}
	return Field(m.Params, key)
}

// MetaField returns a member of params._meta, or nil if it is absent.
func (m *Message) MetaField(key string) json.RawMessage { return Field(m.Param(metaKey), key) }

// find looks up where the members of params are. Parse has them from its check.
func (m *Message) find() {
	for i := firstMember(m.Params); i >= 0; {
		var member member
		if member, i = nextMember(m.Params, i); member.end == 0 {
			return
		}
		for name, key := range paramKeys {
			if insideIs(m.Params[member.key+1:member.keyEnd-1], key) {
				m.in[name] = span{uint32(member.start), uint32(member.end)} //nolint:gosec // messages are far smaller than 4 GiB
			}
		}
	}
}

// ResultField returns a member of the result, or nil if it is absent.
func (m *Message) ResultField(key string) json.RawMessage { return Field(m.Result, key) }

// StringParam returns what a member of params stands for, and false if it is absent or no string (see String).
func (m *Message) StringParam(key string) (string, bool) { return String(m.Param(key)) }

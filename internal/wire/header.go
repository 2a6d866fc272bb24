package wire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Header fields of the Streamable HTTP transport, as net/http spells them.
const (
	// HeaderVersion is the protocol version.
	HeaderVersion = "Mcp-Protocol-Version"
	// HeaderSession is the session id (up to 2025-11-25).
	HeaderSession = "Mcp-Session-Id"
	// HeaderMethod repeats the method of a request (2026-07-28).
	HeaderMethod = "Mcp-Method"
	// HeaderName repeats the name of what a request is about: the tool, the prompt, the resource's URI (2026-07-28).
	HeaderName = "Mcp-Name"
	// HeaderParamPrefix is what the fields begin with that repeat arguments marked by x-mcp-header (2026-07-28).
	HeaderParamPrefix = "Mcp-Param-"
)

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// EncodeHeader makes s fit for a header field: text of visible ASCII and inner spaces goes as it is, all else, and what looks
// encoded, as =?base64?...?= (specification 2026-07-28, Streamable HTTP).
func EncodeHeader(s string) string {
	if isPlainHeader(s) {
		return s
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(s)) + base64Suffix
}

func isPlainHeader(s string) bool {
	if s == "" {
		return false // an empty field is dropped on the way, or taken for a missing one
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' || strings.HasPrefix(s, base64Prefix) && strings.HasSuffix(s, base64Suffix) {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

var errHeaderEncoding = errors.New("the value of a header field is not properly encoded")

// DecodeHeader returns what a header field stands for. It fails for bad base64, for what is not UTF-8, and for controls outside of base64.
func DecodeHeader(value string) (string, error) {
	encoded, ok := strings.CutPrefix(value, base64Prefix)
	if ok {
		encoded, ok = strings.CutSuffix(encoded, base64Suffix)
	}
	if !ok {
		if !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return "", errHeaderEncoding
		}
		return value, nil
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") || !utf8.Valid(decoded) {
		return "", errHeaderEncoding
	}
	return string(decoded), nil
}

// HeaderError says how the headers of a request do not fit its body; the answer is HTTP 400 and CodeHeaderMismatch.
type HeaderError struct {
	// Reason is a stable sentence for the answer, without a word of the request.
	Reason string
}

// Error is the reason.
func (e *HeaderError) Error() string { return e.Reason }

// CheckHeaders demands of a message of protocol version 2026-07-28 that its headers say what its body says: the protocol
// version, the method, and the name where there is one. Whoever is in between decides on the headers, so that each has to be there exactly
// once. The error is a *HeaderError.
func CheckHeaders(h http.Header, m *Message) error {
	if err := checkSpelling(h); err != nil {
		return err
	}
	if version := m.MetaField(MetaProtocolVersion); version != nil || m.Kind == Request {
		if err := checkHeader(h, HeaderVersion, version, `params._meta["`+MetaProtocolVersion+`"]`); err != nil {
			return err
		}
	}
	if err := checkHeader(h, HeaderMethod, m.part(inMethod), "method"); err != nil {
		return err
	}
	key := nameParam(m.Method)
	if key == "" {
		return nil
	}
	return checkHeader(h, HeaderName, m.Param(key), "params."+key)
}

// nameParam returns the member of params that Mcp-Name repeats, or "".
func nameParam(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	}
	return ""
}

// checkSpelling refuses fields that others may take for ours: with underscores, which some proxies turn into hyphens.
func checkSpelling(h http.Header) error {
	for field := range h {
		if strings.Contains(field, "_") && strings.HasPrefix(strings.ToLower(strings.ReplaceAll(field, "_", "-")), "mcp-") {
			return &HeaderError{Reason: "a header field beginning with Mcp- is written with underscores"}
		}
	}
	return nil
}

// checkHeader demands one field that stands for what the body says, which has to be a string.
func checkHeader(h http.Header, field string, want json.RawMessage, where string) error {
	got, err := onlyHeader(h, field)
	if err != nil {
		return err
	}
	if !saysSame(got, want) {
		return &HeaderError{Reason: "the header " + field + " does not say what " + where + " says"}
	}
	return nil
}

// saysSame reports whether a decoded field is what a JSON string stands for. Half of a surrogate pair is nothing a field can say.
func saysSame(got string, want json.RawMessage) bool {
	return TextIs(want, got) && !hasHalfPair(want)
}

// onlyHeader returns what a field stands for that has to be there exactly once.
func onlyHeader(h http.Header, field string) (string, error) {
	values := h[field]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return "", &HeaderError{Reason: "the header " + field + " is missing"}
	}
	if len(values) > 1 {
		return "", &HeaderError{Reason: "the header " + field + " is there more than once"}
	}
	got, err := DecodeHeader(values[0])
	if err != nil {
		return "", &HeaderError{Reason: "the header " + field + " is not properly encoded"}
	}
	return got, nil
}

// Headers sets the header fields that repeat what m says, as protocol version 2026-07-28 demands it of requests.
func (m *Message) Headers(h http.Header) {
	if version, ok := String(m.MetaField(MetaProtocolVersion)); ok {
		h.Set(HeaderVersion, version)
	}
	h.Set(HeaderMethod, m.Method)
	if key := nameParam(m.Method); key != "" {
		if name, ok := m.StringParam(key); ok {
			h.Set(HeaderName, EncodeHeader(name))
		}
	}
}

package mcp

import "errors"

// Reason says in one word why a server could not be verified. The words are
// fit for the reason of a Kubernetes condition.
type Reason string

const (
	// InvalidTarget: the URL or the Host given is not one that can be dialled.
	InvalidTarget Reason = "InvalidTarget"
	// AddressDenied: a [Guard] refused the address the name resolved to.
	AddressDenied Reason = "AddressDenied"
	// DNSFailed: the host name could not be resolved.
	DNSFailed Reason = "DNSFailed"
	// ConnectionFailed: refused, unreachable, or closed without an answer.
	ConnectionFailed Reason = "ConnectionFailed"
	// ConnectTimeout: nothing accepted the connection in time.
	ConnectTimeout Reason = "ConnectTimeout"
	// TLSFailed: the TLS handshake failed or the certificate is not trusted.
	TLSFailed Reason = "TLSFailed"
	// Unauthorized: 401 without a Bearer challenge.
	Unauthorized Reason = "Unauthorized"
	// Forbidden: 403, whatever the Host header.
	Forbidden Reason = "Forbidden"
	// HostRefused: 403, but not with "Host: localhost"; or 421.
	HostRefused Reason = "HostRefused"
	// NotFound: 404, the path is wrong.
	NotFound Reason = "NotFound"
	// MethodNotAllowed: 405, the path takes no POST.
	MethodNotAllowed Reason = "MethodNotAllowed"
	// Redirected: 3xx, not followed.
	Redirected Reason = "Redirected"
	// ServerError: 5xx.
	ServerError Reason = "ServerError"
	// NotMCP: the answer is not of the Model Context Protocol.
	NotMCP Reason = "NotMCP"
	// ProtocolError: the handshake was refused or broke the protocol's rules.
	ProtocolError Reason = "ProtocolError"
	// ToolsListFailed: the handshake was fine, tools/list was not.
	ToolsListFailed Reason = "ToolsListFailed"
	// ChildExited: the process behind a bridge ended.
	ChildExited Reason = "ChildExited"
	// ChildSilent: the process behind a bridge runs and does not answer.
	ChildSilent Reason = "ChildSilent"
	// Timeout: connected, but slower than allowed; also a cancelled context.
	Timeout Reason = "Timeout"
	// TooLarge: the server sent more than allowed.
	TooLarge Reason = "TooLarge"
)

// maxMessageBytes is the length of an Error's message at most: what fits the
// note of an event.
const maxMessageBytes = 1024

// Error is why a server could not be verified.
type Error struct {
	// Reason is the class of the failure.
	Reason Reason
	// Message is one or two sentences for users: what happened and what to do.
	// The same failure always has the same message. At most 1024 bytes.
	Message string
	// Unreached says that the server's address was dialled and no connection
	// came about: ConnectionFailed or ConnectTimeout.
	Unreached bool

	err error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the underlying error of the network or the context, if any.
func (e *Error) Unwrap() error { return e.err }

// ReasonOf returns the Reason of the [Error] in err's chain, or "".
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// ErrStale is returned by [Client.Check] for a server that answers as an MCP
// server, but not as the last result says: it is healthy, and a full
// [Client.Probe] is due now.
var ErrStale = errors.New("the MCP server answers differently than at the last full probe: probe it again")

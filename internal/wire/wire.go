// Package wire is MCP on the wire: JSON-RPC messages parsed strictly and rewritten by splice, server-sent events, and the
// header rules of protocol version 2026-07-28. It decodes nothing that does not have to be decided on.
//
// What it parses is foreign and hostile. Two readers must never understand one text differently, so whatever they could is
// refused: a key twice at any level, a key of the protocol in other capitals, bad UTF-8, numbers no float64 holds, more than
// one value. encoding/json is not used for that: it matches keys without regard to case, takes the last of two equal keys,
// mends bad UTF-8, and its memory is a multiple of the text.
package wire

// Error codes of JSON-RPC 2.0 and of MCP.
const (
	// CodeParse says that the text is not JSON.
	CodeParse = -32700
	// CodeInvalidRequest says that the JSON is no JSON-RPC message.
	CodeInvalidRequest = -32600
	// CodeMethodNotFound says that the receiver does not know the method.
	CodeMethodNotFound = -32601
	// CodeInvalidParams says that the params do not fit the method; since 2026-07-28 also that a resource is not known.
	CodeInvalidParams = -32602
	// CodeInternal says that the receiver failed.
	CodeInternal = -32603
	// CodeHeaderMismatch says that a header is missing or says something else than the body (2026-07-28).
	CodeHeaderMismatch = -32020
	// CodeMissingCapability says that the client lacks a capability the request needs (2026-07-28).
	CodeMissingCapability = -32021
	// CodeUnsupportedVersion says that the protocol version is not spoken; data.supported lists those that are (2026-07-28).
	CodeUnsupportedVersion = -32022
	// CodeResourceNotFoundLegacy says that a resource is not known (up to 2025-11-25).
	CodeResourceNotFoundLegacy = -32002
)

// Protocol versions. They are dates, so that their order is that of their text.
const (
	// Version20260728 is the one without sessions.
	Version20260728 = "2026-07-28"
	// Version20251125 is the newest with sessions.
	Version20251125 = "2025-11-25"
	// Version20250618 is the first to want the MCP-Protocol-Version header.
	Version20250618 = "2025-06-18"
	Version20250326 = "2025-03-26"
	// Version20241105 is the first, with HTTP+SSE in place of Streamable HTTP.
	Version20241105 = "2024-11-05"
)

// Versions returns all of them, newest first.
func Versions() []string {
	return []string{Version20260728, Version20251125, Version20250618, Version20250326, Version20241105}
}

// Keys of _meta that protocol version 2026-07-28 gives a meaning to.
const (
	// MetaProtocolVersion is the protocol version of a request: required.
	MetaProtocolVersion = "io.modelcontextprotocol/protocolVersion"
	// MetaClientCapabilities is what the client of a request can do: required.
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	// MetaClientInfo names the client of a request.
	MetaClientInfo = "io.modelcontextprotocol/clientInfo"
	// MetaLogLevel asks for log messages of this level and above while a request is served.
	MetaLogLevel = "io.modelcontextprotocol/logLevel"
	// MetaServerInfo names the server in a result.
	MetaServerInfo = "io.modelcontextprotocol/serverInfo"
	// MetaSubscriptionID is the id of the subscriptions/listen request that a notification belongs to.
	MetaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
)

// metaKey is the member of params and results that carries what is beside the matter.
const metaKey = "_meta"

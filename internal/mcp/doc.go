// Package mcp is the client side of the Model Context Protocol as the operator
// needs it: it finds out whether an HTTP endpoint truly speaks MCP, in which
// protocol version, and what it offers.
//
// The endpoint is untrusted. Whatever it sends, the package guarantees:
//
//   - bounded time: a probe ends after [Limits.Total] plus, if the server
//     handed out sessions, [Limits.SessionEnd];
//   - bounded memory: less than 16 MiB over what was there before;
//   - no goroutine and no connection outlives the call;
//   - no redirect is followed, no proxy used, no body decompressed, no cookie,
//     credential or client certificate of ours sent beyond what the caller's
//     own transport does;
//   - no text of the server reaches an error but the message of a JSON-RPC
//     error, cleaned and cut to 256 bytes.
//
// Both generations of the protocol are spoken: 2026-07-28 (stateless, found by
// server/discover) and 2025-11-25 and older (initialize, sessions). A session
// that a server hands out is always ended by DELETE.
package mcp

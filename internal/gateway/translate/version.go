// Package translate carries MCP messages between protocol version 2026-07-28 and the versions before it. It is pure: messages
// in, messages out, and what it does not have to change passes byte for byte. What cannot be carried is refused in words or
// not offered in the first place.
//
// Requests and their results are nearly the same on both sides. What differs: how client and server introduce themselves
// (initialize, server/discover), where a request says who asks (the session, or its _meta), how notifications come that no call
// asked for (the GET stream, or subscriptions/listen), and how a server asks the client for something (requests of its own, or
// an input_required result), which is not carried at all.
package translate

import (
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// EraOf returns the era of a protocol version, and false for a version that is not in [wire.Versions].
func EraOf(version string) (backend.Era, bool) {
	if !slices.Contains(wire.Versions(), version) {
		return backend.Legacy, false
	}
	if version >= wire.Version20260728 {
		return backend.Modern, true
	}
	return backend.Legacy, true
}

// Negotiate returns the version that initialize is answered with: the client's own if it is a known one of the legacy era, else
// the newest of that era (2025-11-25, basic/lifecycle). Version 2026-07-28 is never agreed on by initialize.
func Negotiate(clientVersion string) string {
	if era, known := EraOf(clientVersion); known && era == backend.Legacy {
		return clientVersion
	}
	return wire.Version20251125
}

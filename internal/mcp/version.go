package mcp

import (
	"slices"
	"strings"
)

// Protocol revisions this package speaks, newest first.
const (
	// Version20260728 is stateless: no initialize, no sessions, every request
	// describes itself.
	Version20260728 = "2026-07-28"
	// Version20251125 is the last revision with initialize and sessions, and
	// the one offered to servers that do not speak Version20260728.
	Version20251125 = "2025-11-25"
	// Version20250618 brought the MCP-Protocol-Version header.
	Version20250618 = "2025-06-18"
	// Version20250326 brought the Streamable HTTP transport.
	Version20250326 = "2025-03-26"
	// Version20241105 is the first revision.
	Version20241105 = "2024-11-05"
)

// Stateless reports whether a protocol revision has neither initialize nor
// sessions. Revisions are dates, so their order is the order of their text.
func Stateless(version string) bool { return version >= Version20260728 }

// knownVersions returns what this package speaks, newest first.
func knownVersions() []string {
	return []string{Version20260728, Version20251125, Version20250618, Version20250326, Version20241105}
}

// newestStateless returns the newest revision of known that has no sessions
// and that offered lists as well, or "".
func newestStateless(known, offered []string) string {
	for _, v := range known {
		if Stateless(v) && slices.Contains(offered, v) {
			return v
		}
	}
	return ""
}

// newestStateful returns the newest revision of known that has initialize and
// that offered lists as well, or "".
func newestStateful(known, offered []string) string {
	for _, v := range known {
		if !Stateless(v) && slices.Contains(offered, v) {
			return v
		}
	}
	return ""
}

// maxVersions bounds how many versions of a server's list are kept.
const maxVersions = 16

// tidyVersions turns what a server says it speaks into a list fit for display:
// only names that look like a revision, each once, newest first, bounded.
func tidyVersions(versions []string) []string {
	kept := make([]string, 0, min(len(versions), maxVersions))
	for _, v := range versions {
		if looksLikeVersion(v) {
			kept = append(kept, v)
		}
	}
	slices.SortFunc(kept, func(a, b string) int { return strings.Compare(b, a) })
	kept = slices.Compact(kept)
	return kept[:min(len(kept), maxVersions)]
}

// looksLikeVersion admits dates and draft names: letters, digits, '.', '-'.
func looksLikeVersion(v string) bool {
	if v == "" || len(v) > 32 {
		return false
	}
	return strings.IndexFunc(v, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '.'
	}) < 0
}

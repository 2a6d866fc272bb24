package front

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// hostPause is the shortest time between two lines in the log about hosts that are refused: anybody may ask for any.
const hostPause = time.Minute

// isServed says whether a table names the host: among those that it allows, or in the URL that clients know the endpoint by. An address is
// served in any case: it cannot be made to lead elsewhere, as a name can (DNS rebinding).
func isServed(e *table.Endpoint, host string) bool {
	// Names first: they are what clients ask for, and cost the least.
	if slices.ContainsFunc(e.AllowedHosts, func(pattern string) bool { return matchesHost(pattern, host) }) {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	public, err := url.Parse(e.PublicURL)
	return err == nil && public.Host != "" && strings.EqualFold(strings.TrimSuffix(public.Hostname(), "."), host)
}

// tellOfHost tells whoever runs the gateway, and not who asked, which hosts are served.
func (f *Front) tellOfHost(e *table.Endpoint, host string) {
	now := time.Now().UnixNano()
	last := f.hostTold.Load()
	if last != 0 && now-last < int64(hostPause) || !f.hostTold.CompareAndSwap(last, now) {
		return
	}
	const longest = 256
	f.options.Logger.Warn("a request is refused for its Host header; if clients use that host, set gateway.publicURL, or gateway.allowedHosts, of the "+
		"MCPAgent (endpoint.publicURL or endpoint.allowedHosts in a routing table)",
		"host", backend.Line(host, longest), "allowed", strings.Join(e.AllowedHosts, ", "), "publicURL", e.PublicURL)
}

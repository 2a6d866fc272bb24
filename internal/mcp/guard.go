package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// ErrAddressDenied is in the chain of the error of a dial that a [Guard]
// refused.
var ErrAddressDenied = errors.New("address denied")

// Guard decides which addresses may be dialled. It looks at the address that is
// truly connected to, after name resolution, so a name that resolves
// differently the second time, or a number written in an unusual form, gains
// nothing.
type Guard struct {
	// Allow is asked for each address before it is connected to; false refuses.
	// It never sees a zone or an IPv4-mapped address. Where an IPv6 address
	// carries an IPv4 address (NAT64, 6to4, IPv4-compatible), it is asked for
	// both. Nil refuses everything.
	Allow func(netip.Addr) bool
}

// Control refuses denied addresses. It is meant for [net.Dialer.Control].
func (g Guard) Control(network, address string, _ syscall.RawConn) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return fmt.Errorf("dial %s: %w: only TCP may be dialled", network, ErrAddressDenied)
	}
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %q: %w: not a numeric address", address, ErrAddressDenied)
	}
	if !g.Allows(target.Addr()) {
		return fmt.Errorf("dial %s: %w", address, ErrAddressDenied)
	}
	return nil
}

// Allows reports whether addr, in every form it can be read, is allowed.
func (g Guard) Allows(addr netip.Addr) bool {
	if g.Allow == nil || !addr.IsValid() {
		return false
	}
	addr = addr.Unmap().WithZone("")
	if !g.Allow(addr) {
		return false
	}
	for _, inner := range embeddedIPv4(addr) {
		if !g.Allow(inner) {
			return false
		}
	}
	return true
}

// DialContext dials like a [net.Dialer] with a connect timeout of 2 s, and
// refuses denied addresses.
func (g Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: DefaultLimits().Connect, KeepAlive: 30 * time.Second, Control: g.Control}
	return dialer.DialContext(ctx, network, address)
}

// AllowCluster allows every address that can belong to a pod or a Service:
// neither this host (loopback, unspecified), nor its links (link-local,
// multicast, broadcast), nor a cloud's metadata service.
func AllowCluster(addr netip.Addr) bool {
	return !isHostLocal(addr) && !IsMetadata(addr)
}

// GuardFor is the guard of what users name: public addresses, or with
// allowPrivate those of a cluster too.
func GuardFor(allowPrivate bool) Guard {
	if allowPrivate {
		return Guard{Allow: AllowCluster}
	}
	return Guard{Allow: AllowPublic}
}

// AllowPublic allows addresses of the public Internet only: what AllowCluster
// allows, without private, shared, reserved and documentation ranges.
func AllowPublic(addr netip.Addr) bool {
	return AllowCluster(addr) && addr.IsGlobalUnicast() && !addr.IsPrivate() && !inAny(addr, notPublic)
}

// IsMetadata reports whether a cloud serves credentials or instance data at
// addr, other than at a link-local address.
func IsMetadata(addr netip.Addr) bool {
	return inAny(addr, metadata)
}

func isHostLocal(addr netip.Addr) bool {
	return addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() ||
		addr.IsLinkLocalUnicast() || inAny(addr, hostLocal)
}

func inAny(addr netip.Addr, ranges []netip.Prefix) bool {
	for _, r := range ranges {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}

var (
	// metadata services outside the link-local ranges.
	metadata = prefixes(
		"100.100.100.200/32", // Alibaba Cloud
		"168.63.129.16/32",   // Azure host
		"192.0.0.192/32",     // Oracle Cloud
		"fd00:ec2::/32",      // AWS: metadata, DNS, time
		"fd20:ce::254/128",   // Google Cloud
	)

	// hostLocal are ranges netip has no predicate for.
	hostLocal = prefixes(
		"0.0.0.0/8",          // "this network": Linux takes it for this host
		"255.255.255.255/32", // broadcast
		"fec0::/10",          // site-local, deprecated
	)

	// notPublic are the special-purpose ranges of RFC 6890 and its updates.
	notPublic = prefixes(
		"100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "64:ff9b:1::/48",
	)

	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// embeddedIPv4 returns the IPv4 addresses that a translator or a tunnel may send
// traffic for addr to.
func embeddedIPv4(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	last := netip.AddrFrom4([4]byte(b[12:16]))
	switch {
	case nat64.Contains(addr), translated.Contains(addr):
		return []netip.Addr{last}
	case nat64Local.Contains(addr):
		// RFC 6052: with a /48 the address surrounds the byte 8; sites that cut
		// a /96 out of it have it at the end.
		return []netip.Addr{last, netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]})}
	case sixToFour.Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case compatible.Contains(addr) && !addr.IsUnspecified() && !addr.IsLoopback():
		return []netip.Addr{last}
	}
	return nil
}

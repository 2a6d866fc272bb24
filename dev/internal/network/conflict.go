//go:build linux

package network

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

// Conflict says in one sentence why the cluster's addresses cannot be used on this machine: an
// interface or a route that we did not make has them. A wider route (10.0.0.0/8 of a VPN, the
// default route) is no conflict, since ours are more specific.
func Conflict() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	byIndex := map[int]string{}
	for _, l := range links {
		byIndex[l.Attrs().Index] = l.Attrs().Name
	}
	all, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for _, r := range all {
		dev := byIndex[r.LinkIndex]
		if int(r.Protocol) == layout.RouteProtocol || dev == layout.HostLink || r.Dst == nil {
			continue
		}
		for _, cidr := range []string{layout.Network, layout.PodCIDR, layout.ServiceCIDR} {
			if within(r.Dst, subnet(cidr)) {
				return fmt.Errorf("the machine already has a route to %s (interface %q), which the cluster needs for itself (%s): "+
					"remove it, or use another machine", r.Dst, dev, cidr)
			}
		}
	}
	return nil
}

// within reports whether all of a lies in b.
func within(a, b *net.IPNet) bool {
	aOnes, _ := a.Mask.Size()
	bOnes, _ := b.Mask.Size()
	return aOnes >= bOnes && b.Contains(a.IP)
}

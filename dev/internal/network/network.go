//go:build linux

// Package network joins the machine and the nodes: a network namespace with a bridge, one more for
// each node, and cables (veth pairs) between them. On the machine itself there is one interface,
// a route for each node's pods, and one for Services; unreachable routes behind them keep a packet
// for the cluster from ever leaving by the machine's default route. Nodes have no default route.
//
// Everything made bears a name beginning with "mcpdev", or the route protocol of package layout.
// Nothing else is changed or removed.
package network

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

const (
	uplink = "uplink" // the bridge's end of HostLink
	// unreachableMetric puts the unreachable routes behind those of nodes.
	unreachableMetric = 4096
)

// EnsureSwitch makes the bridge and the machine's way to it.
func EnsureSwitch() error {
	if err := ensureNetNS(layout.SwitchNetNS); err != nil {
		return err
	}
	err := in(layout.SwitchNetNS, func(h *netlink.Handle) error {
		err := h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs(layout.Bridge)})
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("create bridge %s: %w", layout.Bridge, err)
		}
		return linkUp(h, layout.Bridge)
	})
	if err != nil {
		return err
	}
	host, err := netlink.NewHandle()
	if err != nil {
		return fmt.Errorf("talk to the kernel about its network: %w", err)
	}
	defer host.Close()
	if err := cable(host, layout.HostLink, uplink); err != nil {
		return err
	}
	if err := address(host, layout.HostLink, layout.HostIP+"/24"); err != nil {
		return err
	}
	for _, cidr := range []string{layout.PodCIDR, layout.ServiceCIDR} {
		if err := host.RouteReplace(unreachable(cidr)); err != nil {
			return fmt.Errorf("add the unreachable route for %s: %w", cidr, err)
		}
	}
	return nil
}

// EnsureNode makes node i of total: its namespace, its cable to the bridge, and the routes from and
// to it. The first node carries the machine's connections to Services.
func EnsureNode(i, total int) error {
	ns := layout.NodeNetNS(i)
	if err := ensureNetNS(ns); err != nil {
		return err
	}
	err := in(ns, func(h *netlink.Handle) error {
		if err := cable(h, "eth0", layout.NodeLink(i)); err != nil {
			return err
		}
		if err := linkUp(h, "lo"); err != nil {
			return err
		}
		if err := address(h, "eth0", layout.NodeIP(i)+"/24"); err != nil {
			return err
		}
		return nodeRoutes(h, i, total)
	})
	if err != nil {
		return err
	}
	err = Enter(ns, func() error {
		return errors.Join(setSysctl("net/ipv4/ip_forward", "1"), setSysctl("net/bridge/bridge-nf-call-iptables", "1"))
	})
	if err != nil {
		return err
	}
	host, err := netlink.NewHandle()
	if err != nil {
		return fmt.Errorf("talk to the kernel about its network: %w", err)
	}
	defer host.Close()
	to := []string{layout.NodePodCIDR(i)}
	if i == 1 {
		to = append(to, layout.ServiceCIDR)
	}
	return routes(host, layout.HostLink, layout.NodeIP(i), to...)
}

// nodeRoutes lets a node reach the pods of the others. Services need a route as well, for a node's own
// processes to send to before kube-proxy rewrites the address; what a pod still sends to a Service
// after that (one without endpoints) is unreachable at once instead of hanging: the policy
// controller accepts it before kube-proxy's REJECT sees it.
func nodeRoutes(h *netlink.Handle, i, total int) error {
	for j := 1; j <= total; j++ {
		if j == i {
			continue
		}
		if err := routes(h, "eth0", layout.NodeIP(j), layout.NodePodCIDR(j)); err != nil {
			return err
		}
	}
	if err := routes(h, "eth0", layout.HostIP, layout.ServiceCIDR); err != nil {
		return err
	}
	rule := netlink.NewRule()
	rule.Family, rule.Priority, rule.IifName, rule.Dst, rule.Type = unix.AF_INET, 100, "cni0", subnet(layout.ServiceCIDR), unix.RTN_UNREACHABLE
	if err := h.RuleAdd(rule); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("add the rule for packets to Services without endpoints: %w", err)
	}
	return nil
}

// Remove takes away all that this package made, whatever of it there is.
func Remove() error {
	names, err := ours()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, removeNetNS(name))
	}
	all, err := ownRoutes()
	errs = append(errs, err)
	for _, r := range all {
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove the route %s: %w", r.Dst, err))
		}
	}
	// The kernel removes a veth pair with the namespace of either end, but takes its time.
	if link, err := netlink.LinkByName(layout.HostLink); err == nil {
		if err := netlink.LinkDel(link); err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("remove interface %s: %w", layout.HostLink, err))
		}
	}
	_ = os.Remove(netnsDir) // only if it is empty, and then nobody needs it
	return errors.Join(errs...)
}

func ownRoutes() ([]netlink.Route, error) {
	filter := &netlink.Route{Protocol: layout.RouteProtocol}
	all, err := netlink.RouteListFiltered(netlink.FAMILY_V4, filter, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	return all, nil
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

// cable lays a veth pair from the namespace of h to the bridge, unless it is there.
func cable(h *netlink.Handle, near, far string) error {
	if _, err := h.LinkByName(near); err == nil {
		return linkUp(h, near)
	}
	err := in(layout.SwitchNetNS, func(sw *netlink.Handle) error {
		// A far end without a near one is what a killed run leaves while the kernel still tidies up.
		if old, err := sw.LinkByName(far); err == nil {
			return sw.LinkDel(old)
		}
		return nil
	})
	if err != nil {
		return err
	}
	veth := &netlink.Veth{LinkAttrs: attrs(near), PeerName: far}
	ns, closeNS, err := peerNamespace()
	if err != nil {
		return err
	}
	defer closeNS()
	veth.PeerNamespace = ns
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("create interface %s: %w", near, err)
	}
	err = in(layout.SwitchNetNS, func(sw *netlink.Handle) error {
		bridge, err := sw.LinkByName(layout.Bridge)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", layout.Bridge, err)
		}
		link, err := sw.LinkByName(far)
		if err != nil {
			return fmt.Errorf("find interface %s: %w", far, err)
		}
		if err := sw.LinkSetMaster(link, bridge); err != nil {
			return fmt.Errorf("put %s on the bridge: %w", far, err)
		}
		return linkUp(sw, far)
	})
	if err != nil {
		return err
	}
	return linkUp(h, near)
}

func linkUp(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

func address(h *netlink.Handle, name, cidr string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	addr, err := netlink.ParseAddr(cidr)
	if err != nil {
		return fmt.Errorf("parse address %s: %w", cidr, err)
	}
	if err := h.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("give %s the address %s: %w", name, cidr, err)
	}
	return nil
}

func routes(h *netlink.Handle, dev, via string, cidrs ...string) error {
	link, err := h.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", dev, err)
	}
	for _, cidr := range cidrs {
		r := &netlink.Route{Dst: subnet(cidr), Gw: net.ParseIP(via), LinkIndex: link.Attrs().Index, Protocol: layout.RouteProtocol}
		if err := h.RouteReplace(r); err != nil {
			return fmt.Errorf("add the route to %s: %w", cidr, err)
		}
	}
	return nil
}

func unreachable(cidr string) *netlink.Route {
	return &netlink.Route{Dst: subnet(cidr), Type: unix.RTN_UNREACHABLE, Priority: unreachableMetric, Protocol: layout.RouteProtocol}
}

// subnet parses one of the constants of package layout.
func subnet(cidr string) *net.IPNet {
	_, n, err := net.ParseCIDR(cidr)
	if err != nil {
		panic(err)
	}
	return n
}

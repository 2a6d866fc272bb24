//go:build linux

package node

import (
	"fmt"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/network"
	"github.com/mcp-operator/mcp-operator/dev/internal/process"
)

// Daemons are the processes of one node.
type Daemons struct{ Containerd, Kubelet, Proxy, NetPol process.Spec }

// All are the daemons in the order in which they start.
func (d Daemons) All() []process.Spec {
	return []process.Spec{d.Containerd, d.Kubelet, d.Proxy, d.NetPol}
}

// Names are the daemons' names, in the order in which they start.
func Names(i int) []string {
	n := layout.NodeName(i)
	return []string{n + "-containerd", n + "-kubelet", n + "-proxy", n + "-netpol"}
}

// DaemonsOf describes the daemons of node i, whose network namespace must exist.
func DaemonsOf(l layout.Layout, i int) Daemons {
	names, n, ns := Names(i), layout.NodeName(i), layout.NodeNetNS(i)
	inode := network.Inode(ns)
	spec := func(name, binary string, config []string, args ...string) process.Spec {
		return process.Spec{
			Name: name, Path: l.Bin(binary), Args: args, ConfigFiles: config, NetNS: inode,
			Enter: func(start func() error) error { return network.Enter(ns, start) },
		}
	}
	containerd, kubelet, proxy := l.Node(i, "etc", "containerd.toml"), l.Node(i, "etc", "kubelet.yaml"), l.Node(i, "etc", "proxy.yaml")
	return Daemons{
		Containerd: spec(names[0], "containerd", []string{containerd}, "-c", containerd),
		Kubelet: spec(names[1], "kubelet", []string{kubelet, l.PKI(n + ".crt")},
			"--config="+kubelet, "--kubeconfig="+l.PKI(n+".kubeconfig"), "--hostname-override="+n, "--node-ip="+layout.NodeIP(i),
			"--root-dir="+l.Node(i, "kubelet"), "--cert-dir="+l.Node(i, "kubelet", "pki"),
			fmt.Sprintf("--node-labels=%s=true,topology.kubernetes.io/zone=zone%d", layout.RealNodeLabel, i)),
		Proxy: spec(names[2], "kube-proxy", []string{proxy, l.PKI("proxy.kubeconfig")}, "--config="+proxy),
		NetPol: spec(names[3], "netpol", []string{l.PKI("netpol.kubeconfig")},
			"--kubeconfig="+l.PKI("netpol.kubeconfig"), "--hostname-override="+n,
			"--service-cluster-ip-range="+layout.ServiceCIDR, "--iptables-sync-period=1m", "--health-port=0"),
	}
}

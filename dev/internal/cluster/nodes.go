//go:build linux

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/controlplane"
	"github.com/mcp-operator/mcp-operator/dev/internal/host"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/network"
	"github.com/mcp-operator/mcp-operator/dev/internal/node"
	"github.com/mcp-operator/mcp-operator/dev/internal/process"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// components are the names of everything that must run.
func (c *Cluster) components(nodes int) []string {
	all := []string{controlplane.Etcd, controlplane.APIServer, controlplane.Manager, controlplane.Scheduler}
	for i := 1; i <= nodes; i++ {
		all = append(all, node.Names(i)...)
	}
	return all
}

// startNode starts the daemons of node i; all but containerd wait until api is closed.
func (c *Cluster) startNode(i int, cg host.Cgroups, r *record.Record, api <-chan struct{}) error {
	c.mu.Lock()
	err := cg.Ensure(layout.NodeCgroup(i), r)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.clearDead(i, cg); err != nil {
		return err
	}
	if err := node.Prepare(c.layout, i); err != nil {
		return err
	}
	d := node.DaemonsOf(c.layout, i)
	if _, err := c.processes.Ensure(d.Containerd); err != nil {
		return err
	}
	err = c.processes.Wait("containerd of "+layout.NodeName(i), patience, func() error {
		return c.ctr(i, "version")
	}, d.Containerd.Name)
	if err != nil {
		return err
	}
	base, err := archives(c.layout.BaseImages())
	if err != nil {
		return err
	}
	if err := c.loadMissing(i, base); err != nil {
		return err
	}
	<-api
	for _, s := range d.All()[1:] {
		begin := time.Now()
		started, err := c.processes.Ensure(s)
		if err != nil {
			return err
		}
		if started && s.Name == d.Kubelet.Name {
			c.mu.Lock()
			c.kubelets[layout.NodeName(i)] = begin.Truncate(time.Second)
			c.mu.Unlock()
		}
	}
	return nil
}

// kubeletStarted is when Up started the node's kubelet; the zero time if it ran already.
func (c *Cluster) kubeletStarted(node string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kubelets[node]
}

// clearDead removes what is left of a node whose containers all died with their containerd, as after
// kill -9 of everything: their mounts, cgroups' processes and runtime folder. While a shim lives,
// containers do, and a new containerd finds them by that folder.
func (c *Cluster) clearDead(i int, cg host.Cgroups) error {
	all, err := c.processes.All()
	if err != nil {
		return err
	}
	var strays []process.Process
	for _, p := range all {
		if p.Component != node.Names(i)[0] {
			continue
		}
		if p.NetNS == network.Inode(layout.NodeNetNS(i)) {
			return nil
		}
		strays = append(strays, p) // of a network namespace that somebody removed: their pods reach nobody
	}
	if err := c.processes.Stop(node.Names(i)[1:]...); err != nil {
		return err
	}
	if err := c.processes.End(strays, 0); err != nil {
		return err
	}
	if err := cg.Kill(layout.NodeCgroup(i)); err != nil {
		return err
	}
	if err := host.Unmount(layout.NodeRun(i)); err != nil {
		return err
	}
	return host.RemoveState(layout.NodeRun(i))
}

// ctr runs containerd's own client on node i.
func (c *Cluster) ctr(i int, args ...string) error {
	socket := layout.ContainerdSocket(i)
	if _, err := os.Stat(socket); err != nil {
		return fmt.Errorf("containerd of %s has no socket: %w", layout.NodeName(i), err)
	}
	cmd := exec.Command(c.layout.Bin("ctr"), append([]string{"-a", socket, "-n", "k8s.io", "--connect-timeout", "2s"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s on %s: %w: %s", strings.Join(args, " "), layout.NodeName(i), err, strings.TrimSpace(string(out)))
	}
	return nil
}

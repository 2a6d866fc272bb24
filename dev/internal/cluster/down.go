//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"os"

	"github.com/mcp-operator/mcp-operator/dev/internal/controlplane"
	"github.com/mcp-operator/mcp-operator/dev/internal/host"
	"github.com/mcp-operator/mcp-operator/dev/internal/kwok"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/network"
	"github.com/mcp-operator/mcp-operator/dev/internal/node"
)

// Down ends every process of the cluster and removes everything it made outside the state folder.
// With wipe it also removes the cluster's own state (objects, volumes, loaded images, certificates,
// logs); binaries and image archives stay.
func (c *Cluster) Down(wipe bool) error {
	if err := c.checkOwner(); err != nil {
		return err
	}
	r, err := c.open()
	if err != nil {
		return err
	}
	nodes := max(r.Nodes, c.nodesOnDisk())
	cg, cgErr := cgroups() // a machine without controllers has no groups of ours either
	if err := c.stopEverything(nodes, cg); err != nil {
		return err
	}
	c.progress.Say("processes ended")

	errs := []error{host.Unmount(layout.RunDir, c.layout.Dir)}
	errs = append(errs, network.Remove())
	if cgErr == nil {
		for i := 1; i <= nodes; i++ {
			errs = append(errs, cg.Remove(layout.NodeCgroup(i)))
		}
		cg.Restore(r)
	}
	errs = append(errs, host.RestoreSysctls(r), host.RemoveLeftovers(c.layout, r))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the cluster is stopped, but not all of it could be removed; run `devcluster down` again: %w", err)
	}
	c.progress.Say("mounts, network, cgroups and files outside the state folder removed")
	if err := r.Clear(); err != nil {
		return err
	}
	if !wipe {
		return nil
	}
	return c.wipe(nodes)
}

// stopEverything ends the daemons that start containers first, then the containers, then the rest.
func (c *Cluster) stopEverything(nodes int, cg host.Cgroups) error {
	var first []string
	for i := 1; i <= nodes; i++ {
		first = append(first, node.Names(i)[1:]...)
	}
	if err := c.processes.Stop(append(first, kwok.Component)...); err != nil {
		return err
	}
	for i := 1; i <= nodes; i++ {
		if err := cg.Kill(layout.NodeCgroup(i)); err != nil {
			return err
		}
	}
	if err := c.processes.Stop(controlplane.Scheduler, controlplane.Manager, controlplane.APIServer); err != nil {
		return err
	}
	if err := c.processes.Stop(controlplane.Etcd); err != nil {
		return err
	}
	// Shims have nothing left to look after, and containerd nothing to lose.
	rest, err := c.processes.All()
	if err != nil {
		return err
	}
	if err := c.processes.End(rest, 0); err != nil {
		return err
	}
	if err := os.RemoveAll(c.layout.Run()); err != nil {
		return fmt.Errorf("remove the pid files: %w", err)
	}
	return c.awaitEmptyCgroups(nodes, cg)
}

// awaitEmptyCgroups waits for killed containers to be gone: the kernel removes no group before that.
func (c *Cluster) awaitEmptyCgroups(nodes int, cg host.Cgroups) error {
	return c.processes.Wait("the killed containers to end", patience, func() error {
		for i := 1; i <= nodes; i++ {
			if !cg.Empty(layout.NodeCgroup(i)) {
				return errors.Join(fmt.Errorf("processes are left in cgroup %s", layout.NodeCgroup(i)), cg.Kill(layout.NodeCgroup(i)))
			}
		}
		return nil
	})
}

func (c *Cluster) wipe(nodes int) error {
	paths := []string{c.layout.Etcd(), c.layout.Volumes(), c.layout.PKI(""), c.layout.Log(""), c.layout.Kubeconfig()}
	for i := 1; i <= nodes; i++ {
		paths = append(paths, c.layout.Node(i))
	}
	if err := host.RemoveState(paths...); err != nil {
		return err
	}
	c.progress.Say("cluster state wiped")
	return nil
}

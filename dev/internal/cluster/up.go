//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/addons"
	"github.com/mcp-operator/mcp-operator/dev/internal/controlplane"
	"github.com/mcp-operator/mcp-operator/dev/internal/host"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/network"
	"github.com/mcp-operator/mcp-operator/dev/internal/pki"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// patience is for one component to come up on a busy machine; each comes within seconds otherwise.
const patience = 90 * time.Second

// Options are the wishes of the one who brings the cluster up.
type Options struct {
	// Nodes is at least how many nodes there are; nodes of an earlier Up stay.
	Nodes        int
	ControlPlane controlplane.Options
}

// Up brings everything up that is not, and returns when all nodes are Ready and DNS answers.
func (c *Cluster) Up(o Options) error {
	r, cg, err := c.prepareMachine(&o)
	if err != nil {
		return err
	}
	if err := pki.EnsureCluster(c.layout, o.Nodes, time.Now()); err != nil {
		return err
	}
	if err := controlplane.Prepare(c.layout); err != nil {
		return err
	}
	if err := c.prepareNetwork(o.Nodes); err != nil {
		return err
	}
	c.progress.Say("certificates and network")

	// Nodes load the images of the cluster itself while the control plane starts.
	var nodes sync.WaitGroup
	errs := make([]error, o.Nodes)
	api := make(chan struct{})
	for i := range o.Nodes {
		nodes.Go(func() { errs[i] = c.startNode(i+1, cg, r, api) })
	}
	err = c.startControlPlane(o.ControlPlane)
	close(api)
	nodes.Wait()
	if err := errors.Join(append([]error{err}, errs...)...); err != nil {
		return err
	}
	c.progress.Say("daemons of %d nodes", o.Nodes)

	// Users' images come last: nothing of the cluster waits for them.
	loaded := make(chan error, 1)
	go func() { loaded <- c.loadImages() }()
	return errors.Join(c.awaitReady(o.Nodes), <-loaded)
}

// loadImages gives every node the images that `devcluster images` has made.
func (c *Cluster) loadImages() error {
	found, err := archives(c.layout.Images())
	if err != nil || len(found) == 0 {
		return err
	}
	if err := c.LoadMissing(found...); err != nil {
		return err
	}
	c.progress.Say("%d images loaded", len(found))
	return nil
}

// prepareMachine checks what the machine must offer, and records what is about to change on it.
func (c *Cluster) prepareMachine(o *Options) (*record.Record, host.Cgroups, error) {
	cg, err := cgroups()
	if err != nil {
		return nil, cg, err
	}
	if err := host.RequireCommands(); err != nil {
		return nil, cg, err
	}
	host.LoadModules()
	if err := network.Conflict(); err != nil {
		return nil, cg, err
	}
	if err := c.claim(); err != nil {
		return nil, cg, err
	}
	r, err := c.open()
	if err != nil {
		return nil, cg, err
	}
	o.Nodes = max(o.Nodes, r.Nodes, c.nodesOnDisk())
	r.AddNodes(o.Nodes)
	host.NoteFolders(r)
	if err := host.RaiseLimits(r); err != nil { // saves the record
		return nil, cg, err
	}
	return r, cg, host.LinkVolumes(c.layout)
}

// prepareNetwork makes the bridge and the nodes' ends. A daemon that lives in a network namespace
// which is no longer the node's is found out, and started anew, by its Spec.
func (c *Cluster) prepareNetwork(nodes int) error {
	if err := network.EnsureSwitch(); err != nil {
		return err
	}
	for i := 1; i <= nodes; i++ {
		if err := network.EnsureNode(i, nodes); err != nil {
			return fmt.Errorf("make the network of %s: %w", layout.NodeName(i), err)
		}
	}
	return nil
}

func (c *Cluster) startControlPlane(o controlplane.Options) error {
	for _, p := range controlplane.Ports() {
		_, running, err := c.processes.Find(p.Component)
		if err != nil {
			return err
		}
		if running {
			continue
		}
		if err := host.RequireFree(p.Component, p.Host, p.Number); err != nil {
			return err
		}
	}
	var names []string
	for _, s := range controlplane.Specs(c.layout, o) {
		if _, err := c.processes.Ensure(s); err != nil {
			return err
		}
		names = append(names, s.Name)
		if s.Name == controlplane.APIServer {
			if err := c.awaitAPIServer(names); err != nil {
				return err
			}
			c.progress.Say("API server answers")
		}
	}
	manifest, err := addons.Manifest()
	if err != nil {
		return err
	}
	return c.processes.Wait("the API server to take the addons", patience, func() error {
		_, err := c.Kubectl(manifest, "apply", "-f", "-")
		return err
	}, names...)
}

func (c *Cluster) awaitAPIServer(running []string) error {
	return c.processes.Wait("the API server's /readyz", patience, func() error {
		_, err := c.Kubectl(nil, "get", "--raw", "/readyz", "--request-timeout=2s")
		return err
	}, running...)
}

// awaitReady waits for what users need: nodes that take pods, and names that resolve.
func (c *Cluster) awaitReady(nodes int) error {
	err := c.processes.Wait(fmt.Sprintf("%d nodes to be Ready", nodes), patience, func() error {
		states, err := c.nodeStates()
		if err != nil {
			return err
		}
		ready := 0
		for _, n := range states {
			// What a kubelet said before it was started anew counts for nothing.
			if n.Ready && !n.reported.Before(c.kubeletStarted(n.Name)) {
				ready++
			}
		}
		if ready < nodes {
			return fmt.Errorf("%d of %d nodes are Ready; why not: kubectl describe nodes", ready, nodes)
		}
		return nil
	}, c.components(nodes)...)
	if err != nil {
		return err
	}
	c.progress.Say("%d nodes Ready", nodes)
	if err := c.processes.Wait("CoreDNS", patience, resolveAPIServer); err != nil {
		return fmt.Errorf("%w; to see why: kubectl -n kube-system describe pods", err)
	}
	c.progress.Say("DNS answers")
	return nil
}

// resolveAPIServer asks the cluster's DNS, through its Service, for a name that is always there.
func resolveAPIServer() error {
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(layout.DNSServiceIP, "53"))
	}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := r.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
	return err
}

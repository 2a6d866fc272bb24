//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-operator/mcp-operator/dev/internal/controlplane"
	"github.com/mcp-operator/mcp-operator/dev/internal/host"
	"github.com/mcp-operator/mcp-operator/dev/internal/kwok"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

// Kwok starts KWOK, and makes n simulated nodes if n is not 0.
func (c *Cluster) Kwok(n int) error {
	_, up, err := c.processes.Find(controlplane.APIServer)
	if err != nil {
		return err
	}
	if !up {
		return errors.New("the cluster is not up: run `devcluster up` first")
	}
	_, running, err := c.processes.Find(kwok.Component)
	if err != nil {
		return err
	}
	if !running {
		if err := host.RequireFree(kwok.Component, "127.0.0.1", layout.KwokPort); err != nil {
			return err
		}
	}
	if _, err := c.processes.Ensure(kwok.Spec(c.layout)); err != nil {
		return err
	}
	if n == 0 {
		c.progress.Say("KWOK runs; it acts on nodes annotated kwok.x-k8s.io/node=fake")
		return nil
	}
	if _, err := c.Kubectl(kwok.Nodes(n), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	err = c.processes.Wait("the simulated nodes", patience, func() error {
		out, err := c.Kubectl(nil, "get", "nodes", "-l", "type=kwok", "--no-headers")
		if err != nil {
			return err
		}
		if ready := strings.Count(out, " Ready "); ready < n {
			return fmt.Errorf("%d of %d are Ready", ready, n)
		}
		return nil
	}, kwok.Component)
	if err != nil {
		return err
	}
	c.progress.Say("%d simulated nodes Ready", n)
	return nil
}

//go:build linux

// Package cluster brings the whole local cluster up and down, and says how it is.
//
// Up may be run at any time, in whatever state a killed run, a crash or a reboot has left the
// machine: it looks at each part and makes what is missing. Down ends and removes all of it. Both
// hold the lock of the state folder, and one machine has one cluster.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/host"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/process"
	"github.com/mcp-operator/mcp-operator/dev/internal/progress"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// Cluster is the cluster of one state folder.
type Cluster struct {
	layout    layout.Layout
	processes *process.Table
	progress  *progress.Printer

	mu       sync.Mutex           // guards the record and kubelets while nodes start side by side
	kubelets map[string]time.Time // when Up started a node's kubelet, by the node's name
}

// New is the cluster of the state folder; it says what it does on p.
func New(l layout.Layout, p *progress.Printer) *Cluster {
	return &Cluster{layout: l, processes: process.NewTable(l), progress: p, kubelets: map[string]time.Time{}}
}

// Kubectl runs kubectl as the administrator and returns what it printed.
func (c *Cluster) Kubectl(stdin []byte, args ...string) (string, error) {
	cmd := exec.Command(c.layout.Bin("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.layout.Kubeconfig())
	if stdin != nil {
		cmd.Stdin = strings.NewReader(string(stdin))
	}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("kubectl %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// claim makes the machine's one place for a cluster ours, or says whose it is.
func (c *Cluster) claim() error {
	if err := c.checkOwner(); err != nil {
		return err
	}
	return record.WriteFile(layout.OwnerFile(), []byte(c.layout.Dir+"\n"), 0o644)
}

func (c *Cluster) checkOwner() error {
	b, err := os.ReadFile(layout.OwnerFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read whose cluster is on this machine: %w", err)
	}
	if owner := strings.TrimSpace(string(b)); owner != "" && owner != c.layout.Dir {
		return fmt.Errorf("a cluster with the state folder %[1]s is on this machine, and there is room for one: "+
			"end it with `devcluster --dir %[1]s down`", owner)
	}
	return nil
}

// open reads the record, after forgetting what a reboot undid.
func (c *Cluster) open() (*record.Record, error) {
	r, err := record.Load(c.layout.Record())
	if err != nil {
		return nil, err
	}
	boot, err := record.CurrentBootID()
	if err != nil {
		return nil, err
	}
	r.Booted(boot)
	return r, nil
}

// cgroups looks for the controllers the kubelet needs.
func cgroups() (host.Cgroups, error) { return host.FindCgroups("/sys/fs/cgroup") }

// nodesOnDisk counts the nodes that have a folder, whatever the record says.
func (c *Cluster) nodesOnDisk() int {
	n := 0
	for i := 1; i <= layout.MaxNodes; i++ {
		if _, err := os.Stat(c.layout.Node(i)); err == nil {
			n = i
		}
	}
	return n
}

// archives are the image archives in a folder.
func archives(dir string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.tar"))
	if err != nil {
		return nil, fmt.Errorf("list image archives: %w", err)
	}
	return found, nil
}

//go:build linux

// Package cli is devcluster's command line: it parses, takes the lock of the state folder where a
// command changes something, and calls the package that does the work.
package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-operator/mcp-operator/dev/internal/cluster"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/lock"
	"github.com/mcp-operator/mcp-operator/dev/internal/progress"
)

// session is one run of devcluster.
type session struct {
	dir      string
	layout   layout.Layout
	progress *progress.Printer
}

// Run runs the command line given in args, without the program's name.
func Run(args []string) error {
	s := &session{progress: progress.New(os.Stdout)}
	root := &cobra.Command{
		Use:   "devcluster",
		Short: "A real Kubernetes cluster on this Linux machine, built from Go modules",
		Long: `devcluster builds Kubernetes, etcd, containerd, runc and the rest from Go modules and runs them as a
real cluster on this machine: each node in a network namespace of its own, nothing with a route to
the outside, no registry, no container engine.

  devcluster up                      build what is missing, start, wait until all is ready
  eval "$(devcluster env)"           set KUBECONFIG, KUBEBUILDER_ASSETS and PATH
  devcluster images everything       build an image and load it into every node
  devcluster down                    stop all and leave nothing behind`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return s.resolve() },
	}
	root.PersistentFlags().StringVar(&s.dir, "dir", layout.Default(), "state folder: binaries, images, logs, certificates and data ($DEVCLUSTER_DIR)")
	root.AddCommand(s.build(), s.up(), s.down(), s.status(), s.load(), s.images(), s.kwok(), s.kubectl(), s.env())
	root.SetArgs(args)
	return root.Execute()
}

// resolve makes the state folder and finds its real path: processes are known by it.
func (s *session) resolve() error {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return fmt.Errorf("find the state folder %s: %w", s.dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the state folder: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fmt.Errorf("find the state folder %s: %w", s.dir, err)
	}
	s.layout = layout.Layout{Dir: dir}
	return nil
}

// locked runs do while no other devcluster command changes binaries or the cluster.
func (s *session) locked(command string, do func() error) error {
	return s.holding(s.layout.Lock(), command, do)
}

func (s *session) holding(path, command string, do func() error) error {
	l, err := lock.Acquire(path, command, lock.Patience, func(msg string) { s.progress.Say("%s", msg) })
	if err != nil {
		return err
	}
	defer func() { _ = l.Release() }()
	return do()
}

func (s *session) cluster() *cluster.Cluster { return cluster.New(s.layout, s.progress) }

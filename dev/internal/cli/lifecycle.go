//go:build linux

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-operator/mcp-operator/dev/internal/build"
	"github.com/mcp-operator/mcp-operator/dev/internal/cluster"
	"github.com/mcp-operator/mcp-operator/dev/internal/gobuild"
	"github.com/mcp-operator/mcp-operator/dev/internal/host"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

func (s *session) build() *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build every binary of the cluster (cold about 10 minutes on 2 cores, then seconds)",
		Long: `Builds every binary of the cluster from Go modules, step by step. What has not changed is skipped.
On Debian, missing packages (iptables, libseccomp-dev, …) are installed first, if run as root.

With --only=envtest it builds just etcd, kube-apiserver and kubectl, as any user, and you can run
  KUBEBUILDER_ASSETS=<state folder>/assets go test ./...`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if only != "" && only != "envtest" {
				return fmt.Errorf("--only=%s: the only value is \"envtest\"", only)
			}
			return s.locked("build", func() error { return s.runBuild(build.Options{EnvtestOnly: only == "envtest"}) })
		},
	}
	cmd.Flags().StringVar(&only, "only", "", `"envtest": only what controller-runtime's envtest needs`)
	return cmd
}

func (s *session) runBuild(o build.Options) error {
	source, err := gobuild.Source()
	if err != nil {
		return err
	}
	o.Packages = func() (string, error) { return host.EnsurePackages(host.Packages...) }
	return build.Run(s.layout, source, o, s.progress)
}

func (s *session) up() *cobra.Command {
	var o cluster.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up, or mend it; safe to run at any time",
		Long: `Builds what is missing, and makes everything run that does not: after a first install, a reboot, a
crash, or a run that was killed half-way. Needs root. What already runs as it should is left alone; a
component whose arguments, configuration or binary changed is restarted.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := host.RequireRoot("up"); err != nil {
				return err
			}
			if o.Nodes < 1 || o.Nodes > layout.MaxNodes {
				return fmt.Errorf("--nodes=%d: want 1 to %d", o.Nodes, layout.MaxNodes)
			}
			return s.locked("up", func() error {
				if err := s.runBuild(build.Options{Quiet: true}); err != nil {
					return err
				}
				if err := s.cluster().Up(o); err != nil {
					return err
				}
				s.progress.Plain("\nThe cluster is up. Use it:\n\n  export KUBECONFIG=%s\n  %s get nodes\n", s.layout.Kubeconfig(), s.layout.Bin("kubectl"))
				return nil
			})
		},
	}
	cmd.Flags().IntVar(&o.Nodes, "nodes", 2, "at least so many nodes (nodes that are there stay)")
	cmd.Flags().StringArrayVar(&o.ControlPlane.APIServerArgs, "apiserver-arg", nil,
		"one more argument of kube-apiserver, e.g. --apiserver-arg=--emulated-version=1.34 (repeatable)")
	cmd.Flags().StringArrayVar(&o.ControlPlane.ManagerArgs, "kcm-arg", nil, "one more argument of kube-controller-manager (repeatable)")
	return cmd
}

func (s *session) down() *cobra.Command {
	var wipe bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the cluster; leaves nothing outside the state folder",
		Long: `Ends every process of the cluster and removes its mounts, network namespaces, routes, cgroups and
files outside the state folder. The objects in the cluster are kept for the next "up", unless --wipe is given.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := host.RequireRoot("down"); err != nil {
				return err
			}
			return s.locked("down", func() error { return s.cluster().Down(wipe) })
		},
	}
	cmd.Flags().BoolVar(&wipe, "wipe", false, "also remove objects, volumes, loaded images, certificates and logs; binaries and image archives stay")
	return cmd
}

//go:build linux

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-operator/mcp-operator/dev/internal/host"
)

// ErrNotUp makes `devcluster status` exit with 1 without another word: the table has said it all.
var ErrNotUp = errors.New("")

func (s *session) status() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what is up; exit code 0 only if all is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := host.RequireRoot("status"); err != nil {
				return err
			}
			if output != "" && output != "json" {
				return fmt.Errorf("--output=%s: the only value is \"json\"", output)
			}
			st, err := s.cluster().Status()
			if err != nil {
				return err
			}
			if output == "json" {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				err = e.Encode(st)
			} else {
				err = st.Print(cmd.OutOrStdout())
			}
			if err == nil && !st.Up {
				return ErrNotUp
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", `"json" for programs`)
	return cmd
}

func (s *session) load() *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE-ARCHIVE...",
		Short: "Import image archives into every node",
		Long: `Imports archives (as docker save, podman save or crane export write them, or "devcluster images")
into every node. Use the image with imagePullPolicy IfNotPresent or Never: nothing can be pulled.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, archives []string) error {
			if err := host.RequireRoot("load"); err != nil {
				return err
			}
			return s.locked("load", func() error {
				if err := s.cluster().Load(archives...); err != nil {
					return err
				}
				s.progress.Say("loaded %d archives into every node", len(archives))
				return nil
			})
		},
	}
}

func (s *session) kwok() *cobra.Command {
	var nodes int
	cmd := &cobra.Command{
		Use:   "kwok",
		Short: "Start KWOK, which simulates nodes and pods",
		Long: `Starts KWOK beside the real nodes. It acts only on nodes with the annotation kwok.x-k8s.io/node=fake;
--nodes makes some. Pods land there with nodeSelector type=kwok and a toleration of kwok.x-k8s.io/node.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := host.RequireRoot("kwok"); err != nil {
				return err
			}
			return s.locked("kwok", func() error { return s.cluster().Kwok(nodes) })
		},
	}
	cmd.Flags().IntVar(&nodes, "nodes", 0, "make so many simulated nodes, each with room for 250 pods")
	return cmd
}

func (s *session) kubectl() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl ARGS...",
		Short:              "Run kubectl against the cluster",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			bin := s.layout.Bin("kubectl")
			if _, err := os.Stat(bin); err != nil {
				return errors.New("kubectl is not built yet: run `devcluster build`")
			}
			if err := os.Setenv("KUBECONFIG", s.layout.Kubeconfig()); err != nil {
				return fmt.Errorf("set KUBECONFIG: %w", err)
			}
			return fmt.Errorf("run %s: %w", bin, syscall.Exec(bin, append([]string{"kubectl"}, args...), os.Environ()))
		},
	}
}

func (s *session) env() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: `Print settings for a shell: eval "$(devcluster env)"`,
		Long:  `Prints KUBECONFIG, KUBEBUILDER_ASSETS (for envtest), and a PATH that begins with kubectl's folder.`,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			assets := s.layout.Assets()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%q\nexport KUBEBUILDER_ASSETS=%q\nexport PATH=%q:\"$PATH\"\n",
				s.layout.Kubeconfig(), assets, filepath.Clean(assets))
			return err
		},
	}
}

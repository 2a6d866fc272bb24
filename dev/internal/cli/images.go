//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcp-operator/mcp-operator/dev/internal/gobuild"
	"github.com/mcp-operator/mcp-operator/dev/internal/host"
	"github.com/mcp-operator/mcp-operator/dev/internal/image"
)

func (s *session) images() *cobra.Command {
	var list, noLoad bool
	cmd := &cobra.Command{
		Use:   "images [NAME...]",
		Short: "Build images, and load them if the cluster is up",
		Long: `Builds the named images, or all, as archives in the state folder's images-out, and loads them into
every node if the cluster is up. They are called mcp-operator/NAME:dev. With kind, use
  kind load image-archive <state folder>/images-out/NAME.tar`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if list {
				return listImages(cmd.OutOrStdout())
			}
			return s.holding(s.layout.ImagesLock(), "images", func() error { return s.buildImages(names, !noLoad) })
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "print what can be built")
	cmd.Flags().BoolVar(&noLoad, "no-load", false, "write the archives only")
	return cmd
}

func listImages(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tIMAGE\tKIND\tWHAT")
	for _, d := range image.Catalog {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Name, d.Ref(), d.Kind, d.About)
	}
	return w.Flush()
}

func (s *session) buildImages(names []string, load bool) error {
	wanted, err := chooseImages(names)
	if err != nil {
		return err
	}
	source, err := gobuild.Source()
	if err != nil {
		return err
	}
	if _, err := gobuild.RequireGo(source); err != nil {
		return err
	}
	b := image.Builder{Layout: s.layout, Source: source, NPM: requireNPM}
	var archives []string
	for i, d := range wanted {
		err := s.progress.Step(i+1, len(wanted), d.Ref(), func() (string, error) {
			r, err := b.Build(d)
			if errors.Is(err, image.ErrUnavailable) && len(names) == 0 {
				return "skipped (" + err.Error() + ")", nil
			}
			if err != nil {
				return "", err
			}
			archives = append(archives, r.Archive)
			return sizeOf(r), nil
		})
		if err != nil {
			return err
		}
	}
	s.progress.Plain("archives are in %s", filepath.Clean(s.layout.Images()))
	return s.loadIfUp(archives, load)
}

func (s *session) loadIfUp(archives []string, load bool) error {
	c := s.cluster()
	up, err := c.Running()
	if err != nil {
		return err
	}
	if !load || !up {
		return nil
	}
	return s.locked("images", func() error {
		if err := c.LoadMissing(archives...); err != nil {
			return err
		}
		s.progress.Say("every node has them")
		return nil
	})
}

func chooseImages(names []string) ([]image.Definition, error) {
	if len(names) == 0 {
		return image.Catalog, nil
	}
	var chosen []image.Definition
	for _, n := range names {
		d, ok := image.Find(n)
		if !ok {
			var known []string
			for _, d := range image.Catalog {
				known = append(known, d.Name)
			}
			return nil, fmt.Errorf("there is no image %q; there are: %s", n, strings.Join(known, ", "))
		}
		chosen = append(chosen, d)
	}
	return chosen, nil
}

func sizeOf(r image.Result) string {
	s := fmt.Sprintf("%.1f MB", float64(r.Size)/1e6)
	if r.Unchanged {
		s += ", unchanged"
	}
	return s
}

// requireNPM installs npm on Debian if it is missing and we may.
func requireNPM() error {
	if _, err := exec.LookPath("npm"); err == nil {
		return nil
	}
	if _, err := host.EnsurePackages("npm"); err != nil {
		return err
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return errors.New("this image is made of npm packages, and npm is not installed: install Node.js with npm")
	}
	return nil
}

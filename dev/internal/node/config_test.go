//go:build linux

package node

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestTheConfigurationOfANodeIsAsInTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name := range configFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := render(name, valuesFor(layout.Layout{Dir: "/state"}, 2))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

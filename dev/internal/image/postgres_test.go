package image

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLinksOfThePostgresPackageAreMadeInsideItAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		links string
		want  bool
	}{
		"a link beside its library":  {`[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]`, true},
		"a link out of the package":  {`[{"source":"native/lib/libpq.so.5.18","target":"native/lib/../../../libpq.so.5"}]`, false},
		"a link to something beyond": {`[{"source":"native/../../secret","target":"native/lib/libpq.so.5"}]`, false},
		"no list":                    {`{`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native := filepath.Join(t.TempDir(), "native")
			write(t, filepath.Join(native, "lib", "libpq.so.5.18"), "library", 0o755)
			write(t, filepath.Join(native, "pg-symlinks.json"), tt.links, 0o644)
			for range 2 { // the second time the links are there
				if err := linkLibraries(native); (err == nil) != tt.want {
					t.Errorf("error %v, want none: %t", err, tt.want)
				}
			}
			content, err := os.ReadFile(filepath.Join(native, "lib", "libpq.so.5"))
			if (err == nil) != tt.want || tt.want && string(content) != "library" {
				t.Errorf("the link leads to %q, %v", content, err)
			}
		})
	}
}

package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/mcp-operator/mcp-operator/dev/internal/gobuild"
)

// postgresFolder is where cmd/postgres looks for PostgreSQL.
const postgresFolder = "/usr/local/pgsql"

// postgres is the database on top of the program that starts it. initdb runs the server through a shell: that, and the C library, are
// the machine's.
func (b Builder) postgres(d Definition) (ingredients, error) {
	i, err := b.compiled(d, b.Source, gobuild.LeanFlags)
	if err != nil {
		return ingredients{}, err
	}
	modules, lock, err := b.install(d.Name)
	if err != nil {
		return ingredients{}, err
	}
	native := filepath.Join(modules, "@embedded-postgres", "linux-x64", "native")
	if err := linkLibraries(native); err != nil {
		return ingredients{}, err
	}
	libraries, err := sharedLibraries("/bin/sh")
	if err != nil {
		return ingredients{}, err
	}
	for _, binary := range []string{"postgres", "initdb"} {
		needed, err := sharedLibraries(filepath.Join(native, "bin", binary))
		if err != nil {
			return ingredients{}, err
		}
		libraries = append(libraries, slices.DeleteFunc(needed, func(path string) bool { return strings.HasPrefix(path, modules) })...)
	}
	slices.Sort(libraries)
	libraries = slices.Compact(libraries)
	digest, err := fileDigest(append([]string{lock, "/bin/sh"}, libraries...)...)
	if err != nil {
		return ingredients{}, err
	}
	i = i.and(digest, func() (v1.Layer, error) {
		files := []file{{target: "/bin/sh", source: "/bin/sh", mode: 0o755}}
		for _, path := range libraries {
			files = append(files, file{target: path, source: path, mode: 0o755})
		}
		return filesLayer(files)
	})
	return i.and("", func() (v1.Layer, error) { return treeLayer(native, postgresFolder) }), nil
}

// linkLibraries makes the links that npm cannot carry and that a script of the package would make; none of its scripts is run.
func linkLibraries(native string) error {
	list, err := os.ReadFile(filepath.Join(native, "pg-symlinks.json"))
	if err != nil {
		return fmt.Errorf("read which links the package of PostgreSQL wants: %w", err)
	}
	var links []struct {
		Source string `json:"source"`
		Target string `json:"target"`
	}
	if err := json.Unmarshal(list, &links); err != nil {
		return fmt.Errorf("read which links the package of PostgreSQL wants: %w", err)
	}
	for _, l := range links {
		source, target := filepath.Base(l.Source), filepath.Join(filepath.Dir(native), l.Target)
		if !strings.HasPrefix(target, native+string(filepath.Separator)) || filepath.Dir(l.Source) != filepath.Dir(l.Target) {
			return fmt.Errorf("the package of PostgreSQL wants the link %s to %s, which leaves its folder", l.Target, l.Source)
		}
		if err := os.Symlink(source, target); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("link a library of PostgreSQL: %w", err)
		}
	}
	return nil
}

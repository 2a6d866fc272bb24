package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestTheSameInputsGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	var archives [2][]byte
	for i := range archives {
		dir := t.TempDir()
		binary := write(t, filepath.Join(dir, "server"), "binary", 0o755)
		// Another time of the source must not show.
		when := time.Unix(int64(1000*i), 0)
		if err := os.Chtimes(binary, when, when); err != nil {
			t.Fatal(err)
		}
		archive := filepath.Join(dir, "out.tar")
		if _, err := WriteBinary(archive, "mcp-operator/server:dev", binary, Config{Cmd: []string{"serve"}}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = b
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same binary differ")
	}
}

func TestAnImageIsNamedAndRunsAsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := filepath.Join(dir, "out.tar")
	binary := write(t, filepath.Join(dir, "server"), "binary", 0o755)
	size, err := WriteBinary(archive, "mcp-operator/server:dev", binary, Config{Cmd: []string{"serve"}, Env: []string{"PORT=8080"}, Port: 8080})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(archive); err != nil || info.Size() != size {
		t.Errorf("size told: %d, file: %v, %v", size, info, err)
	}
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/server"}, Cmd: []string{"serve"}, User: "65532:65532", WorkingDir: "/",
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin:/", "PORT=8080"}, ExposedPorts: map[string]struct{}{"8080/tcp": {}},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mcp-operator/server:dev"}, repoTags(t, archive)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestALayerHoldsTheTreeSortedWithItsFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b", "run.js"), "x", 0o755)
	write(t, filepath.Join(dir, "a.txt"), "yy", 0o600)
	if err := os.Symlink("../b/run.js", filepath.Join(dir, "b", "link")); err != nil {
		t.Fatal(err)
	}
	layer, err := treeLayer(dir, "/app")
	if err != nil {
		t.Fatal(err)
	}
	content, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Name, Link string
		Mode       int64
		Size       int64
		Type       byte
	}
	want := []entry{
		{Name: "app/", Mode: 0o755, Type: tar.TypeDir},
		{Name: "app/a.txt", Mode: 0o644, Size: 2, Type: tar.TypeReg},
		{Name: "app/b/", Mode: 0o755, Type: tar.TypeDir},
		{Name: "app/b/link", Link: "../b/run.js", Mode: 0o777, Type: tar.TypeSymlink},
		{Name: "app/b/run.js", Mode: 0o755, Size: 1, Type: tar.TypeReg},
	}
	var got []entry
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || !h.ModTime.Equal(epoch) {
			t.Errorf("%s: uid %d, time %s", h.Name, h.Uid, h.ModTime)
		}
		got = append(got, entry{Name: h.Name, Link: h.Linkname, Mode: h.Mode, Size: h.Size, Type: h.Typeflag})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLibrariesAreReadFromTheOutputOfLdd(t *testing.T) {
	t.Parallel()
	got, err := parseLdd("\tlinux-vdso.so.1 (0x00007ffd)\n" +
		"\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n" +
		"\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := parseLdd("\tlibatomic.so.1 => not found\n"); err == nil {
		t.Error("a missing library is no error")
	}
}

func TestEveryImageOfTheCatalogIsNamedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range Catalog {
		if seen[d.Name] || d.About == "" || d.Source == "" {
			t.Errorf("%+v", d)
		}
		seen[d.Name] = true
		if found, ok := Find(d.Name); !ok || found.Ref() != "mcp-operator/"+d.Name+":dev" {
			t.Errorf("Find(%q) = %+v, %v", d.Name, found, ok)
		}
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// repoTags reads the names an importer will use from the archive's manifest.
func repoTags(t *testing.T, archive string) []string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("no manifest.json: %v", err)
		}
		if h.Name != "manifest.json" {
			continue
		}
		var manifest []struct {
			RepoTags []string `json:"RepoTags"`
		}
		if err := json.NewDecoder(r).Decode(&manifest); err != nil || len(manifest) != 1 {
			t.Fatalf("manifest: %+v, %v", manifest, err)
		}
		return manifest[0].RepoTags
	}
}

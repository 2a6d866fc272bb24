// Package image makes container images without a container engine and without a registry, and writes
// them as archives (docker-archive) that `ctr images import` and `kind load image-archive` take.
//
// The same inputs give the same bytes: times are fixed, files sorted, and nothing of the machine but
// the listed inputs gets in.
package image

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// User is whom every image runs as: numeric, so that runAsNonRoot can be checked.
const User = "65532:65532"

// Config is what an image says about how it is run.
type Config struct {
	Entrypoint, Cmd, Env []string
	// User is UID:GID; the default is User.
	User string
	// Port is told as exposed; 0 is none.
	Port int
}

// Write makes an image of the layers and writes it to the archive; it returns the archive's size.
func Write(archive, ref string, c Config, layers ...v1.Layer) (int64, error) {
	tag, err := name.NewTag(ref)
	if err != nil {
		return 0, fmt.Errorf("parse the image name %q: %w", ref, err)
	}
	img, err := assemble(c, layers)
	if err != nil {
		return 0, fmt.Errorf("assemble image %s: %w", ref, err)
	}
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return 0, fmt.Errorf("create the folder of images: %w", err)
	}
	tmp := archive + ".new"
	if err := tarball.WriteToFile(tmp, tag, img); err != nil {
		return 0, fmt.Errorf("write image %s: %w", ref, err)
	}
	if err := os.Rename(tmp, archive); err != nil {
		return 0, fmt.Errorf("write image %s: %w", ref, err)
	}
	info, err := os.Stat(archive)
	if err != nil {
		return 0, fmt.Errorf("write image %s: %w", ref, err)
	}
	return info.Size(), nil
}

// WriteBinary makes an image of one static binary, which becomes its entry point.
func WriteBinary(archive, ref, binary string, c Config) (int64, error) {
	root, err := rootLayer()
	if err != nil {
		return 0, err
	}
	target := "/" + path.Base(binary)
	layer, err := filesLayer([]file{{target: target, source: binary, mode: 0o755}})
	if err != nil {
		return 0, err
	}
	c.Entrypoint = []string{target}
	return Write(archive, ref, c, root, layer)
}

func assemble(c Config, layers []v1.Layer) (v1.Image, error) {
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("append layers: %w", err)
	}
	old, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	config := old.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: epoch}
	for i := range config.History {
		config.History[i].Created = v1.Time{Time: epoch}
	}
	config.Config = v1.Config{
		Entrypoint: c.Entrypoint, Cmd: c.Cmd, User: c.User, WorkingDir: "/",
		Env: append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/"}, c.Env...),
	}
	if c.User == "" {
		config.Config.User = User
	}
	if c.Port != 0 {
		config.Config.ExposedPorts = map[string]struct{}{fmt.Sprintf("%d/tcp", c.Port): {}}
	}
	return mutate.ConfigFile(img, config)
}

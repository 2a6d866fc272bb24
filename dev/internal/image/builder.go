package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/mcp-operator/mcp-operator/dev/internal/gobuild"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// ErrUnavailable says that an image cannot be built here: the repository has no such main package
// (yet), or the image is not made for this machine's architecture.
var ErrUnavailable = errors.New("is not available")

// Builder makes the images of the catalog.
type Builder struct {
	Layout layout.Layout
	// Source is the folder dev/ of the repository.
	Source string
	// NPM makes sure that npm can be run; it is called before the first image that needs it.
	NPM func() error
}

// Result is what became of one image.
type Result struct {
	Archive string
	// Size is the archive's, in bytes.
	Size int64
	// Unchanged says that the archive was up to date already.
	Unchanged bool
}

// Build brings the archive of one image up to date.
func (b Builder) Build(d Definition) (Result, error) {
	archive := filepath.Join(b.Layout.Images(), d.Name+".tar")
	ingredients, err := b.prepare(d)
	if err != nil {
		return Result{}, err
	}
	digest := ingredients.digest(d)
	stamp := filepath.Join(b.Layout.ImageCache(), d.Name+".inputs")
	if info, err := os.Stat(archive); err == nil {
		if old, err := os.ReadFile(stamp); err == nil && string(old) == digest {
			return Result{Archive: archive, Size: info.Size(), Unchanged: true}, nil
		}
	}
	if err := os.Remove(stamp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Result{}, fmt.Errorf("forget the last build of image %s: %w", d.Name, err)
	}
	layers, err := ingredients.layers()
	if err != nil {
		return Result{}, err
	}
	config := Config{Entrypoint: ingredients.entrypoint, Cmd: d.Cmd, Env: d.Env, Port: d.Port}
	size, err := Write(archive, d.Ref(), config, layers...)
	if err != nil {
		return Result{}, err
	}
	return Result{Archive: archive, Size: size}, record.WriteFile(stamp, []byte(digest), 0o644)
}

// ingredients are everything an image is made of, ready on disk.
type ingredients struct {
	entrypoint []string
	// inputs is a digest of the content that layers reads.
	inputs string
	layers func() ([]v1.Layer, error)
}

func (i ingredients) digest(d Definition) string {
	d.About = ""
	ca, err := fileDigest(caBundle)
	if err != nil {
		ca = "none"
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v %q %s %s %s", d, i.entrypoint, i.inputs, ca, runtime.GOARCH))
	return hex.EncodeToString(sum[:])
}

func (b Builder) prepare(d Definition) (ingredients, error) {
	if d.OnlyFor != "" && d.OnlyFor != runtime.GOARCH {
		return ingredients{}, fmt.Errorf("image %s %w: it is made for %s, and this machine is %s", d.Name, ErrUnavailable, d.OnlyFor, runtime.GOARCH)
	}
	switch d.Kind {
	case Dev:
		return b.withData(d)
	case PostgreSQL:
		return b.postgres(d)
	case Go:
		return b.compiled(d, filepath.Join(b.Source, "images"), gobuild.LeanFlags)
	case Project:
		root := gobuild.Project(b.Source)
		if _, err := os.Stat(filepath.Join(root, d.Source)); err != nil {
			return ingredients{}, fmt.Errorf("image %s %w: there is no %s in %s", d.Name, ErrUnavailable, d.Source, root)
		}
		// No -trimpath: with the flags of `go build` and `go test` the packages are compiled once for all.
		return b.compiled(d, root, nil)
	case NPM:
		return b.nodePackage(d)
	case NPMBinary:
		return b.npmBinary(d)
	}
	return ingredients{}, fmt.Errorf("image %s is of the unknown kind %q", d.Name, d.Kind)
}

// compiled builds a static binary. The compiler's own cache decides whether there is something to do,
// so the binary itself is the digest of its sources.
func (b Builder) compiled(d Definition, module string, flags []string) (ingredients, error) {
	binary := filepath.Join(b.Layout.ImageCache(), "bin", d.Name)
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return ingredients{}, fmt.Errorf("create the cache of images: %w", err)
	}
	if err := os.MkdirAll(b.Layout.Log(""), 0o755); err != nil {
		return ingredients{}, fmt.Errorf("create the folder of logs: %w", err)
	}
	build := gobuild.Build{Dir: module, Packages: []string{d.Source}, Output: binary, CGO: "0", Flags: append(slices.Clone(flags), "-ldflags", "-s -w")}
	if err := build.Run(b.Layout.Log("image-" + d.Name)); err != nil {
		return ingredients{}, fmt.Errorf("build image %s: %w", d.Name, err)
	}
	return staticBinary(binary, "/"+d.Name)
}

// withData is a binary of this module, and the file that it serves, if any.
func (b Builder) withData(d Definition) (ingredients, error) {
	i, err := b.compiled(d, b.Source, gobuild.LeanFlags)
	if err != nil || d.Data == "" {
		return i, err
	}
	modules, lock, err := b.install(d.Name)
	if err != nil {
		return ingredients{}, err
	}
	digest, err := fileDigest(lock)
	if err != nil {
		return ingredients{}, err
	}
	data := file{target: "/data/" + path.Base(d.Data), source: filepath.Join(modules, d.Data), mode: 0o644}
	return i.and(digest, func() (v1.Layer, error) { return filesLayer([]file{data}) }), nil
}

// and puts another layer on top.
func (i ingredients) and(inputs string, layer func() (v1.Layer, error)) ingredients {
	below := i.layers
	i.inputs += " " + inputs
	i.layers = func() ([]v1.Layer, error) {
		all, err := below()
		if err != nil {
			return nil, err
		}
		top, err := layer()
		return append(all, top), err
	}
	return i
}

// staticBinary is an image with nothing but a binary.
func staticBinary(binary, target string) (ingredients, error) {
	digest, err := fileDigest(binary)
	if err != nil {
		return ingredients{}, err
	}
	return ingredients{
		entrypoint: []string{target}, inputs: digest,
		layers: func() ([]v1.Layer, error) {
			root, err := rootLayer()
			if err != nil {
				return nil, err
			}
			layer, err := filesLayer([]file{{target: target, source: binary, mode: 0o755}})
			return []v1.Layer{root, layer}, err
		},
	}, nil
}

func fileDigest(paths ...string) (string, error) {
	h := sha256.New()
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			return "", fmt.Errorf("read an input of an image: %w", err)
		}
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("read an input of an image: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

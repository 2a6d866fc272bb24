// Package build compiles the cluster's binaries from Go modules, and makes the few images the cluster
// needs for itself. A step whose inputs have not changed since it last succeeded is skipped; the
// record of that is in the state folder.
package build

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-operator/mcp-operator/dev/internal/gobuild"
	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

// Versions that a binary cannot know by itself when it is built as a dependency.
const (
	KubernetesVersion = "v1.37.2"
	containerdVersion = "2.4.2"
	runcVersion       = "1.5.3"
)

// kubeComponents are links to the one binary that holds them all.
var kubeComponents = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"}

// assets are the links that envtest looks for.
var assets = []string{"etcd", "kube-apiserver", "kubectl"}

// step is one line of the build's progress.
type step struct {
	title string
	// build is what go build is asked for; nil for steps that compile nothing.
	build *gobuild.Build
	// sources are folders whose files are inputs, besides the module's go.mod and go.sum.
	sources []string
	// outputs must be there for the step to be skipped.
	outputs []string
	// after runs when the build has succeeded.
	after func() error
	// always replaces all of the above: it decides itself whether there is something to do.
	always func() (outcome string, err error)
	// inputs is the digest of everything the result depends on; Run sets it.
	inputs string
	// envtest marks what envtest needs.
	envtest bool
}

// plan is the list of steps that compile. Each output is static unless noted.
func plan(l layout.Layout, source string) []step {
	c := "github.com/containerd/containerd/v2/cmd/"
	cni := "github.com/containernetworking/plugins/plugins/"
	own := func(name string) step {
		return compile(l, source, name, nil, "./cmd/"+name)
	}
	kube := compile(l, source, "Kubernetes "+KubernetesVersion+" and etcd", kubeFlags(), "./cmd/kube")
	kube.envtest, kube.after = true, func() error { return link(l) }
	kube.outputs = append(kube.outputs, under(l.Bin(""), kubeComponents)...)
	kube.outputs = append(kube.outputs, under(l.Assets(), assets)...)
	containerd := compile(l, source, "containerd", []string{
		"-tags", "no_btrfs,no_devmapper,no_zfs",
		"-ldflags", "-s -w -X github.com/containerd/containerd/v2/version.Version=" + containerdVersion,
	}, c+"containerd", c+"containerd-shim-runc-v2", c+"ctr")
	plugins := compile(l, source, "CNI plugins", nil, cni+"main/bridge", cni+"main/loopback", cni+"ipam/host-local", cni+"meta/portmap")
	plugins.build.Output = l.CNIBin() + "/"
	plugins.outputs = under(l.CNIBin(), plugins.build.Packages)
	// runc alone needs cgo: its first stage is C, and it links libseccomp for pods with RuntimeDefault.
	// A module of its own: it wants a newer opencontainers/cgroups than the kubelet was tested with.
	runc := compile(l, filepath.Join(source, "runc"), "runc", []string{
		"-tags", "seccomp", "-ldflags", "-s -w -X main.version=" + runcVersion,
	}, "github.com/opencontainers/runc")
	runc.build.CGO = "1"
	kwok := compile(l, source, "KWOK", nil, "sigs.k8s.io/kwok/cmd/kwok")
	kwok.outputs = append(kwok.outputs, l.KwokStages())
	kwok.after = func() error { return stages(l, source) }
	return []step{kube, containerd, runc, plugins, own("coredns"), own("netpol"), kwok, own("pause")}
}

// compile is a step that builds packages into bin/, named by their last path element.
func compile(l layout.Layout, dir, title string, flags []string, packages ...string) step {
	if flags == nil {
		flags = []string{"-ldflags", "-s -w"}
	}
	s := step{title: title, outputs: under(l.Bin(""), packages)}
	s.build = &gobuild.Build{Dir: dir, Packages: packages, Output: l.Bin("") + "/", CGO: "0", Flags: append(slices.Clone(gobuild.LeanFlags), flags...)}
	for _, p := range packages {
		if strings.HasPrefix(p, "./") {
			s.sources = append(s.sources, filepath.Join(dir, p))
		}
	}
	return s
}

func under(dir string, packages []string) []string {
	var files []string
	for _, p := range packages {
		files = append(files, filepath.Join(dir, filepath.Base(p)))
	}
	return files
}

// kubeFlags stamp the version: without it the binaries report v0.0.0, and clients misjudge them.
func kubeFlags() []string {
	ld := []string{"-s", "-w"}
	parts := strings.Split(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		ld = append(ld, "-X", p+".gitVersion="+KubernetesVersion, "-X", p+".gitMajor="+parts[0], "-X", p+".gitMinor="+parts[1],
			"-X", p+".gitTreeState=clean", "-X", p+".gitCommit=go-module")
	}
	return []string{"-ldflags", strings.Join(ld, " ")}
}

func link(l layout.Layout) error {
	for _, c := range kubeComponents {
		if err := symlink("kube", l.Bin(c)); err != nil {
			return err
		}
	}
	for _, a := range assets {
		if err := symlink("../bin/kube", filepath.Join(l.Assets(), a)); err != nil {
			return err
		}
	}
	return nil
}

func symlink(to, path string) error {
	if old, err := os.Readlink(path); err == nil && old == to {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create the folder of %s: %w", path, err)
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := os.Symlink(to, path); err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	return nil
}

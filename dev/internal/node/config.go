//go:build linux

// Package node describes one node: the configuration of its containerd, kubelet, kube-proxy and
// NetworkPolicy controller, and the four daemons, which live in the node's network namespace.
package node

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/*"))

// values are what the templates may use.
type values struct {
	Name, IP, PodCIDR, AllPods, DNS, Cgroup string
	// Dir and Run are the node's folders inside and outside the state folder.
	Dir, Run, Socket, PKI, CNIBin, Runc, PauseImage string
}

func valuesFor(l layout.Layout, i int) values {
	return values{
		Name: layout.NodeName(i), IP: layout.NodeIP(i), PodCIDR: layout.NodePodCIDR(i), AllPods: layout.PodCIDR,
		DNS: layout.DNSServiceIP, Cgroup: layout.NodeCgroup(i), Dir: l.Node(i), Run: layout.NodeRun(i),
		Socket: layout.ContainerdSocket(i), PKI: l.PKI(""), CNIBin: l.CNIBin(), Runc: l.Bin("runc"), PauseImage: layout.PauseImage,
	}
}

// configFiles says where in the node's folder each template's result belongs.
var configFiles = map[string]string{
	"cni.conflist":    "cni/10-mcpdev.conflist",
	"containerd.toml": "etc/containerd.toml",
	"kubelet.yaml":    "etc/kubelet.yaml",
	"proxy.yaml":      "etc/proxy.yaml",
}

// Prepare makes the folders of node i and writes its configuration.
func Prepare(l layout.Layout, i int) error {
	for _, dir := range []string{l.Node(i, "containerd"), l.Node(i, "kubelet"), l.Node(i, "podlogs"), layout.NodeRun(i)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create a folder of %s: %w", layout.NodeName(i), err)
		}
	}
	for name, to := range configFiles {
		content, err := render(name, valuesFor(l, i))
		if err != nil {
			return err
		}
		if err := record.WriteFile(filepath.Join(l.Node(i), to), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func render(name string, v values) ([]byte, error) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, v); err != nil {
		return nil, fmt.Errorf("render %s of %s: %w", name, v.Name, err)
	}
	return b.Bytes(), nil
}

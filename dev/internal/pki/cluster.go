package pki

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// EnsureCluster makes everything that the control plane and the given number of nodes need, and the
// administrator's kubeconfig.
func EnsureCluster(l layout.Layout, nodes int, now time.Time) error {
	dir := l.PKI("")
	ca, err := EnsureAuthority(dir, "ca", now)
	if err != nil {
		return err
	}
	frontProxy, err := EnsureAuthority(dir, "front-proxy-ca", now)
	if err != nil {
		return err
	}
	if err := EnsureSigningKey(dir, "sa"); err != nil {
		return err
	}
	if err := frontProxy.Ensure(Leaf{Name: "front-proxy-client", User: "front-proxy-client"}, now); err != nil {
		return err
	}
	for _, leaf := range leaves(nodes) {
		if err := ca.Ensure(leaf, now); err != nil {
			return err
		}
	}
	if err := writeKubeconfig(l, "admin", l.Kubeconfig()); err != nil {
		return err
	}
	users := []string{"controller-manager", "scheduler", "proxy", "netpol"}
	for i := 1; i <= nodes; i++ {
		users = append(users, layout.NodeName(i))
	}
	for _, u := range users {
		if err := writeKubeconfig(l, u, l.PKI(u+".kubeconfig")); err != nil {
			return err
		}
	}
	return nil
}

func leaves(nodes int) []Leaf {
	local := []string{"localhost"}
	loopback := []string{"127.0.0.1"}
	all := []Leaf{
		{
			Name: "apiserver", User: "kube-apiserver",
			DNS: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"},
			IPs: []string{"127.0.0.1", layout.HostIP, layout.APIServiceIP},
		},
		{Name: "apiserver-kubelet-client", User: "kube-apiserver-kubelet-client", Group: "system:masters"},
		{Name: "admin", User: "admin", Group: "system:masters"},
		{Name: "controller-manager", User: "system:kube-controller-manager", DNS: local, IPs: loopback},
		{Name: "scheduler", User: "system:kube-scheduler", DNS: local, IPs: loopback},
		{Name: "proxy", User: "system:kube-proxy"},
		{Name: "netpol", User: "devcluster:netpol"},
	}
	for i := 1; i <= nodes; i++ {
		n := layout.NodeName(i)
		all = append(all, Leaf{Name: n, User: "system:node:" + n, Group: "system:nodes", DNS: []string{n}, IPs: []string{layout.NodeIP(i)}})
	}
	return all
}

func writeKubeconfig(l layout.Layout, user, path string) error {
	var data [3]string
	for i, name := range []string{"ca.crt", user + ".crt", user + ".key"} {
		b, err := os.ReadFile(l.PKI(name))
		if err != nil {
			return fmt.Errorf("read what the kubeconfig of %q is made of: %w", user, err)
		}
		data[i] = base64.StdEncoding.EncodeToString(b)
	}
	content := fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: devcluster
  cluster: {server: "%s", certificate-authority-data: %s}
users:
- name: %s
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: devcluster
  context: {cluster: devcluster, user: %s}
current-context: devcluster
`, layout.APIServerURL(), data[0], user, data[1], data[2], user)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return record.WriteFile(path, content, 0o600)
}

//go:build linux

// Package kwok describes KWOK, which simulates nodes and the pods on them: they cost nothing but
// objects in the API server. It acts only on nodes that bear the annotation
// kwok.x-k8s.io/node=fake, so real nodes are left alone.
package kwok

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/process"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// Component is KWOK's name among the cluster's processes.
const Component = "kwok"

// Spec is KWOK as it runs here.
func Spec(l layout.Layout) process.Spec {
	return process.Spec{
		Name: Component, Path: l.Bin("kwok"), ConfigFiles: []string{l.KwokStages()},
		Args: []string{
			"--kubeconfig=" + l.Kubeconfig(), "--config=" + l.KwokStages(),
			"--cidr=" + layout.SimulatedPodCIDR, "--node-ip=" + layout.SimulatedNodeIP,
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--node-lease-duration-seconds=40", fmt.Sprintf("--server-address=127.0.0.1:%d", layout.KwokPort), "-v=WARN",
		},
	}
}

// WriteStages collects, from the folder of KWOK's own module, the stages that say how simulated nodes
// and pods behave: a bare KWOK binary has none.
func WriteStages(l layout.Layout, module string) error {
	dir := filepath.Join(module, "kustomize", "stage")
	files := []string{filepath.Join(dir, "node", "fast", "node-initialize.yaml")}
	for _, pattern := range []string{"node/heartbeat-with-lease/*.yaml", "pod/fast/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return fmt.Errorf("list KWOK's stages: %w", err)
		}
		files = append(files, found...)
	}
	var all bytes.Buffer
	for _, f := range files {
		if filepath.Base(f) == "kustomization.yaml" {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("read a stage of KWOK: %w", err)
		}
		fmt.Fprintf(&all, "---\n%s\n", b)
	}
	return record.WriteFile(l.KwokStages(), all.Bytes(), 0o644)
}

// Nodes is a manifest of n simulated nodes, kwok-1 to kwok-n, with room for 250 pods each. They are
// tainted kwok.x-k8s.io/node=fake:NoSchedule, so only pods that ask for it land there.
func Nodes(n int) []byte {
	var b bytes.Buffer
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Node
metadata:
  name: kwok-%[1]d
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
  labels: {type: kwok, kubernetes.io/hostname: kwok-%[1]d, kubernetes.io/os: linux, topology.kubernetes.io/zone: sim%[2]d}
spec: {taints: [{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}]}
status:
  allocatable: {cpu: "32", memory: 256Gi, pods: "250"}
  capacity: {cpu: "32", memory: 256Gi, pods: "250"}
`, i, i%3)
	}
	return b.Bytes()
}

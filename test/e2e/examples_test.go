package e2e

import (
	"context"
	"fmt"
	"testing"
)

// The manifests that the README shows; they name the namespace mcp-system, which config/rbac makes.
func TestSamplesAndExamplesBecomeReady(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, namespace: "mcp-system"}
	run := func(args ...string) {
		t.Helper()
		if out, err := kubectl(t.Context(), args...); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	const namespace = "--namespace=mcp-system"
	const samples, example, stdio = "--kustomize=../../config/samples", "--filename=../../examples/dev-stack.yaml", "--filename=../../examples/stdio.yaml"
	remove := func(manifest string) {
		t.Cleanup(func() {
			if out, err := kubectl(context.WithoutCancel(t.Context()), "delete", manifest, "--ignore-not-found", "--wait=false"); err != nil {
				t.Errorf("delete %s: %v\n%s", manifest, err, out)
			}
		})
	}
	if _, err := kubectl(t.Context(), "get", namespace, "mcpserver/demo-server"); err == nil {
		t.Log("there is a demo-server already, as after make demo: it is used, and left")
	} else {
		remove(samples)
		remove(example)
	}
	remove(stdio)
	t.Cleanup(f.dump) // before anything is removed
	run("apply", stdio)
	for _, tt := range []struct {
		manifest string
		ready    []string
	}{
		{samples, []string{"mcpserver/demo-server", "mcptool/cluster-version", "mcpagent/demo-agent"}},
		{example, []string{"mcpserver/demo-server", "mcptool/find-pet", "mcptool/visits-of-pet", "mcpagent/demo-agent"}},
	} {
		run("apply", tt.manifest)
		for _, object := range tt.ready {
			run("wait", namespace, object, "--for=condition=Ready", "--timeout=3m")
		}
		run("wait", namespace, "mcpagent/demo-agent", "--for=condition=Routed", "--timeout=3m")
		run("rollout", "status", namespace, "deployment/demo-server", "--timeout=3m")
	}
	run("rollout", "status", namespace, "deployment/demo-agent", "--timeout=3m")
	for tool, arguments := range map[string]string{"demo_test_simple_text": `{}`, "find-pet": `{"petId": 1}`, "visits-of-pet": `{"petId": 1}`} {
		// The pod that kubectl takes may be ending, or so new that the network plugin does not know it yet.
		await(t, "demo-agent calls "+tool, agentSoon, func() string {
			if out, err := kubectl(t.Context(), "exec", namespace, "deployment/demo-agent", "--", "/echo", "call", tool, arguments); err != nil {
				return fmt.Sprintf("%v\n%s", err, out)
			}
			return ""
		})
	}
	run("wait", namespace, "mcpserver/everything-stdio", "--for=condition=Ready", "--timeout=3m")
}

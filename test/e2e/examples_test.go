package e2e

import (
	"context"
	"testing"
)

// The manifests that the README shows; they name the namespace mcp-system, which config/rbac makes.
func TestSamplesAndExamplesBecomeReady(t *testing.T) {
	t.Parallel()
	run := func(args ...string) {
		t.Helper()
		if out, err := kubectl(t.Context(), args...); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	const samples, example = "--kustomize=../../config/samples", "--filename=../../examples/dev-stack.yaml"
	const stdio = "--filename=../../examples/stdio.yaml"
	if _, err := kubectl(t.Context(), "get", "--namespace=mcp-system", "mcpserver/demo-server"); err == nil {
		t.Log("there is a demo-server already, as after make demo: it is used, and left")
	} else {
		t.Cleanup(func() {
			if out, err := kubectl(context.WithoutCancel(t.Context()), "delete", example, "--ignore-not-found", "--wait=false"); err != nil {
				t.Errorf("delete the example: %v\n%s", err, out)
			}
		})
	}
	t.Cleanup(func() {
		if out, err := kubectl(context.WithoutCancel(t.Context()), "delete", stdio, "--ignore-not-found", "--wait=false"); err != nil {
			t.Errorf("delete the example: %v\n%s", err, out)
		}
	})
	run("apply", stdio)
	for _, manifest := range []string{samples, example} {
		run("apply", manifest)
		run("wait", "--namespace=mcp-system", "mcpserver/demo-server", "--for=condition=Ready", "--timeout=60s")
		run("rollout", "status", "--namespace=mcp-system", "deployment/demo-server", "--timeout=60s")
	}
	run("wait", "--namespace=mcp-system", "mcpserver/everything-stdio", "--for=condition=Ready", "--timeout=60s")
}

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

// withCompatibilityAPI makes sure that the CRD of the compatibility API is there.
func withCompatibilityAPI(t *testing.T) *fixture {
	t.Helper()
	f := start(t)
	f.kubectl("apply", "--kustomize=../../config/crds-sig")
	await(t, "the CRD is established", readySoon, func() string { // kubectl wait, and a filter, fail of one that has no conditions yet
		status := f.kubectl("get", "customresourcedefinition", "mcpservers.mcp.x-k8s.io", `--output=jsonpath={.status.conditions}`)
		return linesMissing(status, `"status":"True","type":"Established"`)
	})
	await(t, "it is served", readySoon, func() string { // by discovery and by the handler, which each learn of it by a watch
		if err := cluster.client.List(t.Context(), &sigv1alpha1.MCPServerList{}, client.InNamespace(f.namespace)); err != nil {
			return err.Error()
		}
		return ""
	})
	t.Cleanup(func() {
		if t.Failed() {
			out, err := kubectl(context.Background(), "--namespace="+f.namespace, "get", "mcpservers.mcp.x-k8s.io", "--output=yaml")
			t.Logf("%v\n%s", err, out)
		}
	})
	return f
}

// sigServer is an MCPServer of the compatibility API that becomes Ready: the small MCP server of the image echo, changed as asked.
func sigServer(name string, changes ...func(*sigv1alpha1.MCPServerSpec)) *sigv1alpha1.MCPServer {
	server := &sigv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: sigv1alpha1.MCPServerSpec{
			Source: sigv1alpha1.Source{Type: sigv1alpha1.SourceContainerImage, ContainerImage: &sigv1alpha1.ContainerImage{Ref: imageOf("echo")}},
			Config: sigv1alpha1.Config{Port: 8080, Arguments: []string{"mcp"}},
		},
	}
	for _, change := range changes {
		change(&server.Spec)
	}
	return server
}

// runs makes a server run the image echo with these arguments.
func runs(arguments ...string) func(*sigv1alpha1.MCPServerSpec) {
	return func(spec *sigv1alpha1.MCPServerSpec) { spec.Config.Arguments = arguments }
}

func runtime(runtime sigv1alpha1.Runtime) func(*sigv1alpha1.MCPServerSpec) {
	return func(spec *sigv1alpha1.MCPServerSpec) { spec.Runtime = &runtime }
}

// sigAwait waits until a server of the compatibility API is as asked.
func (f *fixture) sigAwait(name, what string, promised time.Duration, look func(*sigv1alpha1.MCPServer) string) *sigv1alpha1.MCPServer {
	f.t.Helper()
	server := &sigv1alpha1.MCPServer{}
	await(f.t, name+" "+what, promised, func() string {
		f.read(name, server)
		return look(server)
	})
	return server
}

// sigSays waits for Ready of the current generation, and for parts of its message.
func (f *fixture) sigSays(name string, promised time.Duration, status metav1.ConditionStatus, reason string, words ...string) *sigv1alpha1.MCPServer {
	f.t.Helper()
	return f.sigAwait(name, fmt.Sprintf("is Ready=%s/%s %q", status, reason, words), promised, func(server *sigv1alpha1.MCPServer) string {
		return isSaid(server, "Ready", status, reason, words...)
	})
}

func isSaid(server *sigv1alpha1.MCPServer, conditionType string, status metav1.ConditionStatus, reason string, words ...string) string {
	for _, c := range server.Status.Conditions {
		if c.Type != conditionType {
			continue
		}
		if c.Status == status && c.Reason == reason && c.ObservedGeneration == server.Generation && missing(c.Message, words) == nil {
			return ""
		}
		return fmt.Sprintf("it says %s/%s of generation %d, which is %d: %s", c.Status, c.Reason, c.ObservedGeneration, server.Generation, c.Message)
	}
	return "it says nothing"
}

func (f *fixture) sigReady(name string) *sigv1alpha1.MCPServer {
	f.t.Helper()
	return f.sigSays(name, readySoon+podStart, metav1.ConditionTrue, "Available", "MCP server is ready (")
}

func (f *fixture) sigEdit(name string, change func(*sigv1alpha1.MCPServerSpec)) {
	f.t.Helper()
	object := &sigv1alpha1.MCPServer{}
	f.patch(name, object, func() { change(&object.Spec) })
}

// sigPod returns the name of the one pod of a server.
func (f *fixture) sigPod(name string) string {
	f.t.Helper()
	return strings.TrimSpace(f.kubectl("get", "pods", "--selector=mcp-server="+name, "--field-selector=status.phase=Running",
		"--output=jsonpath={.items[0].metadata.name}"))
}

// allOf takes every key of a ConfigMap for a variable.
func allOf(configMap string) []corev1.EnvFromSource {
	return []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}
}

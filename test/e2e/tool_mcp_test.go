package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestRemoteMCPServerIsAToolAndAnAddressThatMustNotBeDialledIsNone(t *testing.T) {
	t.Parallel()
	f := start(t)
	pod := echoPod("remote", "streamableHttp") // its image's arguments
	pod.Spec.Containers[0].Image = imageOf("server-everything")
	f.create(serviceOf("remote", 8080))
	f.echo(pod)
	remote := f.tool("remote", mcpv1alpha1.MCPToolSpec{
		Type: mcpv1alpha1.ToolMCP, Endpoint: "http://remote." + f.namespace + ".svc.cluster.local:8080/mcp", MCP: &mcpv1alpha1.RemoteMCP{Prefix: "far_"},
	})
	metadata := f.tool("metadata", mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolHTTP, Endpoint: "http://" + metadataAddress + "/latest"})
	a := f.agent("team", nil, "remote")
	a.awaitReady("far_echo")
	a.answers("far_echo", `{"message": "across"}`, "Echo: across")
	remote.await("tells the tools that a gateway found", agentSoon, says[*tool]("Ready", metav1.ConditionTrue, ""), func(object *tool) string {
		for _, found := range object.Status.Tools {
			if found.Name == "far_echo" {
				return ""
			}
		}
		return "far_echo is not in its status"
	})
	metadata.await("at the address of node credentials is denied", agentSoon, says[*tool]("Ready", metav1.ConditionFalse, ""),
		says[*tool]("Reachable", metav1.ConditionFalse, "AddressDenied"))
}

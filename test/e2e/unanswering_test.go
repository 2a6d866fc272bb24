package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

// Ten attempts take two minutes. Tests that run side by side begin with the last file, so that the others run meanwhile.
func TestServersThatAreNoMCPServersAndThoseThatAskForCredentials(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(sigServer("web", runs("serve")), sigServer("guarded", runs("serve", "-status", "401")), sigServer("forbidden", runs("serve", "-status", "403")))
	web := f.sigSays("web", readySoon+podStart, metav1.ConditionFalse, "MCPEndpointUnavailable", "MCP endpoint is not serving a valid MCP protocol: ")
	if web.Status.Address != nil || web.Status.HandshakeRetryCount == 0 {
		t.Errorf("address %v, attempts %d", web.Status.Address, web.Status.HandshakeRetryCount)
	}
	for _, name := range []string{"guarded", "forbidden"} {
		server := f.sigReady(name)
		if server.Status.ServerInfo == nil || server.Status.ServerInfo.Name != "" || server.Status.Address == nil {
			t.Errorf("%s: serverInfo %+v, address %v", name, server.Status.ServerInfo, server.Status.Address)
		}
	}
	f.sigAwait("web", "has been asked ten times", 130*time.Second, func(server *sigv1alpha1.MCPServer) string {
		if server.Status.HandshakeRetryCount < 10 {
			return fmt.Sprint(server.Status.HandshakeRetryCount)
		}
		return ""
	})
	await(t, "it is told once more", readySoon, func() string { return f.warned("web", "MCPEndpointUnavailable", "attempts in a row") })
	f.sigEdit("web", runs("mcp"))
	if healed := f.sigReady("web"); healed.Status.HandshakeRetryCount != 0 {
		t.Errorf("%d attempts are left", healed.Status.HandshakeRetryCount)
	}
}

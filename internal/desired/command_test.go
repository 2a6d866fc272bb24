package desired

import (
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/gateway"
)

// A rollout or a drained node costs no call that ends within the gateway's own limit, and the kubelet kills no gateway that still ends what
// it holds.
func TestAGatewayThatEndsAnswersTheCallsThatItHolds(t *testing.T) {
	t.Parallel()
	pod := ForAgent(agentNamed("demo"), agentEnvironment()).Deployment.Spec.Template.Spec
	none := func(string) string { return "" }
	options, err := gateway.ParseServe(pod.Containers[0].Command[2:], none, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if options.DrainTimeout <= options.Limits.Call {
		t.Errorf("calls may take %s, and those in flight are cut off after %s", options.Limits.Call, options.DrainTimeout)
	}
	const ending = 10 * time.Second // for sessions at backends, at most
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	if needed := options.DrainDelay + options.DrainTimeout + ending; grace <= needed {
		t.Errorf("a pod has %s to end, and its gateway takes %s", grace, needed)
	}
}

// The environment of a Stdio server is the server's: a variable that the bridge would read as one of its own flags is no way to set it.
func TestTheBridgeTakesNothingFromTheEnvironmentOfItsServer(t *testing.T) {
	t.Parallel()
	server := stdioServer(func(s *mcpv1alpha1.MCPServer) { s.Spec.Args = []string{"--listen=:1"} })
	command := ForServer(server, Environment{}, "hash").Deployment.Spec.Template.Spec.Containers[0].Command
	parsed := func(getenv func(string) string) gateway.Options {
		t.Helper()
		options, err := gateway.ParseStdio(command[2:], getenv, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return options
	}
	want := parsed(func(string) string { return "" })
	got := parsed(func(name string) string {
		return map[string]string{"MCP_GATEWAY_CALL_TIMEOUT": "1s", "MCP_GATEWAY_STATUS_TOKEN_FILE": "/etc/passwd", "MCP_GATEWAY_MAX_CHILDREN": "none"}[name]
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by the environment of the server the bridge is set otherwise (-want +got)\n%s", diff)
	}
}

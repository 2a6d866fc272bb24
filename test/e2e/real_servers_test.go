package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestConformanceServerIsReadyAndAnswersAPodOfItsNamespace(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("demo"))
	ready := s.awaitReady(readySoon)

	if n := len(ready.Status.Tools); n != 28 || ready.Status.ToolCount == nil || *ready.Status.ToolCount != 28 {
		t.Errorf("%d tools are listed and %v counted, want 28", n, ready.Status.ToolCount)
	}
	for _, tool := range ready.Status.Tools {
		if !strings.HasPrefix(tool.Digest, "sha256:") {
			t.Errorf("tool %s has the digest %q", tool.Name, tool.Digest)
		}
	}
	if info := ready.Status.ServerInfo; info == nil || info.Name == "" || info.ProtocolVersion != "2026-07-28" {
		t.Errorf("serverInfo is %+v", info)
	}
	if ready.Status.Sessions != mcpv1alpha1.SessionsStateless {
		t.Errorf("sessions are %q", ready.Status.Sessions)
	}

	client := f.echo(echoPod("client", "sleep"))
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text","arguments":{}}}`
	posts(t, client, "This is a simple text response", "-H", "MCP-Protocol-Version: 2025-11-25", ready.Status.Endpoint, call)

	lines := strings.Split(strings.TrimSpace(f.kubectl("get", "mcpservers")), "\n")
	want := [][]string{
		{"NAME", "READY", "PHASE", "IMAGE", "ENDPOINT", "AGE"},
		{"demo", "True", "Ready", "mcp-operator/everything:dev", fmt.Sprintf("http://demo-svc.%s.svc.cluster.local:8080/mcp", f.namespace)},
	}
	for i, columns := range want {
		if len(lines) != len(want) || strings.Join(strings.Fields(lines[i])[:len(columns)], " ") != strings.Join(columns, " ") {
			t.Errorf("kubectl get prints %q, want %q", lines, columns)
		}
	}
}

func TestServersOfOthersBecomeReadyWithTheirTools(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		server   builder
		sessions mcpv1alpha1.SessionMode
		tools    int32
	}{
		"server-everything from npm": {server: server("other").image("server-everything"), sessions: mcpv1alpha1.SessionsStateful, tools: 13},
		"kubernetes-mcp-server, with an account of the cluster": {
			server: server("other").image("kubernetes-mcp-server").with(func(spec *mcpv1alpha1.MCPServerSpec) {
				spec.PodSecurity = &mcpv1alpha1.PodSecurity{AutomountServiceAccountToken: true} // it ends at once without a cluster
			}), sessions: mcpv1alpha1.SessionsStateful, tools: 20,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			s := f.run(tt.server)
			ready := s.awaitReady(2 * readySoon) // an interpreter starts slowly
			if ready.Status.Sessions != tt.sessions || ready.Status.ToolCount == nil || *ready.Status.ToolCount != tt.tools {
				t.Errorf("sessions are %s, tools %v; want %s, %d", ready.Status.Sessions, ready.Status.ToolCount, tt.sessions, tt.tools)
			}
		})
	}
}

func TestServerThatRefusesForeignHostsIsReadyOnceItsHostIsGiven(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("grafana").image("mcp-grafana"))
	s.await("says that the Host header is refused", 2*readySoon,
		has(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "HostRefused", "spec.hostHeader"),
		has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonMCPEndpointUnavailable))
	s.neverReady()

	generation := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.HostHeader = "localhost:8080" })
	ready := s.await("hostHeader -> Ready", readySoon, readyAt(generation))
	if ready.Status.ToolCount == nil || *ready.Status.ToolCount != 81 || len(ready.Status.Tools) != 81 {
		t.Errorf("%v tools are counted and %d listed, want 81", ready.Status.ToolCount, len(ready.Status.Tools))
	}
}

func TestServerThatSpeaksNoMCPNeverBecomesReady(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("web").echo("serve"))
	s.await("says that it is no MCP server", 2*readySoon,
		has(mcpv1alpha1.ConditionAvailable, metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable),
		has(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "NotMCP"),
		has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonMCPEndpointUnavailable),
		phaseIs(mcpv1alpha1.PhaseFailed))
	await(t, "a Warning event says so too", podStart, func() string { return f.warned("web", mcpv1alpha1.ReasonMCPEndpointUnavailable) })
	s.neverReady()
}

func TestServerThatOffersOtherToolsThanBeforeRaisesAnEvent(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("changing"))
	s.awaitReady(readySoon)
	generation := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Image = imageOf("server-everything") })
	ready := s.await("another image -> Ready", 4*readySoon, readyAt(generation))
	if ready.Status.ToolCount == nil || *ready.Status.ToolCount != 13 {
		t.Errorf("%v tools are counted, want 13", ready.Status.ToolCount)
	}
	await(t, "an event says what changed", podStart, func() string { return f.warned("changing", "CapabilityChanged", "tool") })
}

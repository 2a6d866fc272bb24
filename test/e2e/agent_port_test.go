package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// TestCallsGoOnWhileAPortEditIsStuck: pods of before, at the port of before, are all there is until the edit is mended.
func TestCallsGoOnWhileAPortEditIsStuck(t *testing.T) {
	t.Parallel()
	const tool = "web_test_simple_text"
	f := start(t)
	listen := func(port int32, address string) func(*mcpv1alpha1.MCPServerSpec) {
		return func(spec *mcpv1alpha1.MCPServerSpec) {
			spec.Image, spec.Port, spec.Args = imageOf("everything"), port, []string{"-http", address}
		}
	}
	s := f.run(server("web").replicas(2).with(listen(9191, ":9191")).with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Network = &mcpv1alpha1.Network{Ingress: mcpv1alpha1.IngressGateways}
	}))
	a := f.agent("team", granted("web"))
	s.awaitReady(readySoon)
	a.awaitReady(tool)
	a.answers(tool, `{}`)
	old, mark := s.podNames(), s.mark()

	s.edit(func(spec *mcpv1alpha1.MCPServerSpec) {
		listen(9999, ":9999")(spec)
		spec.Image = "registry.invalid/team/absent:2"
	})
	isStuck := func(image string) {
		t.Helper()
		s.await("says that it cannot pull "+image+", and is at the new port", podStart, func(server *mcpv1alpha1.MCPServer) string {
			if !strings.Contains(server.Status.Endpoint, ":9999/") {
				return "the endpoint is " + server.Status.Endpoint
			}
			return ""
		}, has(mcpv1alpha1.ConditionProgressing, metav1.ConditionTrue, mcpv1alpha1.ReasonRollingOut, image),
			has(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable))
	}
	isStuck("registry.invalid/team/absent:2")
	calling := a.keepCalling(a.caller(), tool, `{}`, "-at-once", "2", "-every", "20ms")
	s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Image = "registry.invalid/team/absent:3" })
	isStuck("registry.invalid/team/absent:3")
	calling.noneFailed()
	s.stayedReady(mark)
	for name := range old {
		if !s.podNames()[name] {
			t.Errorf("pod %s, which serves, is gone", name)
		}
	}

	s.replaced(old, s.edit(listen(9999, ":9999")))
	a.answers(tool, `{}`)
}

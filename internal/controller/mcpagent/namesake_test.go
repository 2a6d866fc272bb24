package mcpagent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// TestAnAccountOfTheAgentsNameHidesNoGateway: it keeps the agent's own workload from running, and nobody else from calling.
func TestAnAccountOfTheAgentsNameHidesNoGateway(t *testing.T) {
	t.Parallel()
	foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: "helper", Namespace: "team", UID: "uid-foreign",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "other", UID: "uid-other", Controller: new(true)}},
	}}
	r, g := makeReconciler(t, makeServer(), makeGateway(), makePod("one"), foreign)
	s := makeScope(t, r, makeAgent(withRuntime()))
	g.answers["one"] = serving(s.route.Table.Revision)
	result := reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{})
	s.summarize(&result)
	if result.Failed != PhaseRuntime || s.current("Applied").Reason != "OwnershipConflict" {
		t.Fatalf("phase %q failed; Applied: %+v", result.Failed, s.current("Applied"))
	}
	if want := desired.GatewayEndpoint(s.agent, s.ClusterDomain); s.agent.Status.Endpoint != want {
		t.Errorf("endpoint %q, want %q", s.agent.Status.Endpoint, want)
	}
	if c := s.current("Progressing"); c.Reason != "Settled" {
		t.Errorf("Progressing: %s %s: %s", c.Status, c.Reason, c.Message)
	}
	if c := s.current("Ready"); c.Status != metav1.ConditionFalse {
		t.Errorf("Ready: %s %s: %s", c.Status, c.Reason, c.Message)
	}
}

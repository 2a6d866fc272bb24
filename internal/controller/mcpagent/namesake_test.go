package mcpagent

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// TestAChildThatIsSomebodyElsesHidesNoGatewayThatServes: it keeps the agent's own workload from running, or the gateway from being
// protected or scaled, and nobody from calling.
func TestAChildThatIsSomebodyElsesHidesNoGatewayThatServes(t *testing.T) {
	t.Parallel()
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "team", UID: "uid-foreign", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "other", UID: "uid-other", Controller: new(true)},
		}}
	}
	scaled := func(agent *mcpv1alpha1.MCPAgent) {
		agent.Spec.Scaling = &mcpv1alpha1.Scaling{MaxReplicas: 3}
	}
	for name, tt := range map[string]struct {
		foreign client.Object
		change  func(*mcpv1alpha1.MCPAgent)
		failed  string
	}{
		"the account of its own workload": {&corev1.ServiceAccount{ObjectMeta: named("helper")}, withRuntime(), PhaseRuntime},
		"the disruption budget":           {&policyv1.PodDisruptionBudget{ObjectMeta: named("helper-gateway")}, func(*mcpv1alpha1.MCPAgent) {}, PhaseGateway},
		"the autoscaler":                  {&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named("helper-gateway")}, scaled, PhaseGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, g := makeReconciler(t, makeServer(), makeGateway(), makePod("one"), tt.foreign)
			s := makeScope(t, r, makeAgent(tt.change))
			g.answers["one"] = serving(s.route.Table.Revision)
			result := reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{})
			s.summarize(&result)
			if result.Failed != tt.failed || s.current("Applied").Reason != "OwnershipConflict" {
				t.Fatalf("phase %q failed; Applied: %+v", result.Failed, s.current("Applied"))
			}
			if want := desired.GatewayEndpoint(s.agent, s.ClusterDomain); s.agent.Status.Endpoint != want {
				t.Errorf("endpoint %q, want %q", s.agent.Status.Endpoint, want)
			}
			if c := s.current("Progressing"); c.Reason != "Settled" {
				t.Errorf("Progressing: %s %s: %s", c.Status, c.Reason, c.Message)
			}
			if c := s.current("Ready"); c.Status != metav1.ConditionFalse || s.agent.Status.Phase != mcpv1alpha1.PhaseDegraded {
				t.Errorf("phase %s, Ready: %s %s: %s", s.agent.Status.Phase, c.Status, c.Reason, c.Message)
			}
		})
	}
}

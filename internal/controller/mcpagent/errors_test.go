package mcpagent

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestTheErrorOfWritingAChildNamesIt(t *testing.T) {
	t.Parallel()
	s := &scope{}
	got := conditionFrom(t, s.wrong("Service", errors.New("exceeded quota")))
	if got.Message != "Failed to reconcile Service: exceeded quota" || s.failedChild != "Service" {
		t.Errorf("%q, child %q", got.Message, s.failedChild)
	}
}

func TestMetricsTellOfAnAgentAsItIsNow(t *testing.T) {
	t.Parallel()
	agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
		agent.Name, agent.Status.Conditions, agent.Status.ToolCount = "measured", []metav1.Condition{accepted}, new(int32(3))
	})
	t.Cleanup(func() { deleteMetrics(client.ObjectKeyFromObject(agent)) }) // the registry is one for the process, and so for a second run
	recordConditions(agent)
	agent.Status.Conditions = []metav1.Condition{condition("Accepted", "False", "Invalid", "")}
	recordConditions(agent)
	recordPass(agent, true, reconcile.Result{Failed: PhaseAccess, Problem: reconcile.Wait("ApplyFailed", "", 0)})
	recordPass(agent, false, reconcile.Result{})
	want := map[string]float64{
		"mcpagent_condition_info measured team Invalid False Accepted": 1, "mcpagent_served_tools measured team": 3,
		"mcpagent_table_revisions_total measured team": 1, "mcpagent_phase_failures_total measured team access ApplyFailed": 1,
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			series, values := family.GetName(), map[string]string{}
			for _, label := range metric.GetLabel() {
				series, values[label.GetName()] = series+" "+label.GetValue(), label.GetValue()
			}
			if values["name"] == "measured" {
				got[series] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series, with the values of their labels in the order of their names (-want +got)\n%s", diff)
	}
}

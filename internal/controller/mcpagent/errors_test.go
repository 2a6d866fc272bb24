package mcpagent

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestTheErrorOfWritingAChildBecomesApplied(t *testing.T) {
	t.Parallel()
	services := schema.GroupResource{Resource: "services"}
	cause := errors.New("exceeded quota")
	tests := map[string]struct {
		err      error
		want     metav1.Condition // zero: the stored one stays
		returned bool             // to be tried again with back-off
		after    time.Duration
	}{
		"a conflict with another writer tells a user nothing": {err: apierrors.NewConflict(services, "x", cause), returned: true},
		"an object of somebody else": {
			err:  fmt.Errorf("apply: %w", &apply.OwnershipConflictError{Message: "it is owned by others"}),
			want: condition("Applied", "False", "OwnershipConflict", "Failed to reconcile Service: apply: it is owned by others"),
		},
		"somebody insists on a field": {
			err:  &apply.FieldConflictError{Message: "it was changed again", After: time.Second},
			want: condition("Applied", "Unknown", "FieldConflict", "it was changed again"), after: time.Second,
		},
		"an object that is being deleted": {
			err: &apply.TerminatingError{Message: "it is being deleted"}, want: condition("Applied", "Unknown", "ApplyFailed", "it is being deleted"),
		},
		"what the API server cannot read": {
			err:  apierrors.NewBadRequest("unknown field"),
			want: condition("Applied", "False", "Rejected", "Failed to reconcile Service: unknown field"), after: time.Minute,
		},
		"what a quota forbids": {
			err:      apierrors.NewForbidden(services, "x", cause),
			want:     condition("Applied", "False", "Rejected", `Failed to reconcile Service: services "x" is forbidden: exceeded quota`),
			returned: true,
		},
		"anything else": {err: cause, want: condition("Applied", "False", "ApplyFailed", "Failed to reconcile Service: exceeded quota"), returned: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scope{}
			out := s.wrong("Service", tt.err)
			got, recorded := out.Condition("Applied", 2)
			if !recorded {
				got = metav1.Condition{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("condition (-want +got)\n%s", diff)
			}
			if (out.Err() != nil) != tt.returned || out.After != tt.after || s.failedChild != "Service" {
				t.Errorf("error %v, after %s, child %q", out.Err(), out.After, s.failedChild)
			}
		})
	}
}

func TestMetricsTellOfAnAgentAsItIsNow(t *testing.T) {
	t.Parallel()
	agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
		agent.Name, agent.Status.Conditions, agent.Status.ToolCount = "measured", []metav1.Condition{accepted}, new(int32(3))
	})
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

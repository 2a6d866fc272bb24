package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// conditionSeries returns the series of mcpserver_condition_info of a server, as "type status reason".
func conditionSeries(t *testing.T, name string) map[string]bool {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]bool{}
	for _, family := range families {
		if family.GetName() != "mcpserver_condition_info" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["name"] == name && labels["namespace"] == "team" {
				series[labels["type"]+" "+labels["status"]+" "+labels["reason"]] = metric.GetGauge().GetValue() == 1
			}
		}
	}
	return series
}

func TestASeriesOfAConditionThatStaysIsNeverAbsentAndOneThatChangedGoes(t *testing.T) {
	t.Parallel()
	const name = "measured"
	with := func(conditions ...metav1.Condition) *mcpv1alpha1.MCPServer {
		return makeServer(func(server *mcpv1alpha1.MCPServer) { server.Name, server.Status.Conditions = name, conditions })
	}
	step := func(what string, server *mcpv1alpha1.MCPServer, want ...string) {
		t.Helper()
		recordConditions("mcpserver", server)
		wanted := map[string]bool{}
		for _, series := range want {
			wanted[series] = true
		}
		if diff := cmp.Diff(wanted, conditionSeries(t, name)); diff != "" {
			t.Errorf("%s: series (-want +got)\n%s", what, diff)
		}
	}
	step("a first pass", with(accepted, starting), "Accepted True Valid", "Available Unknown Initializing")
	stays := conditionInfo.WithLabelValues("Accepted", "True", "Valid", name, "team")
	step("a pod becomes ready", with(accepted, available), "Accepted True Valid", "Available True Available")
	step("only a message changes", with(older(accepted), available), "Accepted True Valid", "Available True Available")
	if conditionInfo.WithLabelValues("Accepted", "True", "Valid", name, "team") != stays {
		t.Error("the series of a condition that stayed was deleted and created again: a scrape in between misses it")
	}
	step("another status", with(accepted, crashing), "Accepted True Valid", "Available False CrashLooping")
	recordConditions("mcpserver", with(accepted, crashing)) // a status write whose reply was lost is recorded once, as it then is
	step("another reason", with(accepted, stopped), "Accepted True Valid", "Available False ScaledToZero")
	step("a condition goes", with(accepted), "Accepted True Valid")
	deleteMetrics("mcpserver", types.NamespacedName{Namespace: "team", Name: name})
	step("the server is gone", with())
}

func TestWhatAnAPITellsGoesWithItsControllerAndTheRestStays(t *testing.T) {
	t.Parallel()
	with := func(name string, conditions ...metav1.Condition) *mcpv1alpha1.MCPServer {
		return makeServer(func(server *mcpv1alpha1.MCPServer) { server.Name, server.Status.Conditions = name, conditions })
	}
	recordConditions("leaving", with("left", accepted))
	recordConditions("leaving", with("shared", accepted, starting))
	recordConditions("staying", with("shared", accepted))
	for _, name := range []string{"left", "shared"} {
		recordSkip(with(name))
	}
	deleteAllMetrics("leaving")
	if diff := cmp.Diff(map[string]bool{}, conditionSeries(t, "left")); diff != "" {
		t.Errorf("of an API whose controller ended (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"Accepted True Valid": true}, conditionSeries(t, "shared")); diff != "" {
		t.Errorf("of a name that another API has too (-want +got)\n%s", diff)
	}
	of := func(name string) prometheus.Labels {
		return prometheus.Labels{"name": name, "namespace": "team", "result": "skip"}
	}
	if handshakes.Delete(of("left")) || !handshakes.Delete(of("shared")) {
		t.Error("counters go with the last of the two, and not before")
	}
	deleteAllMetrics("staying")
}

func TestAPassThatAsksNothingIsCountedAsOneThatSkipsTheHandshake(t *testing.T) {
	t.Parallel()
	current, old := verified, verified
	current.ObservedGeneration, old.ObservedGeneration = makeServer().Generation, makeServer().Generation-1
	for name, tt := range map[string]struct {
		before, after metav1.Condition
		want          bool
	}{
		"it was verified and is":              {current, current, true},
		"it is verified now":                  {starting, current, false},
		"it is not any more":                  {current, notMCP, false},
		"an older generation was":             {old, current, false},
		"an older generation was, and stands": {old, old, false},
	} {
		s := &scope{
			before: makeServer(func(s *mcpv1alpha1.MCPServer) { s.Status.Conditions = []metav1.Condition{tt.before} }),
			server: makeServer(func(s *mcpv1alpha1.MCPServer) { s.Status.Conditions = []metav1.Condition{tt.after} }),
		}
		if got := s.holds(); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

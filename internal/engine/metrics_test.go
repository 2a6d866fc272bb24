package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// metricsOf returns the gauges or counters of a family that are about a server of the namespace team, by their labels.
func metricsOf(t *testing.T, family, name string, labels ...string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() != family {
			continue
		}
		for _, metric := range f.GetMetric() {
			of := map[string]string{}
			for _, label := range metric.GetLabel() {
				of[label.GetName()] = label.GetValue()
			}
			if of["name"] != name || of["namespace"] != "team" {
				continue
			}
			var values []string
			for _, label := range labels {
				values = append(values, of[label])
			}
			found[strings.Join(values, " ")] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return found
}

// conditionSeries returns the series of mcpserver_condition_info of a server, as "type status reason".
func conditionSeries(t *testing.T, name string) map[string]bool {
	t.Helper()
	series := map[string]bool{}
	for labels, value := range metricsOf(t, "mcpserver_condition_info", name, "type", "status", "reason") {
		series[labels] = value == 1
	}
	return series
}

func TestASeriesOfAConditionThatStaysIsNeverAbsentAndOneThatChangedGoes(t *testing.T) {
	t.Parallel()
	const name = "measured"
	with := func(conditions ...metav1.Condition) []metav1.Condition { return conditions }
	key := types.NamespacedName{Namespace: "team", Name: name}
	step := func(what string, conditions []metav1.Condition, want ...string) {
		t.Helper()
		recordConditions("mcpserver", key, conditions)
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
	recordConditions("mcpserver", key, with(accepted, crashing)) // a status write whose reply was lost is recorded once, as it then is
	step("another reason", with(accepted, stopped), "Accepted True Valid", "Available False ScaledToZero")
	step("a condition goes", with(accepted), "Accepted True Valid")
	deleteMetrics("mcpserver", key)
	step("the server is gone", with())
}

func TestWhatAnAPITellsGoesWithItsControllerAndTheRestStays(t *testing.T) {
	t.Parallel()
	record := func(api, name string, conditions ...metav1.Condition) {
		recordConditions(api, types.NamespacedName{Namespace: "team", Name: name}, conditions)
	}
	record("leaving", "left", accepted)
	record("leaving", "shared", accepted, starting)
	record("staying", "shared", accepted)
	for _, name := range []string{"left", "shared"} {
		recordSkip(makeServer(func(server *mcpv1alpha1.MCPServer) { server.Name = name }))
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

func TestAHandshakeCountsByWhatTheServerAnsweredAndOneThatAsksWhetherItStillDoesAsThatAnswer(t *testing.T) {
	t.Parallel()
	asks, speaks := &mcp.Result{AuthRequired: true}, &mcp.Result{ProtocolVersion: "2025-11-25"}
	for name, tt := range map[string]struct {
		last, result *mcp.Result
		err          error
		want         string
	}{
		"a first answer":                           {nil, speaks, nil, "success"},
		"a first demand for credentials":           {nil, asks, nil, "auth_skip"},
		"no answer":                                {nil, nil, errors.New("refused"), "failure"},
		"it answers as before":                     {speaks, nil, nil, "success"},
		"it asks for credentials as before":        {asks, nil, nil, "auth_skip"},
		"it asks for credentials now":              {speaks, asks, nil, "auth_skip"},
		"it asks for credentials no more":          {asks, speaks, nil, "success"},
		"it asked for credentials, and is silent":  {asks, nil, errors.New("refused"), "failure"},
		"it answered, and a check finds it silent": {speaks, nil, errors.New("refused"), "failure"},
	} {
		key := types.NamespacedName{Namespace: "team", Name: strings.ReplaceAll(name, " ", "-")}
		recordHandshake(Handshake{Server: probe.Server{Key: key}, Last: tt.last}, time.Second, tt.result, tt.err)
		got := metricsOf(t, "mcpserver_handshake_total", key.Name, "result")
		if diff := cmp.Diff(map[string]float64{tt.want: 1}, got); diff != "" {
			t.Errorf("%s: counted (-want +got)\n%s", name, diff)
		}
		deleteMetrics("mcpserver", key)
	}
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

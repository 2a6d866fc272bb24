package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// MetricReasonReconcileError is the value of the label "reason" of the counters of failed children.
const MetricReasonReconcileError = "ReconcileError"

const namespace = "mcpserver"

var objectLabels = []string{"name", "namespace"}

var (
	conditionInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "condition_info", Help: "The conditions of MCPServers; always 1.",
	}, append([]string{"type", "status", "reason"}, objectLabels...))

	validationFailures = failureCounter("validation_failures_total", "Passes in which the specification was invalid.")
	childFailures      = map[string]*prometheus.CounterVec{
		PhaseDeployment:    failureCounter("deployment_failures_total", "Passes in which the Deployment could not be applied."),
		PhaseService:       failureCounter("service_failures_total", "Passes in which the Service could not be applied."),
		PhaseNetworkPolicy: failureCounter("networkpolicy_failures_total", "Passes in which the NetworkPolicy could not be applied."),
	}

	phaseDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "reconcile_phase_duration_seconds", Help: "How long the acting phases took.",
	}, []string{"phase"})

	handshakes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "handshake_total", Help: "MCP handshakes and re-verifications by result.",
	}, append([]string{"result"}, objectLabels...))

	handshakeDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "handshake_duration_seconds", Help: "How long MCP handshakes and re-verifications took.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10},
	}, objectLabels)

	capabilityChanges = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "capability_changes_total", Help: "Times that a server offered something else than before.",
	}, objectLabels)
)

func failureCounter(name, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, append([]string{"reason"}, objectLabels...))
}

func init() {
	metrics.Registry.MustRegister(conditionInfo, validationFailures, phaseDuration, handshakes, handshakeDuration, capabilityChanges)
	for _, counter := range childFailures {
		metrics.Registry.MustRegister(counter)
	}
}

func observePhase(phase string, took time.Duration) {
	phaseDuration.WithLabelValues(phase).Observe(took.Seconds())
}

func of(key types.NamespacedName) prometheus.Labels {
	return prometheus.Labels{"name": key.Name, "namespace": key.Namespace}
}

// recorded is the series of conditionInfo that there are, by server and then by API. Two objects of one name, of two APIs, share
// their labels, which dashboards know: a series is there while one of them tells it.
var recorded = struct {
	sync.Mutex

	series map[types.NamespacedName]map[string][][]string
}{series: map[types.NamespacedName]map[string][][]string{}}

// recordConditions replaces a server's series by those of the conditions that its status has; one that stays is never absent.
func recordConditions(api string, key types.NamespacedName, conditions []metav1.Condition) {
	recorded.Lock()
	defer recorded.Unlock()
	var is [][]string
	for _, c := range conditions {
		labels := []string{c.Type, string(c.Status), c.Reason, key.Name, key.Namespace}
		conditionInfo.WithLabelValues(labels...).Set(1)
		is = append(is, labels)
	}
	if recorded.series[key] == nil {
		recorded.series[key] = map[string][][]string{}
	}
	was := recorded.series[key][api]
	recorded.series[key][api] = is
	dropSeries(key, was)
}

// dropSeries deletes those of a server's series that no object tells any more. The caller holds the lock.
func dropSeries(key types.NamespacedName, series [][]string) {
	for _, labels := range series {
		stays := false
		for _, told := range recorded.series[key] {
			stays = stays || slices.ContainsFunc(told, func(other []string) bool { return slices.Equal(other, labels) })
		}
		if !stays {
			conditionInfo.DeleteLabelValues(labels...)
		}
	}
}

func recordFailure(server *mcpv1alpha1.MCPServer, result reconcile.Result, failed string) {
	if failed == PhaseValidation && result.Err == nil {
		validationFailures.WithLabelValues(result.Problem.Reason, server.Name, server.Namespace).Inc()
	}
	if counter, ok := childFailures[failed]; ok {
		counter.WithLabelValues(MetricReasonReconcileError, server.Name, server.Namespace).Inc()
	}
}

// recordHandshake counts one handshake by its result: success, failure, or auth_skip for a server that asks for a token. That a server
// answers as it did counts as that answer did.
func recordHandshake(handshake Handshake, took time.Duration, result *mcp.Result, err error) {
	key, outcome := handshake.Server.Key, "success"
	if result == nil {
		result = handshake.Last
	}
	switch {
	case err != nil:
		outcome = "failure"
	case result != nil && result.AuthRequired:
		outcome = "auth_skip"
	}
	handshakes.WithLabelValues(outcome, key.Name, key.Namespace).Inc()
	handshakeDuration.WithLabelValues(key.Name, key.Namespace).Observe(took.Seconds())
}

// recordSkip counts a pass that asked nothing, since the last handshake holds.
func recordSkip(server *mcpv1alpha1.MCPServer) {
	handshakes.WithLabelValues("skip", server.Name, server.Namespace).Inc()
}

// deleteMetrics removes every series of an object that is gone. What it shares with one of its name of another API goes with the last.
func deleteMetrics(api string, key types.NamespacedName) {
	recorded.Lock()
	defer recorded.Unlock()
	dropMetrics(api, key)
}

// deleteAllMetrics removes the series of every object of an API, as deleteMetrics does.
func deleteAllMetrics(api string) {
	recorded.Lock()
	defer recorded.Unlock()
	for key, apis := range recorded.series {
		if _, told := apis[api]; told {
			dropMetrics(api, key)
		}
	}
}

// dropMetrics is deleteMetrics for a caller that holds the lock.
func dropMetrics(api string, key types.NamespacedName) {
	was := recorded.series[key][api]
	delete(recorded.series[key], api)
	if len(recorded.series[key]) > 0 {
		dropSeries(key, was)
		return
	}
	delete(recorded.series, key)
	vectors := []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{conditionInfo, validationFailures, handshakes, handshakeDuration, capabilityChanges}
	for _, counter := range childFailures {
		vectors = append(vectors, counter)
	}
	for _, v := range vectors {
		v.DeletePartialMatch(of(key))
	}
}

package mcpserver

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

// recorded is the series of conditionInfo that there are, by server.
var recorded sync.Map // types.NamespacedName -> []metav1.Condition

// recordConditions replaces a server's series; one that stays is never absent.
func recordConditions(server *mcpv1alpha1.MCPServer) {
	key := types.NamespacedName{Namespace: server.Namespace, Name: server.Name}
	labels := func(c metav1.Condition) []string {
		return []string{c.Type, string(c.Status), c.Reason, key.Name, key.Namespace}
	}
	is := slices.Clone(server.Status.Conditions)
	for _, c := range is {
		conditionInfo.WithLabelValues(labels(c)...).Set(1)
	}
	was, _ := recorded.Swap(key, is)
	old, _ := was.([]metav1.Condition)
	for _, c := range old {
		stays := slices.ContainsFunc(is, func(n metav1.Condition) bool { return slices.Equal(labels(n), labels(c)) })
		if !stays {
			conditionInfo.DeleteLabelValues(labels(c)...)
		}
	}
}

func recordFailure(server *mcpv1alpha1.MCPServer, result reconcile.Result) {
	if result.Failed == PhaseValidation && result.Err == nil {
		validationFailures.WithLabelValues(result.Problem.Reason, server.Name, server.Namespace).Inc()
	}
	if counter, ok := childFailures[result.Failed]; ok {
		counter.WithLabelValues(MetricReasonReconcileError, server.Name, server.Namespace).Inc()
	}
}

// recordHandshake counts one handshake by its result: success, failure, or auth_skip for a server that asks for a token.
func recordHandshake(key types.NamespacedName, took time.Duration, result *mcp.Result, err error) {
	outcome := "success"
	switch {
	case err != nil:
		outcome = "failure"
	case result != nil && result.AuthRequired:
		outcome = "auth_skip"
	}
	handshakes.WithLabelValues(outcome, key.Name, key.Namespace).Inc()
	handshakeDuration.WithLabelValues(key.Name, key.Namespace).Observe(took.Seconds())
}

// deleteMetrics removes every series of an object that is gone.
func deleteMetrics(key types.NamespacedName) {
	recorded.Delete(key)
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

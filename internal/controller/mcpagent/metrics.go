package mcpagent

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

const metricsNamespace = "mcpagent"

var objectLabels = []string{"name", "namespace"}

var (
	conditionInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "condition_info", Help: "The conditions of MCPAgents; always 1.",
	}, append([]string{"type", "status", "reason"}, objectLabels...))

	servedTools = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "served_tools", Help: "How many tools an MCPAgent is served.",
	}, objectLabels)

	tableRevisions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "table_revisions_total", Help: "Routing tables that were written.",
	}, objectLabels)

	failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "phase_failures_total", Help: "Passes in which an acting phase was not done.",
	}, append([]string{"phase", "reason"}, objectLabels...))

	phaseDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: metricsNamespace, Name: "reconcile_phase_duration_seconds", Help: "How long the acting phases took.",
	}, []string{"phase"})
)

func init() {
	metrics.Registry.MustRegister(conditionInfo, servedTools, tableRevisions, failures, phaseDuration)
}

func observePhase(phase string, took time.Duration) {
	phaseDuration.WithLabelValues(phase).Observe(took.Seconds())
}

// recorded are the series of conditionInfo that there are, by agent.
var recorded = struct {
	sync.Mutex

	series map[types.NamespacedName][][]string
}{series: map[types.NamespacedName][][]string{}}

// recordConditions replaces an agent's series; one that stays is never absent.
func recordConditions(agent *mcpv1alpha1.MCPAgent) {
	key := client.ObjectKeyFromObject(agent)
	recorded.Lock()
	defer recorded.Unlock()
	var is [][]string
	for _, c := range agent.Status.Conditions {
		labels := []string{c.Type, string(c.Status), c.Reason, key.Name, key.Namespace}
		conditionInfo.WithLabelValues(labels...).Set(1)
		is = append(is, labels)
	}
	for _, labels := range recorded.series[key] {
		if !slices.ContainsFunc(is, func(other []string) bool { return slices.Equal(other, labels) }) {
			conditionInfo.DeleteLabelValues(labels...)
		}
	}
	recorded.series[key] = is
}

func recordPass(agent *mcpv1alpha1.MCPAgent, revised bool, result reconcile.Result) {
	if count := agent.Status.ToolCount; count != nil {
		servedTools.WithLabelValues(agent.Name, agent.Namespace).Set(float64(*count))
	}
	if revised {
		tableRevisions.WithLabelValues(agent.Name, agent.Namespace).Inc()
	}
	if result.Failed != "" {
		failures.WithLabelValues(result.Failed, result.Problem.Reason, agent.Name, agent.Namespace).Inc()
	}
}

// deleteMetrics removes every series of an agent that is gone.
func deleteMetrics(key types.NamespacedName) {
	recorded.Lock()
	delete(recorded.series, key)
	recorded.Unlock()
	for _, v := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{conditionInfo, servedTools, tableRevisions, failures} {
		v.DeletePartialMatch(prometheus.Labels{"name": key.Name, "namespace": key.Namespace})
	}
}

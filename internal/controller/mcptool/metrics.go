package mcptool

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const namespace = "mcptool"

var (
	conditionInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "condition_info", Help: "The conditions of MCPTools; always 1.",
	}, []string{"type", "status", "reason", "name", "namespace"})

	endpointChecks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "endpoint_checks_total", Help: "Attempts to connect to endpoints of MCPTools, by the reason they gave Reachable.",
	}, []string{"reason"})

	documentFetches = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "document_fetches_total", Help: "Attempts to fetch OpenAPI documents, by result: success or failure.",
	}, []string{"result"})
)

func init() {
	metrics.Registry.MustRegister(conditionInfo, endpointChecks, documentFetches)
}

func countCheck(reason string) { endpointChecks.WithLabelValues(reason).Inc() }

func countFetch(ok bool) {
	result := "failure"
	if ok {
		result = "success"
	}
	documentFetches.WithLabelValues(result).Inc()
}

// series are the label values of one series of conditionInfo.
type series [5]string

// recorded is the series of conditionInfo that there are, by tool.
var recorded = struct {
	sync.Mutex

	series map[types.NamespacedName]map[series]struct{}
}{series: map[types.NamespacedName]map[series]struct{}{}}

// recordConditions replaces a tool's series; one that stays is never absent.
func recordConditions(key types.NamespacedName, conditions []metav1.Condition) {
	recorded.Lock()
	defer recorded.Unlock()
	is := map[series]struct{}{}
	for _, c := range conditions {
		s := series{c.Type, string(c.Status), c.Reason, key.Name, key.Namespace}
		conditionInfo.WithLabelValues(s[:]...).Set(1)
		is[s] = struct{}{}
	}
	for s := range recorded.series[key] {
		if _, stays := is[s]; !stays {
			conditionInfo.DeleteLabelValues(s[:]...)
		}
	}
	recorded.series[key] = is
}

// deleteMetrics removes every series of a tool that is gone.
func deleteMetrics(key types.NamespacedName) {
	recordConditions(key, nil)
	recorded.Lock()
	defer recorded.Unlock()
	delete(recorded.series, key)
}

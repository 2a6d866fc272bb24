package mcpagent

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// event is what is told of an agent: its type (Normal or Warning), why it is told (reason), what was done (action), and a sentence.
type event struct{ kind, reason, action, note string }

// report tells of what changed in this pass, after the status says so too: events, metrics, log.
func (s *scope) report(ctx context.Context, result reconcile.Result) {
	recordConditions(s.agent)
	recordPass(s.agent, s.revised, result)
	logger := log.FromContext(ctx)
	for _, e := range changes(s.stale, s.agent) {
		if !s.admits(e) {
			continue
		}
		logger.Info("event", "reason", e.reason, "action", e.action, "note", e.note)
		if s.Recorder != nil {
			s.Recorder.Eventf(s.agent, nil, e.kind, e.reason, e.action, "%s", reconcile.Truncate(e.note))
		}
	}
}

// eventPause is for how long no event of an agent's follows another one of its reason and action with another note: what a message tells may
// change all the time, as a server makes it.
const eventPause = time.Minute

// told is what was told of an agent last, by reason and action, of which there are few. What is older than eventPause is forgotten.
type told map[[2]string]telling

type telling struct {
	note string
	at   time.Time
}

// admits says whether an event is to be told now, and notes that it is. One that is not is not told later either: its condition has the
// newest message.
func (t *told) admits(e event, now time.Time) bool {
	maps.DeleteFunc(*t, func(_ [2]string, last telling) bool { return now.Sub(last.at) >= eventPause })
	of := [2]string{e.reason, e.action}
	if last, isTold := (*t)[of]; isTold {
		return last.note == e.note // one that is told again is counted, and begins no other pause
	}
	if *t == nil {
		*t = told{}
	}
	(*t)[of] = telling{e.note, now}
	return true
}

func (s *scope) admits(e event) bool {
	isDue := false
	s.remember(s.key(), func(m *memory) { isDue = m.told.admits(e, time.Now()) })
	return isDue
}

// actionOf is what was being done when Ready became False for a reason.
var actionOf = map[string]string{
	mcpv1alpha1.ReasonDeploymentUnavailable:    "DeploymentReconcileFailed",
	mcpv1alpha1.ReasonServiceUnavailable:       "ServiceReconcileFailed",
	mcpv1alpha1.ReasonNetworkPolicyUnavailable: "NetworkPolicyReconcileFailed",
	mcpv1alpha1.ReasonMCPEndpointUnavailable:   "GatewayStatusFailed",
}

// changes returns the events that tell the difference between two states of an agent.
func changes(before, after *mcpv1alpha1.MCPAgent) []event {
	var list []event
	name := client.ObjectKeyFromObject(after).String()
	of := func(conditionType string) (was, is metav1.Condition) {
		return reconcile.ConditionOf(before.Status.Conditions, conditionType), reconcile.ConditionOf(after.Status.Conditions, conditionType)
	}
	was, is := of(mcpv1alpha1.ConditionAccepted)
	accepted := is
	if is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue {
		note := fmt.Sprintf("MCPAgent %s configuration is valid; Accepted=True", name)
		list = append(list, event{corev1.EventTypeNormal, mcpv1alpha1.ReasonValid, "ConfigurationAccepted", note})
	}
	if is.Status == metav1.ConditionFalse && isNews(was, is) {
		list = append(list, event{corev1.EventTypeWarning, is.Reason, "ConfigurationValidation", is.Message})
	}
	was, is = of(mcpv1alpha1.ConditionPaused)
	if is.Status == metav1.ConditionFalse && isNews(was, is) {
		list = append(list, event{corev1.EventTypeWarning, is.Reason, "PauseNotUnderstood", is.Message})
	}
	was, is = of(mcpv1alpha1.ConditionRouted)
	if is.Status == metav1.ConditionFalse && isNews(was, is) {
		list = append(list, event{corev1.EventTypeWarning, is.Reason, "ToolsRouting", is.Message})
	}
	if is.Status == metav1.ConditionTrue && was.Status == metav1.ConditionFalse {
		list = append(list, event{corev1.EventTypeNormal, is.Reason, "ToolsRouting", "All that is granted is served"})
	}
	_, available := of(mcpv1alpha1.ConditionAvailable)
	was, is = of(mcpv1alpha1.ConditionReady)
	if is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue {
		list = append(list, event{corev1.EventTypeNormal, mcpv1alpha1.ReasonAvailable, "AgentReady", fmt.Sprintf("MCPAgent %s is ready; Ready=True", name)})
	}
	action, isProblem := actionOf[is.Reason]
	if is.Reason == mcpv1alpha1.ReasonDeploymentUnavailable && available.Status == metav1.ConditionFalse {
		action = available.Reason // events of one reason and action are one series, which shows its first note only
	}
	if isProblem && is.Status == metav1.ConditionFalse && isNews(was, is) && accepted.Status != metav1.ConditionFalse {
		list = append(list, event{corev1.EventTypeWarning, is.Reason, action, is.Message})
	}
	return list
}

func isNews(was, is metav1.Condition) bool {
	return was.Status != is.Status || was.Reason != is.Reason || was.Message != is.Message
}

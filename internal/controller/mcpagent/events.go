package mcpagent

import (
	"context"
	"fmt"

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
		logger.Info("event", "reason", e.reason, "action", e.action, "note", e.note)
		if s.Recorder != nil {
			s.Recorder.Eventf(s.agent, nil, e.kind, e.reason, e.action, "%s", reconcile.Truncate(e.note))
		}
	}
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

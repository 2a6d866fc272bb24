package sigserver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// delay is what keeps a specification from being acted on, and is nobody's mistake. This API has no status Unknown of Accepted, and no
// condition of what was applied: it is told in the message of Ready, after the known sentence, and by an event.
type delay struct{ begins, reason, action string }

var (
	notJudged  = delay{"; the configuration cannot be judged now: ", "NotJudged", "ConfigurationValidation"}
	notApplied = delay{"; not all of it is applied: ", "NotApplied", "ChildReconcileDelayed"}
)

// delayed adds to Ready what the configuration, or a child, waits for. What is not all applied is not ready as the current generation asks.
func delayed(ready metav1.Condition, pass engine.Pass) metav1.Condition {
	accepted := reconcile.ConditionOf(pass.Server.Status.Conditions, mcpv1alpha1.ConditionAccepted)
	applied := reconcile.ConditionOf(pass.Server.Status.Conditions, mcpv1alpha1.ConditionApplied)
	switch {
	case ready.Reason == "" || accepted.Status == metav1.ConditionFalse:
	case accepted.Status == metav1.ConditionUnknown && accepted.Message != "":
		ready.Message += notJudged.begins + accepted.Message
	case applied.Status == metav1.ConditionUnknown && applied.Message != "":
		ready.Message += notApplied.begins + applied.Message
		if ready.Status == metav1.ConditionTrue {
			ready.ObservedGeneration = max(0, min(ready.ObservedGeneration, pass.Server.Generation-1))
		}
	}
	return ready
}

// withoutDelay returns a message of Ready without what delayed added, and why not all is applied; empty if it says nothing of that.
func withoutDelay(message string) (known, why string) {
	message, _, _ = strings.Cut(message, notJudged.begins)
	known, why, _ = strings.Cut(message, notApplied.begins)
	return known, why
}

// delays tells once what keeps a server waiting.
func delays(before, after *sigv1alpha1.MCPServer) []engine.Event {
	said := func(server *sigv1alpha1.MCPServer, d delay) string {
		_, why, _ := strings.Cut(reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionReady).Message, d.begins)
		return why
	}
	var list []engine.Event
	for _, d := range []delay{notJudged, notApplied} {
		if why := said(after, d); why != "" && why != said(before, d) {
			list = append(list, engine.Event{Type: corev1.EventTypeWarning, Reason: d.reason, Action: d.action, Note: why})
		}
	}
	return list
}

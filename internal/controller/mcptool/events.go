package mcptool

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// news is what is told of a tool: its type, why it is told (reason), what was done (action), and a sentence.
type news struct{ kind, reason, action, note string }

// report tells of what changed in this pass, after the status says so too: events, metrics, log.
func (s *scope) report(ctx context.Context) {
	recordConditions(s.key(), s.tool.Status.Conditions)
	logger := log.FromContext(ctx)
	for _, e := range changes(s.before, s.tool) {
		logger.Info("event", "reason", e.reason, "action", e.action, "note", e.note)
		if s.opts.Recorder != nil {
			s.opts.Recorder.Eventf(s.tool, nil, e.kind, e.reason, e.action, "%s", reconcile.Truncate(e.note))
		}
	}
}

// changes returns the events that tell the difference between two states of a tool.
func changes(before, after *mcpv1alpha1.MCPTool) []news {
	var list []news
	name := after.Namespace + "/" + after.Name
	of := func(conditionType string) (was, is metav1.Condition) {
		return reconcile.ConditionOf(before.Status.Conditions, conditionType), reconcile.ConditionOf(after.Status.Conditions, conditionType)
	}
	was, is := of(mcpv1alpha1.ConditionAccepted)
	accepted := is
	if is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue {
		list = append(list, news{corev1.EventTypeNormal, is.Reason, "ConfigurationAccepted", "MCPTool " + name + " is valid"})
	}
	if is.Status == metav1.ConditionTrue && is.Message != was.Message && is.Message != validated {
		list = append(list, news{corev1.EventTypeWarning, "DocumentIncomplete", "ConfigurationAccepted", is.Message})
	}
	if is.Status == metav1.ConditionFalse && (was.Status != metav1.ConditionFalse || was.Message != is.Message) {
		list = append(list, news{corev1.EventTypeWarning, is.Reason, "ConfigurationValidation", is.Message})
	}
	if now, old := after.Status.Definitions, before.Status.Definitions; now != nil && old != nil && now.SHA256 != old.SHA256 {
		note := "The tools of MCPTool " + name + " changed: they are in ConfigMap " + now.Name
		list = append(list, news{corev1.EventTypeNormal, "DefinitionsChanged", "DocumentCompiled", note})
	}
	was, is = of(mcpv1alpha1.ConditionPaused)
	if is.Status == metav1.ConditionFalse && (was.Status != is.Status || was.Message != is.Message) {
		list = append(list, news{corev1.EventTypeWarning, is.Reason, "PauseNotUnderstood", is.Message})
	}
	was, is = of(mcpv1alpha1.ConditionReady)
	if is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue {
		list = append(list, news{corev1.EventTypeNormal, is.Reason, "ToolReady", "MCPTool " + name + " is ready"})
	}
	isNews := was.Status != is.Status || was.Reason != is.Reason || was.Message != is.Message
	if is.Status == metav1.ConditionFalse && isNews && accepted.Status != metav1.ConditionFalse {
		list = append(list, news{corev1.EventTypeWarning, is.Reason, "ToolUnavailable", is.Message})
	}
	return list
}

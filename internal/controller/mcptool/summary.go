package mcptool

import (
	"cmp"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// conditionTypes are all that the status may hold.
var conditionTypes = []string{
	mcpv1alpha1.ConditionAccepted, mcpv1alpha1.ConditionApplied, mcpv1alpha1.ConditionReachable, mcpv1alpha1.ConditionVerified,
	mcpv1alpha1.ConditionReady, mcpv1alpha1.ConditionPaused,
}

// summarize derives what no phase answers for: Ready, Paused, the phase, and what the tool becomes.
func (s *scope) summarize() {
	status := &s.tool.Status
	status.ObservedGeneration = s.tool.Generation
	// Conditions of somebody else could fill the list, and make the status unwritable.
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return !slices.Contains(conditionTypes, c.Type) })
	if !s.isOpenAPI() {
		apimeta.RemoveStatusCondition(&status.Conditions, mcpv1alpha1.ConditionApplied)
		status.Definitions, status.DocumentDigest = nil, ""
	}
	if s.lone.Name != "" {
		s.setTools([]mcpv1alpha1.ToolStatus{s.lone})
	}
	if s.definitions != nil {
		s.setTools(s.definitions.tools)
	}
	s.set(s.ready())
	switch {
	case s.paused:
		s.set(metav1.Condition{
			Type: mcpv1alpha1.ConditionPaused, Status: metav1.ConditionTrue, Reason: mcpv1alpha1.ReasonPaused,
			Message: "The annotation " + mcpv1alpha1.AnnotationPaused + " is set: nothing is changed, and all is observed",
		})
	case s.misread != "":
		s.set(metav1.Condition{
			Type: mcpv1alpha1.ConditionPaused, Status: metav1.ConditionFalse, Reason: mcpv1alpha1.ReasonInvalid, Message: s.misread,
		})
	default:
		apimeta.RemoveStatusCondition(&status.Conditions, mcpv1alpha1.ConditionPaused)
	}
	status.Phase = phaseOf(reconcile.ConditionOf(status.Conditions, mcpv1alpha1.ConditionReady), s.current(mcpv1alpha1.ConditionVerified))
}

func (s *scope) set(c metav1.Condition) {
	c.ObservedGeneration = s.tool.Generation
	c.Message = reconcile.Truncate(c.Message)
	apimeta.SetStatusCondition(&s.tool.Status.Conditions, c)
}

// ready derives Ready from the other conditions. That nobody has tried the tool yet does not keep it from being ready.
func (s *scope) ready() metav1.Condition {
	accepted, applied := s.current(mcpv1alpha1.ConditionAccepted), s.current(mcpv1alpha1.ConditionApplied)
	reachable, verified := s.current(mcpv1alpha1.ConditionReachable), s.current(mcpv1alpha1.ConditionVerified)
	if !s.isOpenAPI() {
		applied.Status = metav1.ConditionTrue
	}
	c := metav1.Condition{Type: mcpv1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case accepted.Status == metav1.ConditionFalse:
		c.Reason, c.Message = mcpv1alpha1.ReasonConfigurationInvalid, "Configuration must be fixed: "+accepted.Message
	case applied.Status == metav1.ConditionFalse:
		c.Reason, c.Message = applied.Reason, applied.Message
	case reachable.Status == metav1.ConditionFalse:
		c.Reason, c.Message = mcpv1alpha1.ReasonEndpointUnreachable, reachable.Message
	case verified.Status == metav1.ConditionFalse:
		c.Reason, c.Message = mcpv1alpha1.ReasonCheckFailed, verified.Message
	case accepted.Status == metav1.ConditionUnknown:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, cmp.Or(accepted.Message, "The specification is being checked")
	case applied.Status == metav1.ConditionUnknown:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, cmp.Or(applied.Message, "The definitions are being written")
	case reachable.Status == metav1.ConditionUnknown:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, cmp.Or(reachable.Message, "The endpoint is being connected to")
	case verified.Status == metav1.ConditionTrue:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable, "The tool is served"
	default:
		c.Status, c.Reason = metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable
		c.Message = "The tool can be granted to agents; " + cmp.Or(s.heldUp, s.toolless, "no gateway has served it yet")
	}
	return c
}

// phaseOf sums conditions up in one word.
func phaseOf(ready, verified metav1.Condition) mcpv1alpha1.Phase {
	switch {
	case ready.Status == metav1.ConditionTrue:
		return mcpv1alpha1.PhaseReady
	case ready.Status == metav1.ConditionFalse && ready.Reason != mcpv1alpha1.ReasonConfigurationInvalid && verified.Status == metav1.ConditionTrue:
		return mcpv1alpha1.PhaseDegraded // a gateway serves it all the same
	case ready.Status == metav1.ConditionFalse:
		return mcpv1alpha1.PhaseFailed
	}
	return mcpv1alpha1.PhasePending
}

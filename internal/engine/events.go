package engine

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// EventCapabilityChanged is the reason of the event that tells that a server offers something else than before.
const EventCapabilityChanged = "CapabilityChanged"

// EventInsecureTLS is the reason of the event that tells that a server's certificate is not verified.
const EventInsecureTLS = "InsecureTLS"

// EventSessionsNotKept is the reason of the event that tells that a server hands out sessions although it was called stateless.
const EventSessionsNotKept = "SessionsNotKept"

// EventDegraded is the reason of the event that tells that a server serves and something of it needs attention.
const EventDegraded = "Degraded"

// Event is what is told of an object: its type (Normal or Warning), why it is told (reason), what was done (action), and a sentence.
type Event struct{ Type, Reason, Action, Note string }

// report tells of what changed in this pass, after the status says so too: events, metrics, log.
func (s *scope) report(ctx context.Context, result reconcile.Result, pass Pass) {
	stale, object := s.kind().Read(s.stale), s.kind().Read(s.object)
	recordConditions(s.kind().Name(), client.ObjectKeyFromObject(s.object), s.kind().Conditions(s.object))
	recordFailure(object, result, s.failedPhase(result))
	logger := log.FromContext(ctx)
	for _, e := range append(changes(stale, object, news{s.capabilityChange, s.failing}), s.kind().Events(s.stale, s.object)...) {
		logger.Info("event", "reason", e.Reason, "action", e.Action, "note", e.Note)
		if s.Recorder != nil {
			s.Recorder.Eventf(s.object, nil, e.Type, e.Reason, e.Action, "%s", reconcile.Truncate(e.Note))
		}
	}
	if s.holds() {
		recordSkip(s.server)
	}
	if s.learned != (offer{}) {
		s.offered.set(client.ObjectKeyFromObject(s.object), s.learned)
	}
	if s.capabilityChange != "" {
		capabilityChanges.WithLabelValues(s.server.Name, s.server.Namespace).Inc()
	}
	s.kind().Report(ctx, s.stale, s.object, pass)
}

// holds says that the server was verified for this generation before the pass, and still is: the pass asked nothing.
func (s *scope) holds() bool {
	was, is := s.stored(mcpv1alpha1.ConditionVerified), s.current(mcpv1alpha1.ConditionVerified)
	return was.Status == metav1.ConditionTrue && is.Status == metav1.ConditionTrue &&
		was.ObservedGeneration == s.server.Generation && is.ObservedGeneration == s.server.Generation
}

// actionOf is what was being done when Ready became False or Unknown for a reason.
var actionOf = map[string]string{
	mcpv1alpha1.ReasonConfigurationInvalid:     "ConfigurationValidation",
	mcpv1alpha1.ReasonDeploymentUnavailable:    "DeploymentReconcileFailed",
	mcpv1alpha1.ReasonServiceUnavailable:       "ServiceReconcileFailed",
	mcpv1alpha1.ReasonNetworkPolicyUnavailable: "NetworkPolicyReconcileFailed",
	mcpv1alpha1.ReasonMCPEndpointUnavailable:   "MCPHandshakeFailed",
}

// news is what a pass found and a status does not hold: what the server offers now and did not before, and what is wrong for good with a pod.
type news struct {
	capabilityChange string
	failing          diagnose.Finding
}

// changes returns the events that tell the difference between two states of an object.
func changes(before, after *mcpv1alpha1.MCPServer, found news) []Event {
	var list []Event
	name := client.ObjectKeyFromObject(after).String()
	was, is := statusesOf(before), statusesOf(after)
	if is.accepted.Status == metav1.ConditionTrue && was.accepted.Status != metav1.ConditionTrue {
		note := fmt.Sprintf("MCPServer %s configuration is valid; Accepted=True", name)
		list = append(list, Event{corev1.EventTypeNormal, mcpv1alpha1.ReasonValid, "ConfigurationAccepted", note})
	}
	if is.accepted.Status == metav1.ConditionFalse && (was.accepted.Status != metav1.ConditionFalse || was.accepted.Message != is.accepted.Message) {
		list = append(list, Event{corev1.EventTypeWarning, is.accepted.Reason, "ConfigurationValidation", is.accepted.Message})
	}
	if strings.Contains(is.accepted.Message, unverified) && !strings.Contains(was.accepted.Message, unverified) {
		list = append(list, Event{corev1.EventTypeWarning, EventInsecureTLS, "ConfigurationAccepted", "MCPServer " + name + " is asked by HTTPS" + unverified})
	}
	if isAvailable(is.ready) && !isAvailable(was.ready) {
		list = append(list, Event{corev1.EventTypeNormal, mcpv1alpha1.ReasonAvailable, "ServerReady", fmt.Sprintf("MCPServer %s is ready; Ready=True", name)})
	}
	action, isProblem := actionOf[is.ready.Reason]
	isNews := was.ready.Status != is.ready.Status || was.ready.Reason != is.ready.Reason || was.ready.Message != is.ready.Message
	if is.ready.Reason == mcpv1alpha1.ReasonDeploymentUnavailable && is.available.Status == metav1.ConditionFalse {
		action = is.available.Reason // events of one reason and action are one series, which shows its first note only
	}
	if isProblem && is.ready.Status == metav1.ConditionFalse && isNews && is.accepted.Status != metav1.ConditionFalse {
		list = append(list, Event{corev1.EventTypeWarning, is.ready.Reason, action, is.ready.Message})
	}
	list = append(list, degraded(before, after, found.failing)...)
	if strings.HasSuffix(is.verified.Message, keepsSessions) && !strings.HasSuffix(was.verified.Message, keepsSessions) {
		note := "MCPServer " + name + " answers" + keepsSessions
		list = append(list, Event{corev1.EventTypeWarning, EventSessionsNotKept, "ServerVerified", note})
	}
	if is.paused.Status == metav1.ConditionFalse && (was.paused.Status != is.paused.Status || was.paused.Message != is.paused.Message) {
		list = append(list, Event{corev1.EventTypeWarning, is.paused.Reason, "PauseNotUnderstood", is.paused.Message})
	}
	if found.capabilityChange != "" {
		note := "MCP server capabilities changed: " + found.capabilityChange
		list = append(list, Event{corev1.EventTypeWarning, EventCapabilityChanged, "CapabilityChangeDetected", note})
	}
	return list
}

// degraded tells once when something of a server that serves begins to need attention, or another part of it does. The action says what it
// is: events of one reason and action are one series, which shows its first note only.
func degraded(before, after *mcpv1alpha1.MCPServer, failing diagnose.Finding) []Event {
	action, note := attention(after.Status.Conditions, failing)
	if after.Status.Phase != mcpv1alpha1.PhaseDegraded || action == "" {
		return nil
	}
	part, _ := attention(after.Status.Conditions, diagnose.Finding{})
	partBefore, _ := attention(before.Status.Conditions, diagnose.Finding{})
	if before.Status.Phase == mcpv1alpha1.PhaseDegraded && isAvailable(statusesOf(before).ready) && part == partBefore {
		return nil
	}
	return []Event{{corev1.EventTypeWarning, EventDegraded, action, note}}
}

// isAvailable says whether Ready tells of a server that answers: not of one that is as it should be with no pods.
func isAvailable(ready metav1.Condition) bool {
	return ready.Status == metav1.ConditionTrue && ready.Reason == mcpv1alpha1.ReasonAvailable
}

type statuses struct{ accepted, available, verified, ready, paused metav1.Condition }

func statusesOf(server *mcpv1alpha1.MCPServer) statuses {
	return statuses{
		accepted:  reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionAccepted),
		available: reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionAvailable),
		verified:  reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionVerified),
		ready:     reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionReady),
		paused:    reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionPaused),
	}
}

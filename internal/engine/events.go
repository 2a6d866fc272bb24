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
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// EventCapabilityChanged is the reason of the event that tells that a server offers something else than before.
const EventCapabilityChanged = "CapabilityChanged"

// EventInsecureTLS is the reason of the event that tells that a server's certificate is not verified.
const EventInsecureTLS = "InsecureTLS"

// Event is what is told of an object: its type (Normal or Warning), why it is told (reason), what was done (action), and a sentence.
type Event struct{ Type, Reason, Action, Note string }

// report tells of what changed in this pass, after the status says so too: events, metrics, log.
func (s *scope) report(ctx context.Context, result reconcile.Result, pass Pass) {
	stale, object := s.kind().Read(s.stale), s.kind().Read(s.object)
	recordConditions(s.kind().Name(), client.ObjectKeyFromObject(s.object), s.kind().Conditions(s.object))
	recordFailure(object, result, s.failedPhase(result))
	logger := log.FromContext(ctx)
	for _, e := range append(changes(stale, object, s.capabilityChange), s.kind().Events(s.stale, s.object)...) {
		logger.Info("event", "reason", e.Reason, "action", e.Action, "note", e.Note)
		if s.Recorder != nil {
			s.Recorder.Eventf(s.object, nil, e.Type, e.Reason, e.Action, "%s", reconcile.Truncate(e.Note))
		}
	}
	if s.holds() {
		recordSkip(s.server)
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

// changes returns the events that tell the difference between two states of an object.
func changes(before, after *mcpv1alpha1.MCPServer, capabilityChange string) []Event {
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
	if strings.HasSuffix(is.accepted.Message, unverified) && !strings.HasSuffix(was.accepted.Message, unverified) {
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
	if capabilityChange != "" {
		note := "MCP server capabilities changed: " + capabilityChange
		list = append(list, Event{corev1.EventTypeWarning, EventCapabilityChanged, "CapabilityChangeDetected", note})
	}
	return list
}

// isAvailable says whether Ready tells of a server that answers: not of one that is as it should be with no pods.
func isAvailable(ready metav1.Condition) bool {
	return ready.Status == metav1.ConditionTrue && ready.Reason == mcpv1alpha1.ReasonAvailable
}

type statuses struct{ accepted, available, ready metav1.Condition }

func statusesOf(server *mcpv1alpha1.MCPServer) statuses {
	return statuses{
		accepted:  reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionAccepted),
		available: reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionAvailable),
		ready:     reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionReady),
	}
}

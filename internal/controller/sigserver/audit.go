package sigserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// manyAttempts is how many failed handshakes in a row are told once more. Unlike that of the operator that this API comes from, ours
// goes on trying.
const manyAttempts = 10

// triedOften says whether this pass is the one that reached manyAttempts.
func triedOften(before, after *sigv1alpha1.MCPServer) bool {
	return before.Status.HandshakeRetryCount < manyAttempts && after.Status.HandshakeRetryCount >= manyAttempts
}

// Events tells of a server that has failed for long, or is kept waiting.
func (Dialect) Events(before, after client.Object) []engine.Event {
	list := delays(as(before), as(after))
	if !triedOften(as(before), as(after)) {
		return list
	}
	return append(list, engine.Event{
		Type: corev1.EventTypeWarning, Reason: mcpv1alpha1.ReasonMCPEndpointUnavailable, Action: "MCPHandshakeRetriesExhausted",
		Note: fmt.Sprintf("MCP handshake failed after %d attempts in a row; it is tried again at least every two minutes",
			as(after).Status.HandshakeRetryCount),
	})
}

// audit writes one line of the audit log.
func (d Dialect) audit(server metav1.Object, operation string, values ...any) {
	d.Audit.WithValues(
		"mcpserver", server.GetName(), "namespace", server.GetNamespace(),
		"generation", server.GetGeneration(), "resourceVersion", server.GetResourceVersion(),
	).Info("audit", append([]any{"operation", operation}, values...)...)
}

// Report writes to the audit log what changed in a pass.
func (d Dialect) Report(_ context.Context, before, after client.Object, pass engine.Pass) {
	was, is := as(before), as(after)
	accepted := reconcile.ConditionOf(is.Status.Conditions, mcpv1alpha1.ConditionAccepted)
	if accepted.Status == metav1.ConditionFalse && accepted.Message != reconcile.ConditionOf(was.Status.Conditions, mcpv1alpha1.ConditionAccepted).Message {
		d.audit(is, "ConfigurationRejected", "reason", accepted.Reason, "message", accepted.Message)
	}
	var conflict *apply.ConflictError
	ready := reconcile.ConditionOf(is.Status.Conditions, mcpv1alpha1.ConditionReady)
	if errors.As(pass.Cause, &conflict) && ready.Message != reconcile.ConditionOf(was.Status.Conditions, mcpv1alpha1.ConditionReady).Message {
		d.audit(is, "OwnershipViolation", "resource", conflict.Resource.String(), "resourceKind", conflict.Kind, "existingOwner", conflict.Owner)
	}
	policy := []any{"networkPolicy", is.Name, "hasIngressRestriction", restrictsIngress(is), "hasEgressRestriction", restrictsEgress(is)}
	switch pass.Policy {
	case apply.Created:
		d.audit(is, "NetworkPolicyCreated", policy...)
	case apply.Updated:
		d.audit(is, "NetworkPolicyUpdated", policy...)
	case apply.Unchanged:
	}
	if pass.CapabilityChange != "" {
		d.audit(is, "CapabilityChange", "diff", pass.CapabilityChange)
	}
	if triedOften(was, is) {
		d.audit(is, "HandshakeRetriesExhausted", "retries", is.Status.HandshakeRetryCount, "max", manyAttempts)
	}
}

func restrictsIngress(server *sigv1alpha1.MCPServer) bool {
	return server.Spec.Network != nil && len(server.Spec.Network.IngressFrom) > 0
}

func restrictsEgress(server *sigv1alpha1.MCPServer) bool {
	network := server.Spec.Network
	return network != nil && (len(network.EgressTo) > 0 || len(network.EgressPorts) > 0)
}

// Starting writes that a handshake begins. That a server which answered is asked whether it still does is not worth a line, unless there
// is news.
func (d Dialect) Starting(handshake engine.Handshake) {
	if handshake.Last == nil {
		d.attempt(handshake)
	}
}

func (d Dialect) attempt(handshake engine.Handshake) {
	d.audit(probed(handshake), "HandshakeAttempt", "url", handshake.URL)
}

// Ended writes what came of a handshake: after each attempt one line, and before each such line an attempt.
func (d Dialect) Ended(handshake engine.Handshake, took time.Duration, result *mcp.Result, err error) {
	server, milliseconds := probed(handshake), took.Milliseconds()
	if handshake.Last != nil && (err != nil || result != nil) {
		d.attempt(handshake)
	}
	switch {
	case err != nil:
		d.audit(server, "HandshakeFailed", "url", handshake.URL, "error", inTheirWords(err.Error()), "durationMs", milliseconds)
	case result == nil: // it answers as before
	case result.AuthRequired:
		d.audit(server, "HandshakeAuthSkip", "url", handshake.URL, "error", "the server asks for credentials")
	default:
		d.audit(server, "HandshakeSuccess", "url", handshake.URL, "durationMs", milliseconds, "protocolVersion", result.ProtocolVersion,
			"serverName", result.Server.Name, "serverVersion", result.Server.Version)
	}
}

func probed(handshake engine.Handshake) metav1.Object {
	of := handshake.Server
	return &metav1.ObjectMeta{Name: of.Key.Name, Namespace: of.Key.Namespace, Generation: of.Generation, ResourceVersion: of.ResourceVersion}
}

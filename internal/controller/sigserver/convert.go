package sigserver

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// specOf returns a specification as our kind says it: what the engine looks at. What only children are made of is left to
// internal/desired.
func specOf(server *sigv1alpha1.MCPServer) mcpv1alpha1.MCPServerSpec {
	asked := &server.Spec
	spec := mcpv1alpha1.MCPServerSpec{
		Transport: mcpv1alpha1.TransportStreamableHTTP,
		Port:      asked.Config.Port, Path: asked.Config.Path,
		Args: asked.Config.Arguments, Env: asked.Config.Env, EnvFrom: asked.Config.EnvFrom,
		Sessions: mcpv1alpha1.SessionsStateful,
	}
	if asked.Source.ContainerImage != nil {
		spec.Image = asked.Source.ContainerImage.Ref
	}
	if asked.Runtime != nil {
		spec.Replicas = asked.Runtime.Replicas
	}
	if asked.MCP != nil && asked.MCP.Stateless != nil && *asked.MCP.Stateless {
		spec.Sessions = mcpv1alpha1.SessionsStateless
	}
	if tls := tlsOf(server); tls != nil {
		spec.TLS = &mcpv1alpha1.ServerTLS{InsecureSkipVerify: tls.InsecureSkipVerify}
		if tls.CABundleSecret != nil {
			spec.TLS.CASecretRef = &mcpv1alpha1.SecretKey{ObjectName: mcpv1alpha1.ObjectName{Name: tls.CABundleSecret.Name}, Key: caKey}
		}
	}
	return spec
}

// caKey is the entry of a CA bundle Secret.
const caKey = "ca.crt"

// statusOf returns what a status stands for, in the conditions of our kind. It needs no memory: after a restart of the operator the
// engine goes on from it.
func statusOf(server *sigv1alpha1.MCPServer) mcpv1alpha1.MCPServerStatus {
	told := &server.Status
	status := mcpv1alpha1.MCPServerStatus{
		ObservedGeneration: told.ObservedGeneration, Replicas: told.Replicas, ReadyReplicas: told.ReadyReplicas,
		ServerInfo: infoOf(told.ServerInfo),
	}
	if told.Address != nil {
		status.Endpoint = told.Address.URL
	}
	accepted, ready := reconcile.ConditionOf(told.Conditions, mcpv1alpha1.ConditionAccepted), reconcile.ConditionOf(told.Conditions, mcpv1alpha1.ConditionReady)
	known, waitsFor := withoutDelay(ready.Message)
	ready.Message = known
	for _, c := range []metav1.Condition{accepted, ready} {
		if c.Reason != "" {
			status.Conditions = append(status.Conditions, c)
		}
	}
	if _, said, found := strings.Cut(accepted.Message, misreadPause); found {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: mcpv1alpha1.ConditionPaused, Status: metav1.ConditionFalse, Reason: mcpv1alpha1.ReasonInvalid,
			Message: strings.TrimPrefix(misreadPause, "; ") + said, ObservedGeneration: accepted.ObservedGeneration,
		})
	}
	if ready.Reason == "" {
		return status
	}
	// What was judged last, and not what was looked at last: of a paused object a newer generation is looked at, and not applied.
	applied := metav1.Condition{
		Type: mcpv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: mcpv1alpha1.ReasonApplied, ObservedGeneration: accepted.ObservedGeneration,
	}
	if accepted.Status == metav1.ConditionFalse { // what was refused was not applied: the children are of an older generation
		applied.ObservedGeneration = max(0, accepted.ObservedGeneration-1)
	}
	if waitsFor != "" {
		applied.Status, applied.Reason, applied.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonApplyFailed, waitsFor
	}
	if strings.HasPrefix(ready.Message, engine.FailedToReconcile) {
		applied.Status, applied.Reason, applied.Message = metav1.ConditionFalse, mcpv1alpha1.ReasonApplyFailed, ready.Message
	}
	status.Conditions = append(status.Conditions, applied)
	if verified := verifiedBy(server, ready); verified.Reason != "" {
		status.Conditions = append(status.Conditions, verified, metav1.Condition{
			Type: mcpv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: mcpv1alpha1.ReasonAvailable,
			ObservedGeneration: ready.ObservedGeneration,
		})
	}
	return status
}

// verifiedBy returns the condition Verified that Ready stands for; without a reason if it says nothing of handshakes. An address beside
// another problem says that what serves was verified, at an older generation.
func verifiedBy(server *sigv1alpha1.MCPServer, ready metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: mcpv1alpha1.ConditionVerified, ObservedGeneration: ready.ObservedGeneration, LastTransitionTime: ready.LastTransitionTime}
	switch {
	case ready.Status == metav1.ConditionTrue && ready.Reason == mcpv1alpha1.ReasonAvailable:
		c.Status, c.Reason = metav1.ConditionTrue, mcpv1alpha1.ReasonVerified
		if strings.HasSuffix(ready.Message, offerUnknown) {
			c.Reason = mcpv1alpha1.ReasonAuthRequired
		}
	case ready.Reason == mcpv1alpha1.ReasonMCPEndpointUnavailable:
		c.Status, c.Reason = metav1.ConditionFalse, string(mcp.ProtocolError)
		c.Message = strings.TrimPrefix(ready.Message, engine.NotServingMCP)
		if c.Message == engine.ServiceUnreachable {
			c.Reason = mcpv1alpha1.ReasonServiceUnreachable
		}
	case server.Status.Address != nil:
		c.Status, c.Reason, c.ObservedGeneration = metav1.ConditionTrue, mcpv1alpha1.ReasonVerified, max(0, server.Generation-1)
	}
	return c
}

// infoOf returns what is known of a server; nil if that is nothing, as of one that asks for credentials.
func infoOf(told *sigv1alpha1.ServerInfo) *mcpv1alpha1.MCPServerInfo {
	if told == nil || *told == (sigv1alpha1.ServerInfo{}) {
		return nil
	}
	info := &mcpv1alpha1.MCPServerInfo{
		Name: told.Name, Version: told.Version, ProtocolVersion: told.ProtocolVersion, Instructions: told.Instructions,
	}
	if c := told.Capabilities; c != nil {
		info.Capabilities = &mcpv1alpha1.MCPServerCapabilities{
			Tools: c.Tools, Resources: c.Resources, Prompts: c.Prompts, Logging: c.Logging, Completions: c.Completions,
		}
	}
	return info
}

// told is the opposite of infoOf.
func told(info *mcpv1alpha1.MCPServerInfo) *sigv1alpha1.ServerInfo {
	if info == nil {
		return nil
	}
	server := &sigv1alpha1.ServerInfo{
		Name: info.Name, Version: info.Version, ProtocolVersion: info.ProtocolVersion, Instructions: info.Instructions,
	}
	if c := info.Capabilities; c != nil {
		server.Capabilities = &sigv1alpha1.Capabilities{
			Tools: c.Tools, Resources: c.Resources, Prompts: c.Prompts, Logging: c.Logging, Completions: c.Completions,
		}
	}
	return server
}

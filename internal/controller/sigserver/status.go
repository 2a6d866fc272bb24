package sigserver

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// The messages of Ready, which scripts look for.
const (
	scaledToZero       = "MCP server is scaled to 0 replicas"
	waitingForStatus   = "Waiting for Deployment to report status"
	processingUpdate   = "Deployment is processing spec update"
	waitingForPods     = "Waiting for instances to become healthy"
	noHealthyInstances = "No healthy instances (pod details unavailable)"

	// misreadPause begins what follows the message of Accepted when the annotation that pauses could not be read.
	misreadPause = "; The annotation " + mcpv1alpha1.AnnotationPaused

	// offerUnknown ends the message of a server that answered, and of which no more is known.
	offerUnknown = "; it asks callers for credentials, so what it offers is not known"
)

// Write puts what the pass found into the status.
func (Dialect) Write(obj client.Object, pass engine.Pass) {
	server := as(obj)
	status, stored := &server.Status, reconcile.ConditionOf(server.Status.Conditions, mcpv1alpha1.ConditionReady)
	stored.Message, _ = withoutDelay(stored.Message)
	ready := readyOf(pass, stored)
	ready.ObservedGeneration = cmp.Or(ready.ObservedGeneration, server.Generation)
	ready = delayed(ready, pass)
	accepted := reconcile.ConditionOf(pass.Server.Status.Conditions, mcpv1alpha1.ConditionAccepted)
	if accepted.Status == metav1.ConditionUnknown { // it could not be judged, which passes by itself: what was said stands
		accepted = reconcile.ConditionOf(status.Conditions, mcpv1alpha1.ConditionAccepted)
	}
	// There is no condition of its own to tell it in.
	misread := reconcile.ConditionOf(pass.Server.Status.Conditions, mcpv1alpha1.ConditionPaused)
	if said, _, _ := strings.Cut(accepted.Message, misreadPause); misread.Status == metav1.ConditionFalse && accepted.Status == metav1.ConditionTrue {
		accepted.Message = said + "; " + misread.Message
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Type != mcpv1alpha1.ConditionAccepted && c.Type != mcpv1alpha1.ConditionReady
	})
	accepted.ObservedGeneration = cmp.Or(accepted.ObservedGeneration, server.Generation)
	for _, c := range []metav1.Condition{accepted, ready} {
		if c.Reason != "" {
			c.Message = reconcile.Truncate(c.Message)
			apimeta.SetStatusCondition(&status.Conditions, c)
		}
	}
	status.ObservedGeneration, status.ServiceName = server.Generation, server.Name
	if !pass.Seen {
		return // there is no news of what runs
	}
	status.DeploymentName, status.Replicas, status.ReadyReplicas = "", 0, 0
	if d := pass.Deployment; d != nil {
		status.DeploymentName, status.Replicas, status.ReadyReplicas = d.Name, replicasOf(d), d.Status.ReadyReplicas
	}
	status.Address = addressOf(pass, ready)
	status.ServerInfo = told(pass.Server.Status.ServerInfo)
	verified := reconcile.ConditionOf(pass.Server.Status.Conditions, mcpv1alpha1.ConditionVerified)
	if verified.Reason == mcpv1alpha1.ReasonAuthRequired && status.ServerInfo == nil {
		status.ServerInfo = &sigv1alpha1.ServerInfo{}
	}
	status.HandshakeRetryCount = 0
	if ready.Reason == mcpv1alpha1.ReasonMCPEndpointUnavailable {
		status.HandshakeRetryCount = pass.Attempts
	}
}

// addressOf returns the address of a server that answers; also of one whose new specification is refused, while the old one serves.
func addressOf(pass engine.Pass, ready metav1.Condition) *sigv1alpha1.Address {
	serves := ready.Status == metav1.ConditionTrue && ready.Reason == mcpv1alpha1.ReasonAvailable
	verified := reconcile.ConditionOf(pass.Server.Status.Conditions, mcpv1alpha1.ConditionVerified)
	url := pass.Server.Status.Endpoint
	if url == "" || verified.Status == metav1.ConditionFalse || !serves && pass.Cause == nil {
		return nil
	}
	return &sigv1alpha1.Address{URL: url}
}

// readyOf says whether the server is ready, in the words of this API. Becoming ready, a server is as soon as its Deployment is available
// and it answered; it stays so as long as a pod serves, so that a rollout does not flicker.
func readyOf(pass engine.Pass, stored metav1.Condition) metav1.Condition {
	conditions := pass.Server.Status.Conditions
	found := reconcile.ConditionOf(conditions, mcpv1alpha1.ConditionReady)
	d := pass.Deployment
	switch {
	case reconcile.ConditionOf(conditions, mcpv1alpha1.ConditionAccepted).Status == metav1.ConditionFalse,
		reconcile.ConditionOf(conditions, mcpv1alpha1.ConditionApplied).Status == metav1.ConditionFalse:
		return found
	case !pass.Seen:
		return stored
	case d == nil:
		return is(metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, waitingForStatus)
	case replicasOf(d) == 0:
		return is(metav1.ConditionTrue, mcpv1alpha1.ReasonScaledToZero, scaledToZero)
	case len(d.Status.Conditions) == 0 && d.Status.ReadyReplicas == 0:
		return is(metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, waitingForStatus)
	}
	stays := stored.Status == metav1.ConditionTrue && stored.Reason == mcpv1alpha1.ReasonAvailable && found.Status == metav1.ConditionTrue
	behind := d.Status.ObservedGeneration > 0 && d.Status.ObservedGeneration < d.Generation
	switch {
	case behind && !stays:
		return is(metav1.ConditionFalse, mcpv1alpha1.ReasonDeploymentUnavailable, processingUpdate)
	case stays, isTrue(d, appsv1.DeploymentAvailable) && d.Status.ReadyReplicas > 0:
		return answering(found, reconcile.ConditionOf(conditions, mcpv1alpha1.ConditionVerified))
	}
	return is(metav1.ConditionFalse, mcpv1alpha1.ReasonDeploymentUnavailable, whyUnavailable(pass))
}

func is(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: mcpv1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}
}

// answering is what the engine found of a server with a ready pod.
func answering(found, verified metav1.Condition) metav1.Condition {
	found.Message = inTheirWords(found.Message)
	switch {
	case verified.Reason == mcpv1alpha1.ReasonServiceUnreachable:
		found.Message = engine.NotServingMCP + found.Message
	case found.Status == metav1.ConditionTrue && verified.Reason == mcpv1alpha1.ReasonAuthRequired:
		found.Message += offerUnknown
	}
	return found
}

// whyUnavailable says why no pod is ready, or too few of them.
func whyUnavailable(pass engine.Pass) string {
	d, diagnosis := pass.Deployment, inTheirWords(pass.Diagnosis)
	failed := isTrue(d, appsv1.DeploymentReplicaFailure) ||
		!isTrue(d, appsv1.DeploymentProgressing) && !isTrue(d, appsv1.DeploymentAvailable)
	isPods := diagnosis != "" && pass.DiagnosisReason != mcpv1alpha1.ReasonPodRejected
	switch {
	case failed && isPods:
		return diagnosis
	case failed:
		if why := cmp.Or(diagnosis, messageOf(d)); why != "" {
			return noHealthyInstances + ": " + why
		}
		return noHealthyInstances
	case d.Status.ReadyReplicas == 0 && isDiagnosedByThem(pass.DiagnosisReason, diagnosis):
		return diagnosis
	case diagnosis != "":
		return waitingForPods + ": " + diagnosis
	}
	return waitingForPods
}

// diagnosedByThem are the diagnoses that users of this API find as the whole message. Others follow what they find there.
var diagnosedByThem = []string{
	mcpv1alpha1.ReasonImagePullFailed, mcpv1alpha1.ReasonCrashLooping, mcpv1alpha1.ReasonConfigError, mcpv1alpha1.ReasonNonNumericUser,
	mcpv1alpha1.ReasonOOMKilled,
}

// isDiagnosedByThem says whether that API has such a diagnosis. That a container is not ready it tells only once it was started again.
func isDiagnosedByThem(reason, diagnosis string) bool {
	if reason == mcpv1alpha1.ReasonNotReady {
		return strings.Contains(diagnosis, " health checks: restarts: ")
	}
	return slices.Contains(diagnosedByThem, reason)
}

// inTheirWords names fields as this API does. What is said in its words already stays as it is.
func inTheirWords(message string) string { return theirFields.Replace(message) }

var theirFields = strings.NewReplacer(
	"; raise spec.resources.limits.memory", "", // the message is known to end before it
	"spec.podSecurity.runAsUser", "spec.runtime.security.securityContext.runAsUser",
	"spec.image", "spec.source.containerImage.ref",
	"spec.port", "spec.config.port",
	"spec.path", "spec.config.path",
	"set spec.sessions to Stateful", "set spec.mcp.stateless to false",
	// This API has neither a Host to send nor another transport.
	"Set spec.hostHeader to a name it accepts, or start it", "Start it",
	"then set spec.transport to SSE", "that is for an MCPServer of mcp.operator",
)

// messageOf returns what the Deployment says of itself.
func messageOf(d *appsv1.Deployment) string {
	for _, wanted := range []struct {
		conditionType appsv1.DeploymentConditionType
		status        corev1.ConditionStatus
	}{
		{appsv1.DeploymentReplicaFailure, corev1.ConditionTrue},
		{appsv1.DeploymentProgressing, corev1.ConditionFalse},
		{appsv1.DeploymentAvailable, corev1.ConditionFalse},
	} {
		for _, c := range d.Status.Conditions {
			if c.Type == wanted.conditionType && c.Status == wanted.status {
				return c.Message
			}
		}
	}
	return ""
}

func isTrue(d *appsv1.Deployment, conditionType appsv1.DeploymentConditionType) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == conditionType && c.Status == corev1.ConditionTrue
	})
}

func replicasOf(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

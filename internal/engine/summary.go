package engine

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// reasonOfPhase is the reason of Ready when an acting phase could not write its child.
var reasonOfPhase = map[string]string{
	PhaseNetworkPolicy: mcpv1alpha1.ReasonNetworkPolicyUnavailable,
	PhaseDeployment:    mcpv1alpha1.ReasonDeploymentUnavailable,
	PhaseService:       mcpv1alpha1.ReasonServiceUnavailable,
}

// conditionTypes are all that the status may hold.
var conditionTypes = []string{
	mcpv1alpha1.ConditionAccepted, mcpv1alpha1.ConditionApplied, mcpv1alpha1.ConditionAvailable, mcpv1alpha1.ConditionVerified,
	mcpv1alpha1.ConditionProgressing, mcpv1alpha1.ConditionReady, mcpv1alpha1.ConditionPaused,
}

// What messages begin with that are known to scripts.
const (
	// NotServingMCP begins the message of Ready when pods are ready and do not answer MCP.
	NotServingMCP = "MCP endpoint is not serving a valid MCP protocol: "
	// FailedToReconcile begins that of a child that could not be written.
	FailedToReconcile = "Failed to reconcile "
)

// summarize derives everything that no phase answers for: Progressing, Ready, Paused, the phase and the endpoint. Then the API that
// the object is of tells it in its own words.
func (s *scope) summarize(result reconcile.Result) Pass {
	status := &s.server.Status
	status.ObservedGeneration = s.server.Generation
	// Conditions of somebody else could fill the list, and make the status unwritable.
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return !slices.Contains(conditionTypes, c.Type) })
	s.set(s.progressing())
	failed := s.failedPhase(result)
	if reconcile.IsTransient(result.Problem.Err()) {
		failed = "" // it is not told
	}
	s.set(s.ready(failed))
	switch {
	case s.paused:
		s.set(metav1.Condition{
			Type: mcpv1alpha1.ConditionPaused, Status: metav1.ConditionTrue, Reason: mcpv1alpha1.ReasonPaused,
			Message: "The annotation " + mcpv1alpha1.AnnotationPaused + " is set: nothing is changed, what runs is observed",
		})
	case s.misread != "":
		s.set(metav1.Condition{
			Type: mcpv1alpha1.ConditionPaused, Status: metav1.ConditionFalse, Reason: mcpv1alpha1.ReasonInvalid, Message: s.misread,
		})
	default:
		apimeta.RemoveStatusCondition(&status.Conditions, mcpv1alpha1.ConditionPaused)
	}
	status.Endpoint = s.endpoint()
	status.Phase = phaseOf(status.Conditions, status.ReadyReplicas, s.failing)
	if !s.seen && status.Phase == mcpv1alpha1.PhaseReady && s.before.Status.Phase == mcpv1alpha1.PhaseDegraded {
		status.Phase = mcpv1alpha1.PhaseDegraded // there is no news of the pods
	}
	pass := Pass{
		Server: s.server, Deployment: s.deployment, Seen: s.seen,
		DiagnosisReason: s.diagnosis.Reason, Diagnosis: cmp.Or(s.diagnosis.Known, s.diagnosis.Message),
		FailedChild: s.failedChild, Cause: result.Problem.Cause(), Endpoint: s.address(), Attempts: s.verdict.Attempts,
		Policy: s.policy, CapabilityChange: s.capabilityChange,
	}
	s.kind().Write(s.object, pass)
	return pass
}

// failedPhase is the acting phase that was not done. A name that is taken is found out early, and is told as what it is.
func (s *scope) failedPhase(result reconcile.Result) string {
	if s.failedChild == "Deployment" {
		return PhaseDeployment
	}
	return result.Failed
}

func (s *scope) set(c metav1.Condition) {
	if c.ObservedGeneration == 0 {
		c.ObservedGeneration = s.server.Generation
	}
	c.Message = reconcile.Truncate(c.Message)
	apimeta.SetStatusCondition(&s.server.Status.Conditions, c)
}

// endpoint is published once the server was verified, and stays while a pod is ready. Host and port are those of the Service
// as soon as it is applied; the path of an older generation stands until the current one is verified.
func (s *scope) endpoint() string {
	verified, applied := s.current(mcpv1alpha1.ConditionVerified), s.current(mcpv1alpha1.ConditionApplied)
	published := s.before.Status.Endpoint
	switch {
	case s.current(mcpv1alpha1.ConditionAvailable).Status != metav1.ConditionTrue:
		return ""
	case verified.Status == metav1.ConditionTrue && (published == "" || verified.ObservedGeneration == s.server.Generation):
		return s.address()
	case applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != s.server.Generation:
		return published
	}
	address, err := url.Parse(published)
	if err != nil || published == "" {
		return published
	}
	address.Host = s.serviceHost()
	return address.String()
}

// progressing says whether a rollout runs.
func (s *scope) progressing() metav1.Condition {
	c := metav1.Condition{
		Type: mcpv1alpha1.ConditionProgressing, Status: metav1.ConditionTrue,
		Reason: mcpv1alpha1.ReasonRollingOut, Message: "Pods are being added or replaced",
	}
	if s.paused && !s.applied {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonPaused, "Reconciling is paused before the current generation was applied"
		return c
	}
	if stored := s.stored(mcpv1alpha1.ConditionProgressing); !s.seen && stored.Reason != "" {
		return stored
	}
	d := s.deployment
	if d == nil {
		if s.heldUp() != "" {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, mcpv1alpha1.ReasonSettled, "Nothing is rolled out"
		}
		return c
	}
	paused := "the Deployment is paused: kubectl rollout resume deployment/" + d.Name
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse {
			c.Status, c.Reason = metav1.ConditionFalse, mcpv1alpha1.ReasonProgressDeadlineExceeded
			c.Message = "The rollout is stuck: " + cmp.Or(s.trouble(), condition.Message)
			if d.Spec.Paused {
				c.Message += "; " + paused
			}
			return c
		}
	}
	wanted := replicasOf(d)
	if d.Spec.Paused {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonPaused, "No pods are replaced, "+paused
	} else if d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == wanted && d.Status.Replicas == wanted && !isRolling(d) {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, mcpv1alpha1.ReasonSettled, "All pods are of the current specification"
	} else if trouble := s.trouble(); trouble != "" {
		c.Message += "; " + trouble
	}
	return c
}

// heldUp is why there is no Deployment, if it is known: what is wrong with the specification or with the children. Empty if it is about to be
// made.
func (s *scope) heldUp() string {
	for _, conditionType := range []string{mcpv1alpha1.ConditionAccepted, mcpv1alpha1.ConditionApplied} {
		if c := s.current(conditionType); c.Status != metav1.ConditionTrue && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// isRolling says whether the Deployment's newest pods have not all become available yet.
func isRolling(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c.Reason != "NewReplicaSetAvailable"
		}
	}
	return false
}

func replicasOf(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// ready derives Ready from the other conditions. failed is the acting phase that was not done in this pass.
func (s *scope) ready(failed string) metav1.Condition {
	accepted, applied := s.current(mcpv1alpha1.ConditionAccepted), s.current(mcpv1alpha1.ConditionApplied)
	available, verified := s.current(mcpv1alpha1.ConditionAvailable), s.current(mcpv1alpha1.ConditionVerified)
	c := metav1.Condition{Type: mcpv1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case accepted.Status == metav1.ConditionFalse:
		c.Reason, c.Message = mcpv1alpha1.ReasonConfigurationInvalid, "Configuration must be fixed: "+accepted.Message
	case applied.Status == metav1.ConditionFalse:
		c.Reason = cmp.Or(reasonOfPhase[failed], s.storedReason(), mcpv1alpha1.ReasonDeploymentUnavailable)
		c.Message = applied.Message
	case available.Reason == mcpv1alpha1.ReasonScaledToZero:
		c.Reason, c.Message = mcpv1alpha1.ReasonScaledToZero, available.Message
	case available.Status == metav1.ConditionFalse:
		c.Reason, c.Message = mcpv1alpha1.ReasonDeploymentUnavailable, available.Message
	case available.Status == metav1.ConditionUnknown:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, available.Message
		if s.seen && s.deployment == nil {
			c.Message = cmp.Or(s.heldUp(), c.Message)
		}
	case verified.Reason == mcpv1alpha1.ReasonServiceUnreachable:
		c.Reason, c.Message = mcpv1alpha1.ReasonMCPEndpointUnavailable, verified.Message
	case verified.Status == metav1.ConditionFalse:
		c.Reason, c.Message = mcpv1alpha1.ReasonMCPEndpointUnavailable, NotServingMCP+verified.Message
	case verified.Status == metav1.ConditionUnknown:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, cmp.Or(verified.Message, "Waiting for the first MCP handshake")
	default:
		c.Status, c.Reason, c.ObservedGeneration = metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable, verified.ObservedGeneration
		healthy := max(1, s.server.Status.ReadyReplicas-silentPods(verified))
		c.Message = fmt.Sprintf("MCP server is ready (%d of %d instances healthy)", healthy, s.wantedReplicas())
	}
	return c
}

// storedReason is the reason of Ready before, if it was about a child: it stands in a pass that wrote none. Empty if there is none.
func (s *scope) storedReason() string {
	was := s.stored(mcpv1alpha1.ConditionReady).Reason
	for _, reason := range reasonOfPhase {
		if was == reason {
			return was
		}
	}
	return ""
}

// phaseOf sums conditions, and what is wrong for good with a pod, up in one word. docs/api/mcpserver.md shows it as a table.
func phaseOf(conditions []metav1.Condition, readyReplicas int32, failing diagnose.Finding) mcpv1alpha1.Phase {
	status := func(conditionType string) metav1.ConditionStatus {
		return reconcile.ConditionOf(conditions, conditionType).Status
	}
	ready := reconcile.ConditionOf(conditions, mcpv1alpha1.ConditionReady)
	needed, _ := attention(conditions, failing)
	switch {
	case ready.Reason == mcpv1alpha1.ReasonScaledToZero:
		return mcpv1alpha1.PhaseScaledToZero
	case ready.Status == metav1.ConditionTrue && needed == "":
		return mcpv1alpha1.PhaseReady
	case ready.Status == metav1.ConditionTrue:
		return mcpv1alpha1.PhaseDegraded
	case status(mcpv1alpha1.ConditionAvailable) == metav1.ConditionTrue && ready.Status == metav1.ConditionFalse && readyReplicas > 0 &&
		status(mcpv1alpha1.ConditionVerified) == metav1.ConditionTrue:
		return mcpv1alpha1.PhaseDegraded
	case ready.Status == metav1.ConditionFalse:
		return mcpv1alpha1.PhaseFailed
	}
	return mcpv1alpha1.PhasePending
}

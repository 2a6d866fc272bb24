package mcpagent

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/observer"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// conditionTypes are all that the status may hold.
var conditionTypes = []string{
	mcpv1alpha1.ConditionAccepted, mcpv1alpha1.ConditionApplied, mcpv1alpha1.ConditionAvailable, mcpv1alpha1.ConditionRouted,
	mcpv1alpha1.ConditionProgressing, mcpv1alpha1.ConditionReady, mcpv1alpha1.ConditionPaused,
}

// summarize derives everything that no phase answers for: Progressing, Ready, Paused, the phase and the endpoint.
func (s *scope) summarize(result *reconcile.Result) {
	status := &s.agent.Status
	status.ObservedGeneration = s.agent.Generation
	// Conditions of somebody else could fill the list, and make the status unwritable.
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return !slices.Contains(conditionTypes, c.Type) })
	s.set(s.progressing())
	s.set(s.ready(result))
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
	status.Phase = s.phase()
}

func (s *scope) set(c metav1.Condition) {
	if c.ObservedGeneration == 0 {
		c.ObservedGeneration = s.agent.Generation
	}
	c.Message = reconcile.Truncate(c.Message)
	apimeta.SetStatusCondition(&s.agent.Status.Conditions, c)
}

// endpoint is published once a gateway serves it, and stays while a pod is ready. That of an older generation stands until the current
// one is served: its scheme may be another. What keeps the agent's own workload from running does not matter to other clients, nor does what
// keeps the gateway from being scaled or protected.
func (s *scope) endpoint() string {
	published, ready := s.stale.Status.Endpoint, s.current(mcpv1alpha1.ConditionReady)
	switch {
	case s.gatewayDeployed && s.isGatewaySettled() && s.newest > 0:
		return desired.GatewayEndpoint(s.agent, s.ClusterDomain)
	case ready.Status == metav1.ConditionTrue && (published == "" || ready.ObservedGeneration == s.agent.Generation):
		return desired.GatewayEndpoint(s.agent, s.ClusterDomain)
	case s.current(mcpv1alpha1.ConditionAvailable).Status == metav1.ConditionTrue:
		return published
	}
	return ""
}

// progressing says whether a rollout of either workload runs.
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
	if s.gateway.deployment == nil {
		if s.isRefused() {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, mcpv1alpha1.ReasonSettled, "Nothing is rolled out"
		}
		return c
	}
	message, settled := "All pods are of the current specification", true
	if s.runtime.deployment == nil && desired.HasRuntime(s.agent) {
		// One that is held up, or could not be written, is no rollout.
		message, settled = "Nothing is rolled out", s.isRefused()
	}
	for _, w := range []*workload{&s.gateway, &s.runtime} {
		if why, stuck := w.stuck(); stuck {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, mcpv1alpha1.ReasonProgressDeadlineExceeded, "The rollout is stuck: "+why
			return c
		}
		if d := w.deployment; d != nil && d.Spec.Paused {
			c.Status, c.Reason = metav1.ConditionUnknown, mcpv1alpha1.ReasonPaused
			c.Message = "No pods are replaced, the Deployment is paused: kubectl rollout resume deployment/" + d.Name
			return c
		}
		if !w.rolledOut() {
			settled = false
			if w.finding.Reason != "" {
				c.Message += "; " + w.finding.Message
			}
		}
	}
	if settled {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, mcpv1alpha1.ReasonSettled, message
	}
	return c
}

// isRefused says whether the specification, or one of the children that it asks for, is. Certificates of issuers that are missing hold up none.
func (s *scope) isRefused() bool {
	isHeldUp := s.current(mcpv1alpha1.ConditionAccepted).Status == metav1.ConditionFalse && (!s.validated || s.missing != nil)
	return isHeldUp || s.current(mcpv1alpha1.ConditionApplied).Status == metav1.ConditionFalse
}

// stuck says whether a rollout makes no progress, and why.
func (w *workload) stuck() (why string, stuck bool) {
	if w.deployment == nil {
		return "", false
	}
	for _, c := range w.deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			return cmp.Or(w.finding.Message, c.Message), true
		}
	}
	return "", false
}

// rolledOut says whether all pods are of the current specification, and were available once.
func (w *workload) rolledOut() bool {
	d := w.deployment
	if d == nil {
		return true
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason != "NewReplicaSetAvailable" {
			return false
		}
	}
	return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == w.wanted() && d.Status.Replicas == w.wanted()
}

// reasonOfPhase is the reason of Ready when an acting phase could not write its child.
var reasonOfPhase = map[string]string{
	PhaseNetworkPolicy: mcpv1alpha1.ReasonNetworkPolicyUnavailable,
	PhaseService:       mcpv1alpha1.ReasonServiceUnavailable,
}

// ready derives Ready from the other conditions, and from how many gateways serve the agent's table.
func (s *scope) ready(result *reconcile.Result) metav1.Condition {
	accepted, applied := s.current(mcpv1alpha1.ConditionAccepted), s.current(mcpv1alpha1.ConditionApplied)
	available, stored := s.current(mcpv1alpha1.ConditionAvailable), s.stored(mcpv1alpha1.ConditionReady)
	patience := s.patience(s.key())
	c := metav1.Condition{Type: mcpv1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case accepted.Status == metav1.ConditionFalse:
		c.Reason, c.Message = mcpv1alpha1.ReasonConfigurationInvalid, "Configuration must be fixed: "+accepted.Message
	case applied.Status == metav1.ConditionFalse:
		failed := result.Failed
		if reconcile.IsTransient(result.Problem.Err()) {
			failed = "" // it is not told
		}
		c.Reason, c.Message = cmp.Or(reasonOfPhase[failed], mcpv1alpha1.ReasonDeploymentUnavailable), applied.Message
	case available.Reason == mcpv1alpha1.ReasonScaledToZero:
		c.Reason, c.Message = mcpv1alpha1.ReasonScaledToZero, available.Message
	case available.Status == metav1.ConditionFalse:
		c.Reason, c.Message = mcpv1alpha1.ReasonDeploymentUnavailable, available.Message
	case available.Status == metav1.ConditionUnknown:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, available.Message
	case s.serving == 0 && stored.Reason != "" && !s.allKnown() && patience > 0:
		result.After = sooner(result.After, patience)
		return stored // the operator, or a pod, has just started and was not asked yet
	case s.serving == 0:
		return s.notServing(c)
	default:
		return s.served(c, accepted, applied, stored)
	}
	return c
}

// served is Ready of an agent whose gateway serves its table. The generation is the one that this is known for: while a rollout runs and
// an older one serves, that stays.
func (s *scope) served(c, accepted, applied, stored metav1.Condition) metav1.Condition {
	c.Status, c.Reason = metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable
	// Not how many of them were heard: that would tell of every restart of the operator, and of every table twice.
	c.Message = fmt.Sprintf("The endpoint is served (%d of %d pods of the gateway are ready)", s.gateway.ready(), s.gateway.wanted())
	isCurrent := s.newest > 0 && s.isSettled() &&
		accepted.Status == metav1.ConditionTrue && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == s.agent.Generation
	switch {
	case isCurrent:
	case stored.Status == metav1.ConditionTrue:
		c.ObservedGeneration = stored.ObservedGeneration
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, "Waiting for the rollout"
	}
	return c
}

// notServing says why no gateway that is ready serves the agent's table.
func (s *scope) notServing(c metav1.Condition) metav1.Condition {
	c.Reason = mcpv1alpha1.ReasonMCPEndpointUnavailable
	for _, answer := range s.answers {
		if answer.Known && answer.Err != nil {
			c.Message = "The gateway could not be asked what it serves: " + answer.Err.Error()
			return c
		}
	}
	for _, answer := range s.answers {
		if answer.Known && answer.Status != nil && answer.Status.TableError != "" {
			c.Message = "The gateway refuses the routing table: " + clean(answer.Status.TableError)
			return c
		}
	}
	c.Status, c.Reason, c.Message = metav1.ConditionUnknown, mcpv1alpha1.ReasonInitializing, "Waiting for a gateway to serve the routing table"
	return c
}

// allKnown says whether there are gateways to ask, and every one has been asked.
func (s *scope) allKnown() bool {
	return len(s.answers) > 0 && !slices.ContainsFunc(s.answers, func(a observer.Answer) bool { return !a.Known })
}

// phase sums the conditions up in one word.
func (s *scope) phase() mcpv1alpha1.Phase {
	ready := s.current(mcpv1alpha1.ConditionReady)
	stuck := s.current(mcpv1alpha1.ConditionProgressing).Reason == mcpv1alpha1.ReasonProgressDeadlineExceeded
	partly := stuck || s.current(mcpv1alpha1.ConditionRouted).Status == metav1.ConditionFalse || s.runtimeTrouble() != ""
	switch {
	case ready.Status == metav1.ConditionTrue && !partly:
		return mcpv1alpha1.PhaseReady
	case ready.Status == metav1.ConditionTrue:
		return mcpv1alpha1.PhaseDegraded
	case ready.Status == metav1.ConditionFalse && s.serving > 0 && s.current(mcpv1alpha1.ConditionAvailable).Status == metav1.ConditionTrue:
		return mcpv1alpha1.PhaseDegraded // what was asked for before is served
	case ready.Status == metav1.ConditionFalse:
		return mcpv1alpha1.PhaseFailed
	}
	return mcpv1alpha1.PhasePending
}

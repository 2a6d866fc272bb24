package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// ValidationError says that a specification, or something it refers to, has to be corrected by its author. It is permanent:
// trying again does not help, a change does.
type ValidationError struct{ Reason, Message string }

// Error returns the message.
func (e *ValidationError) Error() string { return e.Message }

// validate says whether the specification is usable, and works out what it asks for.
func (s *scope) validate(ctx context.Context) reconcile.Outcome {
	if s.server.Namespace == s.settings.OperatorNamespace {
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, &ValidationError{mcpv1alpha1.ReasonInvalid, fmt.Sprintf(
			"MCPServers are not run in the operator's own namespace %q, where a pod could take the operator's account: use another namespace",
			s.server.Namespace)})
	}
	hash, err := s.judge(ctx)
	var invalid *ValidationError
	switch {
	case errors.As(err, &invalid):
		return reconcile.Invalid(invalid.Reason, invalid)
	case err != nil:
		return reconcile.Retry(mcpv1alpha1.ReasonUnknown, err)
	}
	s.chooseGateway(hash)
	s.children = s.kind().Children(s.object, s.environment(), hash)
	message := "Configuration is valid"
	if isUnverified(s.server) {
		message += unverified
	}
	return reconcile.Done(mcpv1alpha1.ReasonValid, message)
}

// judge returns the hash over what the pods read, or what is wrong: a *ValidationError if it is up to the author.
func (s *scope) judge(ctx context.Context) (hash string, err error) {
	first, second := s.kind().Validate(s.object)
	if first != nil {
		return "", first
	}
	hash, err = s.refs.hash(ctx, s.server, s.kind().References(s.object))
	if err = cmp.Or(err, second); err != nil {
		return "", err
	}
	_, err = s.trust(ctx, s.server)
	return hash, err
}

// applyNetworkPolicy applies the NetworkPolicy, if the Deployment is ours to write: whoever has that has the name, and no child of
// anybody else of this name is made, which could select its pods.
func (s *scope) applyNetworkPolicy(ctx context.Context) reconcile.Outcome {
	if err := s.applier.Claim(ctx, s.object, s.children.Deployment); err != nil {
		return s.wrote("Deployment", err)
	}
	change, err := s.applier.Apply(ctx, s.object, s.children.NetworkPolicy)
	s.policy = change
	return s.wrote("NetworkPolicy", err)
}

// applyDeployment applies the Deployment, and before it the ConfigMap that its pods mount.
func (s *scope) applyDeployment(ctx context.Context) reconcile.Outcome {
	if out, missing := s.needsGateway(); missing {
		return out
	}
	if config := s.children.ConfigMap; config != nil {
		if _, err := s.applier.Apply(ctx, s.object, config); err != nil {
			return s.wrote("ConfigMap", err)
		}
	}
	_, err := s.applier.Apply(ctx, s.object, s.children.Deployment)
	return s.wrote("Deployment", err)
}

// applyService applies the Service and, where there are sessions, the headless one by which gateways find the pod that a session lives on.
func (s *scope) applyService(ctx context.Context) reconcile.Outcome {
	_, err := s.applier.Apply(ctx, s.object, s.children.Service)
	if err == nil && s.children.Pods != nil {
		_, err = s.applier.Apply(ctx, s.object, s.children.Pods)
	}
	out := s.wrote("Service", err)
	s.applied = out.IsDone()
	return out
}

// removeUnused deletes children that are not asked for any more. That one cannot be deleted takes nothing from a server that works.
func (s *scope) removeUnused(ctx context.Context) reconcile.Outcome {
	var failed error
	for _, unused := range s.unused() {
		if err := s.applier.Remove(ctx, s.object, unused); err != nil && failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return reconcile.Leftover(mcpv1alpha1.ReasonApplied, allApplied, fmt.Errorf("what is not needed any more could not be removed: %w", failed))
	}
	return reconcile.Done(mcpv1alpha1.ReasonApplied, allApplied)
}

// unused names the children that may go: the headless Service where there are no sessions, and the ConfigMap of an inline configuration
// that is gone, once no pod can mount it any more.
func (s *scope) unused() []client.Object {
	var list []client.Object
	if s.children.Pods == nil {
		list = append(list, &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Name: desired.PodsServiceName(s.server.Name), Namespace: s.server.Namespace,
		}})
	}
	referred := slices.Contains(namesOf(s.kind().References(s.object), "ConfigMap"), desired.ConfigMapName(s.server.Name))
	if s.children.ConfigMap == nil && !referred && (s.isSettled() || s.wantedReplicas() == 0) {
		list = append(list, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: desired.ConfigMapName(s.server.Name), Namespace: s.server.Namespace,
		}})
	}
	return list
}

// allApplied is the message of Applied when nothing is wrong.
const allApplied = "All child objects are up to date"

// wrote notes whether a child could be written.
func (s *scope) wrote(kind string, err error) reconcile.Outcome {
	if err != nil {
		s.failedChild = kind
	}
	return applied(kind, err)
}

// applied turns the error of writing a child into an outcome.
func applied(kind string, err error) reconcile.Outcome {
	if err != nil {
		return apply.Outcome(FailedToReconcile+kind, err)
	}
	return reconcile.Done(mcpv1alpha1.ReasonApplied, allApplied)
}

// observePods says whether a pod is ready, and if none is, why.
func (s *scope) observePods(ctx context.Context) reconcile.Outcome {
	if err := s.readWorkload(ctx); err != nil {
		return reconcile.Retry(mcpv1alpha1.ReasonUnknown, err)
	}
	s.seen = true
	status := &s.server.Status
	status.Replicas, status.ReadyReplicas = 0, s.readyReplicas()
	status.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: desired.Selector(s.server.Name)})
	if s.deployment == nil {
		message := "Waiting for the Deployment to be created"
		if why := s.heldUp(); why != "" {
			message = "There is no Deployment of this server: " + why
		}
		return reconcile.Wait(mcpv1alpha1.ReasonInitializing, message, 0)
	}
	status.Replicas = s.deployment.Status.Replicas
	s.diagnosis = diagnose.Subject{}.Workload(ctx, s.APIReader, &s.mounts, s.deployment, s.pods)
	if s.diagnosis.Reason == mcpv1alpha1.ReasonImagePullFailed {
		s.diagnosis.Message += s.missingPullSecrets(ctx)
	}
	s.failing = failingPod(s.diagnosis, s.ownPods(), time.Now())
	wanted := replicasOf(s.deployment)
	switch {
	case wanted == 0:
		return reconcile.Unsettled(mcpv1alpha1.ReasonScaledToZero, "The server is scaled to 0 replicas", 0)
	case status.ReadyReplicas > 0:
		message := fmt.Sprintf("%d of %d replicas are ready", status.ReadyReplicas, wanted)
		if trouble := s.trouble(); status.ReadyReplicas < wanted && trouble != "" {
			message += "; " + trouble
		}
		out := reconcile.Done(mcpv1alpha1.ReasonAvailable, message)
		out.After = sooner(s.diagnosis.After, s.failing.After)
		return out
	case s.diagnosis.Reason != "":
		return reconcile.Unsettled(s.diagnosis.Reason, s.diagnosis.Message, s.diagnosis.After)
	case s.wasAvailable():
		return reconcile.Unsettled(mcpv1alpha1.ReasonNotReady, "No pod is ready", s.diagnosis.After)
	}
	return reconcile.Wait(mcpv1alpha1.ReasonInitializing, "Waiting for pods to become ready", s.diagnosis.After)
}

// wasAvailable says whether pods were, or failed to be, ready before: then having none is a failure and not a beginning.
func (s *scope) wasAvailable() bool {
	was := s.stored(mcpv1alpha1.ConditionAvailable)
	return was.Status == metav1.ConditionTrue ||
		was.Status == metav1.ConditionFalse && was.Reason != mcpv1alpha1.ReasonScaledToZero
}

// readWorkload reads the Deployment and its pods from the cache. A Deployment of somebody else counts as none.
func (s *scope) readWorkload(ctx context.Context) error {
	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: s.server.Namespace, Name: desired.DeploymentName(s.server.Name)}
	err := s.Get(ctx, key, d)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(d, s.object) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Deployment %s: %w", key, err)
	}
	s.deployment = d
	pods := &corev1.PodList{}
	// Selected by the label that the pod cache is restricted to; of two kinds that share it, only ours has the other.
	err = s.List(ctx, pods, client.InNamespace(s.server.Namespace), client.MatchingLabels{desired.LabelMCPServer: s.server.Name})
	if err != nil {
		return fmt.Errorf("list pods of MCPServer %s: %w", key, err)
	}
	for _, pod := range pods.Items {
		if s.kind().ServerOf(&pod) == s.server.Name && !diagnose.IsOver(&pod) {
			s.pods = append(s.pods, pod)
		}
	}
	return nil
}

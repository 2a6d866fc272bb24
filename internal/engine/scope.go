package engine

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// scope is the state of one pass.
type scope struct {
	*Reconciler

	// stale is the object as it was read, object the same with the status of this pass.
	stale, object client.Object

	// before and server are those two as our kind.
	before, server *mcpv1alpha1.MCPServer

	// paused says that acting phases are left out.
	paused bool

	// misread says that the annotation that pauses could not be read; empty if it could.
	misread string

	// children is what is to be applied; set by validate.
	children desired.Server

	// failedChild is the kind of the child that could not be written, policy what was done to the NetworkPolicy; set by the acting phases.
	failedChild string
	policy      apply.Change

	// applied says that all children are as the current generation asks; set by the last acting phase.
	applied bool

	// seen says that the workload could be read; set by observePods.
	seen bool

	// deployment is the live Deployment, nil if there is none of ours; pods are its pods. Set by observePods.
	deployment *appsv1.Deployment
	pods       []corev1.Pod

	// diagnosis is what is wrong with the pods; set by observePods.
	diagnosis diagnose.Finding

	// failing is what is wrong for good with one of the pods, while others may serve; set by observePods.
	failing diagnose.Finding

	// verdict is what the prober knows; set by verify.
	verdict probe.Verdict

	// capabilityChange says what differs from the last handshake, learned is what is to be known of it in the next pass; set by verify.
	// Empty: there was no handshake to learn from.
	capabilityChange string
	learned          offer
}

func newScope(r *Reconciler, obj client.Object) *scope {
	s := &scope{Reconciler: r, stale: obj, object: copyOf(obj)}
	s.paused, s.misread = reconcile.IsPaused(obj, mcpv1alpha1.AnnotationPaused)
	s.before, s.server = r.kind().Read(s.stale), r.kind().Read(s.object)
	if s.paused {
		applied := s.stored(mcpv1alpha1.ConditionApplied)
		s.applied = applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == obj.GetGeneration()
	}
	return s
}

func copyOf(obj client.Object) client.Object {
	return obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
}

// stored returns a condition as it was read; a zero one if there was none.
func (s *scope) stored(conditionType string) metav1.Condition {
	return reconcile.ConditionOf(s.before.Status.Conditions, conditionType)
}

// current returns a condition of this pass.
func (s *scope) current(conditionType string) metav1.Condition {
	return reconcile.ConditionOf(s.server.Status.Conditions, conditionType)
}

func (s *scope) environment() desired.Environment {
	return desired.Environment{
		OperatorNamespace: s.settings.OperatorNamespace, ExtraEnv: s.TLSEnvVars, GatewayImage: s.server.Status.GatewayImage,
	}
}

// isSettled says whether the Deployment is observed at this generation and no pod of an older one is left: what serves now
// is what the object asks for.
func (s *scope) isSettled() bool {
	d := s.deployment
	if s.prober != nil && s.MCPDialer == nil && d != nil && len(s.ownPods()) != int(d.Status.Replicas) {
		return false // the caches of Deployments and Pods are not equally fresh
	}
	return s.applied && d != nil && d.Status.ObservedGeneration == d.Generation &&
		d.Status.UpdatedReplicas == d.Status.Replicas && d.Status.ReadyReplicas > 0
}

// ownPods returns those of the pods that the Deployment made.
func (s *scope) ownPods() []corev1.Pod {
	return diagnose.OwnPods(s.deployment, s.pods)
}

// wantedReplicas is what is asked of the Deployment.
func (s *scope) wantedReplicas() int32 {
	if s.deployment == nil {
		return desired.Replicas(s.server)
	}
	return replicasOf(s.deployment)
}

func (s *scope) readyReplicas() int32 {
	if s.deployment == nil {
		return 0
	}
	return s.deployment.Status.ReadyReplicas
}

// serviceHost is the DNS name and port of the Service.
func (s *scope) serviceHost() string {
	return desired.ServiceHost(s.server, s.kind().ServiceName(s.server.Name), s.settings.ClusterDomain)
}

// address is that of the MCP endpoint.
func (s *scope) address() string {
	return desired.Endpoint(s.server, s.kind().ServiceName(s.server.Name), s.settings.ClusterDomain)
}

package mcpagent

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/cluster"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/observer"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/route"
)

// scope is the state of one pass.
type scope struct {
	*Reconciler

	// stale is the agent as it was read, agent the same with the status of this pass.
	stale, agent *mcpv1alpha1.MCPAgent

	// facts is what is known of the cluster.
	facts cluster.Facts

	// paused says that acting phases are left out.
	paused bool

	// misread says that the annotation that pauses could not be read; empty if it could.
	misread string

	// route is the table and what comes with it, refused why the specification has none: then that is the table that was written, less what
	// is withdrawn. Set by gather.
	route   route.Output
	refused error

	// tampered says that somebody else changed the table of an agent that is refused, or took it away. Set by gather.
	tampered bool

	// configHash is that over what the agent's own workload reads, missing what of it is not there. Set by gather.
	configHash string
	missing    error

	// unverified is which certificates of issuers are not there, unseen which of them the operator does not see. Set by gather.
	unverified error
	unseen     string

	// validated says that this generation was judged and is usable; set by validate.
	validated bool

	// serviceIP is the address of the gateway's Service; empty while it is not known. Set by gather.
	serviceIP string

	// children are what is to be applied; set by validate.
	children desired.Agent

	// failedChild is the kind of the child that could not be written; set by the acting phases.
	failedChild string

	// revised says that another table was written; set by withdraw and applyTable.
	revised bool

	// gatewayDeployed says that the gateway's Deployment, and what its pods need, is as the current generation asks; gatewayApplied says that
	// of all children of the gateway. Set by applyGateway.
	gatewayDeployed, gatewayApplied bool

	// applied says that all children are as the current generation asks; set by the last acting phase.
	applied bool

	// seen says that the workloads could be read; set by observePods, as those are.
	seen             bool
	gateway, runtime workload

	// answers are what the gateways said, newest how many of their pods serve the newest table, serving how many serve that or one that it
	// may just be replacing. Set by observeRoutes.
	answers         []observer.Answer
	serving, newest int

	// problems are what is not served; set by observeRoutes.
	problems []string
}

// workload is a Deployment, nil if there is none of ours, its pods, and what is wrong with them.
type workload struct {
	deployment *appsv1.Deployment
	pods       []corev1.Pod // but for those that are over
	going      int          // how many are being deleted: their processes may run on until the grace period ends
	finding    diagnose.Finding
}

func newScope(r *Reconciler, agent *mcpv1alpha1.MCPAgent, facts cluster.Facts) *scope {
	s := &scope{Reconciler: r, stale: agent, agent: agent.DeepCopy(), facts: facts}
	s.paused, s.misread = reconcile.IsPaused(agent, mcpv1alpha1.AnnotationPaused)
	if s.paused {
		applied := s.stored(mcpv1alpha1.ConditionApplied)
		s.applied = applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == agent.Generation
	}
	return s
}

func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.agent) }

// stored returns a condition as it was read; a zero one if there was none.
func (s *scope) stored(conditionType string) metav1.Condition {
	return reconcile.ConditionOf(s.stale.Status.Conditions, conditionType)
}

// current returns a condition of this pass.
func (s *scope) current(conditionType string) metav1.Condition {
	return reconcile.ConditionOf(s.agent.Status.Conditions, conditionType)
}

// isSettled says whether the Deployment of the gateway is observed at this generation and no pod of an older one is left.
func (s *scope) isSettled() bool {
	return s.applied && s.isGatewaySettled()
}

// isGatewaySettled says the same of what is there, whatever this generation asks for.
func (s *scope) isGatewaySettled() bool {
	d := s.gateway.deployment
	return d != nil && len(s.gateway.own()) == int(d.Status.Replicas) && // else the caches are not equally fresh
		d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == d.Status.Replicas && d.Status.ReadyReplicas > 0
}

// own returns those of the pods that the Deployment made.
func (w *workload) own() []corev1.Pod {
	if w.deployment == nil {
		return nil
	}
	return diagnose.OwnPods(w.deployment, w.pods)
}

// ready is how many pods are ready, wanted how many are asked for.
func (w *workload) ready() int32 {
	if w.deployment == nil {
		return 0
	}
	return w.deployment.Status.ReadyReplicas
}

func (w *workload) wanted() int32 {
	if w.deployment == nil || w.deployment.Spec.Replicas == nil {
		return 1
	}
	return *w.deployment.Spec.Replicas
}

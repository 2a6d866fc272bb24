// Package mcpserver reconciles MCPServers (mcp.operator/v1alpha1): it runs an MCP server and says truthfully whether
// clients can use it.
//
// It guarantees that Ready is True only if a ready pod answered MCP, that children which belong to somebody else are never
// written, that nothing is written when nothing differs, and that no reconcile worker waits for the network of a server.
package mcpserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// The values of the label "phase" of mcpserver_reconcile_phase_duration_seconds.
const (
	PhaseValidation    = "validation"
	PhaseNetworkPolicy = "networkpolicy"
	PhaseDeployment    = "deployment"
	PhaseService       = "service"
)

// phases is what a pass does. The NetworkPolicy comes before the Deployment, so that no pod ever runs unprotected.
var phases = []reconcile.Phase[*scope]{
	{Name: PhaseValidation, Condition: mcpv1alpha1.ConditionAccepted, Do: (*scope).validate},
	{Name: PhaseNetworkPolicy, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyNetworkPolicy},
	{Name: PhaseDeployment, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyDeployment},
	{Name: PhaseService, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyService},
	{Condition: mcpv1alpha1.ConditionAvailable, Observes: true, Do: (*scope).observePods},
	{Condition: mcpv1alpha1.ConditionVerified, Observes: true, Do: (*scope).verify},
}

// Reconciler reconciles MCPServers. It is usable as a literal: without SetupWithManager there is no background prober, and
// Reconcile does the handshake inline, bounded by 15 s.
type Reconciler struct {
	client.Client

	// Scheme knows the kinds of this project and of Kubernetes.
	Scheme *runtime.Scheme

	// Recorder records events; nil is silent.
	Recorder events.EventRecorder

	// MCPDialer replaces the MCP handshake; nil does a real one.
	MCPDialer func(ctx context.Context, url string, transport *http.Transport) (*mcpv1alpha1.MCPServerInfo, error)

	// APIReader reads past the cache; nil means Client.
	APIReader client.Reader

	// TLSEnvVars are added to every MCP server container.
	TLSEnvVars []corev1.EnvVar

	// TLSProfile is applied to the TLS settings of outbound connections; nil leaves Go's defaults.
	TLSProfile func(*tls.Config)

	settings Settings
	once     sync.Once
	applier  *apply.Applier
	refs     *references
	prober   *probe.Scheduler
}

// Settings are what the operator's command line decides.
type Settings struct {
	// OperatorNamespace is where the operator's pods run. MCPServers there are refused, since a pod there could take the
	// operator's account. Default: mcp-operator-system.
	OperatorNamespace string

	// ClusterDomain is the DNS domain of the cluster. Default: cluster.local.
	ClusterDomain string

	// HashKey keys the hash over ConfigMaps and Secrets, so that it tells nothing of their content.
	HashKey []byte

	// Workers is how many objects are reconciled at once. Default: 16.
	Workers int

	// ProbeTransport says how to reach pods from where the operator runs; nil dials pod addresses directly.
	ProbeTransport func(server probe.Server, pod *probe.Pod) *http.Transport

	// SkipServiceProbe leaves out the check through the Service, where the operator cannot reach Services.
	SkipServiceProbe bool
}

// Configure sets what has no exported field. Call it before SetupWithManager.
func (r *Reconciler) Configure(settings Settings) { r.settings = settings }

// init fills in what a literal leaves out.
func (r *Reconciler) init() {
	r.once.Do(func() {
		if r.APIReader == nil {
			r.APIReader = r.Client
		}
		if r.settings.OperatorNamespace == "" {
			r.settings.OperatorNamespace = "mcp-operator-system"
		}
		if r.settings.ClusterDomain == "" {
			r.settings.ClusterDomain = "cluster.local"
		}
		if r.settings.Workers == 0 {
			r.settings.Workers = 16
		}
		r.applier = apply.New(r.Client, r.APIReader)
		r.refs = newReferences(r.Client, r.APIReader, r.settings.HashKey)
	})
}

// Reconcile makes the children of one MCPServer as it asks, and its status as it is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.init()
	server := &mcpv1alpha1.MCPServer{}
	if err := r.Get(ctx, req.NamespacedName, server); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("read MCPServer %s: %w", req.NamespacedName, err)
	}
	if ending, err := r.isEnding(ctx, server); ending || err != nil {
		return ctrl.Result{}, err // the garbage collector does the rest
	}
	s := newScope(r, server)
	result := reconcile.Run(ctx, s, s.server, phases, reconcile.Options{Paused: s.paused, Observe: observePhase})
	s.summarize(result)
	if err := s.writeStatus(ctx); err != nil {
		return ctrl.Result{}, err
	}
	s.report(ctx, result)
	return ctrl.Result{RequeueAfter: result.After}, result.Err
}

// isEnding says whether the object or its namespace is being deleted. Then every write would be refused, or undone.
func (r *Reconciler) isEnding(ctx context.Context, server *mcpv1alpha1.MCPServer) (bool, error) {
	if !server.DeletionTimestamp.IsZero() {
		return true, nil
	}
	namespace := partialMetadata("Namespace")
	err := r.Get(ctx, client.ObjectKey{Name: server.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read namespace %q: %w", server.Namespace, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

// forget drops what is kept in memory of an object that is gone.
func (r *Reconciler) forget(req ctrl.Request) {
	deleteMetrics(req.NamespacedName)
	if r.prober != nil {
		r.prober.Forget(req.NamespacedName)
	}
}

// writeStatus writes the status, once a pass, and not at all if nothing changed.
func (s *scope) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(s.before.Status, s.server.Status) {
		return nil
	}
	err := s.Status().Patch(ctx, s.server, client.MergeFrom(s.before), client.FieldOwner(apply.FieldManager))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status of MCPServer %s: %w", client.ObjectKeyFromObject(s.server), err)
	}
	return nil
}

// maxBackoff is the longest pause after a failed pass.
const maxBackoff = time.Minute

// Package engine runs MCP servers, of our own API and of others that speak to it through a Dialect, and says truthfully whether
// clients can use them.
//
// It guarantees that Ready is True only if a ready pod answered MCP, that children which belong to somebody else are never
// written, that nothing is written when nothing differs, and that no reconcile worker waits for the network of a server.
package engine

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
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
	{Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).removeUnused},
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
	dialect  Dialect // nil: our own API
	once     sync.Once
	applier  *apply.Applier
	refs     *references
	mounts   diagnose.Memory
	offered  offers
	prober   *probe.Scheduler
	trusted  sync.Map // without a prober: the id of what the last handshake that succeeded trusted, by the server's name
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

	// GatewayImage is the image with the bridge that runs Stdio servers. Empty: such servers are not run, and say so.
	GatewayImage string

	// Workers is how many objects are reconciled at once. Default: 16.
	Workers int

	// ProbeInterval is the time between two probes of a healthy server. Default: 45 s.
	ProbeInterval time.Duration

	// ProbeTransport says how to reach pods from where the operator runs; nil dials pod addresses directly.
	ProbeTransport func(server probe.Server, pod *probe.Pod) *http.Transport

	// Forwarded says that ProbeTransport goes through the API server, as from a laptop: the connection ends on the loopback of
	// the pod. Then Services cannot be asked, and servers that guard themselves against DNS rebinding want localhost as Host.
	Forwarded bool
}

// Configure sets what has no exported field. Call it before SetupWithManager.
func (r *Reconciler) Configure(settings Settings) { r.settings = settings }

// Speak makes the reconciler serve another API than ours. Call it before SetupWithManager.
func (r *Reconciler) Speak(dialect Dialect) { r.dialect = dialect }

func (r *Reconciler) kind() Dialect {
	if r.dialect == nil {
		return native{}
	}
	return r.dialect
}

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
		r.applier = apply.New(r.Client, r.APIReader, r.kind().FieldManager()).Report(r.Recorder)
		r.refs = newReferences(r.Client, r.APIReader, r.settings.HashKey)
	})
}

// Reconcile makes the children of one MCPServer as it asks, and its status as it is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.init()
	obj, err := r.read(ctx, req.NamespacedName)
	if obj == nil || err != nil {
		return ctrl.Result{}, err
	}
	s := newScope(r, obj)
	leaveAlone := s.paused || !obj.GetDeletionTimestamp().IsZero()
	result := reconcile.Run(ctx, s, s.server, phases, reconcile.Options{Paused: leaveAlone, Observe: observePhase})
	pass := s.summarize(result)
	if err := s.writeStatus(ctx); err != nil {
		return ctrl.Result{}, err
	}
	s.report(ctx, result, pass)
	if result.Err != nil {
		return ctrl.Result{}, result.Err
	}
	return ctrl.Result{RequeueAfter: result.After}, nil
}

// read returns the object to reconcile; nil if there is nothing left to do, since it or its namespace goes: then the garbage
// collector does the rest, and every child made again would be refused.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (client.Object, error) {
	server, namespace := r.kind().New(), partialMetadata("Namespace")
	err := r.Get(ctx, key, server)
	if apierrors.IsNotFound(err) {
		r.forget(key)
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read MCPServer %s: %w", key, err)
	}
	err = r.Get(ctx, client.ObjectKey{Name: key.Namespace}, namespace)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read namespace %q: %w", key.Namespace, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		r.forget(key)
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	return server, nil
}

// forget drops what is kept in memory of an object that is gone: the metrics last, since a probe under way counts.
func (r *Reconciler) forget(key types.NamespacedName) {
	if r.prober != nil {
		r.prober.Forget(key)
	}
	r.refs.forget(key)
	r.trusted.Delete(key)
	r.offered.set(key, offer{})
	r.applier.Forget(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: desired.ConfigMapName(key.Name)}})
	deleteMetrics(r.kind().Name(), key)
}

// Leave drops the metrics of all objects of this API. Call it when the controller has ended and the process goes on: nobody would
// tell of objects that change or go from then on.
func (r *Reconciler) Leave() { deleteAllMetrics(r.kind().Name()) }

// writeStatus writes the status, once a pass, and not at all if nothing changed.
func (s *scope) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(s.stale, s.object) {
		return nil
	}
	err := s.Status().Patch(ctx, s.object, client.MergeFrom(s.stale), client.FieldOwner(s.kind().FieldManager()))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status of MCPServer %s: %w", client.ObjectKeyFromObject(s.server), err)
	}
	return nil
}

// maxBackoff is the longest pause after a failed pass.
const maxBackoff = time.Minute

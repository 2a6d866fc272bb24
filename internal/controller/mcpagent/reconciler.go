// Package mcpagent gives every MCPAgent its gateway, and its own workload if it has one, and says truthfully which of the tools that
// it is granted are served.
//
// It guarantees that the routing table is written before anything else, so that what is no longer granted is gone first, that Ready is
// True only if a gateway serves the agent's table, that objects of somebody else are never written, that nothing is written when nothing
// differs, and that no reconcile worker waits for the network.
package mcpagent

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/bounded"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/cluster"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/observer"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// The values of the label "phase" of mcpagent_reconcile_phase_duration_seconds.
const (
	PhaseWithdrawal    = "withdrawal"
	PhaseValidation    = "validation"
	PhaseTable         = "table"
	PhaseAccess        = "access"
	PhaseNetworkPolicy = "networkpolicy"
	PhaseService       = "service"
	PhaseGateway       = "gateway"
	PhaseReferences    = "references"
	PhaseRuntime       = "runtime"
)

// phases is what a pass does. The table comes first: a grant that was withdrawn is gone with it, whatever becomes of the rest, and even
// if the specification is refused. The NetworkPolicies come before the Deployments, so that no pod ever runs unprotected. Something
// missing that the agent's own workload reads holds up that workload alone, and certificates of an issuer that are missing hold up nothing.
var phases = []reconcile.Phase[*scope]{
	{Name: PhaseWithdrawal, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).withdraw},
	{Name: PhaseValidation, Condition: mcpv1alpha1.ConditionAccepted, Do: (*scope).validate},
	{Name: PhaseTable, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyTable},
	{Name: PhaseAccess, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyAccess},
	{Name: PhaseNetworkPolicy, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyPolicies},
	{Name: PhaseService, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyService},
	{Name: PhaseGateway, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyGateway},
	{Condition: mcpv1alpha1.ConditionApplied, Observes: true, Do: (*scope).observeGateway},
	{Name: PhaseReferences, Condition: mcpv1alpha1.ConditionAccepted, Do: (*scope).requireReferences},
	{Name: PhaseRuntime, Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyRuntime},
	{Condition: mcpv1alpha1.ConditionAccepted, Observes: true, Do: (*scope).observeIssuers},
	{Condition: mcpv1alpha1.ConditionAvailable, Observes: true, Do: (*scope).observePods},
	{Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).removeSpare},
	{Condition: mcpv1alpha1.ConditionRouted, Observes: true, Do: (*scope).observeRoutes},
}

// Options are the parts and settings of a Reconciler. Those without a default are required.
type Options struct {
	// Client reads caches and writes.
	Client client.Client

	// APIReader reads past the cache. Default: that of the manager.
	APIReader client.Reader

	// Recorder records events; nil is silent.
	Recorder events.EventRecorder

	// OperatorNamespace is where the operator's pods run. MCPAgents there are refused, since a pod there could take the operator's
	// account. Default: mcp-operator-system.
	OperatorNamespace string

	// ClusterDomain is the DNS domain of the cluster. Default: cluster.local.
	ClusterDomain string

	// GatewayImage is the image of gateways. Empty: none is run, and agents say so.
	GatewayImage string

	// AllowPrivate lets the endpoints of MCPTools be at private addresses.
	AllowPrivate bool

	// DNS are the pods that answer DNS; none means port 53 anywhere.
	DNS []networkingv1.NetworkPolicyPeer

	// MasterKey is the operator's own key, of at least 32 bytes. The session keys and status tokens of gateways are derived from it, and
	// the hash over ConfigMaps is keyed by it.
	MasterKey []byte

	// ReadPath reads a path of the API server that is no resource.
	ReadPath func(ctx context.Context, path string) ([]byte, error)

	// Addresses returns the addresses of the API server, before and after its Service.
	Addresses func(ctx context.Context) ([]netip.AddrPort, error)

	// Transport says how to reach a gateway's pod; nil dials its address.
	Transport func(pod probe.Pod) *http.Transport

	// Workers is how many objects are reconciled at once. Default: 16.
	Workers int
}

// Reconciler reconciles MCPAgents. Make it with New.
type Reconciler struct {
	Options

	applier  *apply.Applier
	contents *contents
	mounts   diagnose.Memory
	cluster  *cluster.Source
	observer asker
	parts    []manager.Runnable // to be started with the controller
	woken    chan wakeup
	begin    sync.Once // sets started
	started  time.Time

	mu       sync.Mutex
	memories map[types.NamespacedName]memory
	refused  bounded.Map[types.NamespacedName, string] // the tables of agents that are refused: they can be made of nothing else
}

// asker is told of gateways and knows what they serve. *observer.Observer is one.
type asker interface {
	Observe(agent observer.Agent)
	Answers(agent types.UID) []observer.Answer
	Forget(agent types.NamespacedName)
}

// memory is what is remembered of an agent: the last table and those before it, when the last was written, when a gateway was last seen
// to serve one of them, which lists gateways could not read, and of what events told.
type memory struct {
	revision       string
	before         []replaced // the oldest first
	written, heard time.Time
	unread         map[string]time.Time // since when, by what is told of it; never changed
	told           told
}

// replaced is a table that another one took the place of.
type replaced struct {
	revision string
	at       time.Time
}

// replace notes that revision takes the place of previous. Of tables that follow each other faster than gateways do, several are remembered.
func (m *memory) replace(previous, revision string, now time.Time) {
	m.before = slices.DeleteFunc(slices.Clone(m.before), func(r replaced) bool { return now.Sub(r.at) >= tableGrace })
	m.before = append(m.before, replaced{previous, now})
	m.before = m.before[max(len(m.before)-maxReplaced, 0):]
	m.revision, m.written = revision, now
}

// maxReplaced bounds what is remembered of an agent whose table changes all the time.
const maxReplaced = 64

// isBefore says whether a gateway that serves the revision is on its way to the newest: it serves the table before that, or one that was
// replaced a moment ago.
func (m *memory) isBefore(revision string, now time.Time) bool {
	for i, r := range m.before {
		if r.revision == revision && (i == len(m.before)-1 || now.Sub(r.at) < tableGrace) {
			return true
		}
	}
	return false
}

// New returns a Reconciler. Add it to a manager with SetupWithManager.
func New(opts Options) *Reconciler {
	if opts.OperatorNamespace == "" {
		opts.OperatorNamespace = "mcp-operator-system"
	}
	if opts.ClusterDomain == "" {
		opts.ClusterDomain = "cluster.local"
	}
	if opts.Workers == 0 {
		opts.Workers = 16
	}
	r := &Reconciler{Options: opts, woken: make(chan wakeup, 1024), memories: map[types.NamespacedName]memory{}}
	if r.Transport == nil {
		r.Transport = directTransport
	}
	r.cluster = cluster.New(cluster.Options{ReadPath: opts.ReadPath, Addresses: opts.Addresses, Changed: r.wakeAll})
	gateways := observer.New(observer.Options{Transport: r.Transport, Changed: r.wake})
	r.observer, r.parts = gateways, []manager.Runnable{r.cluster, gateways}
	return r
}

// prepare makes what needs the APIReader, which may be the manager's.
func (r *Reconciler) prepare() {
	r.applier = apply.New(r.Client, r.APIReader, apply.FieldManager).Report(r.Recorder)
	r.contents = newContents(r.Client, r.APIReader)
}

// Reconcile makes the children of one MCPAgent as it asks, and its status as it is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	agent, err := r.read(ctx, req.NamespacedName)
	if agent == nil || err != nil {
		return ctrl.Result{}, err
	}
	facts := r.learned()
	if !facts.Asked {
		return ctrl.Result{}, nil // what is known of the cluster wakes every agent
	}
	s := newScope(r, agent, facts)
	if err := s.gather(ctx); err != nil {
		return ctrl.Result{}, err
	}
	leaveAlone := s.paused || !agent.DeletionTimestamp.IsZero()
	result := reconcile.Run(ctx, s, s.agent, phases, reconcile.Options{Paused: leaveAlone, Observe: observePhase})
	s.summarize(&result)
	if err := s.writeStatus(ctx); err != nil {
		return ctrl.Result{}, err
	}
	s.report(ctx, result)
	if result.Err != nil {
		return ctrl.Result{}, result.Err
	}
	return ctrl.Result{RequeueAfter: result.After}, nil
}

// learned is what is known of the cluster. With that the work begins, for which a standby may have waited for long.
func (r *Reconciler) learned() cluster.Facts {
	facts := r.cluster.Facts()
	if facts.Asked {
		r.begin.Do(func() { r.started = time.Now() })
	}
	return facts
}

// read returns the agent to reconcile; nil if there is nothing left to do, since it or its namespace goes: then the garbage collector
// does the rest, and every child made again would be refused.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*mcpv1alpha1.MCPAgent, error) {
	agent, namespace := &mcpv1alpha1.MCPAgent{}, partialMetadata("Namespace")
	err := r.Client.Get(ctx, key, agent)
	if apierrors.IsNotFound(err) {
		r.forget(key)
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read MCPAgent %s: %w", key, err)
	}
	err = r.Client.Get(ctx, client.ObjectKey{Name: key.Namespace}, namespace)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read namespace %q: %w", key.Namespace, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		r.forget(key)
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	return agent, nil
}

// writeStatus writes the status, once a pass, and not at all if nothing changed.
func (s *scope) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(s.stale.Status, s.agent.Status) {
		return nil
	}
	err := s.Client.Status().Patch(ctx, s.agent, client.MergeFrom(s.stale), client.FieldOwner(apply.FieldManager))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status of MCPAgent %s: %w", client.ObjectKeyFromObject(s.agent), err)
	}
	return nil
}

// remember changes what is remembered of an agent.
func (r *Reconciler) remember(key types.NamespacedName, change func(*memory)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[key]
	change(&m)
	r.memories[key] = m
}

func (r *Reconciler) recall(key types.NamespacedName) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memories[key]
}

// maxRefused is how many bytes of tables of agents that are refused are kept. One that is not is not put back when somebody changes it.
const maxRefused = 32 << 20

// keepTable keeps the table of an agent that is refused; an empty one is that of an agent that is not.
func (r *Reconciler) keepTable(key types.NamespacedName, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text == "" {
		r.refused.Drop(key)
		return
	}
	r.refused.Put(key, text, len(text), maxRefused)
}

func (r *Reconciler) keptTable(key types.NamespacedName) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, _ := r.refused.Get(key)
	return text
}

// patience is for how long what is stored still counts though no gateway was heard: it was heard not long ago, or the operator has just
// started.
func (r *Reconciler) patience(key types.NamespacedName) time.Duration {
	last := r.started
	if heard := r.recall(key).heard; heard.After(last) {
		last = heard
	}
	return carryOver - time.Since(last)
}

func partialMetadata(kind string) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.APIVersion, meta.Kind = "v1", kind
	return meta
}

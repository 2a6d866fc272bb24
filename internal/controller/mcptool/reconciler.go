// Package mcptool reconciles MCPTools: it says whether one is usable, where its endpoint is and whether that can be connected to, and what
// tools it becomes.
//
// It guarantees that no reconcile worker waits for anybody's network, that Secrets are read as metadata alone, that what a gateway would
// refuse is told here, in Accepted, and that nothing is written when nothing differs.
package mcptool

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/fair"
	"github.com/mcp-operator/mcp-operator/internal/reach"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// phases is what a pass does.
var phases = []reconcile.Phase[*scope]{
	{Condition: mcpv1alpha1.ConditionAccepted, Do: (*scope).validate},
	{Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).applyDefinitions},
	{Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).removeUnused},
	{Condition: mcpv1alpha1.ConditionReachable, Observes: true, Do: (*scope).reach},
	{Condition: mcpv1alpha1.ConditionVerified, Observes: true, Do: (*scope).verify},
}

// Options are the parts and settings of a Reconciler. Zero settings mean their defaults.
type Options struct {
	// Client reads caches and writes.
	Client client.Client

	// APIReader reads past the cache: the content of ConfigMaps. Nil means Client.
	APIReader client.Reader

	// Recorder records events; nil is silent.
	Recorder events.EventRecorder

	// OperatorNamespace is where the operator's pods run. MCPTools there are refused. Default: mcp-operator-system.
	OperatorNamespace string

	// AllowPrivate admits endpoints and documents at private addresses, such as those of the cluster.
	AllowPrivate bool

	// TLSProfile is applied to the TLS settings of outbound connections; nil leaves Go's defaults.
	TLSProfile func(*tls.Config)

	// Dial replaces the guarded dialer of endpoints and documents; tests do.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Workers is how many objects are reconciled at once. Default: 4.
	Workers int
}

// checker is told of endpoints and knows whether they can be connected to. *reach.Checker is one.
type checker interface {
	Observe(endpoint reach.Endpoint) reach.Verdict
	Forget(key types.NamespacedName)
}

// fetcher is told of documents and knows what became of them. *reach.Fetcher is one.
type fetcher interface {
	Observe(document reach.Document) reach.Fetched[*definitions]
	Forget(key types.NamespacedName)
}

// maker is told of documents in the cluster and knows what became of them. *reach.Maker is one.
type maker interface {
	Observe(job reach.Job) reach.Made[*definitions]
	Forget(key types.NamespacedName)
}

// Reconciler reconciles MCPTools. Make it with New.
type Reconciler struct {
	client.Client

	opts    Options
	applier *apply.Applier
	memory  *memory
	checker checker
	fetcher fetcher
	maker   maker
	woken   chan wakeup

	gate  fair.Gate // of compilations
	shelf shelf
}

// New returns a Reconciler.
func New(opts Options) *Reconciler {
	if opts.APIReader == nil {
		opts.APIReader = opts.Client
	}
	if opts.OperatorNamespace == "" {
		opts.OperatorNamespace = "mcp-operator-system"
	}
	if opts.Workers == 0 {
		opts.Workers = 4
	}
	r := &Reconciler{
		Client: opts.Client, opts: opts, applier: apply.New(opts.Client, opts.APIReader, apply.FieldManager).Report(opts.Recorder), memory: newMemory(),
		woken: make(chan wakeup, 1024),
	}
	r.checker = reach.NewChecker(reach.CheckerOptions{
		AllowPrivate: opts.AllowPrivate, Dial: opts.Dial, TLSProfile: opts.TLSProfile, Notify: r.notify, Ended: countCheck,
	})
	r.fetcher = reach.NewFetcher(reach.FetcherOptions[*definitions]{
		AllowPrivate: opts.AllowPrivate, Dial: opts.Dial, TLSProfile: opts.TLSProfile, Notify: r.notify, Ended: countFetch,
		MaxBytes: maxDocument, Use: r.useDocument,
	})
	r.maker = reach.NewMaker(reach.MakerOptions[*definitions]{Make: r.makeDefinitions, Notify: r.notify})
	return r
}

// Reconcile makes the status of one MCPTool as it is, and the ConfigMap with its definitions as it asks.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	tool, err := r.read(ctx, req.NamespacedName)
	if tool == nil || err != nil {
		return ctrl.Result{}, err
	}
	s := newScope(r, tool)
	leaveAlone := s.paused || !tool.DeletionTimestamp.IsZero()
	result := reconcile.Run(ctx, s, s.tool, phases, reconcile.Options{Paused: leaveAlone})
	s.summarize()
	if err := s.writeStatus(ctx); err != nil {
		return ctrl.Result{}, err
	}
	s.report(ctx)
	if result.Err != nil {
		return ctrl.Result{}, result.Err
	}
	return ctrl.Result{RequeueAfter: result.After}, nil
}

// read returns the object to reconcile; nil if there is nothing left to do, since it or its namespace goes.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*mcpv1alpha1.MCPTool, error) {
	tool, namespace := &mcpv1alpha1.MCPTool{}, partialMetadata("Namespace")
	err := r.Get(ctx, key, tool)
	if apierrors.IsNotFound(err) {
		r.forget(key)
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read MCPTool %s: %w", key, err)
	}
	err = r.Get(ctx, client.ObjectKey{Name: key.Namespace}, namespace)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read namespace %q: %w", key.Namespace, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		r.forget(key)
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	return tool, nil
}

// forget drops what is kept in memory of an object that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.checker.Forget(key)
	r.fetcher.Forget(key)
	r.maker.Forget(key)
	r.shelf.forget(key)
	r.memory.forget(key)
	deleteMetrics(key)
}

// writeStatus writes the status, once a pass, and not at all if nothing changed.
func (s *scope) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(s.before, s.tool) {
		return nil
	}
	err := s.Status().Patch(ctx, s.tool, client.MergeFrom(s.before), client.FieldOwner(apply.FieldManager))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status of MCPTool %s: %w", s.key(), err)
	}
	return nil
}

// maxBackoff is the longest pause after a failed pass.
const maxBackoff = time.Minute

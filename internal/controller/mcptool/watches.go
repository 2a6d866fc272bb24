package mcptool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/urgent"
)

const (
	// The indexes of MCPTools by the names of what they refer to.
	indexConfigMaps = "configMaps"
	indexSecrets    = "secrets"

	// indexGrants is that of MCPAgents by the MCPTools that they are granted.
	indexGrants = "grantedMCPTools"

	// indexOwner is that of ConfigMaps by the UID of the MCPTool that made them.
	indexOwner = "mcptoolUID"
)

// wakeup is news of a tool.
type wakeup = event.TypedGenericEvent[types.NamespacedName]

// SetupWithManager adds the controller, its watches and its workers to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := addIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	for _, part := range []any{r.checker, r.fetcher, r.maker} {
		if runnable, ok := part.(manager.Runnable); ok {
			if err := mgr.Add(runnable); err != nil {
				return fmt.Errorf("add the workers of MCPTools: %w", err)
			}
		}
	}
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	// Our own status writes wake too: such a pass writes nothing, and a status that somebody else wrote is corrected.
	err := ctrl.NewControllerManagedBy(mgr).
		Named("mcptool").
		Watches(&mcpv1alpha1.MCPTool{}, urgent.Handler(urgent.Itself, urgent.IsEdited), changed).
		Watches(&mcpv1alpha1.MCPAgent{}, handler.EnqueueRequestsFromMapFunc(toolsOfAgent), builder.WithPredicates(agentTellsSomething())).
		WatchesMetadata(&corev1.ConfigMap{}, urgent.Handler(r.byReference(indexConfigMaps), never), changed).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.toolOfDefinitions), changed).
		WatchesMetadata(&corev1.Secret{}, urgent.Handler(r.byReference(indexSecrets), isRestricted), changed).
		WatchesMetadata(&corev1.Namespace{}, handler.Funcs{}).
		WatchesRawSource(source.TypedChannel(r.woken, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
			GenericFunc: wake,
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, maxBackoff),
			ReconciliationTimeout:   2 * time.Minute,
			EnableWarmup:            new(true), // a new leader need not list everything first
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller mcptool: %w", err)
	}
	return nil
}

// index is how objects of a kind are found by a field.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func indexes() []index {
	return []index{
		{&mcpv1alpha1.MCPTool{}, indexConfigMaps, func(obj client.Object) []string { return namesOf(obj, "ConfigMap") }},
		{&mcpv1alpha1.MCPTool{}, indexSecrets, func(obj client.Object) []string { return namesOf(obj, "Secret") }},
		{&mcpv1alpha1.MCPAgent{}, indexGrants, grantsOf},
		{partialMetadata("ConfigMap"), indexOwner, ownerOf},
	}
}

func addIndexes(indexer client.FieldIndexer) error {
	for _, i := range indexes() {
		if err := indexer.IndexField(context.Background(), i.object, i.field, i.extract); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}

// namesOf returns the distinct names of one kind that a tool refers to, sorted.
func namesOf(obj client.Object, kind string) []string {
	tool, ok := obj.(*mcpv1alpha1.MCPTool)
	if !ok {
		return nil
	}
	names := map[string]struct{}{}
	add := func(of string, ref *mcpv1alpha1.KeyRef) {
		if ref != nil && of == kind {
			names[ref.Name] = struct{}{}
		}
	}
	spec := &tool.Spec
	if spec.Schema != nil {
		add("ConfigMap", spec.Schema.ConfigMapRef)
	}
	if spec.OpenAPI != nil {
		add("ConfigMap", spec.OpenAPI.Document.ConfigMapRef)
	}
	if spec.CABundle != nil {
		add("ConfigMap", spec.CABundle.ConfigMapRef)
		add("Secret", spec.CABundle.SecretRef)
	}
	if spec.Auth != nil && kind == "Secret" {
		names[spec.Auth.SecretRef.Name] = struct{}{}
	}
	return slices.Sorted(maps.Keys(names))
}

func grantsOf(obj client.Object) []string {
	agent, ok := obj.(*mcpv1alpha1.MCPAgent)
	if !ok {
		return nil
	}
	var names []string
	for _, grant := range agent.Spec.Tools {
		names = append(names, grant.Name)
	}
	return names
}

func ownerOf(obj client.Object) []string {
	if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == "MCPTool" {
		return []string{string(owner.UID)}
	}
	return nil
}

// notify wakes a tool that a worker has news of.
func (r *Reconciler) notify(ctx context.Context, key types.NamespacedName) {
	select {
	case r.woken <- wakeup{Object: key}:
	case <-ctx.Done():
	}
}

func wake(_ context.Context, e wakeup, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	queue.Add(reconcile.Request{NamespacedName: e.Object})
}

// toolsOfAgent wakes the tools that an agent is granted.
func toolsOfAgent(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range grantsOf(obj) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}})
	}
	return requests
}

// agentTellsSomething lets changes of agents pass that a tool's status depends on.
func agentTellsSomething() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, okWas := e.ObjectOld.(*mcpv1alpha1.MCPAgent)
			is, okIs := e.ObjectNew.(*mcpv1alpha1.MCPAgent)
			return okWas && okIs && (!slices.Equal(was.Spec.Tools, is.Spec.Tools) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
				!slices.Equal(was.Status.EffectiveTools, is.Status.EffectiveTools) || isJudged(was) != isJudged(is) ||
				!equality.Semantic.DeepEqual(was.Status.ToolCount, is.Status.ToolCount))
		},
	}
}

// toolOfDefinitions wakes the tool that a ConfigMap belongs to, or whose definitions would have its name: so a tool goes on by itself when
// a foreign object that was in its way is gone.
func (r *Reconciler) toolOfDefinitions(ctx context.Context, obj client.Object) []reconcile.Request {
	cut := len(obj.GetName()) - shownDigest - 1
	if cut <= 0 || obj.GetName()[cut] != '-' {
		return nil
	}
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()[:cut]}
	if err := r.Get(ctx, key, &mcpv1alpha1.MCPTool{}, client.DisableReadYourWritesConsistency); err != nil {
		return nil // most ConfigMaps of a cluster belong to no tool
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// byReference wakes the tools that refer to the changed object.
func (r *Reconciler) byReference(index string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		tools := &mcpv1alpha1.MCPToolList{}
		err := r.List(ctx, tools, client.InNamespace(obj.GetNamespace()), client.MatchingFields{index: obj.GetName()},
			client.DisableReadYourWritesConsistency)
		if err != nil {
			return nil // the cache ends: so does the manager
		}
		var requests []reconcile.Request
		for i := range tools.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&tools.Items[i])})
		}
		return requests
	}
}

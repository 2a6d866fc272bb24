package mcpagent

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	crevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	crreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/urgent"
)

// Name names the controller.
const Name = "mcpagent"

// The indexes of MCPAgents by the names of what they use, and of MCPTools by that of the ConfigMap with their schema.
const (
	indexServers    = "mcpagent.servers"
	indexTools      = "mcpagent.tools"
	indexConfigMaps = "mcpagent.configMaps"
	indexSecrets    = "mcpagent.secrets"
	indexSchemas    = "mcpagent.schemas"
)

// maxBackoff is the longest pause after a failed pass.
const maxBackoff = time.Minute

// SetupWithManager adds the controller, its watches and what it knows the cluster and the gateways by to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.APIReader == nil {
		r.APIReader = mgr.GetAPIReader()
	}
	r.prepare()
	if err := addIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	for _, part := range r.parts {
		if err := mgr.Add(part); err != nil {
			return fmt.Errorf("add %T: %w", part, err)
		}
	}
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	gateway, own := r.byName(desired.GatewayName("")), r.byName(desired.GatewayName(""), desired.RuntimeName(""))
	// Our own status writes wake too: such a pass writes nothing, and a status that somebody else wrote is corrected.
	err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&mcpv1alpha1.MCPAgent{}, urgent.Handler(urgent.Itself, withdraws), changed).
		Watches(&mcpv1alpha1.MCPServer{}, urgent.Handler(r.byIndex(indexServers), withdraws), builder.WithPredicates(beyondMetadata())).
		Watches(&mcpv1alpha1.MCPTool{}, urgent.Handler(r.byIndex(indexTools), withdraws), builder.WithPredicates(beyondMetadata())).
		Watches(&appsv1.Deployment{}, own, changed).
		Watches(&corev1.Service{}, gateway, changed).
		Watches(&networkingv1.NetworkPolicy{}, r.byName(desired.GatewayName(""), desired.ServersPolicyName(""), desired.RuntimeName("")), changed).
		Watches(&corev1.ServiceAccount{}, own, changed).
		Watches(&rbacv1.Role{}, gateway, changed).
		Watches(&rbacv1.RoleBinding{}, gateway, changed).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, own, builder.WithPredicates(beyondStatus())).
		Watches(&policyv1.PodDisruptionBudget{}, gateway, builder.WithPredicates(beyondStatus())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(agentOfPod), builder.WithPredicates(diagnose.News())).
		WatchesMetadata(&corev1.ConfigMap{}, gateway, changed).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.byConfigMap), changed).
		WatchesMetadata(&corev1.Secret{}, r.byName(desired.SessionSecretName("")), changed).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.byIndex(indexSecrets)), changed).
		WatchesMetadata(&corev1.Namespace{}, handler.Funcs{}).
		WatchesRawSource(source.TypedChannel(r.woken, handler.TypedFuncs[types.NamespacedName, crreconcile.Request]{GenericFunc: enqueue})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.Workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[crreconcile.Request](100*time.Millisecond, maxBackoff),
			ReconciliationTimeout:   2 * time.Minute,
			EnableWarmup:            new(true), // a new leader need not list everything first
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller %s: %w", Name, err)
	}
	return nil
}

func addIndexes(indexer client.FieldIndexer) error {
	for index, extract := range map[string]func(*mcpv1alpha1.MCPAgent) []string{
		indexServers: grantedServers, indexTools: grantedTools, indexConfigMaps: configMapsOf, indexSecrets: issuerSecrets,
	} {
		err := indexer.IndexField(context.Background(), &mcpv1alpha1.MCPAgent{}, index, func(obj client.Object) []string {
			agent, ok := obj.(*mcpv1alpha1.MCPAgent)
			if !ok {
				return nil
			}
			return extract(agent)
		})
		if err != nil {
			return fmt.Errorf("index MCPAgents (%s): %w", index, err)
		}
	}
	err := indexer.IndexField(context.Background(), &mcpv1alpha1.MCPTool{}, indexSchemas, func(obj client.Object) []string {
		tool, ok := obj.(*mcpv1alpha1.MCPTool)
		if !ok || schemaReference(tool) == nil {
			return nil
		}
		return []string{schemaReference(tool).Name}
	})
	if err != nil {
		return fmt.Errorf("index MCPTools (%s): %w", indexSchemas, err)
	}
	return nil
}

// wakeup is the news that an agent has to be looked at.
type wakeup = crevent.TypedGenericEvent[types.NamespacedName]

func (r *Reconciler) wake(ctx context.Context, key types.NamespacedName) {
	select {
	case r.woken <- wakeup{Object: key}:
	case <-ctx.Done():
	}
}

// wakeAll wakes every agent: something of the cluster itself changed.
func (r *Reconciler) wakeAll(ctx context.Context) {
	agents := &mcpv1alpha1.MCPAgentList{}
	if err := r.Client.List(ctx, agents); err != nil {
		return // the cache ends: so does the manager
	}
	for i := range agents.Items {
		r.wake(ctx, client.ObjectKeyFromObject(&agents.Items[i]))
	}
}

func enqueue(_ context.Context, e wakeup, queue workqueue.TypedRateLimitingInterface[crreconcile.Request]) {
	queue.Add(crreconcile.Request{NamespacedName: e.Object})
}

// withdraws says whether an update may withdraw a grant.
func withdraws(was, is client.Object) bool { return urgent.IsEdited(was, is) || isWithdrawn(was, is) }

// isWithdrawn says whether an MCPServer or MCPTool is no longer accepted, applied or allowed to be connected to: its status tells that, of a
// Secret that must not be sent any more for one.
func isWithdrawn(was, is client.Object) bool {
	conditions := func(obj client.Object) []metav1.Condition {
		switch o := obj.(type) {
		case *mcpv1alpha1.MCPServer:
			return o.Status.Conditions
		case *mcpv1alpha1.MCPTool:
			return o.Status.Conditions
		}
		return nil
	}
	before, now := conditions(was), conditions(is)
	for _, kind := range []string{mcpv1alpha1.ConditionAccepted, mcpv1alpha1.ConditionApplied} {
		if apimeta.IsStatusConditionTrue(before, kind) && !apimeta.IsStatusConditionTrue(now, kind) {
			return true
		}
	}
	denied := func(list []metav1.Condition) bool {
		return reconcile.ConditionOf(list, mcpv1alpha1.ConditionReachable).Reason == mcpv1alpha1.ReasonAddressDenied
	}
	return denied(now) && !denied(before)
}

// beyondMetadata lets pass what changes more than labels and annotations of something that is granted.
func beyondMetadata() predicate.Predicate {
	status := func(obj client.Object) any {
		switch o := obj.(type) {
		case *mcpv1alpha1.MCPServer:
			return o.Status
		case *mcpv1alpha1.MCPTool:
			return o.Status
		}
		return nil
	}
	return predicate.Funcs{UpdateFunc: func(e crevent.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!equality.Semantic.DeepEqual(status(e.ObjectOld), status(e.ObjectNew))
	}}
}

// beyondStatus lets pass what changes more than the status of a child, which its controller writes all the time.
func beyondStatus() predicate.Predicate {
	rest := func(obj client.Object) (metav1.ObjectMeta, any) {
		switch o := obj.(type) {
		case *autoscalingv2.HorizontalPodAutoscaler:
			return o.ObjectMeta, o.Spec
		case *policyv1.PodDisruptionBudget:
			return o.ObjectMeta, o.Spec
		}
		return metav1.ObjectMeta{}, nil
	}
	return predicate.Funcs{UpdateFunc: func(e crevent.UpdateEvent) bool {
		wasMeta, wasSpec := rest(e.ObjectOld)
		isMeta, isSpec := rest(e.ObjectNew)
		wasMeta.ResourceVersion, wasMeta.ManagedFields = isMeta.ResourceVersion, isMeta.ManagedFields
		return !equality.Semantic.DeepEqual(wasMeta, isMeta) || !equality.Semantic.DeepEqual(wasSpec, isSpec)
	}}
}

// byIndex wakes the agents that use the changed object.
func (r *Reconciler) byIndex(index string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []crreconcile.Request {
		return r.using(ctx, obj.GetNamespace(), index, obj.GetName())
	}
}

func (r *Reconciler) using(ctx context.Context, namespace, index, name string) []crreconcile.Request {
	agents := &mcpv1alpha1.MCPAgentList{}
	err := r.Client.List(ctx, agents, client.InNamespace(namespace), client.MatchingFields{index: name}, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil // the cache ends: so does the manager
	}
	var requests []crreconcile.Request
	for i := range agents.Items {
		requests = append(requests, crreconcile.Request{NamespacedName: client.ObjectKeyFromObject(&agents.Items[i])})
	}
	return requests
}

// byConfigMap wakes the agents whose workload or gateway reads the changed ConfigMap, or that use a tool whose schema it holds.
func (r *Reconciler) byConfigMap(ctx context.Context, obj client.Object) []crreconcile.Request {
	requests := r.using(ctx, obj.GetNamespace(), indexConfigMaps, obj.GetName())
	tools := &mcpv1alpha1.MCPToolList{}
	err := r.Client.List(ctx, tools, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexSchemas: obj.GetName()},
		client.DisableReadYourWritesConsistency)
	if err != nil {
		return requests // the cache ends: so does the manager
	}
	for i := range tools.Items {
		requests = append(requests, r.using(ctx, obj.GetNamespace(), indexTools, tools.Items[i].Name)...)
	}
	return requests
}

// byName wakes the agent whose child has the name of the changed object, whoever owns that object: so an agent goes on by itself when a
// foreign object that was in its way is gone.
func (r *Reconciler) byName(suffixes ...string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []crreconcile.Request {
		var requests []crreconcile.Request
		for _, suffix := range suffixes {
			name, ok := strings.CutSuffix(obj.GetName(), suffix)
			key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
			if !ok || r.Client.Get(ctx, key, &mcpv1alpha1.MCPAgent{}, client.DisableReadYourWritesConsistency) != nil {
				continue // most objects of a cluster belong to no agent; an agent that appears later is reconciled then
			}
			requests = append(requests, crreconcile.Request{NamespacedName: key})
		}
		return requests
	})
}

func agentOfPod(_ context.Context, pod client.Object) []crreconcile.Request {
	name := pod.GetLabels()[desired.LabelAgent]
	if name == "" {
		return nil
	}
	return []crreconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// forget drops what is kept in memory of an agent that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.observer.Forget(key)
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: desired.GatewayName(key.Name)}
	r.applier.Forget(&corev1.ConfigMap{ObjectMeta: meta})
	meta.Name = desired.SessionSecretName(key.Name)
	r.applier.Forget(&corev1.Secret{ObjectMeta: meta})
	r.mu.Lock()
	delete(r.memories, key)
	r.refused.Drop(key)
	r.mu.Unlock()
	deleteMetrics(key)
}

// directTransport dials addresses as they are, without proxies, and never this host or its links.
func directTransport(probe.Pod) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: mcp.Guard{Allow: mcp.AllowCluster}.DialContext}
}

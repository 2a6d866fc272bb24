package engine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// The indexes of MCPServers by the names of what they refer to.
const (
	indexConfigMaps = "configMaps"
	indexSecrets    = "secrets"
)

// SetupWithManager adds the controller, its watches and the background prober to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.APIReader == nil {
		r.APIReader = mgr.GetAPIReader()
	}
	r.init()
	for index, kind := range map[string]string{indexConfigMaps: "ConfigMap", indexSecrets: "Secret"} {
		extract := func(obj client.Object) []string {
			return r.watched(obj, kind)
		}
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), r.kind().New(), index, extract); err != nil {
			return fmt.Errorf("index MCPServers by %s: %w", index, err)
		}
	}
	woken := make(chan event.TypedGenericEvent[types.NamespacedName], 1024)
	r.prober = probe.New(probe.Options{
		Client: r.handshaker(), Transport: r.probeTransport(), Starting: r.kind().Starting, Ended: r.ended, Interval: r.settings.ProbeInterval,
		Notify: func(ctx context.Context, key types.NamespacedName) {
			select {
			case woken <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
			case <-ctx.Done():
			}
		},
	})
	if err := mgr.Add(r.prober); err != nil {
		return fmt.Errorf("add the prober: %w", err)
	}
	// Our own status writes wake too: such a pass writes nothing, and a status that somebody else wrote is corrected.
	err := ctrl.NewControllerManagedBy(mgr).
		Named(r.kind().Name()).
		For(r.kind().New(), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&appsv1.Deployment{}, r.byName(desired.DeploymentName("")), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&corev1.Service{}, r.byName(r.kind().ServiceName("")), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&corev1.Service{}, r.byName(desired.PodsServiceName("")), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&networkingv1.NetworkPolicy{}, r.byName(desired.NetworkPolicyName("")), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.serverOfPod), builder.WithPredicates(diagnose.News())).
		WatchesMetadata(&corev1.ConfigMap{}, r.byReference(indexConfigMaps), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesMetadata(&corev1.ConfigMap{}, r.byName(desired.ConfigMapName("")), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, r.byReference(indexSecrets), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, handler.Funcs{}).
		WatchesRawSource(source.TypedChannel(woken, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
			GenericFunc: wake,
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.settings.Workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, maxBackoff),
			ReconciliationTimeout:   2 * time.Minute,
			EnableWarmup:            new(true), // a new leader need not list everything first
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller %s: %w", r.kind().Name(), err)
	}
	return nil
}

// watched returns the names of one kind that wake an object: of what its pods read, and the Secrets that no pod reads: with the certificates
// to trust, and with what images are pulled with.
func (r *Reconciler) watched(obj client.Object, kind string) []string {
	refs, spec := r.kind().References(obj), &r.kind().Read(obj).Spec
	if tls := spec.TLS; tls != nil && tls.CASecretRef != nil {
		refs = append(refs, Reference{Kind: "Secret", Name: tls.CASecretRef.Name})
	}
	for _, secret := range spec.ImagePullSecrets {
		refs = append(refs, Reference{Kind: "Secret", Name: secret.Name})
	}
	return namesOf(refs, kind)
}

// wake puts a server that the prober has news of into the queue.
func wake(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	queue.Add(reconcile.Request{NamespacedName: e.Object})
}

func (r *Reconciler) probeTransport() func(probe.Server, *probe.Pod) *http.Transport {
	if r.settings.ProbeTransport != nil {
		return r.settings.ProbeTransport
	}
	return func(probe.Server, *probe.Pod) *http.Transport { return r.directTransport() }
}

// byName wakes the server whose child has the name of the changed object, whoever owns that object: so a server goes on by
// itself when a foreign object that was in its way is gone.
func (r *Reconciler) byName(suffix string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		name, ok := strings.CutSuffix(obj.GetName(), suffix)
		if !ok {
			return nil
		}
		key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
		if err := r.Get(ctx, key, r.kind().New(), client.DisableReadYourWritesConsistency); err != nil {
			return nil // most objects of a cluster belong to no server; a server that appears later is reconciled then
		}
		return []reconcile.Request{{NamespacedName: key}}
	})
}

// byReference wakes the servers that refer to the changed object.
func (r *Reconciler) byReference(index string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		servers := r.kind().NewList()
		err := r.List(ctx, servers, client.InNamespace(obj.GetNamespace()), client.MatchingFields{index: obj.GetName()},
			client.DisableReadYourWritesConsistency)
		if err != nil {
			return nil // the cache ends: so does the manager
		}
		var requests []reconcile.Request
		_ = apimeta.EachListItem(servers, func(item runtime.Object) error { // fails for what is no list
			if server, ok := item.(client.Object); ok {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(server)})
			}
			return nil
		})
		return requests
	})
}

// ended counts a handshake, and tells the API of it.
func (r *Reconciler) ended(handshake Handshake, took time.Duration, result *mcp.Result, err error) {
	recordHandshake(handshake, took, result, err)
	r.kind().Ended(handshake, took, result, err)
}

func (r *Reconciler) serverOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	name := r.kind().ServerOf(pod)
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

const (
	// compatibilityCRD is the CustomResourceDefinition of the compatibility API.
	compatibilityCRD = "mcpservers.mcp.x-k8s.io"

	// RivalLease is the name of the lease that the operator of Kubernetes SIG Apps holds while it acts.
	RivalLease = "bed7462b.x-k8s.io"

	// rivalPatience is how long a lease counts that does not say it.
	rivalPatience = 15 * time.Second

	// abandoned is how long ago a lease must have been renewed to count for nothing when it is seen first: the other operator does not give
	// its lease up when it ends. No two clocks differ by that much, and if they do, the next renewal is seen.
	abandoned = time.Hour

	// restartPause is the first pause after the controller ended by an error; it doubles up to restartLimit.
	restartPause, restartLimit = 2 * time.Second, time.Minute
)

// compatibility runs the controller of the compatibility API while the API server serves that API, and while no other operator acts on
// it. It watches two objects by name, and nothing else: at rest it makes no request.
type compatibility struct {
	informers cache.Cache
	reader    client.Reader // of the same cache
	recorder  events.EventRecorder
	log       logr.Logger
	// namespaces are those that events may be written in; none means all.
	namespaces []string

	// run runs the controller until its context ends.
	run func(context.Context) error

	woken   chan struct{}
	renewed map[types.NamespacedName]renewal

	cancel    context.CancelFunc // of what runs; nil when nothing does
	ended     chan error
	pause     time.Duration // after the next error
	notBefore time.Time     // after an error, nothing is started before this
	told      string
}

// renewal is a lease as it was when it last changed, and when that was by our clock: another machine's may be off.
type renewal struct {
	version string
	at      time.Time
}

func newCompatibility(informers cache.Cache, recorder events.EventRecorder, log logr.Logger, run func(context.Context) error) *compatibility {
	return &compatibility{
		informers: informers, reader: informers, recorder: recorder, log: log, run: run,
		woken: make(chan struct{}, 1), renewed: map[types.NamespacedName]renewal{}, ended: make(chan error, 1),
		pause: restartPause,
	}
}

// compatibilityCache restricts what is cached of CRDs and leases to the one of each that matters.
func compatibilityCache() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&apiextensionsv1.CustomResourceDefinition{}: {
			Field: fields.OneTermEqualSelector("metadata.name", compatibilityCRD), Transform: withoutSchemas,
		},
		&coordinationv1.Lease{}: {
			Field: fields.OneTermEqualSelector("metadata.name", RivalLease),
			// Wherever the other operator runs, also if this one acts in some namespaces only.
			Namespaces: map[string]cache.Config{cache.AllNamespaces: {}},
		},
	}
}

// withoutSchemas drops what is large.
func withoutSchemas(obj any) (any, error) {
	if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.ManagedFields, crd.Annotations = nil, nil
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema = nil
		}
	}
	return obj, nil
}

// NeedLeaderElection says that only the leader does this.
func (c *compatibility) NeedLeaderElection() bool { return true }

// Start watches until ctx ends, and starts and stops the controller meanwhile.
func (c *compatibility) Start(ctx context.Context) error {
	for obj := range compatibilityCache() {
		informer, err := c.informers.GetInformer(ctx, obj)
		if err != nil {
			return fmt.Errorf("watch for the compatibility API (%T): %w", obj, err)
		}
		wake := func() {
			select {
			case c.woken <- struct{}{}:
			default: // it will look anyway
			}
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
		})
		if err != nil {
			return fmt.Errorf("watch for the compatibility API (%T): %w", obj, err)
		}
	}
	defer c.stop()
	for {
		after, err := c.decide(ctx)
		if err != nil {
			return err
		}
		timer := time.NewTimer(after)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-c.woken:
		case <-timer.C:
		case err := <-c.ended:
			if ctx.Err() != nil {
				c.ended <- err // it ended with us, and stop waits for it
				return nil
			}
			c.note(err)
		}
		timer.Stop()
	}
}

// never is longer than an operator runs.
const never = 100 * 365 * 24 * time.Hour

// decide starts or stops the controller, and returns when to look again without being woken.
func (c *compatibility) decide(ctx context.Context) (time.Duration, error) {
	served, err := c.isServed(ctx)
	if err != nil {
		return 0, err
	}
	rival, fresh, err := c.rival(ctx)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	switch {
	case !served:
		c.stop()
		c.tell("the compatibility API is not served: no CustomResourceDefinition " + compatibilityCRD + " serves v1alpha1")
	case rival != nil:
		c.stop()
		c.yield(rival)
		return fresh, nil
	case c.cancel != nil:
	case now.Before(c.notBefore):
		return c.notBefore.Sub(now), nil
	default:
		c.tell("the compatibility API is served: its controller starts")
		c.start(ctx)
	}
	return never, nil
}

// yield says, in the log and by an event on its lease, that another operator acts.
func (c *compatibility) yield(rival *coordinationv1.Lease) {
	message := fmt.Sprintf("another operator acts on MCPServers of mcp.x-k8s.io: the Lease %s/%s is held by %q. This one leaves them alone until that ends",
		rival.Namespace, rival.Name, *rival.Spec.HolderIdentity)
	mayTell := len(c.namespaces) == 0 || slices.Contains(c.namespaces, rival.Namespace)
	if c.tell(message) && mayTell {
		c.recorder.Eventf(rival, nil, corev1.EventTypeWarning, "OtherOperatorActive", "Yield", "%s", message)
	}
}

// tell logs what was not said last.
func (c *compatibility) tell(message string) bool {
	if c.told == message {
		return false
	}
	c.told = message
	c.log.Info(message)
	return true
}

func (c *compatibility) start(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	go func() { c.ended <- c.run(ctx) }()
}

// stop ends the controller, if it runs, and waits for that.
func (c *compatibility) stop() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	err := <-c.ended
	c.cancel, c.pause = nil, restartPause
	if err != nil {
		c.log.Error(err, "the controller of the compatibility API did not end well")
	}
}

// note takes in that the controller ended by itself.
func (c *compatibility) note(err error) {
	c.cancel()
	c.cancel, c.told = nil, ""
	c.notBefore = time.Now().Add(c.pause)
	c.log.Error(err, "the controller of the compatibility API ended and is started again", "after", c.pause.String())
	c.pause = min(2*c.pause, restartLimit)
}

func (c *compatibility) isServed(ctx context.Context) (bool, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := c.reader.Get(ctx, client.ObjectKey{Name: compatibilityCRD}, crd)
	if apierrors.IsNotFound(err) || errors.Is(err, context.Canceled) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read CustomResourceDefinition %s: %w", compatibilityCRD, err)
	}
	established := slices.ContainsFunc(crd.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	})
	serves := slices.ContainsFunc(crd.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return version.Name == sigv1alpha1.GroupVersion.Version && version.Served
	})
	return established && serves && crd.DeletionTimestamp.IsZero(), nil
}

// rival returns a lease of the other operator that is held, and for how long it counts if it is not renewed; nil if there is none. Of
// several it is always the same one: what is told of it is told once.
func (c *compatibility) rival(ctx context.Context) (*coordinationv1.Lease, time.Duration, error) {
	leases := &coordinationv1.LeaseList{}
	if err := c.reader.List(ctx, leases); err != nil && !errors.Is(err, context.Canceled) {
		return nil, 0, fmt.Errorf("list leases %s: %w", RivalLease, err)
	}
	slices.SortFunc(leases.Items, func(a, b coordinationv1.Lease) int { return strings.Compare(a.Namespace, b.Namespace) })
	now := time.Now()
	var rival *coordinationv1.Lease
	var fresh time.Duration
	for i := range leases.Items {
		lease := &leases.Items[i]
		key := client.ObjectKeyFromObject(lease)
		if last, known := c.renewed[key]; !known || last.version != lease.ResourceVersion {
			seen := renewal{version: lease.ResourceVersion, at: now}
			if renewed := lease.Spec.RenewTime; !known && renewed != nil && now.Sub(renewed.Time) > abandoned {
				seen.at = renewed.Time
			}
			c.renewed[key] = seen
		}
		patience := rivalPatience
		if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
			patience = time.Duration(*seconds) * time.Second
		}
		held := lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
		if left := c.renewed[key].at.Add(patience).Sub(now); rival == nil && held && left > 0 {
			rival, fresh = lease, left
		}
	}
	return rival, fresh, nil
}

package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// gateWorld is a gate, what it sees, and whether the controller behind it runs.
type gateWorld struct {
	*compatibility

	t       *testing.T
	client  client.Client
	events  *events.FakeRecorder
	running bool
	starts  int
	fail    chan error
}

func makeGate(t *testing.T, objects ...client.Object) *gateWorld {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &gateWorld{t: t, events: events.NewFakeRecorder(10), fail: make(chan error)}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	w.compatibility = newCompatibility(nil, w.events, logr.Discard(), func(ctx context.Context) error {
		w.running = true
		w.starts++
		defer func() { w.running = false }()
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.fail:
			return err
		}
	})
	w.reader = w.client
	return w
}

// step lets the gate decide, and returns when it wants to look again.
func (w *gateWorld) step(what string, running bool) time.Duration {
	w.t.Helper()
	after, err := w.decide(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	if w.running != running {
		w.t.Errorf("%s: the controller runs: %t, want %t", what, w.running, running)
	}
	return after
}

func makeCRD(version string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: compatibilityCRD},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true}}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}},
	}
}

func makeLease(holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: RivalLease, Namespace: "mcp-lifecycle-operator-system"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
}

func TestTheCompatibilityControllerRunsWhileItsVersionIsServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := makeGate(t)
		w.step("there is no CRD", false)
		crd := makeCRD("v1alpha1")
		if err := w.client.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		if after := w.step("the CRD is there", true); after != never {
			t.Errorf("at rest it looks again after %s", after)
		}
		w.step("nothing changed", true)
		crd.Spec.Versions[0].Served = false
		if err := w.client.Update(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		w.step("the version is not served any more", false)
		if w.starts != 1 {
			t.Errorf("it was started %d times", w.starts)
		}
	})
}

func TestAnotherVersionOfTheCompatibilityAPIStartsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		makeGate(t, makeCRD("v1beta1")).step("v1beta1 alone", false)
	})
}

func TestTheCompatibilityControllerStaysAwayWhileTheOtherOperatorActsAndTakesOverAfterwards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lease := makeLease("their-pod")
		w := makeGate(t, makeCRD("v1alpha1"), lease)
		if after := w.step("it holds its lease", false); after != 15*time.Second {
			t.Errorf("it looks again after %s, the lease lasts 15 s", after)
		}
		select {
		case event := <-w.events.Events:
			t.Logf("it says: %s", event)
		default:
			t.Error("it does not say why it stays away")
		}
		for range 3 {
			<-time.After(10 * time.Second)
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
			if err := w.client.Update(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
			w.step("it renewed its lease", false)
		}
		if len(w.events.Events) != 0 {
			t.Errorf("it says so again: %s", <-w.events.Events)
		}
		<-time.After(15*time.Second + time.Nanosecond)
		w.step("the lease ran out", true)

		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		if err := w.client.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		w.step("the other operator came back", false)
		lease.Spec.HolderIdentity = new("")
		if err := w.client.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		w.step("it gave its lease up", true)
		w.stop()
	})
}

func TestALeaseThatWasLeftBehindLongAgoIsHeldByNobody(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ago  time.Duration
		held bool
	}{
		"a month": {30 * 24 * time.Hour, false}, "more than an hour": {time.Hour + time.Second, false},
		"an hour": {time.Hour, true}, "a clock ahead": {-time.Hour, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			lease := makeLease("their-pod")
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-tt.ago)}
			w := makeGate(t, makeCRD("v1alpha1"), lease)
			w.step(name, !tt.held)
			if told := len(w.events.Events) > 0; told != tt.held {
				t.Errorf("%s: told that another operator acts: %t", name, told)
			}
			// Whatever their clock says, a lease that changes is renewed.
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(2*time.Second - tt.ago)}
			if err := w.client.Update(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
			w.step(name+", and it is renewed", false)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		lease := makeLease("their-pod")
		lease.Spec.RenewTime = nil
		makeGate(t, makeCRD("v1alpha1"), lease).step("a lease that does not say when it was renewed", false)
	})
}

func TestALeaseInANamespaceOfOthersIsToldOfInTheLogAlone(t *testing.T) {
	t.Parallel()
	for namespace, events := range map[string]int{"watched": 1, "another": 0} {
		synctest.Test(t, func(t *testing.T) {
			lease := makeLease("a")
			lease.Namespace = namespace
			w := makeGate(t, makeCRD("v1alpha1"), lease)
			w.namespaces = []string{"watched"}
			w.step("the lease is held", false)
			if n := len(w.events.Events); n != events || !strings.Contains(w.told, "Lease "+namespace+"/") {
				t.Errorf("a lease in the namespace %q: %d events and the log line %q", namespace, n, w.told)
			}
		})
	}
}

func TestOfSeveralLeasesOneIsToldAndToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := makeLease("a"), makeLease("b")
		second.Namespace = "another"
		w := makeGate(t, makeCRD("v1alpha1"), first, second)
		reversed := false
		w.reader = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake client is one
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if leases, ok := list.(*coordinationv1.LeaseList); ok && reversed { // a cache lists in any order
					slices.Reverse(leases.Items)
				}
				return err
			},
		})
		w.step("both are held", false)
		reversed = true
		w.step("both are held still", false)
		if n := len(w.events.Events); n != 1 {
			t.Errorf("%d events tell of it, want 1", n)
		}
	})
}

func TestAControllerThatEndsByItselfIsStartedAgainLaterAndLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := makeGate(t, makeCRD("v1alpha1"))
		w.step("the CRD is there", true)
		for _, pause := range []time.Duration{2 * time.Second, 4 * time.Second} {
			w.fail <- errors.New("no cache")
			w.note(<-w.ended)
			if after := w.step("it ended", false); after != pause {
				t.Errorf("it starts again after %s, want %s", after, pause)
			}
			<-time.After(pause)
			w.step("the pause is over", true)
		}
		w.stop()
	})
}

// still is a cache in which nothing happens.
type still struct{ cache.Cache }

func (still) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return stillInformer{}, nil
}

type stillInformer struct{ cache.Informer }

func (stillInformer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return nil, nil //nolint:nilnil // nobody asks
}

func TestAControllerThatEndsWithTheOperatorIsNotSaidToStartAgain(t *testing.T) {
	t.Parallel()
	for range 20 { // of two things that are there at once either is taken
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			w := makeGate(t, makeCRD("v1alpha1"))
			ctx, end := context.WithCancel(t.Context())
			w.informers, w.log = still{}, funcr.New(func(_, line string) { said.WriteString(line + "\n") }, funcr.Options{})
			w.reader = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake client is one
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if w.running {
						end()
						synctest.Wait() // until it has ended
					}
					return c.List(ctx, list, opts...)
				},
			})
			done := make(chan error)
			go func() { done <- w.Start(ctx) }()
			synctest.Wait()
			w.woken <- struct{}{}
			if err := <-done; err != nil || w.running || strings.Contains(said.String(), "ended") {
				t.Errorf("%v, it runs: %t, said: %s", err, w.running, said.String())
			}
		})
	}
}

package scale

import (
	"flag"
	"reflect"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// Fewer objects show quickly that it works: go test ./test/scale -run='^$' -bench=Burst -benchtime=1x -servers=20.
var (
	servers = flag.Int("servers", 1000, "MCPServers of the burst")
	samples = flag.Int("samples", 200, "MCPServers that are created one after the other")
)

// childrenOf returns every child that a server asks for. It reads them off the type, so that a kind of child that is new is waited
// for, and written by the loop without an operator.
func childrenOf(tb testing.TB, s *mcpv1alpha1.MCPServer) []client.Object {
	tb.Helper()
	var children []client.Object
	all := reflect.ValueOf(desired.ForServer(s, desired.Environment{OperatorNamespace: operatorNamespace}, ""))
	for field, value := range all.Fields() {
		child, ok := reflect.TypeAssert[client.Object](value)
		if !ok {
			tb.Fatalf("desired.Server.%s is a %s and no single object: count it here", field.Name, field.Type)
		}
		if !value.IsNil() {
			children = append(children, child)
		}
	}
	return children
}

func TestEveryChildOfAServerIsCounted(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	for _, child := range childrenOf(t, server("one", 0)) {
		got[reflect.TypeOf(child).Elem().Name()+" "+child.GetName()]++
	}
	for _, want := range []string{"NetworkPolicy one-0", "Deployment one-0", "Service one-0-svc", "Service one-0-pods"} {
		if got[want] != 1 {
			t.Errorf("%s is counted %d times among %v", want, got[want], got)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d children are counted, not 4: %v", len(got), got)
	}
}

// arrival is something that came to be: a child, or a status that says that all children are applied.
type arrival struct{ kind, name string }

const statusApplied = "status"

// arrivals reports what comes to be in a namespace, of the kinds that children have and, if asked for, in statuses. Watches cost
// the API server next to nothing; lists again and again would take the time that is measured.
func (r *rig) arrivals(namespace string, withStatus bool) <-chan arrival {
	r.b.Helper()
	all, seen := make(chan arrival, 1024), map[string]bool{}
	for _, child := range childrenOf(r.b, server("any", 0)) {
		gvk, err := apiutil.GVKForObject(child, r.client.Scheme())
		if err != nil {
			r.b.Fatal(err)
		}
		if seen[gvk.Kind] {
			continue
		}
		seen[gvk.Kind] = true
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		r.follow(list, namespace, all, func(e watch.Event) (arrival, bool) {
			obj, ok := e.Object.(client.Object)
			if !ok || e.Type != watch.Added {
				return arrival{}, false
			}
			return arrival{gvk.Kind, obj.GetName()}, true
		})
	}
	if withStatus {
		r.follow(&mcpv1alpha1.MCPServerList{}, namespace, all, func(e watch.Event) (arrival, bool) {
			s, ok := e.Object.(*mcpv1alpha1.MCPServer)
			if !ok || !apimeta.IsStatusConditionTrue(s.Status.Conditions, mcpv1alpha1.ConditionApplied) {
				return arrival{}, false
			}
			return arrival{statusApplied, s.Name}, true
		})
	}
	return all
}

// follow hands over what a watch shows and is an arrival, until the benchmark ends.
func (r *rig) follow(list client.ObjectList, namespace string, to chan<- arrival, read func(watch.Event) (arrival, bool)) {
	r.b.Helper()
	events, err := r.client.Watch(r.b.Context(), list, client.InNamespace(namespace))
	if err != nil {
		r.b.Fatal(err)
	}
	r.b.Cleanup(events.Stop)
	go func() {
		for e := range events.ResultChan() {
			if a, ok := read(e); ok {
				select {
				case to <- a:
				case <-r.b.Context().Done():
					return
				}
			}
		}
	}()
}

// arrivalsOf are those that the children of a server make.
func (r *rig) arrivalsOf(s *mcpv1alpha1.MCPServer) []arrival {
	r.b.Helper()
	var all []arrival
	for _, child := range childrenOf(r.b, s) {
		gvk, err := apiutil.GVKForObject(child, r.client.Scheme())
		if err != nil {
			r.b.Fatal(err)
		}
		all = append(all, arrival{gvk.Kind, child.GetName()})
	}
	return all
}

// burstOf are those that n servers make: their children, and their statuses that say so.
func (r *rig) burstOf(prefix string, n int) []arrival {
	r.b.Helper()
	var all []arrival
	for i := range n {
		s := server(prefix, i)
		all = append(append(all, r.arrivalsOf(s)...), arrival{statusApplied, s.Name})
	}
	return all
}

// awaitAll reads arrivals until all that are wanted were among them and, unless it is nil, what makes them come is done.
func (r *rig) awaitAll(from <-chan arrival, within time.Duration, wanted []arrival, done <-chan error) {
	r.b.Helper()
	missing := make(map[arrival]bool, len(wanted))
	for _, a := range wanted {
		missing[a] = true
	}
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for len(missing) > 0 || done != nil {
		select {
		case a := <-from:
			delete(missing, a)
		case err := <-done:
			if err != nil {
				r.b.Fatal(err)
			}
			done = nil
		case <-timeout.C:
			for a := range missing {
				r.b.Fatalf("after %s %d of %d are missing, such as %s %s", within, len(missing), len(wanted), a.kind, a.name)
			}
			r.b.Fatalf("after %s all are there and not all creates have ended", within)
		}
	}
}

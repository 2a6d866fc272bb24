package sigserver

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// world is a cluster in memory, and a reconciler without a prober: it shakes hands inline.
type world struct {
	client.Client

	t          *testing.T
	reconciler *engine.Reconciler
	events     *events.FakeRecorder
	dialled    []string
	dialErr    error
	statusErr  error
}

func makeWorld(t *testing.T, settings engine.Settings, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), sigv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, events: events.NewFakeRecorder(20)}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, object := range objects { // copies: the builder writes to what it gets, which cases that run at once may share
		builder.WithObjects(object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of one
	}
	w.Client = builder.
		WithStatusSubresource(&sigv1alpha1.MCPServer{}, &appsv1.Deployment{}).
		WithTypeConverters(withoutNullStatus{clientapply.NewTypeConverter(scheme)}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(
				ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
			) error {
				if w.statusErr != nil {
					return w.statusErr
				}
				return c.SubResource(name).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	w.reconciler = &engine.Reconciler{Client: w.Client, Scheme: scheme, Recorder: w.events, MCPDialer: w.dial}
	w.reconciler.Configure(settings)
	w.reconciler.Speak(Dialect{})
	return w
}

// withoutNullStatus drops the null status that the fake client adds to what it takes to have one.
type withoutNullStatus struct{ managedfields.TypeConverter }

func (c withoutNullStatus) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok && u.Object["status"] == nil {
		u = u.DeepCopy()
		delete(u.Object, "status")
		obj = u
	}
	return c.TypeConverter.ObjectToTyped(obj, opts...)
}

func (w *world) dial(_ context.Context, url string, _ *http.Transport) (*mcpv1alpha1.MCPServerInfo, error) {
	w.dialled = append(w.dialled, url)
	return &mcpv1alpha1.MCPServerInfo{Name: "dialled", Capabilities: &mcpv1alpha1.MCPServerCapabilities{Tools: true}}, w.dialErr
}

// pass reconciles once.
func (w *world) pass() (*sigv1alpha1.MCPServer, ctrl.Result, error) {
	w.t.Helper()
	key := client.ObjectKeyFromObject(makeServer())
	result, err := w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
	server := &sigv1alpha1.MCPServer{}
	if err := w.Get(w.t.Context(), key, server); err != nil {
		w.t.Fatal(err)
	}
	return server, result, err
}

// rolledOut plays the Deployment controller.
func (w *world) rolledOut() {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(makeServer()), d); err != nil {
		w.t.Fatal(err)
	}
	d.Status = makeDeployment().Status
	d.Status.ObservedGeneration = d.Generation
	if err := w.Status().Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

// take returns the events since the last call.
func (w *world) take() []string {
	var list []string
	for len(w.events.Events) > 0 {
		list = append(list, <-w.events.Events)
	}
	return list
}

func TestAReplacedDialerIsAskedAtTheAddressOfTheService(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, engine.Settings{ClusterDomain: "corp.example"}, makeServer())
	if _, _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	w.rolledOut()
	server, _, err := w.pass()
	if err != nil {
		t.Fatal(err)
	}
	const want = "http://demo.team.svc.corp.example:8080/mcp"
	if diff := cmp.Diff([]string{want}, w.dialled); diff != "" {
		t.Errorf("dialled (-want +got)\n%s", diff)
	}
	if server.Status.Address == nil || server.Status.Address.URL != want {
		t.Errorf("address %v", server.Status.Address)
	}
	info := &sigv1alpha1.ServerInfo{Name: "dialled", Capabilities: &sigv1alpha1.Capabilities{Tools: true}}
	if diff := cmp.Diff(info, server.Status.ServerInfo); diff != "" {
		t.Errorf("serverInfo (-want +got)\n%s", diff)
	}
}

func TestEachFailedHandshakeIsCountedAndTriedAgain(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, engine.Settings{}, makeServer())
	w.dialErr = errors.New("connection refused")
	if _, _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	w.rolledOut()
	for want := int32(1); want <= 12; want++ {
		server, result, err := w.pass()
		if err != nil {
			t.Fatal(err)
		}
		ready := reconcile.ConditionOf(server.Status.Conditions, "Ready")
		if server.Status.HandshakeRetryCount != want || ready.Reason != "MCPEndpointUnavailable" ||
			ready.Message != "MCP endpoint is not serving a valid MCP protocol: connection refused" {
			t.Errorf("after %d failures: %d, %s: %s", want, server.Status.HandshakeRetryCount, ready.Reason, ready.Message)
		}
		if after := min(10*time.Second<<min(want-1, 10), 2*time.Minute); result.RequeueAfter != after {
			t.Errorf("after %d failures it is tried again in %s, want %s", want, result.RequeueAfter, after)
		}
	}
	w.dialErr = nil
	server, _, err := w.pass()
	if err != nil {
		t.Fatal(err)
	}
	if ready := reconcile.ConditionOf(server.Status.Conditions, "Ready"); ready.Status != metav1.ConditionTrue || server.Status.HandshakeRetryCount != 0 {
		t.Errorf("once it answers: %+v, %d failures", ready, server.Status.HandshakeRetryCount)
	}
}

func TestAReplacedDialerIsAskedAgainWhenTheCertificatesToTrustChange(t *testing.T) {
	t.Parallel()
	server := makeServer(func(s *sigv1alpha1.MCPServer) {
		s.Spec.Transport = &sigv1alpha1.Transport{TLS: &sigv1alpha1.TLS{Enabled: true, CABundleSecret: &sigv1alpha1.SecretReference{Name: "ca"}}}
	})
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "team"}}
	trust := func(name string) { ca.Data = map[string][]byte{"ca.crt": []byte(mcptest.NewAuthority(t, name).PEM)} }
	trust("a")
	w := makeWorld(t, engine.Settings{}, server, ca)
	pass := func(what string, dialled int, status metav1.ConditionStatus) {
		t.Helper()
		server, _, err := w.pass()
		if err != nil {
			t.Fatal(err)
		}
		if got := reconcile.ConditionOf(server.Status.Conditions, "Ready"); len(w.dialled) != dialled || got.Status != status {
			t.Errorf("%s: dialled %d times, want %d; Ready: %+v", what, len(w.dialled), dialled, got)
		}
	}
	rotate := func(name string) {
		t.Helper()
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(ca), ca); err != nil {
			t.Fatal(err)
		}
		trust(name)
		if err := w.Update(t.Context(), ca); err != nil {
			t.Fatal(err)
		}
	}
	pass("at first", 0, metav1.ConditionUnknown)
	w.rolledOut()
	pass("once it is rolled out", 1, metav1.ConditionTrue)
	pass("nothing changed", 1, metav1.ConditionTrue)
	rotate("b")
	w.dialErr = errors.New("x509: certificate signed by unknown authority")
	pass("it is signed by somebody else", 2, metav1.ConditionFalse)
	rotate("c")
	w.dialErr = nil
	pass("it is signed by the new one", 3, metav1.ConditionTrue)
	pass("nothing changed again", 3, metav1.ConditionTrue)
}

func TestEventsComeAfterTheStatusAndOnce(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, engine.Settings{}, makeServer())
	w.statusErr = errors.New("the API server is away")
	for range 3 {
		if _, _, err := w.pass(); err == nil {
			t.Fatal("a status that could not be written is no error")
		}
	}
	if told := w.take(); told != nil {
		t.Errorf("what no status says was told: %q", told)
	}
	w.statusErr = nil
	for range 3 {
		if _, _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"Normal Valid MCPServer team/demo configuration is valid; Accepted=True"}, w.take()); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

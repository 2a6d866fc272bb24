package controller_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller"
)

// world is a cluster in memory, what was written to it, and a reconciler that is a literal.
type world struct {
	client.Client

	t          *testing.T
	reconciler *controller.MCPServerReconciler
	writes     []string // "verb Kind name"
	dialled    []string // URLs
	dialErr    error
}

func makeWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), mcpv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, object := range objects { // copies: the builder writes to what it gets, which cases that run at once may share
		builder.WithObjects(object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of one
	}
	w.Client = builder.
		WithStatusSubresource(&mcpv1alpha1.MCPServer{}, &appsv1.Deployment{}).WithInterceptorFuncs(w.recorder()).
		WithTypeConverters(withoutNullStatus{clientapply.NewTypeConverter(scheme)}).Build()
	w.reconciler = &controller.MCPServerReconciler{Client: w.Client, Scheme: scheme, MCPDialer: w.dial}
	return w
}

// withoutNullStatus drops the null status that the fake client adds to all it takes to have one. It takes NetworkPolicies for
// such, and the schema refuses it.
type withoutNullStatus struct{ managedfields.TypeConverter }

func (c withoutNullStatus) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok && u.Object["status"] == nil {
		u = u.DeepCopy()
		delete(u.Object, "status")
		obj = u
	}
	return c.TypeConverter.ObjectToTyped(obj, opts...)
}

func (w *world) wrote(verb string, obj client.Object) {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", obj), ".")
	w.writes = append(w.writes, verb+" "+kind+" "+obj.GetName())
}

// recorder notes every write and lets it pass.
func (w *world) recorder() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			w.wrote("create", obj)
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			w.wrote("update", obj)
			return c.Update(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			w.wrote("delete", obj)
			return c.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			verb := string(patch.Type())
			if patch.Type() == types.ApplyPatchType {
				verb = "apply"
			}
			w.wrote(verb, obj)
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			w.wrote(sub, obj)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			w.wrote(sub, obj)
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	}
}

func (w *world) dial(ctx context.Context, url string, transport *http.Transport) (*mcpv1alpha1.MCPServerInfo, error) {
	w.dialled = append(w.dialled, url)
	if _, bounded := ctx.Deadline(); !bounded || transport == nil {
		w.t.Errorf("the dialer got a deadline: %t, and the transport %v", bounded, transport)
	}
	if transport != nil && transport.TLSClientConfig != nil && transport.TLSClientConfig.MinVersion != tls.VersionTLS13 {
		w.t.Error("the TLS profile was not applied")
	}
	if w.dialErr != nil {
		return nil, w.dialErr
	}
	return serverInfo(), nil
}

func serverInfo() *mcpv1alpha1.MCPServerInfo {
	return &mcpv1alpha1.MCPServerInfo{
		Name: "everything", Version: "1.2.3", ProtocolVersion: "2025-11-25", Instructions: "Ask.",
		Capabilities: &mcpv1alpha1.MCPServerCapabilities{Tools: true},
	}
}

// pass reconciles the server once, and returns what was written and the server as it is then.
func (w *world) pass() (*mcpv1alpha1.MCPServer, ctrl.Result, []string) {
	w.t.Helper()
	w.writes = nil
	server := makeServer()
	result, err := w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(server)})
	if err != nil {
		w.t.Fatalf("reconcile: %v", err)
	}
	writes := slices.Clone(w.writes)
	w.get(server)
	return server, result, writes
}

func (w *world) get(obj client.Object) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.t.Fatalf("get %T: %v", obj, err)
	}
}

// rollOut plays the Deployment controller and the kubelet.
func (w *world) rollOut(changes ...func(*appsv1.DeploymentStatus)) {
	w.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: makeServer().ObjectMeta}
	w.get(d)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}
	for _, change := range changes {
		change(&d.Status)
	}
	if err := w.Status().Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

func makeServer(changes ...func(*mcpv1alpha1.MCPServer)) *mcpv1alpha1.MCPServer {
	server := &mcpv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team", UID: "uid-demo", Generation: 1},
		Spec:       mcpv1alpha1.MCPServerSpec{Image: "registry.example.com/server:1"},
	}
	for _, change := range changes {
		change(server)
	}
	return server
}

// is fails the test unless a condition has this status, reason and fragment of a message, at the server's generation.
func is(t *testing.T, server *mcpv1alpha1.MCPServer, conditionType string, status metav1.ConditionStatus, reason, fragment string) {
	t.Helper()
	c := apimeta.FindStatusCondition(server.Status.Conditions, conditionType)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, fragment) || c.ObservedGeneration != server.Generation {
		t.Errorf("%s is %+v; want %s/%s with %q at generation %d", conditionType, c, status, reason, fragment, server.Generation)
	}
}

func wrote(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got)\n%s", diff)
	}
}

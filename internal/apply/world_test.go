package apply

import (
	"context"
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// world is a cluster in memory, and what an Applier wrote to it. Whether a second apply of the same fields is a no-op of the
// API server it cannot tell.
type world struct {
	client.Client

	t            *testing.T
	applier      *Applier
	writes       []write
	contentReads int                 // of ConfigMaps and Secrets
	managerReads int                 // of cached objects, and of metadata
	refuse       func(write) error   // what the API server says of a write; nil lets all pass
	mutate       func(client.Object) // what a policy in the API server makes of what was written; nil leaves it
}

// write is one request that changes something.
type write struct {
	verb, data, owner string
	uid               types.UID // of the precondition of a delete
}

func makeWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, mcpv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, object := range objects { // copies: the builder writes to what it gets, which cases that run at once may share
		builder.WithObjects(object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of one
	}
	w.Client = builder.WithReturnManagedFields().Build()
	watching := w.Client.(client.WithWatch) //nolint:forcetypeassert // the fake client is one
	w.applier = New(interceptor.NewClient(watching, w.recorder()), &reader{w}, FieldManager)
	return w
}

// reader counts what is read past the cache.
type reader struct{ *world }

func (r *reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch obj.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
		r.contentReads++
	default:
		r.managerReads++
	}
	return r.Client.Get(ctx, key, obj, opts...)
}

// verbs is what the Applier uses the kinds of patches for.
var verbs = map[types.PatchType]string{
	types.ApplyPatchType: "apply", types.MergePatchType: "adopt", types.StrategicMergePatchType: "mend", types.JSONPatchType: "take over",
}

func (w *world) note(wr write) error {
	w.writes = append(w.writes, wr)
	if w.refuse != nil {
		return w.refuse(wr)
	}
	return nil
}

func (w *world) recorder() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			switch obj.(type) {
			case *corev1.ConfigMap, *corev1.Secret:
				w.t.Errorf("the content of a %T is read through the cache, which would then hold all content", obj)
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			options := (&client.PatchOptions{}).ApplyOptions(opts)
			verb := verbs[patch.Type()]
			if options.Force != nil && *options.Force {
				verb += ", forced"
			}
			if err := w.note(write{verb: verb, data: string(data), owner: options.FieldManager}); err != nil {
				return err
			}
			return w.settle(ctx, c.Patch(ctx, obj, patch, opts...), obj)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			data, err := json.Marshal(obj)
			if err != nil {
				return err
			}
			options := (&client.CreateOptions{}).ApplyOptions(opts)
			if err := w.note(write{verb: "create", data: string(data), owner: options.FieldManager}); err != nil {
				return err
			}
			return w.settle(ctx, c.Create(ctx, obj, opts...), obj)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			wr := write{verb: "delete"}
			if options.Preconditions != nil && options.Preconditions.UID != nil {
				wr.uid = *options.Preconditions.UID
			}
			if err := w.note(wr); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
	}
}

// settle makes what was written into what a policy wants.
func (w *world) settle(ctx context.Context, err error, obj client.Object) error {
	if err != nil || w.mutate == nil {
		return err
	}
	w.mutate(obj)
	return w.Update(ctx, obj, client.FieldOwner("policy"))
}

func (w *world) verbs() []string {
	var list []string
	for _, wr := range w.writes {
		list = append(list, wr.verb)
	}
	return list
}

// edit changes a live ConfigMap as somebody else would.
func (w *world) edit(obj *corev1.ConfigMap, change func(*corev1.ConfigMap)) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.t.Fatal(err)
	}
	change(obj)
	if err := w.Update(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// controlledByDemo fails the test unless a live object has one owner, its controller, which is makeOwner's.
func (w *world) controlledByDemo(obj client.Object) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.t.Fatal(err)
	}
	if controller := metav1.GetControllerOf(obj); controller == nil || controller.UID != makeOwner().UID || len(obj.GetOwnerReferences()) != 1 {
		w.t.Errorf("the owners are %+v, want the controller %s alone", obj.GetOwnerReferences(), makeOwner().UID)
	}
}

func makeOwner() *mcpv1alpha1.MCPServer {
	return &mcpv1alpha1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team", UID: "uid-demo"}}
}

func makeDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "mcp-server", Image: "x:1", Ports: []corev1.ContainerPort{{Name: "mcp", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			}},
		}}},
	}
}

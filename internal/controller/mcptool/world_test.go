package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reach"
)

var demo = types.NamespacedName{Namespace: "team", Name: "weather"}

// makeTool returns a valid MCPTool of type http at generation 2, changed as asked.
func makeTool(changes ...func(*mcpv1alpha1.MCPTool)) *mcpv1alpha1.MCPTool {
	tool := &mcpv1alpha1.MCPTool{
		ObjectMeta: metav1.ObjectMeta{Name: demo.Name, Namespace: demo.Namespace, UID: "uid-weather", Generation: 2},
		Spec:       mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolHTTP, Endpoint: "https://api.example.com/v1", Description: "Tells the weather."},
	}
	for _, change := range changes {
		change(tool)
	}
	return tool
}

func inline(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// document is an OpenAPI document with one operation. Its members are sorted, as an API server writes them.
const document = `{"openapi": "3.1.0", "paths": {"/pets": {"get": {"operationId": "listPets"}}}, "servers": [{"url": "https://pets.example.com/v1"}]}`

// openAPI makes a tool one of type openapi, of a document that is inline.
func openAPI(text string) func(*mcpv1alpha1.MCPTool) {
	return func(tool *mcpv1alpha1.MCPTool) {
		tool.Spec = mcpv1alpha1.MCPToolSpec{
			Type: mcpv1alpha1.ToolOpenAPI, OpenAPI: &mcpv1alpha1.OpenAPITool{Document: mcpv1alpha1.OpenAPIDocument{Inline: inline(text)}},
		}
	}
}

// fetching makes it one whose document is fetched.
func fetching(tool *mcpv1alpha1.MCPTool) {
	openAPI("")(tool)
	tool.Spec.OpenAPI.Document = mcpv1alpha1.OpenAPIDocument{URL: "https://docs.example.com/pets.json"}
}

// served gives a tool the status of one that was accepted and applied.
func served(tool *mcpv1alpha1.MCPTool) {
	tool.Status.Definitions = &mcpv1alpha1.ToolDefinitions{
		ObjectName: mcpv1alpha1.ObjectName{Name: "weather-0123456789"}, Key: "tools.json", Endpoint: "https://pets.example.com/v1",
	}
	for _, kind := range []string{"Accepted", "Applied"} {
		tool.Status.Conditions = append(tool.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: 2})
	}
}

// bearer gives a tool a credential.
func bearer(tool *mcpv1alpha1.MCPTool) {
	tool.Spec.Auth = &mcpv1alpha1.ToolAuth{
		Type: mcpv1alpha1.AuthBearer, SecretRef: mcpv1alpha1.ToolSecret{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}},
	}
}

func keyOf(name, key string) *mcpv1alpha1.KeyRef {
	return &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: name}, Key: mcpv1alpha1.DataKey(key)}
}

func makeConfigMap(name, key, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: demo.Namespace, UID: types.UID("uid-" + name)}, Data: map[string]string{key: content},
	}
}

// makeSecret returns a Secret; hosts is its annotation, if there is one.
func makeSecret(name string, hosts ...string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: demo.Namespace, UID: types.UID("uid-" + name)}}
	for _, list := range hosts {
		secret.Annotations = map[string]string{mcpv1alpha1.AnnotationAllowedHosts: list}
	}
	return secret
}

// makeAgent returns an MCPAgent that is granted the tool, and tells that of it.
func makeAgent(name string, told ...mcpv1alpha1.EffectiveTool) *mcpv1alpha1.MCPAgent {
	for i := range told {
		if told[i].Source == "" {
			told[i].Source = "tool/" + demo.Name
		}
		if told[i].SourceGeneration == 0 {
			told[i].SourceGeneration = 2
		}
	}
	return &mcpv1alpha1.MCPAgent{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: demo.Namespace},
		Spec:       mcpv1alpha1.MCPAgentSpec{Tools: []mcpv1alpha1.ObjectName{{Name: demo.Name}}},
		Status:     mcpv1alpha1.MCPAgentStatus{EffectiveTools: told},
	}
}

// fakeChecker knows what it is told.
type fakeChecker struct {
	verdict  reach.Verdict
	observed []reach.Endpoint
	forgot   int
}

func (c *fakeChecker) Observe(e reach.Endpoint) reach.Verdict {
	c.observed = append(c.observed, e)
	return c.verdict
}

func (c *fakeChecker) Forget(types.NamespacedName) { c.forgot++ }

// fakeFetcher knows what it is told.
type fakeFetcher struct {
	known    reach.Fetched[*definitions]
	observed []reach.Document
	forgot   int
}

func (f *fakeFetcher) Observe(d reach.Document) reach.Fetched[*definitions] {
	f.observed = append(f.observed, d)
	return f.known
}

func (f *fakeFetcher) Forget(types.NamespacedName) { f.forgot++ }

// promptMaker does jobs at once.
type promptMaker struct {
	make   func(ctx context.Context, job reach.Job) (reach.Made[*definitions], bool)
	asked  []reach.Job
	known  map[reach.Job]reach.Made[*definitions]
	forgot int
}

func (m *promptMaker) Observe(job reach.Job) reach.Made[*definitions] {
	if known, ok := m.known[job]; ok {
		return known
	}
	m.asked = append(m.asked, job)
	made, _ := m.make(context.Background(), job)
	m.known = map[reach.Job]reach.Made[*definitions]{job: made}
	return made
}

func (m *promptMaker) Forget(types.NamespacedName) {
	m.forgot++
	m.known = nil
}

// world is a reconciler, what it sees, and what it asked of the API server.
type world struct {
	*Reconciler

	t       *testing.T
	checker *fakeChecker
	fetcher *fakeFetcher
	maker   *promptMaker
	events  *events.FakeRecorder

	undeletable error // of whoever deletes

	mu            sync.Mutex
	writes, reads []string // reads are those past the cache
}

func makeWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, mcpv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, object := range objects { // copies: the builder writes to what it gets, which cases that run at once may share
		builder.WithObjects(object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of one
	}
	builder = builder.WithStatusSubresource(&mcpv1alpha1.MCPTool{})
	for _, i := range indexes() {
		builder = builder.WithIndex(i.object, i.field, i.extract)
	}
	w := &world{
		t: t, events: events.NewFakeRecorder(100),
		checker: &fakeChecker{verdict: reach.Verdict{Known: true, Reason: "Reachable", Message: "it accepts connections"}}, fetcher: &fakeFetcher{},
	}
	plain := builder.Build()
	c := interceptor.NewClient(plain, w.noting())
	past := interceptor.NewClient(plain, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			w.note(&w.reads, fmt.Sprintf("%T %s", obj, key.Name))
			return c.Get(ctx, key, obj, opts...)
		},
	})
	w.Reconciler = New(Options{Client: c, APIReader: past, Recorder: w.events})
	w.maker = &promptMaker{make: w.makeDefinitions}
	w.Reconciler.checker, w.Reconciler.fetcher, w.Reconciler.maker = w.checker, w.fetcher, w.maker
	return w
}

func (w *world) note(list *[]string, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, line)
}

func (w *world) noting() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			w.note(&w.writes, "create "+obj.GetName())
			obj.SetUID(types.UID("uid-" + obj.GetName())) // the fake client sets none
			return c.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			w.note(&w.writes, "delete "+obj.GetName())
			if w.undeletable != nil {
				return w.undeletable
			}
			return c.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.note(&w.writes, "patch "+obj.GetName())
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			w.note(&w.writes, sub+" "+obj.GetName())
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}
}

// take returns what was written, and read past the cache, since the last call.
func (w *world) take() (writes, reads []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	writes, reads = w.writes, w.reads
	w.writes, w.reads = nil, nil
	return writes, reads
}

// pass reconciles the tool once.
func (w *world) pass() ctrl.Result {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: demo})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// tool returns the tool as it is.
func (w *world) tool() *mcpv1alpha1.MCPTool {
	w.t.Helper()
	tool := &mcpv1alpha1.MCPTool{}
	if err := w.Get(w.t.Context(), demo, tool); err != nil {
		w.t.Fatal(err)
	}
	return tool
}

// conditions shows the conditions of a tool in one line each.
func conditions(tool *mcpv1alpha1.MCPTool) map[string]string {
	shown := map[string]string{}
	for _, c := range tool.Status.Conditions {
		shown[c.Type] = string(c.Status) + "/" + c.Reason
	}
	return shown
}

func (w *world) update(obj client.Object) {
	w.t.Helper()
	if err := w.Update(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

func compact(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcptool"
)

// startTools starts an operator that runs MCPTools alone. Whatever it dials, it gets to the server.
func startTools(t *testing.T, server *httptest.Server) *fixture {
	t.Helper()
	c, err := client.New(apiConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ctx: t.Context(), client: c, counter: &counter{}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tools-"}}
	f.create(ns)
	f.namespace = ns.Name
	config := rest.CopyConfig(apiConfig)
	config.Wrap(f.counter.wrap)
	cacheOptions, err := controller.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: cacheOptions,
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := mcptool.New(mcptool.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("mcp-operator"), OperatorNamespace: operatorNamespace,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err := reconciler.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
		if err := c.DeleteAllOf(context.WithoutCancel(f.ctx), &mcpv1alpha1.MCPTool{}, client.InNamespace(f.namespace)); err != nil {
			t.Errorf("delete the tools: %v", err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("caches were not filled")
	}
	return f
}

// tool waits for a condition of a tool.
func (f *fixture) tool(name, conditionType string, status metav1.ConditionStatus, reason string) *mcpv1alpha1.MCPTool {
	f.t.Helper()
	tool := &mcpv1alpha1.MCPTool{}
	f.eventually(fmt.Sprintf("%s: %s=%s/%s", name, conditionType, status, reason), func() error {
		if err := f.get(tool, name); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(tool.Status.Conditions, conditionType)
		if c == nil {
			return errors.New("there is no such condition")
		}
		if c.Status != status || c.Reason != reason || c.ObservedGeneration != tool.Generation {
			return fmt.Errorf("is %s/%s of generation %d: %s", c.Status, c.Reason, c.ObservedGeneration, c.Message)
		}
		return nil
	})
	return tool
}

func (f *fixture) makeTool(name string, spec mcpv1alpha1.MCPToolSpec) *mcpv1alpha1.MCPTool {
	return &mcpv1alpha1.MCPTool{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, Spec: spec}
}

func (f *fixture) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, Data: data}
}

func TestAnHTTPToolFromItsFirstMistakeToItsLast(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	f := startTools(t, server)
	spec := mcpv1alpha1.MCPToolSpec{
		Type: mcpv1alpha1.ToolHTTP, Endpoint: "http://api.weather.svc:8080/v1", Description: "Tells the weather.",
		Auth: &mcpv1alpha1.ToolAuth{
			Type: mcpv1alpha1.AuthBearer, SecretRef: mcpv1alpha1.ToolSecret{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}},
		},
		Schema: &mcpv1alpha1.ToolSchema{ConfigMapRef: &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: "schemas"}, Key: "weather"}},
	}
	f.create(f.makeTool("weather", spec))
	f.tool("weather", "Accepted", metav1.ConditionFalse, "Invalid")

	f.create(f.configMap("schemas", map[string]string{"weather": `{"input": {"properties": {"city": {"type": "string"}}}}`}))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: f.namespace}, StringData: map[string]string{"token": "hunter2"}}
	f.create(secret)
	tool := f.tool("weather", "Ready", metav1.ConditionTrue, "Available")
	if tool.Status.Phase != mcpv1alpha1.PhaseReady || len(tool.Status.Tools) != 1 || tool.Status.Tools[0].Name != "weather" {
		t.Errorf("status: %+v", tool.Status)
	}
	before := tool.Status.Tools[0].Digest
	if children, _ := split(f.quiet().writes); len(children) != 0 {
		t.Errorf("writes of children: %v", children)
	}

	f.edit(secret, "keys", func() { secret.Annotations = map[string]string{mcpv1alpha1.AnnotationAllowedHosts: "api.example.com"} })
	f.tool("weather", "Accepted", metav1.ConditionFalse, "SecretNotAllowed")
	f.edit(secret, "keys", func() { secret.Annotations[mcpv1alpha1.AnnotationAllowedHosts] = "api.example.com, *.svc:8080" })
	f.tool("weather", "Ready", metav1.ConditionTrue, "Available")

	f.edit(tool, "weather", func() { tool.Spec.Description = "Tells the weather of tomorrow." })
	if after := f.tool("weather", "Ready", metav1.ConditionTrue, "Available").Status.Tools[0].Digest; after == before {
		t.Error("another description has the same digest")
	}
	f.quiet()
	f.edit(tool, "weather", func() { tool.Labels = map[string]string{"team": "a"} })
	f.wantNothing("a label on the tool")
	for _, line := range f.counter.exposed {
		t.Errorf("a list with the content of Secrets or ConfigMaps: %s", line)
	}
}

// petsDocument is an OpenAPI document with operations of these ids.
func petsDocument(ids ...string) string {
	var paths []string
	for _, id := range ids {
		paths = append(paths, fmt.Sprintf(`"/%s": {"get": {"operationId": %q}}`, id, id))
	}
	return `{"openapi": "3.1.0", "servers": [{"url": "http://pets.example.com/v1"}], "paths": {` + strings.Join(paths, ", ") + `}}`
}

func namesOf(tool *mcpv1alpha1.MCPTool) []string {
	var names []string
	for _, status := range tool.Status.Tools {
		names = append(names, status.Name)
	}
	return names
}

// toolsBecome waits until a tool becomes tools of these names.
func (f *fixture) toolsBecome(name string, want ...string) *mcpv1alpha1.MCPTool {
	f.t.Helper()
	tool := &mcpv1alpha1.MCPTool{}
	f.eventually(fmt.Sprintf("%s becomes %v", name, want), func() error {
		if err := f.get(tool, name); err != nil {
			return err
		}
		if got := namesOf(tool); !slices.Equal(got, want) {
			return fmt.Errorf("it becomes %v: %+v", got, tool.Status.Conditions)
		}
		return nil
	})
	return tool
}

func TestAnOpenAPIToolFollowsItsConfigMap(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	f := startTools(t, server)
	documents := f.configMap("documents", map[string]string{"pets": petsDocument("list")})
	f.create(f.makeTool("pets", mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolOpenAPI, OpenAPI: &mcpv1alpha1.OpenAPITool{
		Document: mcpv1alpha1.OpenAPIDocument{ConfigMapRef: &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: "documents"}, Key: "pets"}},
	}}))
	f.tool("pets", "Accepted", metav1.ConditionFalse, "Invalid")
	f.quiet()
	f.create(documents)
	tool := f.tool("pets", "Ready", metav1.ConditionTrue, "Available")
	f.wantWrites("a document that is there", map[string]int{"configmaps": 1}, 3)
	first := &corev1.ConfigMap{}
	if err := f.get(first, tool.Status.Definitions.Name); err != nil {
		t.Fatal(err)
	}
	if first.Immutable == nil || !*first.Immutable || metav1.GetControllerOf(first).UID != tool.UID || first.Data["tools.json"] == "" {
		t.Errorf("definitions: %+v", first)
	}

	f.edit(documents, "documents", func() { documents.Data["pets"] = petsDocument("list", "read") })
	tool = f.toolsBecome("pets", "list", "read")
	f.wantWrites("another document", map[string]int{"configmaps": 1}, 1)
	if err := f.get(&corev1.ConfigMap{}, first.Name); err != nil {
		t.Errorf("the definitions of before are gone at once: %v", err)
	}

	second := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: tool.Status.Definitions.Name, Namespace: f.namespace}}
	if err := f.client.Delete(f.ctx, second); err != nil {
		t.Fatal(err)
	}
	f.eventually("definitions that somebody deleted are made again", func() error { return f.get(&corev1.ConfigMap{}, second.Name) })
	f.quiet()

	f.edit(documents, "documents", func() { documents.Data["pets"] = `{"swagger": "2.0"}` })
	f.tool("pets", "Accepted", metav1.ConditionFalse, "Invalid")
	f.edit(documents, "documents", func() { documents.Data["pets"] = petsDocument("list") })
	tool = f.toolsBecome("pets", "list")
	if tool.Status.Definitions.Name != first.Name {
		t.Errorf("the document of before has the definitions %s, before it had %s", tool.Status.Definitions.Name, first.Name)
	}
}

func TestAnOpenAPIToolFollowsItsURL(t *testing.T) {
	var mu sync.Mutex
	document, requests := petsDocument("list"), 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests++
		_, _ = io.WriteString(w, document)
	}))
	t.Cleanup(server.Close)
	f := startTools(t, server)
	f.create(f.makeTool("pets", mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolOpenAPI, OpenAPI: &mcpv1alpha1.OpenAPITool{
		Document: mcpv1alpha1.OpenAPIDocument{URL: "http://docs.example.com/pets.json"},
	}}))
	tool := f.tool("pets", "Ready", metav1.ConditionTrue, "Available")
	f.quiet()
	f.edit(tool, "pets", func() { tool.Spec.TimeoutSeconds = 5 })
	f.tool("pets", "Ready", metav1.ConditionTrue, "Available")
	f.wantWrites("an edit that the document has nothing to do with", map[string]int{}, 1)
	mu.Lock()
	if requests != 1 {
		t.Errorf("the document was fetched %d times", requests)
	}
	mu.Unlock()

	f.edit(tool, "pets", func() { tool.Spec.OpenAPI.Prefix = "pets_" })
	f.toolsBecome("pets", "pets_list")
	f.wantWrites("another prefix", map[string]int{"configmaps": 1}, 2)
}

func TestAToolIsVerifiedByTheAgentsThatAreGrantedIt(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	f := startTools(t, server)
	f.create(f.makeTool("weather", mcpv1alpha1.MCPToolSpec{
		Type: mcpv1alpha1.ToolHTTP, Endpoint: "http://api.example.com/v1", HTTP: &mcpv1alpha1.HTTPTool{Path: "/weather"},
		Schema: &mcpv1alpha1.ToolSchema{Inline: &mcpv1alpha1.InlineSchema{Input: &apiextensionsv1.JSON{Raw: []byte(`{"type": "object"}`)}}},
	}))
	f.tool("weather", "Verified", metav1.ConditionUnknown, "NoAgent")
	agent := &mcpv1alpha1.MCPAgent{
		ObjectMeta: metav1.ObjectMeta{Name: "assistant", Namespace: f.namespace},
		Spec:       mcpv1alpha1.MCPAgentSpec{Tools: []mcpv1alpha1.ObjectName{{Name: "weather"}}, Auth: mcpv1alpha1.AgentAuth{Type: "None"}},
	}
	f.create(agent)
	if tool := f.tool("weather", "Verified", metav1.ConditionUnknown, "Pending"); tool.Status.Agents != 1 {
		t.Errorf("%d agents", tool.Status.Agents)
	}
	tell := func(verdict mcpv1alpha1.ToolVerdict, reason string) {
		agent.Status.EffectiveTools = []mcpv1alpha1.EffectiveTool{{
			Name: "weather", Source: "tool/weather", SourceGeneration: 1, Verdict: verdict, Reason: reason,
		}}
		if err := f.client.Status().Update(f.ctx, agent); err != nil {
			t.Fatal(err)
		}
	}
	tell(mcpv1alpha1.VerdictUnavailable, "it answers 401")
	f.tool("weather", "Ready", metav1.ConditionFalse, "CheckFailed")
	tell(mcpv1alpha1.VerdictServed, "")
	f.tool("weather", "Verified", metav1.ConditionTrue, "Verified")
	if err := f.client.Delete(f.ctx, agent); err != nil {
		t.Fatal(err)
	}
	if tool := f.tool("weather", "Verified", metav1.ConditionUnknown, "NoAgent"); tool.Status.Agents != 0 {
		t.Errorf("%d agents", tool.Status.Agents)
	}
}

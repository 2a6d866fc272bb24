package mcptool

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reach"
)

func TestASecondPassWritesNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*mcpv1alpha1.MCPTool)
		writes []string
	}{
		"http":    {change: func(*mcpv1alpha1.MCPTool) {}, writes: []string{"status weather"}},
		"openapi": {change: openAPI(document), writes: []string{"create weather-a7135c904c", "status weather"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, makeTool(tt.change), makeAgent("a"))
			w.pass()
			if writes, _ := w.take(); !slices.Equal(writes, tt.writes) {
				t.Errorf("the first pass writes %v, want %v", writes, tt.writes)
			}
			w.pass()
			if writes, reads := w.take(); writes != nil || reads != nil {
				t.Errorf("the second pass writes %v and reads %v", writes, reads)
			}
		})
	}
}

func TestTheStatusTellsTheTools(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	w.pass()
	status := w.tool().Status
	want := mcpv1alpha1.MCPToolStatus{
		ObservedGeneration: 2, Phase: "Ready", ToolCount: new(int32(1)), DocumentDigest: digestOf([]byte(compact(json.RawMessage(document)))),
		Tools: []mcpv1alpha1.ToolStatus{{Name: "listPets", Digest: status.Tools[0].Digest}},
		Definitions: &mcpv1alpha1.ToolDefinitions{
			ObjectName: mcpv1alpha1.ObjectName{Name: "weather-a7135c904c"}, Key: "tools.json", Endpoint: "https://pets.example.com/v1",
			SHA256: "a7135c904c" + status.Definitions.SHA256[10:],
		},
	}
	status.Conditions = nil
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status (-want +got)\n%s", diff)
	}
	if !strings.HasPrefix(want.Tools[0].Digest, "sha256:") {
		t.Errorf("digest %q", want.Tools[0].Digest)
	}
}

func TestAPausedToolIsObservedAlone(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document), func(tool *mcpv1alpha1.MCPTool) {
		tool.Annotations = map[string]string{mcpv1alpha1.AnnotationPaused: "true"}
		tool.Spec.Endpoint = "https://api.example.com"
	}))
	w.pass()
	want := map[string]string{"Reachable": "True/Reachable", "Verified": "Unknown/NoAgent", "Ready": "Unknown/Initializing", "Paused": "True/Paused"}
	if diff := cmp.Diff(want, conditions(w.tool())); diff != "" {
		t.Errorf("conditions (-want +got)\n%s", diff)
	}
	if writes, _ := w.take(); !slices.Equal(writes, []string{"status weather"}) {
		t.Errorf("writes: %v", writes)
	}
	tool := w.tool()
	tool.Annotations = nil
	w.update(tool)
	w.pass()
	if got := conditions(w.tool()); got["Ready"] != "True/Available" || got["Paused"] != "" {
		t.Errorf("after the pause: %v", got)
	}
}

func TestAPauseThatIsNotUnderstoodIsToldAndPausesNothing(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document), func(tool *mcpv1alpha1.MCPTool) {
		tool.Annotations = map[string]string{mcpv1alpha1.AnnotationPaused: "yes"}
		tool.Spec.Endpoint = "https://api.example.com"
	}))
	w.pass()
	if got := conditions(w.tool()); got["Ready"] != "True/Available" || got["Paused"] != "False/Invalid" {
		t.Errorf("conditions: %v", got)
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: demo.Namespace, DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"example.com/wait"},
	}}
	tests := map[string][]client.Object{
		"the tool":      nil,
		"the namespace": {makeTool(), going},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, objects...)
			w.memory.put(demo, "a", remembered{})
			w.pass()
			if w.checker.forgot == 0 || w.fetcher.forgot == 0 || len(w.memory.known) != 0 {
				t.Errorf("kept: %v", w.memory.known)
			}
			if writes, _ := w.take(); writes != nil {
				t.Errorf("writes: %v", writes)
			}
		})
	}
}

func TestConditionsOfSomebodyElseAreRemoved(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(func(tool *mcpv1alpha1.MCPTool) {
		tool.Status.Conditions = []metav1.Condition{{Type: "Foreign", Status: "True", Reason: "A"}, {Type: "Applied", Status: "True", Reason: "A"}}
	}))
	w.pass()
	want := map[string]string{"Accepted": "True/Valid", "Reachable": "True/Reachable", "Verified": "Unknown/NoAgent", "Ready": "True/Available"}
	if diff := cmp.Diff(want, conditions(w.tool())); diff != "" {
		t.Errorf("conditions (-want +got)\n%s", diff)
	}
}

func TestTheDocumentIsFetchedForWhatItBecomes(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(fetching))
	w.pass()
	tool := w.tool()
	tool.Spec.TimeoutSeconds = 5
	w.update(tool)
	w.pass()
	tool = w.tool()
	tool.Spec.OpenAPI.Prefix = "pets_"
	w.update(tool)
	w.pass()
	asked := w.fetcher.observed
	if len(asked) != 3 || asked[0].Purpose != asked[1].Purpose || asked[1].Purpose == asked[2].Purpose {
		t.Fatalf("asked for %+v", asked)
	}
	found, err := w.useDocument(t.Context(), asked[2], []byte(document))
	if err != nil || found.tools[0].Name != "pets_listPets" {
		t.Errorf("it becomes %+v, %v", found, err)
	}
	w.fetcher.known = reach.Fetched[*definitions]{Known: true, Found: true, Value: found}
	w.pass()
	if got := w.tool().Status.Tools; len(got) != 1 || got[0].Name != "pets_listPets" {
		t.Errorf("tools: %v", got)
	}
	w.fetcher.forgot = 0
	tool = w.tool()
	tool.Spec = makeTool().Spec
	w.update(tool)
	w.pass()
	if w.fetcher.forgot == 0 {
		t.Error("the document of a tool of another type is still fetched")
	}
}

func TestIndexesNameWhatAToolRefersTo(t *testing.T) {
	t.Parallel()
	tool := makeTool(bearer, func(tool *mcpv1alpha1.MCPTool) {
		tool.Spec.Schema = &mcpv1alpha1.ToolSchema{ConfigMapRef: keyOf("b", "k")}
		tool.Spec.OpenAPI = &mcpv1alpha1.OpenAPITool{Document: mcpv1alpha1.OpenAPIDocument{ConfigMapRef: keyOf("a", "k")}}
		tool.Spec.CABundle = &mcpv1alpha1.CABundleSource{ConfigMapRef: keyOf("b", "k"), SecretRef: keyOf("authority", "k")}
	})
	for kind, want := range map[string][]string{"ConfigMap": {"a", "b"}, "Secret": {"authority", "keys"}} {
		if got := namesOf(tool, kind); !slices.Equal(got, want) {
			t.Errorf("%ss: %v, want %v", kind, got, want)
		}
	}
	w := makeWorld(t, tool)
	for index, name := range map[string]string{indexConfigMaps: "a", indexSecrets: "keys"} {
		tools := &mcpv1alpha1.MCPToolList{}
		err := w.List(t.Context(), tools, client.InNamespace(demo.Namespace), client.MatchingFields{index: name})
		if err != nil || len(tools.Items) != 1 {
			t.Errorf("by %s %q: %d tools, %v", index, name, len(tools.Items), err)
		}
	}
}

func TestOnlyWhatAnAgentTellsOrIsGrantedWakesItsTools(t *testing.T) {
	t.Parallel()
	told := mcpv1alpha1.EffectiveTool{Name: "weather", Verdict: "Served"}
	tests := map[string]struct {
		change func(*mcpv1alpha1.MCPAgent)
		want   bool
	}{
		"nothing":                 {func(*mcpv1alpha1.MCPAgent) {}, false},
		"a label":                 {func(a *mcpv1alpha1.MCPAgent) { a.Labels = map[string]string{"a": "b"} }, false},
		"its replicas":            {func(a *mcpv1alpha1.MCPAgent) { a.Status.ReadyReplicas = 2 }, false},
		"a verdict":               {func(a *mcpv1alpha1.MCPAgent) { a.Status.EffectiveTools[0].Verdict = "Unavailable" }, true},
		"a grant":                 {func(a *mcpv1alpha1.MCPAgent) { a.Spec.Tools = nil }, true},
		"what it has no room for": {func(a *mcpv1alpha1.MCPAgent) { a.Status.ToolCount = new(int32(600)) }, true},
		"that it has judged": {func(a *mcpv1alpha1.MCPAgent) {
			a.Status.Conditions = []metav1.Condition{{Type: "Routed", Status: metav1.ConditionTrue}}
		}, true},
		"it goes": {func(a *mcpv1alpha1.MCPAgent) { a.DeletionTimestamp = new(metav1.Now()) }, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was, is := makeAgent("a", told), makeAgent("a", told)
			is.Status.EffectiveTools = slices.Clone(is.Status.EffectiveTools)
			tt.change(is)
			if got := agentTellsSomething().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != tt.want {
				t.Errorf("wakes: %t", got)
			}
		})
	}
	if got := toolsOfAgent(t.Context(), makeAgent("a")); len(got) != 1 || got[0].NamespacedName != demo {
		t.Errorf("wakes %v", got)
	}
}

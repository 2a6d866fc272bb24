package mcptool

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/openapi"
	"github.com/mcp-operator/mcp-operator/internal/reach"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// makeTools returns tools whose descriptions have so many bytes each, of few words or of random ones.
func makeTools(n, size int, random bool) openapi.Result {
	result := openapi.Result{BaseURL: "https://pets.example.com"}
	source := rand.NewChaCha8([32]byte{1})
	for i := range n {
		text := strings.Repeat("x", size)
		if random {
			raw := make([]byte, size/2)
			_, _ = source.Read(raw)
			text = fmt.Sprintf("%x", raw)
		}
		result.Names = append(result.Names, fmt.Sprintf("tool%d", i))
		result.Tools = append(result.Tools, table.HTTPTool{
			Method: "GET", Definition: []byte(fmt.Sprintf(`{"name":"tool%d","description":%q,"inputSchema":{}}`, i, text)),
		})
	}
	return result
}

func TestDefinitionsAreKeptAsTheyAreOrCompressed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		result openapi.Result
		key    string
		want   string // the end of the error
	}{
		"few":                {result: makeTools(1, 100, false), key: "tools.json"},
		"many are packed":    {result: makeTools(40, 2000, false), key: "tools.json.gz"},
		"too many, unpacked": {result: makeTools(512, 9000, false), want: " bytes, the limit is 4194304: choose fewer by include and exclude"},
		"too many, packed": {
			result: makeTools(400, 9000, true), want: " bytes, compressed, and the limit is 921600: choose fewer by include and exclude",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, stored, err := newDefinitions([]byte("document"), tt.result)
			if tt.want != "" {
				if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
					t.Fatalf("error: %v\nwant at its end:  %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			configMap := d.configMap(makeTool(), stored)
			content := []byte(configMap.Data[tt.key])
			if packed := configMap.BinaryData[tt.key]; packed != nil {
				content = unpack(t, packed)
			}
			if digestOf(content) != d.sha256 || configMap.Name != "weather-"+d.sha256[:10] || !*configMap.Immutable {
				t.Errorf("%s has a content of digest %s, want %s", configMap.Name, digestOf(content), d.sha256)
			}
			if tools, err := table.ParseTools(content); err != nil || len(tools) != len(tt.result.Tools) {
				t.Errorf("a gateway reads %d tools: %v", len(tools), err)
			}
			if len(d.tools) != len(tt.result.Tools) || !strings.HasPrefix(d.tools[0].Digest, "sha256:") {
				t.Errorf("status: %v", d.tools)
			}
		})
	}
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestWhatIsLeftOutIsNamedAndCounted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		skipped []string
		want    string
	}{
		"nothing": {},
		"one":     {[]string{"a"}, "; of its OpenAPI document: a"},
		"five":    {[]string{"a", "b", "c", "d", "e"}, "; of its OpenAPI document: a; b; c; and 2 more"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := noteOf(openapi.Result{Skipped: tt.skipped}); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// another is the document with another operation.
var another = strings.Replace(document, "listPets", "readPets", 1)

func TestOldDefinitionsStayForTenMinutes(t *testing.T) {
	t.Parallel()
	foreign := makeConfigMap("weather-foreign000", "tools.json", "{}")
	foreign.Labels = map[string]string{LabelTool: demo.Name}
	w := makeWorld(t, makeTool(openAPI(document)), foreign)
	synctest.Test(t, func(t *testing.T) {
		w.pass()
		first := w.tool().Status.Definitions.Name
		tool := w.tool()
		tool.Spec.OpenAPI.Document.Inline, tool.Generation = inline(another), 3
		w.update(tool)
		w.take()
		if after := w.pass().RequeueAfter; after != 10*time.Minute {
			t.Errorf("it looks again after %s", after)
		}
		second := w.tool().Status.Definitions.Name
		if writes, _ := w.take(); !cmp.Equal(writes, []string{"create " + second, "status weather"}) {
			t.Errorf("writes: %v", writes)
		}
		<-time.After(9 * time.Minute)
		if after := w.pass().RequeueAfter; after != time.Minute {
			t.Errorf("after nine minutes it looks again after %s", after)
		}
		<-time.After(time.Minute)
		w.pass()
		if writes, _ := w.take(); !cmp.Equal(writes, []string{"delete " + first}) {
			t.Errorf("after ten minutes: %v, want the first to be deleted and nothing else", writes)
		}
	})
}

func TestThatOldDefinitionsCannotBeRemovedTakesNothingFromATool(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("by a policy"))
	conflict := apierrors.NewConflict(corev1.Resource("configmaps"), "a", errors.New("it changed"))
	const fine = "The definitions of the tools are up to date"
	tests := map[string]struct {
		err      error
		change   func(*mcpv1alpha1.MCPTool)
		applied  string
		contains string // in its message
		after    time.Duration
	}{
		"of another document":                  {forbidden, openAPI(another), "True/Applied", fine + "; what is not needed any more could not be removed: ", 0},
		"what passes":                          {conflict, openAPI(another), "True/Applied", fine, 0},
		"of another type":                      {forbidden, func(tool *mcpv1alpha1.MCPTool) { tool.Spec = makeTool().Spec }, "", "", 0},
		"while the next document is not there": {forbidden, fetching, "True/Applied", fine, removalRetry},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, makeTool(openAPI(document)), makeOldDefinitions())
			synctest.Test(t, func(t *testing.T) {
				w.pass()
				tool := w.tool()
				tt.change(tool)
				w.update(tool)
				w.pass()
				<-time.After(retention)
				w.undeletable = tt.err
				w.take()
				result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: demo})
				if (err == nil) != (tt.after > 0) || result.RequeueAfter != tt.after {
					t.Errorf("tried again after %s, %v", result.RequeueAfter, err)
				}
				applied := reconcile.ConditionOf(w.tool().Status.Conditions, "Applied")
				if got := conditions(w.tool()); got["Applied"] != tt.applied || got["Ready"] != "True/Available" {
					t.Errorf("conditions: %v", got)
				}
				if !strings.HasPrefix(applied.Message, tt.contains) || tt.contains == fine && applied.Message != fine {
					t.Errorf("message: %s", applied.Message)
				}
				if writes, _ := w.take(); len(writes) == 0 || !slices.ContainsFunc(writes, func(w string) bool { return w == "delete weather-old" }) {
					t.Errorf("writes: %v", writes)
				}
			})
		})
	}
}

// makeOldDefinitions returns definitions of the tool that it does not need any more.
func makeOldDefinitions() *corev1.ConfigMap {
	old := makeConfigMap("weather-old", "tools.json", "{}")
	old.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: mcpv1alpha1.GroupVersion.String(), Kind: "MCPTool", Name: demo.Name, UID: "uid-weather", Controller: new(true),
	}}
	return old
}

func TestDefinitionsThatAreNeededAgainAreNotRemoved(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	synctest.Test(t, func(t *testing.T) {
		w.pass()
		for generation, text := range []string{another, document} {
			tool := w.tool()
			tool.Spec.OpenAPI.Document.Inline, tool.Generation = inline(text), int64(3+generation)
			w.update(tool)
			w.pass()
			<-time.After(9 * time.Minute)
		}
		w.pass()
		w.take()
		<-time.After(2 * time.Minute)
		w.pass()
		writes, _ := w.take()
		if len(writes) != 1 || writes[0] == "delete "+w.tool().Status.Definitions.Name {
			t.Errorf("writes: %v", writes)
		}
	})
}

func TestATypeThatHasNoDefinitionsGivesThemUp(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	synctest.Test(t, func(t *testing.T) {
		w.pass()
		tool := w.tool()
		tool.Spec, tool.Generation = makeTool().Spec, 3
		w.update(tool)
		w.pass()
		if got := w.tool().Status; got.Definitions != nil || got.DocumentDigest != "" || conditions(w.tool())["Applied"] != "" {
			t.Errorf("status: %s", compact(got))
		}
		w.take()
		<-time.After(retention)
		w.pass()
		if writes, _ := w.take(); len(writes) != 1 || !strings.HasPrefix(writes[0], "delete weather-") {
			t.Errorf("writes: %v", writes)
		}
	})
}

func TestAForeignConfigMapOfTheNameIsNotTouched(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	w.pass()
	name := w.tool().Status.Definitions.Name
	other := makeWorld(t, makeTool(openAPI(document)), makeConfigMap(name, "tools.json", "{}"))
	other.pass()
	if writes, _ := other.take(); !cmp.Equal(writes, []string{"status weather"}) {
		t.Errorf("writes: %v", writes)
	}
	if got := conditions(other.tool()); got["Applied"] != "False/OwnershipConflict" || got["Ready"] != "False/OwnershipConflict" {
		t.Errorf("conditions: %v", got)
	}
	if got := other.toolOfDefinitions(t.Context(), makeConfigMap(name, "", "")); len(got) != 1 || got[0].NamespacedName != demo {
		t.Errorf("its change wakes %v", got)
	}
}

func TestOnlyNamesOfDefinitionsWakeATool(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool())
	tests := map[string]struct {
		name string
		want int
	}{
		"definitions":          {"weather-0123456789", 1},
		"of no tool":           {"other-0123456789", 0},
		"another name":         {"weather", 0},
		"too short":            {"-0123456789", 0},
		"no dash at its place": {"weatherx0123456789", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := w.toolOfDefinitions(t.Context(), makeConfigMap(tt.name, "", "")); len(got) != tt.want {
				t.Errorf("wakes %v", got)
			}
		})
	}
}

// TestNothingIsRememberedOfDefinitionsThatAreWritten: their names are many, and nothing would tell when one of a deleted tool is gone.
func TestNothingIsRememberedOfDefinitionsThatAreWritten(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	w.pass()
	configMap := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: demo.Namespace, Name: w.tool().Status.Definitions.Name}
	if err := w.Get(t.Context(), key, configMap); err != nil {
		t.Fatal(err)
	}
	w.take()
	asApplied := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: configMap.Name, Namespace: configMap.Namespace, Labels: configMap.Labels},
		Data:       configMap.Data, Immutable: configMap.Immutable,
	}
	if _, err := w.applier.Apply(t.Context(), w.tool(), asApplied); err != nil {
		t.Fatal(err)
	}
	if _, reads := w.take(); len(reads) == 0 {
		t.Error("the applier knows what it wrote without looking")
	}
}

func TestDefinitionsOfAPredecessorAreAdopted(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	w.pass()
	configMap := &corev1.ConfigMap{}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: demo.Namespace, Name: w.tool().Status.Definitions.Name}, configMap); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{LabelTool: "weather", "app.kubernetes.io/managed-by": "mcp-operator"}
	if diff := cmp.Diff(want, configMap.Labels); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
	if owner := metav1.GetControllerOf(configMap); owner == nil || owner.UID != "uid-weather" {
		t.Errorf("owner: %v", owner)
	}
	configMap.OwnerReferences[0].UID = "uid-before"
	w.update(configMap)
	w.take()
	w.pass()
	if writes, _ := w.take(); len(writes) == 0 || writes[0] != "patch "+configMap.Name {
		t.Errorf("writes: %v", writes)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(configMap), configMap); err != nil || metav1.GetControllerOf(configMap).UID != "uid-weather" {
		t.Errorf("owner: %v, %v", configMap.OwnerReferences, err)
	}
}

// TestADocumentThatIsNoneIsToldOnceAndWithoutItsQuery: by the sentence that the fetcher's worker makes and a pass repeats.
func TestADocumentThatIsNoneIsToldOnceAndWithoutItsQuery(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	fetched := reach.Document{URL: "https://docs.example.com/pets.json?token=hunter2", Purpose: "{}"}
	_, err := w.useDocument(t.Context(), fetched, []byte(`{"swagger": "2.0"}`))
	if err == nil {
		t.Fatal("a document that is none is used")
	}
	w.fetcher.known = reach.Fetched[*definitions]{Known: true, Problem: err.Error()}
	s := newScope(w.Reconciler, makeTool(fetching, func(tool *mcpv1alpha1.MCPTool) { tool.Spec.OpenAPI.Document.URL = fetched.URL }))
	c, _ := s.validate(t.Context()).Condition("Accepted", 2)
	const want = "The OpenAPI document (https://docs.example.com/pets.json?…) cannot be used: it is of OpenAPI 2.0 (Swagger): 3.0 and 3.1 are read; convert it"
	if c.Message != want {
		t.Errorf("%s\nwant: %s", c.Message, want)
	}
}

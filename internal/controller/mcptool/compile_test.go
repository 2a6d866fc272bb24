package mcptool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/fault"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/openapi"
	"github.com/mcp-operator/mcp-operator/internal/reach"
)

// documented is a tool whose document is in a ConfigMap.
func documented(tool *mcpv1alpha1.MCPTool) {
	openAPI("")(tool)
	tool.Spec.OpenAPI.Document = mcpv1alpha1.OpenAPIDocument{ConfigMapRef: keyOf("documents", "pets")}
}

// TestNoDocumentIsReadByAReconcileWorker: while nobody else read it, nothing is known, and what is served stays.
func TestNoDocumentIsReadByAReconcileWorker(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		changes []func(*mcpv1alpha1.MCPTool)
		want    string // empty keeps what was
	}{
		"inline":                            {[]func(*mcpv1alpha1.MCPTool){openAPI(document)}, "Unknown/Unknown: The OpenAPI document is being read"},
		"in a ConfigMap":                    {[]func(*mcpv1alpha1.MCPTool){documented}, "Unknown/Unknown: The OpenAPI document is being read"},
		"inline, of a tool that is served":  {[]func(*mcpv1alpha1.MCPTool){openAPI(document), served}, ""},
		"in a ConfigMap, of one that is so": {[]func(*mcpv1alpha1.MCPTool){documented, served}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, makeTool(tt.changes...), makeConfigMap("documents", "pets", document))
			w.maker.make = func(context.Context, reach.Job) (reach.Made[*definitions], bool) {
				return reach.Made[*definitions]{}, false
			}
			c, recorded := newScope(w.Reconciler, w.tool()).validate(t.Context()).Condition("Accepted", 2)
			if got := string(c.Status) + "/" + c.Reason + ": " + c.Message; recorded != (tt.want != "") || recorded && got != tt.want {
				t.Errorf("recorded: %t, %s\nwant: %s", recorded, got, tt.want)
			}
			if _, reads := w.take(); reads != nil {
				t.Errorf("reads: %v", reads)
			}
		})
	}
}

func TestADocumentIsReadAgainOnlyIfSomethingElseComesOfIt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*world, *mcpv1alpha1.MCPTool)
		want   int
	}{
		"nothing":        {func(*world, *mcpv1alpha1.MCPTool) {}, 1},
		"a timeout":      {func(_ *world, tool *mcpv1alpha1.MCPTool) { tool.Spec.TimeoutSeconds = 5 }, 1},
		"a description":  {func(_ *world, tool *mcpv1alpha1.MCPTool) { tool.Spec.Description = "Pets." }, 1},
		"a prefix":       {func(_ *world, tool *mcpv1alpha1.MCPTool) { tool.Spec.OpenAPI.Prefix = "a_" }, 2},
		"the document":   {func(w *world, _ *mcpv1alpha1.MCPTool) { w.update(makeConfigMap("documents", "pets", another)) }, 2},
		"another source": {func(_ *world, tool *mcpv1alpha1.MCPTool) { openAPI(another)(tool) }, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, makeTool(documented), makeConfigMap("documents", "pets", document))
			w.pass()
			tool := w.tool()
			tt.change(w, tool)
			tool.Generation++
			w.update(tool)
			w.pass()
			if got := len(w.maker.asked); got != tt.want || conditions(w.tool())["Ready"] != "True/Available" {
				t.Errorf("it was read %d times, want %d; conditions %v", got, tt.want, conditions(w.tool()))
			}
		})
	}
}

func TestWhatIsMadeIsMadeOfWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	refused := "The OpenAPI document (%s) cannot be used: it is of OpenAPI 2.0 (Swagger): 3.0 and 3.1 are read; convert it"
	tests := map[string]struct {
		change  func(*mcpv1alpha1.MCPTool)
		content string
		late    func(*world)
		want    string // tool or problem; empty is that it has to be tried again
		again   bool
	}{
		"inline":               {change: openAPI(document), want: "listPets"},
		"in a ConfigMap":       {change: documented, content: document, want: "listPets"},
		"of no use":            {change: openAPI(`{"swagger": "2.0"}`), want: fmt.Sprintf(refused, "openapi.document.inline")},
		"of no use, elsewhere": {change: documented, content: `{"swagger": "2.0"}`, want: fmt.Sprintf(refused, "ConfigMap 'documents'")},
		"without the key": {change: documented, want: "ConfigMap 'documents' (openapi.document.configMapRef) in namespace 'team' has no key 'pets': " +
			"add it, and the tool goes on by itself"},
		"another one meanwhile": {change: documented, content: document, late: func(w *world) {
			w.update(makeConfigMap("documents", "pets", another))
		}, again: true},
		"edited meanwhile": {change: openAPI(document), late: func(w *world) {
			tool := w.tool()
			openAPI(another)(tool)
			w.update(tool)
		}, again: true},
		"gone meanwhile": {change: openAPI(document), late: func(w *world) {
			if err := w.Delete(w.t.Context(), w.tool()); err != nil {
				w.t.Fatal(err)
			}
		}, again: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configMap := makeConfigMap("documents", "pets", tt.content)
			if tt.content == "" {
				configMap.Data = nil
			}
			w := makeWorld(t, makeTool(tt.change), configMap)
			what, err := newScope(w.Reconciler, w.tool()).errandOf(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tt.late != nil {
				tt.late(w)
			}
			made, ok := w.makeDefinitions(t.Context(), reach.Job{Subject: reach.Subject{UID: "uid-weather", Key: demo}, Purpose: compact(what)})
			got := made.Problem
			if made.Value != nil {
				got = made.Value.tools[0].Name
			}
			if got != tt.want || made.Known == tt.again || ok == tt.again {
				t.Errorf("%q, known: %t, for good: %t\nwant %q", got, made.Known, ok, tt.want)
			}
		})
	}
}

func TestADocumentThatNobodyWaitsForIsNeitherToldOfNorKept(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.useDocument(ctx, reach.Document{Subject: reach.Subject{Key: demo}, Purpose: "{}"}, []byte(document))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	what, err := newScope(w.Reconciler, w.tool()).errandOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, ok := w.makeDefinitions(ctx, reach.Job{Subject: reach.Subject{UID: "uid-weather", Key: demo}, Purpose: compact(what)})
	if made.Known || ok || w.shelf.parcels.Bytes() != 0 {
		t.Errorf("%+v, for good: %t, %d bytes are kept", made, ok, w.shelf.parcels.Bytes())
	}
}

// fading is a context that ends when it was looked at so often.
type fading struct {
	context.Context //nolint:containedctx // it is one

	looks int
}

func (f *fading) Err() error {
	if f.looks--; f.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestAnAttemptMayBeGivenUpAtAnyMoment(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	given, done := 0, 0
	for looks := range 50 {
		fetched := reach.Document{Subject: reach.Subject{Key: demo}, Purpose: "{}"}
		found, err := w.useDocument(&fading{t.Context(), looks}, fetched, []byte(document))
		switch {
		case err == nil && found != nil:
			done++
		case errors.Is(err, context.Canceled) && strings.Contains(err.Error(), "canceled"):
			given++
		default:
			t.Errorf("after %d looks: %v, %#v", looks, found, err)
		}
	}
	if given == 0 || done == 0 {
		t.Errorf("%d were given up and %d done: want some of both", given, done)
	}
}

// breaking is a context that panics when its deadline is asked for, as the compiler of documents does.
type breaking struct {
	context.Context //nolint:containedctx // it is one
}

func (breaking) Deadline() (time.Time, bool) { panic("what a document says") }

func TestAPanicAtADocumentIsToldOfAndTriedAgain(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	what, err := newScope(w.Reconciler, w.tool()).errandOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	job := reach.Job{Subject: reach.Subject{UID: "uid-weather", Key: demo}, Purpose: compact(what)}
	made, ok := w.makeDefinitions(breaking{t.Context()}, job)
	const want = "The OpenAPI document (openapi.document.inline) cannot be used: "
	if !made.Known || made.Problem != want+fault.Err.Error() || ok {
		t.Errorf("%+v, for good: %t", made, ok)
	}
	if made, ok = w.makeDefinitions(t.Context(), job); made.Value == nil || !ok { // the gate is open
		t.Errorf("the next time: %+v, for good: %t", made, ok)
	}
}

func TestAnErrandThatCannotBeReadIsToldOf(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	made, ok := w.makeDefinitions(t.Context(), reach.Job{Subject: reach.Subject{Key: demo}, Purpose: "{"})
	if !made.Known || made.Problem == "" || !ok {
		t.Errorf("%+v, for good: %t", made, ok)
	}
}

func TestANewerDocumentIsNotDroppedWithAnOlderOne(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(fetching))
	use := func(text string) reach.Fetched[*definitions] {
		found, err := w.useDocument(t.Context(), reach.Document{Subject: reach.Subject{Key: demo}, Purpose: "{}"}, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return reach.Fetched[*definitions]{Known: true, Found: true, Value: found}
	}
	w.fetcher.known = use(document)
	w.pass()
	newer := use(another) // what a pass is not told of yet
	w.pass()
	w.fetcher.known = newer
	w.take()
	before := w.fetcher.forgot
	w.pass()
	want := []string{"create " + newer.Value.nameFor(w.tool()), "status weather"}
	if writes, _ := w.take(); !slices.Equal(writes, want) || w.fetcher.forgot != before {
		t.Errorf("writes %v, want %v; fetched again: %t", writes, want, w.fetcher.forgot != before)
	}
}

// TestOnlyTimeAndFaultsMayPass: of the same document nothing else comes the next time.
func TestOnlyTimeAndFaultsMayPass(t *testing.T) {
	t.Parallel()
	if !isPassing(unusable("a", openapi.ErrTime)) || !isPassing(unusable("a", fault.Err)) || isPassing(unusable("a", errors.New("it is empty"))) {
		t.Error("a document that took too long is given up for good, or one that is of no use is not")
	}
}

// TestLittleIsKeptOfATool: neither schemas nor definitions, and authorities once.
func TestLittleIsKeptOfATool(t *testing.T) {
	t.Parallel()
	schema := `{"input": {"properties": {"city": {"type": "string"}}}, "output": {"type": "object", "description": "` + strings.Repeat("x", 200<<10) + `"}}`
	objects := []client.Object{makeConfigMap("schemas", "weather", schema), makeConfigMap("ca", "ca.crt", mcptest.NewAuthority(t, "ca").PEM)}
	const n = 5
	for i := range n {
		objects = append(objects, makeTool(func(tool *mcpv1alpha1.MCPTool) {
			if i == 0 {
				openAPI(document)(tool)
			} else {
				tool.Spec.Schema = &mcpv1alpha1.ToolSchema{ConfigMapRef: keyOf("schemas", "weather")}
			}
			tool.Name, tool.UID = fmt.Sprint("t", i), types.UID(fmt.Sprint("u", i))
			tool.Spec.CABundle = &mcpv1alpha1.CABundleSource{ConfigMapRef: keyOf("ca", "ca.crt")}
		}))
	}
	w := makeWorld(t, objects...)
	for i := range n {
		key := types.NamespacedName{Namespace: demo.Namespace, Name: fmt.Sprint("t", i)}
		if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		tool := &mcpv1alpha1.MCPTool{}
		if err := w.Get(t.Context(), key, tool); err != nil || conditions(tool)["Accepted"] != "True/Valid" {
			t.Errorf("%s: %v, %v", key, conditions(tool), err)
		}
	}
	if kept := len(fmt.Sprintf("%+v", w.memory.known)); kept > n*4096 {
		t.Errorf("%d bytes are kept of %d tools", kept, n)
	}
	if w.shelf.parcels.Bytes() != 0 || len(w.shelf.parcels.Keys()) != 0 {
		t.Errorf("%d bytes of definitions are kept that are written", w.shelf.parcels.Bytes())
	}
	for _, e := range w.checker.observed {
		if e.Trust.Roots != w.checker.observed[0].Trust.Roots {
			t.Error("authorities are kept more than once")
		}
	}
}

func TestDefinitionsThatSomebodyDeletedAreMadeAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*mcpv1alpha1.MCPTool){"inline": openAPI(document), "fetched": fetching} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, makeTool(change))
			fetch := func() {
				found, err := w.useDocument(t.Context(), reach.Document{Subject: reach.Subject{Key: demo}, Purpose: "{}"}, []byte(document))
				if err != nil {
					t.Fatal(err)
				}
				w.fetcher.known = reach.Fetched[*definitions]{Known: true, Found: true, Value: found}
			}
			fetch()
			w.pass()
			written := makeConfigMap(w.tool().Status.Definitions.Name, "", "")
			if err := w.Delete(t.Context(), written); err != nil {
				t.Fatal(err)
			}
			w.take()
			before := w.fetcher.forgot
			w.pass()
			if name == "fetched" {
				if writes, _ := w.take(); writes != nil || w.fetcher.forgot == before {
					t.Errorf("before they are made again: writes %v, asked anew: %t", writes, w.fetcher.forgot != before)
				}
				fetch()
				w.pass()
			}
			if writes, _ := w.take(); !slices.Equal(writes, []string{"create " + written.Name}) {
				t.Errorf("writes: %v", writes)
			}
		})
	}
}

func TestTheShelfGivesTheOldestUp(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	of := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	put := func(name, digest string) {
		if err := s.put(t.Context(), of(name), digest, make([]byte, maxShelf/2)); err != nil {
			t.Error(err)
		}
	}
	put("a", "1")
	put("b", "2")
	put("a", "3") // in place of what it had
	if s.get(of("a"), "1") != nil || s.get(of("a"), "3") == nil || s.get(of("b"), "2") == nil {
		t.Errorf("kept: %v", s.parcels.Keys())
	}
	put("c", "4")
	if diff := cmp.Diff([]types.NamespacedName{of("a"), of("c")}, s.parcels.Keys()); diff != "" || s.parcels.Bytes() != maxShelf {
		t.Errorf("%d bytes (-want +got)\n%s", s.parcels.Bytes(), diff)
	}
	s.drop(of("a"), "1") // an older one, that was written meanwhile
	if s.get(of("a"), "3") == nil {
		t.Error("what was not written yet is dropped")
	}
	s.drop(of("a"), "3")
	s.forget(of("c"))
	s.forget(of("nobody"))
	s.drop(of("nobody"), "")
	if s.parcels.Bytes() != 0 || len(s.parcels.Keys()) != 0 {
		t.Errorf("kept: %v", s.parcels.Keys())
	}
}

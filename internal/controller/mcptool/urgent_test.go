package mcptool

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/urgent"
)

func TestWhatMayWithdrawAToolOvertakesWhatWaits(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(bearer))
	tools, secrets := urgent.Handler(urgent.Itself, urgent.IsEdited), urgent.Handler(w.byReference(indexSecrets), isRestricted)
	configMaps := urgent.Handler(w.byReference(indexConfigMaps), never)
	edited, going := makeTool(bearer), makeTool(bearer)
	edited.Generation++
	going.DeletionTimestamp = new(metav1.Now())
	told := makeTool(bearer, served)
	update := func(was, is client.Object) any { return event.UpdateEvent{ObjectOld: was, ObjectNew: is} }
	gone := func(obj client.Object) any { return event.DeleteEvent{Object: obj} }
	renewed := makeSecret("keys")
	renewed.ResourceVersion = "2"
	schema := func(tool *mcpv1alpha1.MCPTool) {
		tool.Spec.Schema = &mcpv1alpha1.ToolSchema{ConfigMapRef: keyOf("schemas", "k")}
	}
	withSchema := makeWorld(t, makeTool(schema))
	schemas := urgent.Handler(withSchema.byReference(indexConfigMaps), never)
	tests := map[string]struct {
		by    handler.EventHandler
		event any
		want  bool // urgent
		wakes bool
	}{
		"an edit":                               {tools, update(makeTool(bearer), edited), true, true},
		"a deletion":                            {tools, gone(makeTool(bearer)), true, true},
		"a deletion that waits for somebody":    {tools, update(makeTool(bearer), going), true, true},
		"our own status":                        {tools, update(makeTool(bearer), told), false, true},
		"a new tool":                            {tools, event.CreateEvent{Object: makeTool()}, false, true},
		"a Secret that goes":                    {secrets, gone(makeSecret("keys")), true, true},
		"a Secret that may be sent nowhere now": {secrets, update(makeSecret("keys"), makeSecret("keys", "")), true, true},
		"a Secret that may be sent elsewhere":   {secrets, update(makeSecret("keys", "a.example.com"), makeSecret("keys", "b.example.com")), true, true},
		"a Secret with another value":           {secrets, update(makeSecret("keys"), renewed), false, true},
		"a Secret of nobody":                    {secrets, gone(makeSecret("other")), false, false},
		"a schema that goes":                    {schemas, gone(makeConfigMap("schemas", "k", "")), true, true},
		"a schema that changes":                 {schemas, update(makeConfigMap("schemas", "k", ""), makeConfigMap("schemas", "k", "{}")), false, true},
		"a ConfigMap of nobody":                 {configMaps, gone(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}), false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := priorityqueue.New[reconcile.Request](name)
			defer queue.ShutDown()
			waiting := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "waiting"}}
			queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(50)}, waiting)
			switch e := tt.event.(type) {
			case event.CreateEvent:
				tt.by.Create(t.Context(), e, queue)
			case event.UpdateEvent:
				tt.by.Update(t.Context(), e, queue)
			case event.DeleteEvent:
				tt.by.Delete(t.Context(), e, queue)
			}
			var order []string
			for range map[bool]int{true: 2, false: 1}[tt.wakes] {
				request, _ := queue.Get()
				order = append(order, request.Name)
			}
			want := map[bool][]string{true: {"weather", "waiting"}, false: {"waiting", "weather"}}[tt.want]
			if !tt.wakes {
				want = []string{"waiting"}
			}
			if !slices.Equal(order, want) {
				t.Errorf("order %v, want %v", order, want)
			}
		})
	}
}

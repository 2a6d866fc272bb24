package webhook

import (
	"encoding/json"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// TestAnObjectThatIsBeingDeletedIsNotJudged: whoever takes its finalizers away is not kept from it, also by a configuration that sends such
// requests here.
func TestAnObjectThatIsBeingDeletedIsNotJudged(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := mcpv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := handler[*mcpv1alpha1.MCPServer]{
		policy: Policy{Images: []string{"registry.example.com/team"}, MaxStorageMounts: -1}, decoder: admission.NewDecoder(scheme),
		log: logr.Discard(), empty: &mcpv1alpha1.MCPServer{}, subject: ours,
	}
	now := metav1.Now()
	for name, tt := range map[string]struct {
		operation admissionv1.Operation
		deleted   *metav1.Time
		want      bool
	}{
		"an edit":                              {operation: admissionv1.Update},
		"an edit of one that is being deleted": {operation: admissionv1.Update, deleted: &now, want: true},
		"one that is created as if it were":    {operation: admissionv1.Create, deleted: &now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &mcpv1alpha1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "test", DeletionTimestamp: tt.deleted}}
			server.Spec.Image = "evil.example/server:1"
			raw, err := json.Marshal(server)
			if err != nil {
				t.Fatal(err)
			}
			response := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: tt.operation, Object: runtime.RawExtension{Raw: raw},
			}})
			if response.Allowed != tt.want {
				t.Errorf("allowed: %t, want %t: %+v", response.Allowed, tt.want, response.Result)
			}
		})
	}
}

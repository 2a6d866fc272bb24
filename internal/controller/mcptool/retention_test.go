package mcptool

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// makeRole returns what the operator lets the gateway of an agent read, when its table names those definitions.
func makeRole(agent string, definitions ...string) *rbacv1.Role {
	owner := &mcpv1alpha1.MCPAgent{ObjectMeta: metav1.ObjectMeta{Name: agent, Namespace: demo.Namespace}}
	role := desired.ForAgent(owner, desired.AgentEnvironment{Definitions: definitions}).Role
	role.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: mcpv1alpha1.GroupVersion.String(), Kind: "MCPAgent", Name: agent, UID: "uid-agent", Controller: new(true),
	}}
	return role
}

// TestDefinitionsStayWhileAGatewayMayReadThem: an agent that is paused, or whose table cannot be written, has an older one.
func TestDefinitionsStayWhileAGatewayMayReadThem(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeTool(openAPI(document)))
	synctest.Test(t, func(t *testing.T) {
		w.pass()
		first := w.tool().Status.Definitions.Name
		role := makeRole("paused", first)
		if err := w.Create(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		tool := w.tool()
		tool.Spec.OpenAPI.Document.Inline, tool.Generation = inline(another), 3
		w.update(tool)
		w.pass()
		w.take()
		for range 3 {
			if after := w.pass().RequeueAfter; after != retention {
				t.Errorf("it looks again after %s", after)
			}
			<-time.After(retention)
		}
		if writes, _ := w.take(); len(writes) != 0 {
			t.Errorf("while a gateway may read them: %v", writes)
		}
		role.Rules = makeRole("paused", w.tool().Status.Definitions.Name).Rules // it goes on, and has its newest table
		w.update(role)
		w.pass()
		<-time.After(9 * time.Minute)
		w.pass()
		if writes, _ := w.take(); len(writes) != 0 {
			t.Errorf("nine minutes after the agent went on: %v", writes)
		}
		<-time.After(time.Minute)
		w.pass()
		if writes, _ := w.take(); !cmp.Equal(writes, []string{"delete " + first}) {
			t.Errorf("ten minutes after the agent went on: %v", writes)
		}
	})
}

func TestWhatOnlyLooksLikeARoleOfAGatewayKeepsNothing(t *testing.T) {
	t.Parallel()
	unowned, elsewhere, unlabelled := makeRole("a", "weather-old"), makeRole("a", "weather-old"), makeRole("a", "weather-old")
	unowned.OwnerReferences, elsewhere.Namespace, unlabelled.Labels = nil, "other", nil
	tests := map[string]struct {
		role *rbacv1.Role
		want bool
	}{
		"a gateway's":        {makeRole("a", "weather-old"), true},
		"of other names":     {makeRole("a", "pets-old"), false},
		"of no agent":        {unowned, false},
		"in another place":   {elsewhere, false},
		"of other workloads": {unlabelled, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScope(makeWorld(t, []client.Object{tt.role}...).Reconciler, makeTool())
			named, err := s.named(t.Context())
			if err != nil || named["weather-old"] != tt.want {
				t.Errorf("named are %v, %v", named, err)
			}
		})
	}
}

package mcpagent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestThatAChildWasPutBackIsToldOfItsAgent: and neither that it was made, nor that the agent asked for something else.
func TestThatAChildWasPutBackIsToldOfItsAgent(t *testing.T) {
	t.Parallel()
	c, recorder := fake.NewClientBuilder().WithScheme(makeScheme(t)).WithReturnManagedFields().Build(), events.NewFakeRecorder(10)
	r := New(Options{Client: c, APIReader: c, Recorder: recorder})
	r.prepare()
	s := newScope(r, makeAgent(), known)
	role := func(verbs ...string) *rbacv1.Role {
		return &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "helper-gateway", Namespace: "team"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
		}
	}
	apply := func(role *rbacv1.Role) {
		t.Helper()
		if err := s.apply(t.Context(), role); err != nil {
			t.Fatal(err)
		}
	}
	apply(role("get", "list"))
	apply(role("get"))
	live := role()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	live.Rules[0].Resources = []string{"secrets"}
	if err := c.Update(t.Context(), live, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	apply(role("get"))
	apply(role("get"))
	close(recorder.Events)
	var told []string
	for event := range recorder.Events {
		told = append(told, event)
	}
	want := []string{"Warning DriftCorrected Role team/helper-gateway was changed by somebody else, and put back: rules"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatIsAppliedHasNoStatusAndNoNulls(t *testing.T) {
	t.Parallel()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{}, // it has no omitempty, and neither has the creation time of the template
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "mcp-server", Args: []string{}}},
				Volumes:    []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			}},
		},
		Status: appsv1.DeploymentStatus{Replicas: 3},
	}
	content, err := Content(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(content.Object)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"demo","namespace":"team"},` +
		`"spec":{"selector":{},"strategy":{},"template":{"metadata":{},"spec":{"containers":[{"name":"mcp-server","resources":{}}],` +
		`"volumes":[{"emptyDir":{},"name":"tmp"}]}}}}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("content (-want +got)\n%s", diff)
	}
}

func TestNullsAreDroppedWhereverTheyAre(t *testing.T) {
	t.Parallel()
	fields := map[string]any{
		"gone": nil, "zero": int64(0), "empty": "", "list": []any{nil, "a", map[string]any{"gone": nil, "kept": false}},
		"map": map[string]any{"gone": nil, "deeper": map[string]any{"gone": nil}},
	}
	dropNulls(fields)
	want := map[string]any{
		"zero": int64(0), "empty": "", "list": []any{nil, "a", map[string]any{"kept": false}}, "map": map[string]any{"deeper": map[string]any{}},
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got)\n%s", diff)
	}
}

func TestAnObjectBearsTheHashOfWhatWasApplied(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	if _, err := w.applier.Apply(t.Context(), makeOwner(), makeDeployment()); err != nil {
		t.Fatal(err)
	}
	first := w.writes[0]
	if first.verb != "apply" || first.owner != FieldManager || strings.Contains(first.data, `"uid":""`) {
		t.Errorf("the first write is %+v; want an apply without force by %q", first, FieldManager)
	}
	step := func(what string, desired *appsv1.Deployment, want ...string) {
		t.Helper()
		w.writes = nil
		if _, err := w.applier.Apply(t.Context(), makeOwner(), desired); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, w.verbs()); diff != "" {
			t.Errorf("%s: writes (-want +got)\n%s", what, diff)
		}
	}
	change := func(what func(*appsv1.Deployment)) {
		t.Helper()
		live := makeDeployment()
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		what(live)
		if err := w.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	step("at rest", makeDeployment())
	change(func(d *appsv1.Deployment) {
		d.Annotations["note"] = "x"
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar"})
	})
	step("what others added lives on", makeDeployment())
	change(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
	step("what we own is put back", makeDeployment(), "apply, forced")
	edited := makeDeployment()
	edited.Spec.RevisionHistoryLimit = new(int32(3))
	step("one more field is asked for", edited, "apply, forced")
	step("it is no longer sent: the hash tells, for the live object holds all that is asked", makeDeployment(), "apply, forced")
	change(func(d *appsv1.Deployment) { delete(d.Annotations, AnnotationHash) })
	step("the hash is lost", makeDeployment(), "apply, forced")
}

func TestAForcedApplyNamesTheObjectThatWasSeen(t *testing.T) {
	t.Parallel()
	live := makeDeployment()
	live.UID = "uid-live"
	live.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "mcp.operator/v1alpha1", Kind: "MCPServer", Name: "demo", UID: "uid-demo", Controller: new(true)},
	}
	w := makeWorld(t, live)
	if _, err := w.applier.Apply(t.Context(), makeOwner(), makeDeployment()); err != nil {
		t.Fatal(err)
	}
	var sent appsv1.Deployment
	if err := json.Unmarshal([]byte(w.writes[0].data), &sent); err != nil {
		t.Fatal(err)
	}
	if sent.UID != "uid-live" {
		t.Errorf("the apply names the UID %q: a foreign object that took the name meanwhile would be taken over", sent.UID)
	}
}

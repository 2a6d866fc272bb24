package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestOnlyWhatIsOursOrAnOrphanOfOursIsWritten(t *testing.T) {
	t.Parallel()
	const gv, kind, uid = "mcp.operator/v1alpha1", "MCPServer", types.UID("uid-demo")
	// owned is a live Deployment with a controller.
	owned := func(apiVersion, kind, name string, uid types.UID) *appsv1.Deployment {
		d := makeDeployment()
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true)}}
		return d
	}
	ending := func(d *appsv1.Deployment) *appsv1.Deployment {
		d.DeletionTimestamp, d.Finalizers = new(metav1.Now()), []string{"example.com/hold"}
		return d
	}
	mentioned := makeDeployment()
	mentioned.OwnerReferences = []metav1.OwnerReference{{APIVersion: gv, Kind: kind, Name: "demo", UID: uid}}
	const conflict, terminating = "conflict", "terminating"

	tests := map[string]struct {
		live *appsv1.Deployment
		// want is how it ends: conflict, terminating, or well; fragments are of the error's message.
		want      string
		fragments []string
		writes    []string
	}{
		"there is nothing": {writes: []string{"apply"}},
		"it is ours":       {live: owned(gv, kind, "demo", uid), writes: []string{"apply, forced"}},
		"it has no controller": {
			live: makeDeployment(), want: conflict,
			fragments: []string{"resource team/demo exists but has no controller owner", "this Deployment is not touched", "give the MCPServer another name"},
		},
		"it mentions us as an owner, but not as its controller": {
			live: mentioned, want: conflict, fragments: []string{"exists but has no controller owner"},
		},
		"it belongs to another kind": {
			live: owned("apps/v1", "StatefulSet", "demo", "uid-other"), want: conflict,
			fragments: []string{
				"resource team/demo is owned by StatefulSet/demo (UID: uid-other), cannot be managed by MCPServer demo", "this Deployment is not touched",
			},
		},
		"it belongs to a server of another name": {
			live: owned(gv, kind, "other", "uid-other"), want: conflict,
			fragments: []string{"is owned by MCPServer/other (UID: uid-other), cannot be managed by MCPServer demo"},
		},
		"it belongs to a server of the same name of another API": {
			live: owned("mcp.x-k8s.io/v1alpha1", kind, "demo", "uid-other"), want: conflict, fragments: []string{"cannot be managed by MCPServer demo"},
		},
		"it is the orphan of a server of the same name": {
			live: owned(gv, kind, "demo", "uid-before"), writes: []string{"adopt", "apply, forced"},
		},
		"it is the orphan of a server of an older API version": {
			live: owned("mcp.operator/v1alpha0", kind, "demo", "uid-before"), writes: []string{"adopt", "apply, forced"},
		},
		"it is ours and being deleted": {
			live: ending(owned(gv, kind, "demo", uid)), want: terminating, fragments: []string{"Deployment team/demo is being deleted and will be created"},
		},
		"it is an orphan and being deleted": {
			live: ending(owned(gv, kind, "demo", "uid-before")), want: terminating, fragments: []string{"is being deleted"},
		},
		"it is somebody else's and being deleted": {
			live: ending(owned("apps/v1", "StatefulSet", "demo", "uid-other")), want: conflict, fragments: []string{"cannot be managed by MCPServer"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t)
			if tt.live != nil {
				w = makeWorld(t, tt.live)
			}
			_, err := w.applier.Apply(t.Context(), makeOwner(), makeDeployment())
			got := map[bool]string{true: conflict}[IsOwnershipConflict(err)]
			if _, ok := errors.AsType[*TerminatingError](err); ok {
				got = terminating
			}
			if got != tt.want || (err == nil) != (tt.want == "") {
				t.Fatalf("got the error %v, want it to be %q", err, tt.want)
			}
			for _, fragment := range tt.fragments {
				if !strings.Contains(err.Error(), fragment) {
					t.Errorf("the message %q does not say %q", err, fragment)
				}
			}
			if diff := cmp.Diff(tt.writes, w.verbs()); diff != "" {
				t.Errorf("writes (-want +got)\n%s", diff)
			}
			if tt.want == "" {
				w.controlledByDemo(makeDeployment())
			}
		})
	}
}

func TestAnOrphanIsAdoptedOnlyAsItWasSeen(t *testing.T) {
	t.Parallel()
	live := makeDeployment()
	live.ResourceVersion = "41"
	live.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "mcp.operator/v1alpha1", Kind: "MCPServer", Name: "demo", UID: "uid-before", Controller: new(true)},
	}
	w := makeWorld(t, live)
	if _, err := w.applier.Apply(t.Context(), makeOwner(), makeDeployment()); err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"ownerReferences":[{"apiVersion":"mcp.operator/v1alpha1","kind":"MCPServer","name":"demo",` +
		`"uid":"uid-demo","controller":true,"blockOwnerDeletion":true}],"resourceVersion":"41"}}`
	if got := w.writes[0]; got.data != want || got.owner != FieldManager {
		t.Errorf("the patch by %q is\n%s\nwant by %q\n%s", got.owner, got.data, FieldManager, want)
	}
}

func TestAConfigMapIsCreatedAndNeverAppliedOverOneThatAppearedMeanwhile(t *testing.T) {
	t.Parallel()
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "demo-config", Namespace: "team"}, Data: map[string]string{"a": "1"}}
	w := makeWorld(t)
	if _, err := w.applier.Apply(t.Context(), makeOwner(), desired); err != nil {
		t.Fatal(err)
	}
	if got := w.writes[0]; got.verb != "create" || got.owner != FieldManager {
		t.Errorf("the first write is %+v; want a create by %q", got, FieldManager)
	}
	live := &corev1.ConfigMap{ObjectMeta: *desired.ObjectMeta.DeepCopy()}
	w.controlledByDemo(live)
	if live.Annotations[AnnotationHash] == "" || live.Data["a"] != "1" {
		t.Errorf("created was %+v", live)
	}
	if desired.Annotations != nil || desired.OwnerReferences != nil {
		t.Errorf("what was asked for was changed: %+v", desired.ObjectMeta)
	}

	w = makeWorld(t)
	exists := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, "demo-config")
	w.refuse = func(write) error { return exists }
	if _, err := w.applier.Apply(t.Context(), makeOwner(), desired); !errors.Is(err, exists) {
		t.Errorf("error %v, want %v", err, exists)
	}
	if diff := cmp.Diff([]string{"create"}, w.verbs()); diff != "" {
		t.Errorf("writes (-want +got)\n%s", diff)
	}
}

func TestAConfigMapIsReadAgainOnlyAfterItChanged(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "demo-config", Namespace: "team"}, Data: map[string]string{"a": "1"}}
	step := func(what string, wantReads int, wantWrites ...string) {
		t.Helper()
		w.writes, w.contentReads = nil, 0
		if _, err := w.applier.Apply(t.Context(), makeOwner(), desired); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(wantWrites, w.verbs()); diff != "" || w.contentReads != wantReads {
			t.Errorf("%s: %d reads, want %d; writes (-want +got)\n%s", what, w.contentReads, wantReads, diff)
		}
	}
	step("it is not there", 0, "create")
	step("at rest", 0)
	w.edit(&corev1.ConfigMap{ObjectMeta: desired.ObjectMeta}, func(c *corev1.ConfigMap) { c.Annotations["note"] = "x" })
	step("somebody adds an annotation", 1)
	step("at rest again", 0)
	w.edit(&corev1.ConfigMap{ObjectMeta: desired.ObjectMeta}, func(c *corev1.ConfigMap) { c.Data["a"] = "2" })
	step("somebody changes what we own", 1, "apply, forced")
	desired.Data["a"] = "3"
	step("we ask for something else", 1, "apply, forced")
	step("at rest once more", 0)
	w.applier.Forget(desired)
	step("what is remembered was dropped", 1)
}

package apply

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// told returns the events since the last call.
func told(recorder *events.FakeRecorder) []string {
	var list []string
	for len(recorder.Events) > 0 {
		list = append(list, <-recorder.Events)
	}
	return list
}

// reporting returns a world whose Applier tells what it put back.
func reporting(t *testing.T) (*world, *events.FakeRecorder) {
	t.Helper()
	w, recorder := makeWorld(t), events.NewFakeRecorder(100)
	w.applier.Report(recorder)
	return w, recorder
}

func TestWhatSomebodyChangedAndIsPutBackIsTold(t *testing.T) {
	t.Parallel()
	const begins = "Warning DriftCorrected "
	tests := map[string]struct {
		desired func() client.Object
		edit    func(client.Object)
		want    string
	}{
		"a container that is made root": {
			func() client.Object { return makeDeployment() },
			editing(func(d *appsv1.Deployment) {
				c := &d.Spec.Template.Spec.Containers[0]
				c.SecurityContext, c.Image = &corev1.SecurityContext{RunAsUser: new(int64(0))}, "y"
			}),
			`Deployment team/demo was changed by somebody else, and put back: spec.template.spec.containers[name="mcp-server"].image`,
		},
		"a Role with more rights": {
			otherKinds["Role"].desired, otherKinds["Role"].edit, "Role team/demo was changed by somebody else, and put back: rules",
		},
		"one whose owner is taken away, so that it is not ours any more": {
			otherKinds["HorizontalPodAutoscaler"].desired,
			editing(func(o client.Object) {
				otherKinds["HorizontalPodAutoscaler"].edit(o)
				o.SetOwnerReferences(nil)
			}), "",
		},
		"a Secret, whose content is not read": {
			func() client.Object {
				return &corev1.Secret{ObjectMeta: nameIt("demo"), Data: map[string][]byte{"k1": []byte("a")}}
			},
			editing(func(s *corev1.Secret) { s.Data["k1"] = []byte("hunter2") }),
			"Secret team/demo was changed by somebody else, and put back: data.k1",
		},
		"a label": {
			func() client.Object {
				return &corev1.ServiceAccount{ObjectMeta: nameIt("demo"), AutomountServiceAccountToken: new(false)}
			},
			editing(func(a *corev1.ServiceAccount) { a.Labels = map[string]string{"theirs": "x"} }), "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, recorder := reporting(t)
			for range 2 { // created, and at rest
				if _, err := w.applier.Apply(t.Context(), makeOwner(), tt.desired()); err != nil {
					t.Fatal(err)
				}
			}
			change(w, tt.desired(), tt.edit)
			for range 2 { // put back, and at rest
				if _, err := w.applier.Apply(t.Context(), makeOwner(), tt.desired()); err != nil && tt.want != "" {
					t.Fatal(err)
				}
			}
			var want []string
			if tt.want != "" {
				want = []string{begins + tt.want}
			}
			if diff := cmp.Diff(want, told(recorder)); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatWeChangeOurselvesIsNotToldAsSomebodyElses(t *testing.T) {
	t.Parallel()
	w, recorder := reporting(t)
	image := func(image string) *appsv1.Deployment {
		d := makeDeployment()
		d.Spec.Template.Spec.Containers[0].Image = image
		return d
	}
	for _, desired := range []client.Object{image("x:1"), image("x:2"), image("x:2"), image("x:1")} {
		if _, err := w.applier.Apply(t.Context(), makeOwner(), desired); err != nil {
			t.Fatal(err)
		}
	}
	again := makeOwner() // deleted and made again: its orphan is adopted
	again.UID = "uid-again"
	if _, err := w.applier.Apply(t.Context(), again, image("x:1")); err != nil {
		t.Fatal(err)
	}
	if got := told(recorder); got != nil {
		t.Errorf("told: %v", got)
	}
}

// TestWhatAPolicyKeepsOtherwiseIsNotToldAsSomebodyElses: it is as it was after it was written, too.
func TestWhatAPolicyKeepsOtherwiseIsNotToldAsSomebodyElses(t *testing.T) {
	t.Parallel()
	w, recorder := reporting(t)
	role, edit := otherKinds["Role"].desired, otherKinds["Role"].edit
	w.mutate = func(obj client.Object) {
		if role, ok := obj.(*rbacv1.Role); ok {
			edit(role)
		}
	}
	for range 3 {
		if _, err := w.applier.Apply(t.Context(), makeOwner(), role()); err != nil {
			t.Fatal(err)
		}
	}
	if got := told(recorder); got != nil {
		t.Errorf("told: %v", got)
	}
}

func TestWhoInsistsOnAFieldIsToldOfOnceInAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, recorder := reporting(t)
		role, edit := otherKinds["Role"].desired, otherKinds["Role"].edit
		if _, err := w.applier.Apply(t.Context(), makeOwner(), role()); err != nil {
			t.Fatal(err)
		}
		for pass, want := range []int{1, 0, 0, 1} {
			if pass == 3 {
				time.Sleep(disputePause) //nolint:forbidigo // virtual time
			}
			change(w, role(), edit)
			_, err := w.applier.Apply(t.Context(), makeOwner(), role())
			if _, disputed := errors.AsType[*FieldConflictError](err); disputed != (want == 0) {
				t.Errorf("pass %d: %v", pass, err)
			}
			if got := told(recorder); len(got) != want {
				t.Errorf("pass %d tells %q, want %d events", pass, got, want)
			}
		}
	})
}

func TestOfManyFieldsAFewAreNamed(t *testing.T) {
	t.Parallel()
	fields := fieldpath.NewSet()
	for name := range strings.FieldsSeq("e b a d c") {
		fields.Insert(fieldpath.MakePathOrDie("spec", name))
	}
	if got, want := shown(fields), "spec.a, spec.b, spec.c, and 2 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

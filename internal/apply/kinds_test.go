package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func nameIt(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "team"} }

// apply applies an object and checks which writes it took, how often metadata was read past the cache, and that content never was.
func (w *world) apply(what string, desired client.Object, managerReads int, want ...string) {
	w.t.Helper()
	w.writes, w.contentReads, w.managerReads = nil, 0, 0
	if _, err := w.applier.Apply(w.t.Context(), makeOwner(), desired); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, w.verbs()); diff != "" {
		w.t.Errorf("%s: writes (-want +got)\n%s", what, diff)
	}
	if w.contentReads != 0 || w.managerReads != managerReads {
		w.t.Errorf("%s: content was read %d times and metadata %d times, want 0 and %d", what, w.contentReads, w.managerReads, managerReads)
	}
}

// live returns an object as it is.
func live[T client.Object](w *world, obj T) T {
	w.t.Helper()
	found := obj.DeepCopyObject().(T) //nolint:forcetypeassert // a copy of it
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

// change changes a live object as somebody else would.
func change[T client.Object](w *world, obj T, edit func(T)) {
	w.t.Helper()
	found := live(w, obj)
	edit(found)
	if err := w.Update(w.t.Context(), found, client.FieldOwner("somebody")); err != nil {
		w.t.Fatal(err)
	}
}

func TestASecretIsWrittenAndItsContentNeverRead(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	makeSecret := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: nameIt("demo-session"), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"k1": []byte("a"), "current": []byte("k1")},
		}
	}
	w.apply("it is not there", makeSecret(), 0, "create")
	w.controlledByDemo(makeSecret())
	w.apply("at rest", makeSecret(), 0)
	w.applier.Forget(makeSecret())
	w.apply("the operator starts again", makeSecret(), 1)
	w.apply("at rest after that", makeSecret(), 0)

	change(w, makeSecret(), func(s *corev1.Secret) { s.Annotations["note"], s.Data["other"] = "x", []byte("x") })
	w.apply("somebody adds an annotation and a key", makeSecret(), 1)
	change(w, makeSecret(), func(s *corev1.Secret) { s.Data["k1"] = []byte("b") })
	w.apply("somebody changes what we wrote", makeSecret(), 1, "apply, forced")
	if got := string(live(w, makeSecret()).Data["k1"]); got != "a" {
		t.Errorf("the key is %q, want it to be put back", got)
	}
	w.apply("at rest once more", makeSecret(), 0)
}

func TestAKeyThatIsNoLongerAskedForGoesAndThoseOfOthersStay(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	before := &corev1.Secret{ObjectMeta: nameIt("demo-session"), Data: map[string][]byte{"k1": []byte("a"), "current": []byte("k1")}}
	after := &corev1.Secret{ObjectMeta: nameIt("demo-session"), Data: map[string][]byte{"k2": []byte("b"), "current": []byte("k2")}}
	w.apply("it is not there", before, 0, "create")
	change(w, before, func(s *corev1.Secret) { s.Data["other"] = []byte("x") })
	w.apply("another key is asked for", after, 1, "take over", "apply, forced")
	want := map[string][]byte{"k2": []byte("b"), "current": []byte("k2"), "other": []byte("x")}
	if diff := cmp.Diff(want, live(w, after).Data); diff != "" {
		t.Errorf("data (-want +got)\n%s", diff)
	}
	w.apply("at rest with it", after, 0)
	w.apply("the first one is asked for again", before, 1, "apply, forced")
	want = map[string][]byte{"k1": []byte("a"), "current": []byte("k1"), "other": []byte("x")}
	if diff := cmp.Diff(want, live(w, after).Data); diff != "" {
		t.Errorf("data (-want +got)\n%s", diff)
	}
}

func TestAnImmutableConfigMapIsNotReadAgain(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	makeConfigMap := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: nameIt("demo-0123456789"), Immutable: new(true),
			Data: map[string]string{"tools.json": "{}"}, BinaryData: map[string][]byte{"tools.json.gz": []byte("x")},
		}
	}
	w.apply("it is not there", makeConfigMap(), 0, "create")
	w.apply("at rest", makeConfigMap(), 0)
	w.applier.Forget(makeConfigMap())
	w.apply("the operator starts again", makeConfigMap(), 1)
	labelled := makeConfigMap()
	labelled.Labels = map[string]string{"team": "a"}
	w.apply("a label more is asked for", labelled, 1, "apply, forced")
	if got := live(w, labelled); got.Labels["team"] != "a" || got.Data["tools.json"] != "{}" || got.Immutable == nil {
		t.Errorf("it is now %+v", got)
	}
}

func TestWhatIsRememberedOfASecretIsNotTakenForAConfigMapOfItsName(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	secret := &corev1.Secret{ObjectMeta: nameIt("demo"), Data: map[string][]byte{"a": []byte("1")}}
	configMap := &corev1.ConfigMap{ObjectMeta: nameIt("demo"), Data: map[string]string{"a": "1"}}
	w.apply("the Secret", secret, 0, "create")
	w.apply("the ConfigMap", configMap, 0, "create")
	w.apply("the Secret at rest", secret, 0)
	w.apply("the ConfigMap at rest", configMap, 0)
	w.applier.Forget(secret)
	w.apply("the ConfigMap, when the Secret was forgotten", configMap, 0)
	w.apply("the Secret that was forgotten", secret, 1)
}

// editing is an edit of an object that is known to be of one kind.
func editing[T client.Object](edit func(T)) func(client.Object) {
	return func(obj client.Object) {
		if typed, ok := obj.(T); ok {
			edit(typed)
		}
	}
}

// otherKinds are children without a cache of metadata alone, each with an edit of somebody else's.
var otherKinds = map[string]struct {
	desired func() client.Object
	edit    func(client.Object)
}{
	"ServiceAccount": {
		func() client.Object {
			return &corev1.ServiceAccount{ObjectMeta: nameIt("demo"), AutomountServiceAccountToken: new(false)}
		},
		editing(func(a *corev1.ServiceAccount) { a.AutomountServiceAccountToken = new(true) }),
	},
	"Role": {
		func() client.Object {
			return &rbacv1.Role{ObjectMeta: nameIt("demo"), Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"demo"}, Verbs: []string{"get"}},
			}}
		},
		editing(func(r *rbacv1.Role) { r.Rules[0].ResourceNames = nil }),
	},
	"RoleBinding": {
		func() client.Object {
			return &rbacv1.RoleBinding{
				ObjectMeta: nameIt("demo"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "demo"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "demo", Namespace: "team"}},
			}
		},
		editing(func(b *rbacv1.RoleBinding) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: "other", Namespace: "team"})
		}),
	},
	"HorizontalPodAutoscaler": {
		func() client.Object {
			return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: nameIt("demo"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "demo"},
				MinReplicas:    new(int32(2)), MaxReplicas: 5,
				Metrics: []autoscalingv2.MetricSpec{{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{
					Name: "cpu", Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: new(int32(70))},
				}}},
			}}
		},
		editing(func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MaxReplicas = 50 }),
	},
	"PodDisruptionBudget": {
		func() client.Object {
			return &policyv1.PodDisruptionBudget{ObjectMeta: nameIt("demo"), Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "demo"}},
			}}
		},
		editing(func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(0)) }),
	},
}

func TestOfEveryKindWhatSomebodyChangesIsPutBackAndAtRestNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, tt := range otherKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t)
			w.apply("it is not there", tt.desired(), 0, "create")
			w.controlledByDemo(tt.desired())
			created := live(w, tt.desired())
			w.apply("at rest", tt.desired(), 0)
			change(w, tt.desired(), tt.edit)
			w.apply("somebody changes it", tt.desired(), 0, "apply, forced")
			mended := live(w, tt.desired())
			for _, obj := range []client.Object{created, mended} {
				obj.SetManagedFields(nil)
				obj.SetResourceVersion("")
				obj.SetGeneration(0)
			}
			if diff := cmp.Diff(created, mended); diff != "" {
				t.Errorf("it is not as it was (-want +got)\n%s", diff)
			}
			w.apply("at rest again", tt.desired(), 0)

			w.writes = nil
			stranger := makeOwner()
			stranger.Name, stranger.UID = "stranger", "uid-stranger"
			if _, err := w.applier.Apply(t.Context(), stranger, tt.desired()); !IsOwnershipConflict(err) {
				t.Errorf("somebody else applies it: %v, want an ownership conflict", err)
			}
			if err := w.applier.Remove(t.Context(), stranger, tt.desired()); err != nil || w.writes != nil {
				t.Errorf("somebody else removes it: %v, and %v was written", err, w.verbs())
			}
			if err := w.applier.Remove(t.Context(), makeOwner(), tt.desired()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"delete"}, w.verbs()); diff != "" || w.writes[0].uid != created.GetUID() {
				t.Errorf("removed, with the UID %q, by (-want +got)\n%s", w.writes[0].uid, diff)
			}
		})
	}
}

func TestACorrectionThatCouldNotBeWrittenIsTriedAgainAndNoDispute(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	kind := otherKinds["PodDisruptionBudget"]
	w.apply("it is not there", kind.desired(), 0, "create")
	change(w, kind.desired(), kind.edit)
	w.refuse = func(write) error { return apierrors.NewTooManyRequests("slow down", 1) }
	if _, err := w.applier.Apply(t.Context(), makeOwner(), kind.desired()); !apierrors.IsTooManyRequests(err) {
		t.Errorf("got %v, want what the API server says", err)
	}
	w.refuse = nil
	w.apply("somebody changed it, and writing failed", kind.desired(), 0, "apply, forced")
}

func TestReplicasThatAreNoLongerAskedForStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	asked, unasked := makeDeployment(), makeDeployment()
	asked.Spec.Replicas, unasked.Spec.Replicas = new(int32(3)), nil
	w.apply("three replicas", asked, 0, "apply")
	w.apply("an autoscaler takes over", unasked, 1, "take over", "apply, forced")
	if got := live(w, unasked).Spec.Replicas; got == nil || *got != 3 {
		t.Errorf("the replicas are %v, want still 3", got)
	}
	w.apply("at rest", unasked, 0)
	change(w, unasked, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
	w.apply("it scales", unasked, 0)
	edited := unasked.DeepCopy()
	edited.Spec.RevisionHistoryLimit = new(int32(3))
	w.apply("something else is asked for", edited, 1, "apply, forced")
	if got := *live(w, unasked).Spec.Replicas; got != 7 {
		t.Errorf("the replicas are %d, want still 7", got)
	}
	w.apply("three replicas again", asked, 0, "apply, forced")
	if got := *live(w, unasked).Spec.Replicas; got != 3 {
		t.Errorf("the replicas are %d, want 3", got)
	}
}

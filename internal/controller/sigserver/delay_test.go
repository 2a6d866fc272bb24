package sigserver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

var disputed = found("Applied", metav1.ConditionUnknown, "FieldConflict", "Deployment team/demo was changed again")

func TestWhatKeepsAServerWaitingFollowsTheKnownSentence(t *testing.T) {
	t.Parallel()
	serves := sigv1alpha1.MCPServerStatus{Conditions: []metav1.Condition{valid, ready}}
	const unread = "; the configuration cannot be judged now: read ConfigMap team/c: forbidden"
	for name, tt := range map[string]struct {
		stored     sigv1alpha1.MCPServerStatus
		found      []metav1.Condition
		deployment *appsv1.Deployment
		want       string
		generation int64
		reason     string // of the event
		note       string
	}{
		"a new one cannot be judged": {
			found: []metav1.Condition{unjudged}, want: "Unknown Initializing: " + waitingForStatus + unread,
			generation: 2, reason: "NotJudged", note: unjudged.Message,
		},
		"one that serves cannot be judged": {
			stored: serves, found: []metav1.Condition{unjudged, applied, available, verified, ready}, deployment: makeDeployment(),
			want: "True Available: " + ready.Message + unread, generation: 2, reason: "NotJudged", note: unjudged.Message,
		},
		"a child of a new one cannot be written yet": {
			found: []metav1.Condition{valid, disputed}, want: "Unknown Initializing: " + waitingForStatus + "; not all of it is applied: " + disputed.Message,
			generation: 2, reason: "NotApplied", note: disputed.Message,
		},
		"a child of one that serves is somebody else's for now": {
			stored: serves, found: []metav1.Condition{valid, disputed, available, verified, ready}, deployment: makeDeployment(),
			want:       "True Available: " + ready.Message + "; not all of it is applied: " + disputed.Message,
			generation: 1, reason: "NotApplied", note: disputed.Message,
		},
		"a mistake says it all": {
			found: []metav1.Condition{invalid, disputed, misconfig}, want: "False ConfigurationInvalid: " + misconfig.Message, generation: 2,
		},
		"nothing keeps it": {
			stored: serves, found: []metav1.Condition{valid, applied, available, verified, ready}, deployment: makeDeployment(),
			want: "True Available: " + ready.Message, generation: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := func(status sigv1alpha1.MCPServerStatus) *sigv1alpha1.MCPServer {
				return makeServer(func(s *sigv1alpha1.MCPServer) { s.Status = status })
			}
			first := written(*tt.stored.DeepCopy(), makePass(tt.deployment, tt.found...))
			got := reconcile.ConditionOf(first.Conditions, "Ready")
			if told := string(got.Status) + " " + got.Reason + ": " + got.Message; told != tt.want || got.ObservedGeneration != tt.generation {
				t.Errorf("Ready is of generation %d\n%s, want\n%s", got.ObservedGeneration, told, tt.want)
			}
			var want []engine.Event
			if tt.reason != "" {
				action := map[string]string{"NotJudged": "ConfigurationValidation", "NotApplied": "ChildReconcileDelayed"}[tt.reason]
				want = []engine.Event{{Type: "Warning", Reason: tt.reason, Action: action, Note: tt.note}}
			}
			if diff := cmp.Diff(want, Dialect{}.Events(at(tt.stored), at(first))); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
			// As long as it lasts nothing more is told, nor is it while pods cannot be read.
			unseen := makePass(nil, tt.found...)
			unseen.Seen = false
			for what, pass := range map[string]engine.Pass{"again": makePass(tt.deployment, tt.found...), "unseen": unseen} {
				again := written(*first.DeepCopy(), pass)
				if diff := cmp.Diff(first.Conditions, again.Conditions); diff != "" {
					t.Errorf("%s: conditions (-before +after)\n%s", what, diff)
				}
				if more := (Dialect{}).Events(at(first), at(again)); more != nil {
					t.Errorf("%s: told again: %v", what, more)
				}
			}
		})
	}
}

func TestWhatAServerWaitedForIsReadFromItsStatusAndIsNoPartOfReady(t *testing.T) {
	t.Parallel()
	credentials, unreachable := ready, unanswered
	credentials.Message += offerUnknown
	unreachable.Message = engine.NotServingMCP + engine.ServiceUnreachable
	for name, tt := range map[string]struct {
		ready    metav1.Condition
		delay    string
		applied  string
		verified string
	}{
		"nothing":                      {ready, "", "True: ", "Verified"},
		"it was not judged":            {ready, notJudged.begins + "a", "True: ", "Verified"},
		"it was not applied":           {ready, notApplied.begins + "a", "Unknown: a", "Verified"},
		"it asks for credentials":      {credentials, notApplied.begins + "a", "Unknown: a", "AuthRequired"},
		"the Service does not answer":  {unreachable, notApplied.begins + "a", "Unknown: a", "ServiceUnreachable"},
		"it does not answer":           {unanswered, notJudged.begins + "a", "True: ", "ProtocolError"},
		"a child could not be written": {noService, "", "False: " + noService.Message, ""},
	} {
		server := Dialect{}.Read(makeServer(func(s *sigv1alpha1.MCPServer) {
			told := tt.ready
			told.Message += tt.delay
			s.Status.Conditions = []metav1.Condition{valid, told}
		}))
		of := func(conditionType string) metav1.Condition {
			return reconcile.ConditionOf(server.Status.Conditions, conditionType)
		}
		if got := string(of("Applied").Status) + ": " + of("Applied").Message; got != tt.applied {
			t.Errorf("%s: Applied is %s, want %s", name, got, tt.applied)
		}
		if of("Verified").Reason != tt.verified || of("Ready").Message != tt.ready.Message {
			t.Errorf("%s: %+v, %+v", name, of("Verified"), of("Ready"))
		}
	}
}

// told is the condition Ready, and the events of a pass.
func (w *world) told() (ready metav1.Condition, warnings []string) {
	w.t.Helper()
	server, _, _ := w.pass() // what cannot be read is an error, as it should be
	for _, event := range w.take() {
		if strings.HasPrefix(event, "Warning") {
			warnings = append(warnings, event)
		}
	}
	return reconcile.ConditionOf(server.Status.Conditions, "Ready"), warnings
}

func TestAChildThatDoesNotEndIsTold(t *testing.T) {
	t.Parallel()
	ending := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: "demo", Namespace: "team", Finalizers: []string{"a.example/b"}, DeletionTimestamp: new(metav1.Now()),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(makeServer(), sigv1alpha1.GroupVersion.WithKind("MCPServer"))},
	}}
	w := makeWorld(t, engine.Settings{}, makeServer(), ending)
	const why = "NetworkPolicy team/demo is being deleted and will be created again when it is gone"
	got, warnings := w.told()
	if got.Status != metav1.ConditionUnknown || got.Message != waitingForStatus+"; not all of it is applied: "+why {
		t.Errorf("Ready: %+v", got)
	}
	if diff := cmp.Diff([]string{"Warning NotApplied " + why}, warnings); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
	if _, again := w.told(); again != nil {
		t.Errorf("told again: %q", again)
	}
}

func TestAForeignImageThatStandsIsNotReadyAsTheCurrentGenerationAsks(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, engine.Settings{}, makeServer())
	w.told()
	w.rolledOut()
	if got, _ := w.told(); got.Status != metav1.ConditionTrue || got.ObservedGeneration != 2 {
		t.Fatalf("Ready: %+v", got)
	}
	var got metav1.Condition
	for range 2 { // it is put back once, and then left for a while
		d := &appsv1.Deployment{}
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(makeServer()), d); err != nil {
			t.Fatal(err)
		}
		d.Spec.Template.Spec.Containers[0].Image = "registry.example.com/other:1"
		if err := w.Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		got, _ = w.told()
	}
	if got.Status == metav1.ConditionTrue && got.ObservedGeneration == 2 || !strings.Contains(got.Message, "somebody else insists") {
		t.Errorf("Ready: %+v", got)
	}
}

func TestAConfigMapThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	from := []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}
	w := makeWorld(t, engine.Settings{}, makeServer(func(s *sigv1alpha1.MCPServer) { s.Spec.Config.EnvFrom = from }),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "team"}})
	forbidden := true
	w.reconciler.APIReader = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake client is one
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok && forbidden {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", errors.New("no right to"))
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	got, warnings := w.told()
	if got.Status != metav1.ConditionUnknown || !strings.HasPrefix(got.Message, waitingForStatus+notJudged.begins+"read ConfigMap team/c") {
		t.Errorf("Ready: %+v", got)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "Warning NotJudged read ConfigMap team/c") {
		t.Errorf("warnings: %q", warnings)
	}
	if _, again := w.told(); again != nil {
		t.Errorf("told again: %q", again)
	}
	forbidden = false
	if got, warnings := w.told(); got.Message != waitingForStatus || warnings != nil {
		t.Errorf("once it can be read: %+v, %q", got, warnings)
	}
}

func TestThePolicyThatWasNotWrittenIsNotInTheAuditLog(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, engine.Settings{}, makeServer())
	refused := true
	w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake client is one
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, ok := obj.(*networkingv1.NetworkPolicy); ok && refused {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "networkpolicies"}, "demo", errors.New("exceeded quota"))
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	lines := 0
	w.reconciler.Speak(Dialect{Audit: funcr.New(func(_, line string) {
		if strings.Contains(line, "NetworkPolicy") {
			lines++
		}
	}, funcr.Options{})})
	pass := func(failed bool, want int) {
		t.Helper()
		if _, _, err := w.pass(); (err != nil) != failed || lines != want {
			t.Errorf("%d lines, want %d; error: %v", lines, want, err)
		}
	}
	pass(true, 0)
	pass(true, 0)
	refused = false
	pass(false, 1) // made
	pass(false, 1)
	policy := &networkingv1.NetworkPolicy{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(makeServer()), policy); err != nil {
		t.Fatal(err)
	}
	policy.Spec.Ingress = nil
	if err := w.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	refused = true
	pass(true, 1)
	refused = false
	pass(false, 2) // changed
}

package engine

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestTheErrorOfWritingAChildBecomesApplied(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err         error
		want        metav1.Condition
		failedChild string
	}{
		"none": {want: condition("Applied", metav1.ConditionTrue, "Applied", "All child objects are up to date")},
		"any": {
			err:         errors.New("exceeded quota"),
			want:        condition("Applied", metav1.ConditionFalse, "ApplyFailed", "Failed to reconcile Deployment: exceeded quota"),
			failedChild: "Deployment",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scope{}
			got, _ := s.wrote("Deployment", tt.err).Condition("Applied", 2)
			if diff := cmp.Diff(tt.want, got); diff != "" || s.failedChild != tt.failedChild {
				t.Errorf("child %q, condition (-want +got)\n%s", s.failedChild, diff)
			}
		})
	}
}

func TestAvailableTellsWhetherAPodIsReadyAndElseWhy(t *testing.T) {
	t.Parallel()
	noneReady := func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 }
	wanting := func(n int32) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
	}
	foreign := func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "uid-other" }
	crash := func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = ended(1, "Error") }
	named := func(name string) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Name = name } }
	taken := metav1.Condition{
		Type: "Applied", Status: metav1.ConditionFalse, Reason: "OwnershipConflict", Message: "Deployment demo belongs to somebody else", ObservedGeneration: 2,
	}
	waitingForPods := reconcile.Wait("Initializing", "Waiting for pods to become ready", 0)
	waitingForDeployment := reconcile.Wait("Initializing", "Waiting for the Deployment to be created", 0)
	// pulling is a pod whose image cannot be pulled.
	pulling := func(reason, message string) *corev1.Pod {
		return makePod(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = waiting(reason, message) })
	}
	pullFailed := func(message string) reconcile.Outcome {
		return reconcile.Unsettled("ImagePullFailed", `Image pull failed for "registry.example.com/server:1": `+message+" (pod: demo-1)", 0)
	}
	crashLooping := reconcile.Unsettled("CrashLooping", "Container crashing: exit code 1, restarts: 0 (pod: demo-1)", 0)
	nonePodReady := reconcile.Unsettled("NotReady", "No pod is ready", 0)

	tests := map[string]struct {
		objects []client.Object
		stored  []metav1.Condition
		told    []metav1.Condition // in this pass, before
		want    reconcile.Outcome
		ready   int32
	}{
		"there is no Deployment":            {want: waitingForDeployment},
		"the Deployment is somebody else's": {objects: []client.Object{makeDeployment(foreign), makePod(crash)}, want: waitingForDeployment},
		"the Deployment is somebody else's, which was told": {
			objects: []client.Object{makeDeployment(foreign)}, told: []metav1.Condition{taken},
			want: reconcile.Wait("Initializing", "There is no Deployment of this server: Deployment demo belongs to somebody else", 0),
		},
		"a pod is ready": {
			objects: []client.Object{makeDeployment(), makePod(ready)}, ready: 1,
			want: reconcile.Done("Available", "1 of 1 replicas are ready"),
		},
		"a pod is ready, another crashes": {
			objects: []client.Object{makeDeployment(wanting(2)), makePod(ready, named("demo-0")), makePod(crash)}, ready: 1,
			want: reconcile.Done("Available", "1 of 2 replicas are ready; Container crashing: exit code 1, restarts: 0 (pod: demo-1)"),
		},
		"a pod is ready, another starts, and a third crashes: that is told": {
			objects: []client.Object{makeDeployment(wanting(3)), makePod(ready, named("demo-2")), makePod(named("demo-0")), makePod(crash)}, ready: 1,
			want: reconcile.Done("Available", "1 of 3 replicas are ready; Container crashing: exit code 1, restarts: 0 (pod: demo-1)"),
		},
		"as many pods are ready as are wanted: one too many that crashes is no news": {
			objects: []client.Object{makeDeployment(), makePod(ready, named("demo-0")), makePod(crash)}, ready: 1,
			want: reconcile.Done("Available", "1 of 1 replicas are ready"),
		},
		"scaled to zero": {
			objects: []client.Object{makeDeployment(wanting(0), noneReady)}, want: reconcile.Unsettled("ScaledToZero", "The server is scaled to 0 replicas", 0),
		},
		"pods start":      {objects: []client.Object{makeDeployment(noneReady)}, want: waitingForPods},
		"the pod crashes": {objects: []client.Object{makeDeployment(noneReady), makePod(crash)}, want: crashLooping},
		"the last ready pod is gone: that is a failure, not a beginning": {
			objects: []client.Object{makeDeployment(noneReady)}, stored: []metav1.Condition{available}, want: nonePodReady,
		},
		"a new pod after one that crashed": {
			objects: []client.Object{makeDeployment(noneReady)}, stored: []metav1.Condition{crashing}, want: nonePodReady,
		},
		"a first pod after zero is a beginning": {
			objects: []client.Object{makeDeployment(noneReady)}, stored: []metav1.Condition{stopped}, want: waitingForPods,
		},
		"a pod that is being deleted tells nothing": {
			objects: []client.Object{makeDeployment(noneReady), makePod(crash, func(pod *corev1.Pod) {
				pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"example.com/hold"}
			})},
			want: waitingForPods,
		},
		"an evicted pod tells nothing": {
			objects: []client.Object{makeDeployment(noneReady), makePod(crash, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })},
			want:    waitingForPods,
		},
		"a pod of another kind that shares a label tells nothing": {
			objects: []client.Object{makeDeployment(noneReady), makePod(crash, func(pod *corev1.Pod) { pod.Labels = map[string]string{"mcp-server": "demo"} })},
			want:    waitingForPods,
		},
		"an image cannot be pulled": {objects: []client.Object{makeDeployment(noneReady), pulling("ErrImagePull", "not found")}, want: pullFailed("not found")},
		"pods may not be made": {
			objects: []client.Object{makeDeployment(noneReady, func(d *appsv1.Deployment) {
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota"}}
			})},
			want: reconcile.Unsettled("PodRejected", "Pods cannot be created: quota", 0),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(nil, tt.stored, nil)
			s.Client = fake.NewClientBuilder().WithScheme(makeScheme(t)).WithObjects(tt.objects...).Build()
			s.seen = false
			for _, c := range tt.told {
				s.set(c)
			}
			got := s.observePods(t.Context())
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(reconcile.Outcome{})); diff != "" {
				t.Errorf("outcome (-want +got)\n%s", diff)
			}
			status := s.server.Status
			if !s.seen || status.ReadyReplicas != tt.ready || status.Selector != "mcp.operator/server=demo" {
				t.Errorf("seen: %t, ready: %d, selector: %q", s.seen, status.ReadyReplicas, status.Selector)
			}
		})
	}
}

func TestPodsThatCannotBeListedAreNotTakenForNone(t *testing.T) {
	t.Parallel()
	s := makeScope(nil, nil, nil)
	s.seen = false
	s.Client = lists{Client: fake.NewClientBuilder().WithScheme(makeScheme(t)).WithObjects(makeDeployment()).Build(), err: context.DeadlineExceeded}
	out := s.observePods(t.Context())
	if !errors.Is(out.Err(), context.DeadlineExceeded) || s.seen {
		t.Errorf("outcome %+v, seen: %t", out, s.seen)
	}
}

func TestWhatTheAPIServerRefusesToTellIsUnknownAndTriedAgain(t *testing.T) {
	t.Parallel()
	refusal := errors.New("forbidden")
	refuse := func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return refusal
	}
	phases := map[string]func(*scope, context.Context) reconcile.Outcome{"Accepted": (*scope).validate, "Available": (*scope).observePods}
	for conditionType, do := range phases {
		s := makeScope(nil, nil, nil)
		s.server.Spec.SecretRefs = mounting("tls").Spec.SecretRefs
		s.Client = fake.NewClientBuilder().WithScheme(makeScheme(t)).WithInterceptorFuncs(interceptor.Funcs{Get: refuse}).Build()
		s.refs = newReferences(s.Client, s.Client, nil)
		out := do(s, t.Context())
		got, recorded := out.Condition(conditionType, 2)
		if !recorded || got.Status != metav1.ConditionUnknown || got.Reason != "Unknown" || !errors.Is(out.Err(), refusal) {
			t.Errorf("%s: condition %+v, returned %v", conditionType, got, out.Err())
		}
	}
}

func TestAReadyServerWhoseOtherPodStartsIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	other := makePod(func(pod *corev1.Pod) {
		pod.Name, pod.CreationTimestamp = "demo-2", metav1.Now()
		pod.Status.ContainerStatuses[0].State = waiting("ContainerCreating", "")
	})
	s := makeScope(nil, nil, nil)
	two := makeDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) })
	s.Client = fake.NewClientBuilder().WithScheme(makeScheme(t)).WithObjects(two, makePod(ready), other).Build()
	out := s.observePods(t.Context())
	if !out.IsDone() || out.Message != "1 of 2 replicas are ready" || out.After <= 0 || out.After > 15*time.Second {
		t.Errorf("outcome %+v; want it done, and looked at again within %s", out, 15*time.Second)
	}
}

func TestTheConfigMapOfARemovedConfigurationGoesWhenNoPodCanMountIt(t *testing.T) {
	t.Parallel()
	inline := func(s *scope) { s.children.ConfigMap = configMap("demo-config") }
	tests := map[string]struct {
		deployment *appsv1.Deployment
		change     func(*scope)
		stays      bool
	}{
		"all pods are new": {deployment: makeDeployment()},
		"an old pod may start again": {
			deployment: makeDeployment(func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.UpdatedReplicas = 2, 1 }), stays: true,
		},
		"the edit was not observed": {deployment: makeDeployment(func(d *appsv1.Deployment) { d.Generation++ }), stays: true},
		"the edit was not applied":  {deployment: makeDeployment(), change: func(s *scope) { s.applied = false }, stays: true},
		"no pod is wanted": {
			deployment: makeDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{} }),
		},
		"the Deployment could not be read": {stays: true},
		"the configuration is there":       {deployment: makeDeployment(), change: inline, stays: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(tt.deployment, nil, nil)
			config := configMap("demo-config")
			config.OwnerReferences = makeDeployment().OwnerReferences
			s.Client = fake.NewClientBuilder().WithScheme(makeScheme(t)).WithObjects(config).Build()
			s.applier = apply.New(s.Client, s.Client, apply.FieldManager)
			if tt.change != nil {
				tt.change(s)
			}
			if out := s.removeUnused(t.Context()); !out.IsDone() {
				t.Errorf("outcome %+v", out)
			}
			err := s.Get(t.Context(), client.ObjectKeyFromObject(config), configMap(""))
			if stays := err == nil; stays != tt.stays || !stays && !apierrors.IsNotFound(err) {
				t.Errorf("the ConfigMap stays: %t, want %t (%v)", stays, tt.stays, err)
			}
		})
	}
}

func TestACleanUpThatFailsTakesNothingFromAServerThatWorksAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "objects"}
	forbidden := apierrors.NewForbidden(resource, "x", errors.New("no right to delete"))
	tests := map[string]struct {
		refused client.Object
		err     error
		stays   string // of the two that are not needed, what could not be removed
		told    string // in Applied, beside that all children are there
	}{
		"the ConfigMap": {
			refused: &corev1.ConfigMap{}, err: forbidden, stays: "demo-config",
			told: "; what is not needed any more could not be removed: delete ConfigMap team/demo-config: " + forbidden.Error(),
		},
		"the headless Service": {
			refused: &corev1.Service{}, err: forbidden, stays: desired.PodsServiceName("demo"),
			told: "; what is not needed any more could not be removed: delete Service team/" + desired.PodsServiceName("demo") + ": " + forbidden.Error(),
		},
		"what passes by itself is not told": {
			refused: &corev1.ConfigMap{}, err: apierrors.NewConflict(resource, "x", errors.New("changed")), stays: "demo-config",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(makeDeployment(), []metav1.Condition{accepted, allThere, available, verified}, []metav1.Condition{accepted, available, verified})
			config := configMap("demo-config")
			pods := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: desired.PodsServiceName("demo"), Namespace: "team"}}
			config.OwnerReferences, pods.OwnerReferences = makeDeployment().OwnerReferences, makeDeployment().OwnerReferences
			s.Client = fake.NewClientBuilder().WithScheme(makeScheme(t)).WithObjects(config, pods).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if reflect.TypeOf(obj) == reflect.TypeOf(tt.refused) {
						return tt.err
					}
					return c.Delete(ctx, obj, opts...)
				},
			}).Build()
			s.applier = apply.New(s.Client, s.Client, apply.FieldManager)
			phases := []reconcile.Phase[*scope]{{Condition: mcpv1alpha1.ConditionApplied, Do: (*scope).removeUnused}}
			result := reconcile.Run(t.Context(), s, s.server, phases, reconcile.Options{})
			s.summarize(result)
			if !errors.Is(result.Err, tt.err) {
				t.Errorf("it is not tried again: the error is %v", result.Err)
			}
			if diff := cmp.Diff(allThere.Message+tt.told, s.current(mcpv1alpha1.ConditionApplied).Message); diff != "" {
				t.Errorf("Applied (-want +got)\n%s", diff)
			}
			for _, conditionType := range []string{mcpv1alpha1.ConditionApplied, mcpv1alpha1.ConditionReady} {
				if c := s.current(conditionType); c.Status != metav1.ConditionTrue || c.ObservedGeneration != s.server.Generation {
					t.Errorf("%s is %+v", conditionType, c)
				}
			}
			for _, obj := range []client.Object{config, pods} {
				err := s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
				if stays := err == nil; stays != (obj.GetName() == tt.stays) {
					t.Errorf("%s is there: %t (%v)", obj.GetName(), stays, err)
				}
			}
		})
	}
}

// lists is a client whose lists fail with err.
type lists struct {
	client.Client

	err error
}

func (c lists) List(context.Context, client.ObjectList, ...client.ListOption) error { return c.err }

package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestWhatIsWrongForGoodIsToldApartFromWhatMayPass(t *testing.T) {
	t.Parallel()
	unready := func(since time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: ago(since)}}
		}
	}
	is := func(state corev1.ContainerState) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = state }
	}
	made := func(age time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.CreationTimestamp = ago(age) }
	}
	unschedulable := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = nil
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no node"}}
	}
	explained := diagnose.Finding{Reason: "MountFailed", Message: "no such claim (pod: demo-1)"}
	quota := diagnose.Finding{Reason: "PodRejected", Message: "Pods cannot be created: quota"}
	copied := diagnose.Finding{Reason: "CrashLooping", Message: "exit code 1 (pod: a-copy)"}
	type pods = []corev1.Pod
	tests := map[string]struct {
		diagnosis diagnose.Finding
		pods      pods
		reason    string
		message   string        // if it is to be looked at
		after     time.Duration // when something that may pass does not
	}{
		"no pods":                            {},
		"all pods are ready":                 {pods: pods{*makePod(ready)}},
		"a container that has just begun":    {pods: pods{*makePod(is(running(time.Second)), unready(time.Second))}, after: 9 * time.Second},
		"one that is slow to be ready":       {pods: pods{*makePod(unready(time.Minute))}, after: 9 * time.Minute},
		"one that is not ready for long":     {pods: pods{*makePod(unready(10 * time.Minute))}, reason: "NotReady"},
		"one that waits for a node":          {pods: pods{*makePod(unschedulable, made(4*time.Minute))}, after: 6 * time.Minute},
		"one that waits for a node for long": {pods: pods{*makePod(unschedulable)}, reason: "Unschedulable"},
		"one that waits for a volume":        {pods: pods{*makePod(is(waiting("ContainerCreating", "")), unready(time.Minute))}, after: 9 * time.Minute},
		"one that crashes":                   {pods: pods{*makePod(is(ended(1, "Error")), unready(0))}, reason: "CrashLooping"},
		"one without memory":                 {pods: pods{*makePod(is(ended(137, "OOMKilled")), unready(0))}, reason: "OOMKilled"},
		"one without an image":               {pods: pods{*makePod(is(waiting("ImagePullBackOff", "x")), unready(0))}, reason: "ImagePullFailed"},
		"one that cannot be made":            {pods: pods{*makePod(is(waiting("CreateContainerConfigError", "x")), unready(0))}, reason: "ConfigError"},
		"a failure behind one that starts":   {pods: pods{*makePod(unready(time.Minute)), *makePod(is(ended(1, "Error")))}, reason: "CrashLooping"},
		"pods that may not be made":          {diagnosis: quota, reason: "PodRejected", message: quota.Message},
		"a copy that crashes is nobody's":    {diagnosis: copied, pods: pods{*makePod(ready)}},
		"a copy that crashes hides no pod that has just begun": {
			diagnosis: copied, pods: pods{*makePod(is(running(time.Second)), unready(time.Second))}, after: 9 * time.Second,
		},
		"what events say is told": {
			diagnosis: explained, pods: pods{*makePod(is(waiting("ContainerCreating", "")))}, reason: "MountFailed", message: explained.Message,
		},
		"the sooner of two that may not pass": {pods: pods{*makePod(unready(time.Minute)), *makePod(unready(3 * time.Minute))}, after: 7 * time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failingPod(tt.diagnosis, tt.pods, now)
			if got.Reason != tt.reason || tt.reason == "" && got.After != tt.after {
				t.Errorf("found %+v; want %q, after %s", got, tt.reason, tt.after)
			}
			if tt.message != "" && got.Message != tt.message {
				t.Errorf("message %q, want %q", got.Message, tt.message)
			}
		})
	}
}

func TestAServerOneOfWhosePodsIsSlowIsLookedAtAgainBeforeItIsStuck(t *testing.T) {
	t.Parallel()
	slow := makePod(func(pod *corev1.Pod) {
		pod.Name, pod.CreationTimestamp = "demo-2", metav1.NewTime(time.Now().Add(-time.Minute))
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}}
	})
	s := makeScope(nil, nil, nil)
	two := makeDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) })
	s.Client = fake.NewClientBuilder().WithScheme(makeScheme(t)).WithObjects(two, makePod(ready), slow).Build()
	out := s.observePods(t.Context())
	if !out.IsDone() || out.After <= 0 || out.After > 9*time.Minute || s.failing.Reason != "" {
		t.Errorf("outcome %+v, failing: %+v; want it done, and looked at again when it is ten minutes old", out, s.failing)
	}
}

func TestThePhaseStandsInAPassThatCouldNotReadThePods(t *testing.T) {
	t.Parallel()
	stored := []metav1.Condition{accepted, allThere, available, verified, condition(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, "Available", "x")}
	for _, phase := range []mcpv1alpha1.Phase{mcpv1alpha1.PhaseDegraded, mcpv1alpha1.PhaseReady} {
		s := makeScope(nil, stored, stored)
		s.seen, s.before.Status.Phase, s.server.Status.ReadyReplicas = false, phase, 1
		if s.summarize(reconcile.Result{}); s.server.Status.Phase != phase {
			t.Errorf("%s became %s", phase, s.server.Status.Phase)
		}
	}
}

func TestPullSecretsThatDoNotExistAreNamedWhereAnImageCannotBePulled(t *testing.T) {
	t.Parallel()
	denied := makePod(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = waiting("ErrImagePull", "denied") })
	held := []client.Object{secret("login")}
	one := func(name string) string {
		return "; imagePullSecrets '" + name + "' does not exist in namespace 'team': create it"
	}
	const failed = `Image pull failed for "registry.example.com/server:1": denied (pod: demo-1)`
	tests := map[string]struct {
		named   []string
		objects []client.Object
		want    string
	}{
		"none is named":   {want: failed},
		"it exists":       {named: []string{"login"}, objects: held, want: failed},
		"it does not":     {named: []string{"login"}, want: failed + one("login")},
		"one of two does": {named: []string{"other", "login"}, objects: held, want: failed + one("other")},
		"neither does": {
			named: []string{"other", "login"}, want: failed + "; imagePullSecrets 'other', 'login' do not exist in namespace 'team': create them",
		},
		"it is elsewhere": {named: []string{"login"}, objects: []client.Object{elsewhere(secret("login"))}, want: failed + one("login")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := makeDeployment(func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
			store := makeStore(t, append(tt.objects, d, denied)...)
			s := makeScope(nil, nil, nil)
			s.Client, s.refs = store.Client, store.refs
			for _, name := range tt.named {
				s.server.Spec.ImagePullSecrets = append(s.server.Spec.ImagePullSecrets, mcpv1alpha1.ObjectName{Name: name})
			}
			if out := s.observePods(t.Context()); out.Reason != "ImagePullFailed" || out.Message != tt.want || s.failing.Message != tt.want {
				t.Errorf("told  %q\nwant  %q\nfails %q", out.Message, tt.want, s.failing.Message)
			}
		})
	}
}

func elsewhere(s *corev1.Secret) *corev1.Secret {
	s.Namespace = "other"
	return s
}

func TestAServerIsWokenByThePullSecretsThatItNames(t *testing.T) {
	t.Parallel()
	server := makeServer(func(server *mcpv1alpha1.MCPServer) {
		server.Spec.ImagePullSecrets = []mcpv1alpha1.ObjectName{{Name: "login"}}
		server.Spec.SecretRefs = mounting("tls").Spec.SecretRefs
	})
	r := &Reconciler{}
	if diff := cmp.Diff([]string{"login", "tls"}, r.watched(server, "Secret")); diff != "" {
		t.Errorf("Secrets (-want +got)\n%s", diff)
	}
	if got := r.watched(server, "ConfigMap"); got != nil {
		t.Errorf("ConfigMaps %v", got)
	}
	if got := referencesOf(server); len(got) != 1 {
		t.Errorf("what holds a server up while it is missing: %v", got)
	}
}

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// rollingSoon is what a rolling update of two pods, one after the other, may take.
const rollingSoon = 2 * podStart

// replaced waits until none of the pods in old is left and as many others are ready, and the operator has seen that.
func (s *running) replaced(old map[string]bool, generation int64) {
	s.t.Helper()
	s.await("the rollout ends", rollingSoon, readyAt(generation), func(server *mcpv1alpha1.MCPServer) string {
		fresh := 0
		for _, pod := range s.pods() {
			if isReady(&pod) && !old[pod.Name] {
				fresh++
			}
		}
		if fresh != len(old) || int(server.Status.ReadyReplicas) != len(old) || int(server.Status.Replicas) != len(old) {
			return fmt.Sprintf("%d new pods are ready, the status tells of %d of %d", fresh, server.Status.ReadyReplicas, server.Status.Replicas)
		}
		return ""
	})
}

func TestReadyStaysTrueWhilePodsAreReplaced(t *testing.T) {
	t.Parallel()
	f := start(t)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"level": "info"}}
	f.create(settings)
	s := f.run(server("rolling").replicas(2).with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Config = &mcpv1alpha1.ServerConfig{ConfigMapRef: &mcpv1alpha1.ObjectName{Name: "settings"}}
	}))
	s.await("has two pods", podStart, readyAt(1), bothReady)
	tests := []struct {
		name    string
		replace func() int64 // returns the generation afterwards
	}{
		{"an edit of args", func() int64 {
			return s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Args = []string{"-http", ":8080"} })
		}},
		{"kubectl rollout restart", func() int64 {
			f.kubectl("rollout", "restart", "deployment/rolling")
			return 2
		}},
		{"a rotated ConfigMap", func() int64 {
			f.patch("settings", settings, func() { settings.Data["level"] = "debug" })
			return 2
		}},
	}
	for _, tt := range tests {
		old, mark := s.podNames(), s.mark()
		generation := tt.replace()
		s.t.Log(tt.name)
		s.replaced(old, generation)
		s.stayedReady(mark)
	}
	if s.deployment().Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Error("the mark of kubectl rollout restart did not outlive the next write of the operator")
	}
}

func bothReady(server *mcpv1alpha1.MCPServer) string {
	if server.Status.ReadyReplicas != 2 {
		return fmt.Sprintf("%d replicas are ready", server.Status.ReadyReplicas)
	}
	return ""
}

func TestBrokenEditLeavesTheOldPodsServingAndSaysSo(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("edited"))
	s.awaitReady(readySoon)
	old, mark := s.podNames(), s.mark()

	broken := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Image = "registry.invalid/team/absent:2" })
	still := s.await("says that the new image cannot be pulled, and serves", podStart,
		has(mcpv1alpha1.ConditionProgressing, metav1.ConditionTrue, mcpv1alpha1.ReasonRollingOut, "registry.invalid/team/absent:2"),
		has(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable))
	if c := condition(still, mcpv1alpha1.ConditionReady); c.ObservedGeneration != 1 || still.Status.ObservedGeneration != broken {
		t.Errorf("Ready is told of generation %d, not of the old one; the status is of %d, the object of %d",
			c.ObservedGeneration, still.Status.ObservedGeneration, broken)
	}
	for name := range old {
		if !s.podNames()[name] {
			t.Errorf("pod %s is gone, and no other serves", name)
		}
	}

	mended := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Image, spec.Args = imageOf("everything"), []string{"-http", ":8080"}
	})
	s.replaced(old, mended)
	s.stayedReady(mark)
}

func TestCreateMakesOneReplicaSetAndEndsNoPod(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"level": "info"}})
	pods := record(t, &corev1.PodList{}, client.InNamespace(f.namespace))
	s := f.run(server("fresh").replicas(2).with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	}))
	s.await("has two pods", podStart, readyAt(1), bothReady)

	sets := &appsv1.ReplicaSetList{}
	if err := cluster.client.List(f.t.Context(), sets, client.InNamespace(f.namespace)); err != nil || len(sets.Items) != 1 {
		t.Errorf("there are %d ReplicaSets (%v), want 1", len(sets.Items), err)
	}
	if d := s.deployment(); d.Generation != 1 {
		t.Errorf("the Deployment is of generation %d: it was written again after its create", d.Generation)
	}
	states, err := pods.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range states {
		if st.deleted || st.object.GetDeletionTimestamp() != nil {
			t.Errorf("pod %s was ended", st.object.GetName())
		}
	}
}

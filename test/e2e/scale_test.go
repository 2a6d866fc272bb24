package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func replicasAre(n int32) check {
	return func(server *mcpv1alpha1.MCPServer) string {
		if server.Status.Replicas != n || server.Status.ReadyReplicas != n {
			return fmt.Sprintf("%d of %d replicas are ready, not %d", server.Status.ReadyReplicas, server.Status.Replicas, n)
		}
		return ""
	}
}

func TestKubectlScaleStartsAndStopsPods(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("scaled"))
	s.awaitReady(readySoon)
	mark := s.mark()
	f.kubectl("scale", "mcpserver", "scaled", "--replicas=3")
	s.await("has three pods", podStart, replicasAre(3), readyAt(2))
	s.stayedReady(mark)

	f.kubectl("scale", "mcpserver", "scaled", "--replicas=0")
	stopped := s.await("is stopped", podStart, replicasAre(0),
		has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonScaledToZero), phaseIs(mcpv1alpha1.PhaseScaledToZero))
	if stopped.Status.Endpoint != "" {
		t.Errorf("the endpoint %q is published and nobody is there", stopped.Status.Endpoint)
	}

	f.kubectl("scale", "mcpserver", "scaled", "--replicas=1")
	s.await("runs again", readySoon, replicasAre(1), readyAt(4), phaseIs(mcpv1alpha1.PhaseReady))
}

func TestAutoscalerOfAnMCPServerIsFollowedAndNotFought(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("elastic"))
	s.awaitReady(readySoon)
	deployments := f.recordDeployment("elastic")
	f.create(&autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "elastic"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: mcpv1alpha1.GroupVersion.String(), Kind: "MCPServer", Name: "elastic"},
			MinReplicas:    new(int32(2)), MaxReplicas: 2, // never more, whatever a busy machine measures while there are metrics
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
				},
			}},
		},
	})
	s.await("has the autoscaler's two pods", 15*time.Second+podStart, replicasAre(2), readyAt(2)) // it looks every 15 s
	// The operator writes again, and must not take the replicas back.
	generation := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Args = []string{"-http", ":8080"} })
	s.await("is rolled", rollingSoon, replicasAre(2), readyAt(generation))

	states, err := deployments.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	most := int32(0)
	for _, st := range states {
		d, ok := st.object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		if *d.Spec.Replicas < most {
			t.Errorf("the Deployment was scaled back from %d to %d", most, *d.Spec.Replicas)
		}
		most = max(most, *d.Spec.Replicas)
	}
	if most != 2 {
		t.Errorf("the Deployment was scaled to %d", most)
	}
}

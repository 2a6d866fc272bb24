package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// scaledSoon is what Kubernetes takes to scale: CPU is measured every ten seconds and looked at every fifteen.
const scaledSoon = 60 * time.Second

func TestGatewayIsScaledByItsLoad(t *testing.T) {
	t.Parallel()
	const manifest = "--filename=../../dev/metrics-server.yaml"
	if out, err := kubectl(t.Context(), "apply", manifest); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := kubectl(context.Background(), "delete", manifest, "--wait=false"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	f := start(t)
	f.tool("echoed", echoTool(f.petstore("api")))
	deployments := f.recordDeployment("team-gateway")
	a := f.agent("team", func(spec *mcpv1alpha1.MCPAgentSpec) {
		spec.Auth, spec.Runtime = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthNone}, nil
		spec.Scaling = &mcpv1alpha1.Scaling{MinReplicas: 1, MaxReplicas: 2, TargetCPUUtilizationPercentage: 50}
		spec.Gateway = &mcpv1alpha1.AgentGateway{Resources: &mcpv1alpha1.Resources{Requests: corev1.ResourceList{"cpu": resource.MustParse("10m")}}}
	}, "echoed")
	ready := a.awaitReady("echoed")
	states, err := deployments.snapshot()
	if err != nil || len(states) == 0 {
		t.Fatalf("the gateway's Deployment was told %d times: %v", len(states), err)
	}
	// By now, and by what it takes to start, a busy machine may have scaled it already.
	if first, ok := states[0].object.(*appsv1.Deployment); !ok || *first.Spec.Replicas != 1 {
		t.Errorf("the gateway begins with other than one pod: %+v", states[0].object)
	}
	calling := a.keepCalling(f.echo(echoPod("client", "sleep")), "echoed", `{"delay": "0s"}`, "-url", ready.Status.Endpoint, "-every", "20ms")
	await(t, "a second pod serves", scaledSoon, func() string {
		n := 0
		for _, pod := range a.podsOf("gateway") {
			if isReady(&pod) {
				n++
			}
		}
		if n < 2 {
			return fmt.Sprintf("%d pods of the gateway are ready: %s", n, f.kubectl("get", "horizontalpodautoscalers", "--no-headers"))
		}
		return ""
	})
	calling.noneFailed()
}

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// Not parallel: it moves every pod off a node, and restarts the operator with other arguments.
func TestNoCallFailsWhileANodeIsDrainedAndAnUpgradeOfTheOperatorReplacesNoGateway(t *testing.T) {
	f := start(t)
	nodes := &corev1.NodeList{}
	if err := cluster.client.List(t.Context(), nodes); err != nil || len(nodes.Items) < 2 {
		t.Fatalf("wanted are two nodes: %d, %v", len(nodes.Items), err)
	}
	drained, staying := nodes.Items[0].Name, nodes.Items[1].Name
	f.run(server("docs").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Scheduling = &mcpv1alpha1.Scheduling{NodeSelector: map[string]mcpv1alpha1.LabelValue{corev1.LabelHostname: mcpv1alpha1.LabelValue(staying)}}
	}))
	a := f.agent("team", func(spec *mcpv1alpha1.MCPAgentSpec) {
		granted("docs")(spec)
		spec.Auth, spec.Runtime = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthNone}, nil
	})
	ready := a.awaitReady("docs_test_simple_text")
	client := echoPod("client", "sleep")
	client.Spec.NodeSelector = map[string]string{corev1.LabelHostname: staying}
	caller := f.echo(client)

	t.Run("drain", func(t *testing.T) {
		mark := a.mark()
		await(t, "a pod of the gateway is on each node", podStart, func() string {
			on := map[string]bool{}
			for _, pod := range a.podsOf("gateway") {
				on[pod.Spec.NodeName] = isReady(&pod)
			}
			if !on[drained] || !on[staying] {
				return fmt.Sprintf("ready pods are on %v", on)
			}
			return ""
		})
		// None may hang either: one that was sent to the drained node and again later would take longer.
		calling := a.keepCalling(caller, "docs_test_simple_text", `{}`, "-url", ready.Status.Endpoint, "-at-once", "4", "-every", "10ms", "-timeout", "15s")
		f.drain(drained)
		await(t, "two pods of the gateway are ready on the other node", 2*podStart, func() string {
			elsewhere := 0
			for _, pod := range a.podsOf("gateway") {
				if isReady(&pod) && pod.Spec.NodeName == staying {
					elsewhere++
				}
			}
			if elsewhere < 2 {
				return "there are fewer"
			}
			return ""
		})
		calling.noneFailed()
		a.stayedReady(mark)
	})
	t.Run("upgrade", func(t *testing.T) {
		before, mark := namesOf(a.podsOf("gateway")), a.mark()
		setImage := func(image string) {
			for _, args := range [][]string{
				{"set", "env", "deployment/" + operatorName, "MCP_OPERATOR_GATEWAY_IMAGE=" + image},
				{"rollout", "status", "deployment/" + operatorName, "--timeout=2m"},
			} {
				if out, err := kubectl(context.Background(), append([]string{"--namespace=" + operatorNamespace}, args...)...); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
			if err := awaitLeader(context.Background()); err != nil {
				t.Error(err)
			}
		}
		image := gatewayImage(t)
		t.Cleanup(func() { setImage(image) })
		setImage("mcp-operator/mcp-gateway:of-another-version")
		// The new operator has looked at the agent when it has carried out an edit of it.
		a.change(func(object *agent) {
			object.Spec.Servers[0].Tools = &mcpv1alpha1.ToolPolicy{Allow: []string{"test_simple_text"}}
		})
		a.await("is reconciled by the new operator", 2*agentSoon,
			says[*agent]("Ready", metav1.ConditionTrue, ""), judged("docs_test_image_content", mcpv1alpha1.VerdictDenied))
		if diff := cmp.Diff(before, namesOf(a.podsOf("gateway"))); diff != "" {
			t.Errorf("pods of the gateway, before and after the upgrade:\n%s", diff)
		}
		if got := a.now().Status.GatewayImage; got != image {
			t.Errorf("the gateway's image became %q", got)
		}
		a.stayedReady(mark)
	})
}

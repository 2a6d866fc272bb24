package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// Not parallel: it moves every pod off a node, once with the operator and once without.
func TestReadyStaysTrueWhileANodeIsDrained(t *testing.T) {
	for name, withOperator := range map[string]bool{"the operator sees it": false, "the operator is on it": true} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			s := f.run(server("spread").replicas(2).with(onePodANode))
			s.await("has two pods", podStart, readyAt(1), bothReady)
			acting := f.operatorPod(corev1.Pod{})
			node := ""
			for _, pod := range s.pods() {
				if (pod.Spec.NodeName == acting.Spec.NodeName) == withOperator {
					node = pod.Spec.NodeName
				}
			}
			token, mark := f.metricsToken("prometheus", "mcp-operator-metrics-reader"), s.mark()
			f.drain(node)
			if withOperator {
				f.awaitRest(f.operatorPod(acting), token, "spread")
			}
			s.await("has two pods on the other node", 3*podStart, readyAt(1), bothReady, func(*mcpv1alpha1.MCPServer) string {
				return s.avoids(node, 2)
			})
			s.stayedReady(mark)
		})
	}
}

func onePodANode(spec *mcpv1alpha1.MCPServerSpec) {
	honor := corev1.NodeInclusionPolicyHonor // a drained node does not count
	spec.Scheduling = &mcpv1alpha1.Scheduling{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, NodeTaintsPolicy: &honor,
	}}}
}

// drain drains a node as its administrator does, and takes it back into use at the end of the test.
func (f *fixture) drain(node string) {
	f.t.Helper()
	f.t.Cleanup(func() {
		if out, err := kubectl(context.Background(), "uncordon", node); err != nil {
			f.t.Errorf("%v\n%s", err, out)
			return
		}
		// The taint goes a moment later, by a controller's hand: until then the scheduler spreads no pods over the node.
		if err := awaitNoTaint(node); err != nil {
			f.t.Errorf("node %s is not in use again: %v", node, err)
		}
	})
	f.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=2m")
}

// awaitNoTaint waits until pods may be scheduled to a node.
func awaitNoTaint(node string) error {
	return wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, patience(podStart), true, func(ctx context.Context) (bool, error) {
		object := &corev1.Node{}
		if err := cluster.client.Get(ctx, client.ObjectKey{Name: node}, object); err != nil {
			return false, nil //nolint:nilerr // it is asked again
		}
		return !slices.ContainsFunc(object.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeUnschedulable }), nil
	})
}

// avoids says whether want pods of the server are ready, and on other nodes.
func (s *running) avoids(node string, want int) string {
	s.t.Helper()
	elsewhere := 0
	for _, pod := range s.pods() {
		if isReady(&pod) && pod.Spec.NodeName != node {
			elsewhere++
		}
	}
	if elsewhere != want {
		return fmt.Sprintf("%d of its pods are ready on other nodes than %s", elsewhere, node)
	}
	return ""
}

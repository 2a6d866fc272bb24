package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/operator"
)

// Not parallel: it takes the CRD away.
func TestTheCompatibilityAPIStartsWhenItsCRDAppearsAndStaysAwayWhileTheOtherOperatorActs(t *testing.T) {
	before := start(t)
	before.kubectl("delete", "customresourcedefinition", "mcpservers.mcp.x-k8s.io", "--ignore-not-found")
	restarts := before.restartsOfTheOperator()
	f := withCompatibilityAPI(t)
	f.create(sigServer("first"))
	f.sigReady("first")

	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: operator.RivalLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("their-pod"), LeaseDurationSeconds: new(int32(15))},
	}
	f.create(lease)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // it acts, and so renews its lease
		for ctx.Err() == nil {
			patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
			_, _ = kubectl(ctx, "--namespace="+f.namespace, "patch", "lease", lease.Name, "--type=merge", "--patch="+patch)
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	}()
	await(t, "it says that it stays away", readySoon, func() string {
		told := f.kubectl("get", "events.events.k8s.io", "--output=jsonpath={range .items[*]}{.reason} {.note}{end}")
		return linesMissing(told, "OtherOperatorActive", "their-pod")
	})
	f.create(sigServer("theirs"))
	f.create(server("ours").object) // our own kind goes on: so does time
	await(t, "our own kind goes on", readySoon+podStart, func() string {
		return linesMissing(f.kubectl("get", "mcpservers.mcp.operator", "ours", "--output=jsonpath={.status.phase}"), "Ready")
	})
	theirs := &sigv1alpha1.MCPServer{}
	if f.read("theirs", theirs); len(theirs.Status.Conditions) > 0 {
		t.Errorf("it acts all the same: %+v", theirs.Status)
	}
	cancel()
	f.sigSays("theirs", 15*time.Second+readySoon+podStart, metav1.ConditionTrue, "Available")
	if now := f.restartsOfTheOperator(); now != restarts {
		t.Errorf("the operator was restarted: %s, before %s", now, restarts)
	}
}

func (f *fixture) restartsOfTheOperator() string {
	f.t.Helper()
	pod := f.operatorPod(corev1.Pod{})
	return fmt.Sprintf("%s: %d", pod.Name, pod.Status.ContainerStatuses[0].RestartCount)
}

// linesMissing is missing as a reason to wait.
func linesMissing(text string, words ...string) string {
	if err := missing(text, words); err != nil {
		return err.Error()
	}
	return ""
}

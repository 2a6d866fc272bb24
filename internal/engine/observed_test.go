package engine

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// answering is a client that everybody answers.
type answering struct{}

func (answering) Probe(context.Context, mcp.Target) (*mcp.Result, error) {
	return &mcp.Result{ProtocolVersion: "2025-11-25"}, nil
}

func (answering) Check(context.Context, mcp.Target, *mcp.Result) error { return nil }

// TestWhatIsKnownOfAPodStaysThoughItsDeploymentDoesNotKnowYetThatItIsReadyAgain: of the two events that of the pod comes first.
func TestWhatIsKnownOfAPodStaysThoughItsDeploymentDoesNotKnowYetThatItIsReadyAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		prober := probe.New(probe.Options{
			Client: answering{}, Transport: func(probe.Server, *probe.Pod) *http.Transport { return nil },
			Notify: func(context.Context, types.NamespacedName) {},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- prober.Start(ctx) }()
		var stored []metav1.Condition
		look := func(what string, want metav1.ConditionStatus, d *appsv1.Deployment, pod *corev1.Pod) {
			t.Helper()
			s := makeScope(d, stored, nil)
			s.prober, s.pods = prober, []corev1.Pod{*pod}
			got, recorded := s.verify(t.Context()).Condition(mcpv1alpha1.ConditionVerified, 2)
			if !recorded || got.Status != want {
				t.Errorf("%s: %+v, want %s", what, got, want)
			}
			stored = []metav1.Condition{got}
		}
		noneReady := makeDeployment(func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
		look("a new pod", metav1.ConditionUnknown, makeDeployment(), makePod(ready))
		synctest.Wait()
		look("it answered", metav1.ConditionTrue, makeDeployment(), makePod(ready))
		look("it is not ready", metav1.ConditionUnknown, noneReady, makePod())
		look("it is, and its Deployment does not know", metav1.ConditionUnknown, noneReady, makePod(ready))
		look("its Deployment knows", metav1.ConditionTrue, makeDeployment(), makePod(ready))
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

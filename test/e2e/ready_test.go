package e2e

import (
	_ "embed"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// noPodSoon is what is promised from the cluster knowing that no pod is ready to Ready=False.
const noPodSoon = 10 * time.Second

//go:embed testdata/fragile.js
var fragile string

func recreate(spec *mcpv1alpha1.MCPServerSpec) {
	spec.UpdateStrategy = &mcpv1alpha1.UpdateStrategy{Type: mcpv1alpha1.UpdateRecreate}
}

// awaitNoReadyPod waits until the Deployment, which had one, tells that no pod is ready, and returns when it did.
func awaitNoReadyPod(t *testing.T, deployments *history) time.Time {
	t.Helper()
	var known time.Time
	deployments.await(t, "the cluster knows that no pod is ready", time.Now(), podStart, func(states []state) string {
		for _, st := range states {
			if d, ok := st.object.(*appsv1.Deployment); ok && d.Status.ReadyReplicas == 0 {
				known = st.at
				return ""
			}
		}
		return "a pod is ready"
	})
	return known
}

func (f *fixture) recordDeployment(name string) *history {
	f.t.Helper()
	return record(f.t, &appsv1.DeploymentList{}, client.InNamespace(f.namespace), client.MatchingFields{"metadata.name": name})
}

func TestReadyFollowsPodsThatAreGone(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("mortal").with(recreate))
	s.awaitReady(readySoon)
	deployments := f.recordDeployment("mortal")
	s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Args = []string{"-no-such-flag"} })
	known := awaitNoReadyPod(t, deployments)
	s.awaitSince(known, "no pod is ready -> not Ready", noPodSoon,
		has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonDeploymentUnavailable))
	s.await("says why", podStart, has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonDeploymentUnavailable, "exit code 2"))

	generation := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Args = nil })
	s.await("mended -> Ready", rollingSoon, readyAt(generation))
}

func TestReadyFollowsTheOnlyPodWhenItIsKilled(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("single"))
	s.awaitReady(readySoon)
	pods, mark := s.pods(), s.mark()
	deployments := f.recordDeployment("single")
	// A new pod may be ready before any controller has seen that there was none: none is made until that was told.
	admit := f.admitNoPods()
	f.remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pods[0].Name}})
	known := awaitNoReadyPod(t, deployments)
	s.leavesReady(mark, known)
	admit()
	s.await("a new pod -> Ready", readySoon+podStart, readyAt(1))
}

func TestServerThatHangsAfterAWhileIsNoLongerReady(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("fragile").image("server-everything").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Command = []string{"/usr/local/bin/node", "--eval", fragile}
	}))
	s.awaitReady(2 * readySoon)
	pod := f.echo(echoPod("saboteur", "sleep"))
	reaches(t, "the saboteur", pod, s.address()+"/mcp")
	reaches(t, "the saboteur, who makes it hang,", pod, s.address()+"/hang")
	// It is asked again every 45 s or so, twice before it is said, and each time waited for.
	s.await("hangs -> not Ready", 75*time.Second,
		has(mcpv1alpha1.ConditionAvailable, metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable),
		has(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "Timeout"),
		has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonMCPEndpointUnavailable))
}

func TestServerThatAnswersErrorsAfterAnEditIsNoLongerReady(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("failing").with(recreate))
	s.awaitReady(readySoon)
	mark := s.mark()
	s.edit(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Image, spec.Args = imageOf("echo"), []string{"serve", "-status", "500"}
	})
	s.await("answers 500 -> not Ready", rollingSoon,
		has(mcpv1alpha1.ConditionAvailable, metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable),
		has(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "ServerError", "500"),
		has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonMCPEndpointUnavailable))
	for _, server := range s.states(mark) {
		if c := condition(server, mcpv1alpha1.ConditionReady); c.Status == metav1.ConditionTrue && c.ObservedGeneration == 2 {
			t.Errorf("Ready was True of the broken generation: %+v", c)
		}
	}
}

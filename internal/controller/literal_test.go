package controller_test

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller"
)

const endpoint = "http://demo-svc.team.svc.cluster.local:8080/mcp"

func TestAFirstPassMakesTheChildrenAndSaysThatItInitializes(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeServer())
	server, result, writes := w.pass()
	wrote(t, writes, "apply NetworkPolicy demo", "apply Deployment demo",
		"apply Service demo-svc", "apply Service demo-pods", "status MCPServer demo")
	is(t, server, controller.ConditionTypeAccepted, metav1.ConditionTrue, controller.ReasonValid, "Configuration is valid")
	is(t, server, controller.ConditionTypeReady, metav1.ConditionUnknown, controller.ReasonInitializing, "Waiting for pods")
	if server.Status.Phase != mcpv1alpha1.PhasePending || server.Status.Endpoint != "" || result.RequeueAfter != 0 || w.dialled != nil {
		t.Errorf("phase %q, endpoint %q, requeue after %s, dialled %v", server.Status.Phase, server.Status.Endpoint, result.RequeueAfter, w.dialled)
	}
	deployment := &appsv1.Deployment{ObjectMeta: server.ObjectMeta}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "demo-svc", Namespace: "team"}}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: server.ObjectMeta}
	for _, child := range []client.Object{deployment, service, policy} {
		w.get(child)
		labels := child.GetLabels()
		if labels[controller.LabelKeyApp] != controller.ManagedWorkloadName || labels[controller.LabelKeyMCPServer] != "demo" {
			t.Errorf("%T has the labels %v", child, labels)
		}
		if !metav1.IsControlledBy(child, server) {
			t.Errorf("%T has the owners %v", child, child.GetOwnerReferences())
		}
	}
	pods := deployment.Spec.Template
	if pods.Labels[controller.LabelKeyMCPServer] != "demo" || pods.Spec.Containers[0].Name != controller.ManagedWorkloadName {
		t.Errorf("pods have the labels %v and the containers %v", pods.Labels, pods.Spec.Containers)
	}
}

func TestAServerIsReadyOnceItAnsweredAndAtRestNothingIsWrittenOrDialled(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeServer())
	w.reconciler.TLSProfile = func(config *tls.Config) { config.MinVersion = tls.VersionTLS13 }
	w.pass()
	w.rollOut()
	server, result, writes := w.pass()
	wrote(t, writes, "status MCPServer demo")
	is(t, server, controller.ConditionTypeReady, metav1.ConditionTrue, controller.ReasonAvailable, "(1 of 1 instances healthy)")
	if diff := cmp.Diff([]string{endpoint}, w.dialled); diff != "" {
		t.Errorf("dialled (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(serverInfo(), server.Status.ServerInfo); diff != "" {
		t.Errorf("serverInfo (-want +got)\n%s", diff)
	}
	if server.Status.Endpoint != endpoint || server.Status.Phase != mcpv1alpha1.PhaseReady || server.Status.ReadyReplicas != 1 || result.RequeueAfter != 0 {
		t.Errorf("status %+v, requeue after %s", server.Status, result.RequeueAfter)
	}
	_, _, writes = w.pass()
	wrote(t, writes)
	if len(w.dialled) != 1 {
		t.Errorf("dialled at rest: %v", w.dialled[1:])
	}
}

func TestAServerThatDoesNotAnswerIsNotReadyAndIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeServer())
	w.pass()
	w.rollOut()
	w.dialErr = errors.New("it speaks HTML")
	server, result, _ := w.pass()
	is(t, server, controller.ConditionTypeReady, metav1.ConditionFalse, controller.ReasonMCPEndpointUnavailable,
		"MCP endpoint is not serving a valid MCP protocol: it speaks HTML")
	if result.RequeueAfter != 10*time.Second || server.Status.Endpoint != "" || server.Status.Phase != mcpv1alpha1.PhaseFailed {
		t.Errorf("requeue after %s, endpoint %q, phase %q", result.RequeueAfter, server.Status.Endpoint, server.Status.Phase)
	}
	w.dialErr = nil
	server, _, writes := w.pass()
	wrote(t, writes, "status MCPServer demo")
	is(t, server, controller.ConditionTypeReady, metav1.ConditionTrue, controller.ReasonAvailable, "")
}

func TestAnAnswerOfOldPodsDoesNotCountForANewGeneration(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeServer(func(server *mcpv1alpha1.MCPServer) { server.Generation = 2 }))
	w.pass()
	w.rollOut(func(status *appsv1.DeploymentStatus) { status.Replicas = 2 })
	server, _, _ := w.pass()
	is(t, server, controller.ConditionTypeReady, metav1.ConditionUnknown, controller.ReasonInitializing, "older generation")
	if w.dialled != nil {
		t.Errorf("dialled %v while old pods may answer", w.dialled)
	}
	w.rollOut()
	server, _, _ = w.pass()
	is(t, server, controller.ConditionTypeReady, metav1.ConditionTrue, controller.ReasonAvailable, "")
}

func TestZeroReplicasAreNotReady(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeServer(func(server *mcpv1alpha1.MCPServer) { server.Spec.Replicas = new(int32) }))
	server, _, _ := w.pass()
	is(t, server, controller.ConditionTypeReady, metav1.ConditionFalse, controller.ReasonScaledToZero, "scaled to 0")
	if server.Status.Phase != mcpv1alpha1.PhaseScaledToZero || w.dialled != nil {
		t.Errorf("phase %q, dialled %v", server.Status.Phase, w.dialled)
	}
}

func TestNothingIsWrittenForWhatIsGoneOrEnding(t *testing.T) {
	t.Parallel()
	end := func(obj client.Object) {
		obj.SetDeletionTimestamp(new(metav1.Now()))
		obj.SetFinalizers([]string{"example.com/hold"})
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	end(namespace)
	for name, tt := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"the server is gone": {},
		"the server is being deleted: what is left is still observed": {
			objects: []client.Object{makeServer(func(server *mcpv1alpha1.MCPServer) { end(server) })},
			want:    []string{"status MCPServer demo"},
		},
		"its namespace is being ended": {objects: []client.Object{makeServer(), namespace}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, tt.objects...)
			result, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(makeServer())})
			if err != nil || result != (ctrl.Result{}) {
				t.Errorf("result %+v, error %v", result, err)
			}
			wrote(t, w.writes, tt.want...)
		})
	}
}

func TestAMissingSecretIsTheUsersToMend(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeServer(func(server *mcpv1alpha1.MCPServer) {
		server.Spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "api-keys"}}}
	}))
	server, result, writes := w.pass()
	wrote(t, writes, "status MCPServer demo")
	is(t, server, controller.ConditionTypeAccepted, metav1.ConditionFalse, controller.ReasonInvalid,
		"Secret 'api-keys' (secretRefs) not found in namespace 'team'")
	is(t, server, controller.ConditionTypeReady, metav1.ConditionFalse, controller.ReasonConfigurationInvalid, "Configuration must be fixed: Secret 'api-keys'")
	if result.RequeueAfter != 0 {
		t.Errorf("requeue after %s: a watch brings it back", result.RequeueAfter)
	}
	if err := w.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "api-keys", Namespace: "team"}}); err != nil {
		t.Fatal(err)
	}
	server, _, writes = w.pass()
	is(t, server, controller.ConditionTypeAccepted, metav1.ConditionTrue, controller.ReasonValid, "")
	if len(writes) != 5 {
		t.Errorf("writes %v, want four children and the status", writes)
	}
}

func TestAForeignDeploymentIsNotTouched(t *testing.T) {
	t.Parallel()
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team"}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1}}
	w := makeWorld(t, makeServer(), foreign)
	server, result, writes := w.pass()
	wrote(t, writes, "status MCPServer demo")
	is(t, server, mcpv1alpha1.ConditionApplied, metav1.ConditionFalse, mcpv1alpha1.ReasonOwnershipConflict,
		"Failed to reconcile Deployment: resource team/demo exists but has no controller owner")
	is(t, server, controller.ConditionTypeReady, metav1.ConditionFalse, controller.ReasonDeploymentUnavailable, "exists but has no controller owner")
	if result.RequeueAfter != 0 || w.dialled != nil {
		t.Errorf("requeue after %s, dialled %v", result.RequeueAfter, w.dialled)
	}
}

func TestNoServerRunsInTheNamespaceOfTheOperator(t *testing.T) {
	t.Parallel()
	server := makeServer(func(server *mcpv1alpha1.MCPServer) { server.Namespace = "mcp-operator-system" })
	w := makeWorld(t, server)
	if _, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(server)}); err != nil {
		t.Fatal(err)
	}
	wrote(t, w.writes, "status MCPServer demo")
	w.get(server)
	is(t, server, controller.ConditionTypeAccepted, metav1.ConditionFalse, controller.ReasonInvalid, "operator's own namespace")
}

func TestTLSEnvVarsReachTheContainerAndWin(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeServer(func(server *mcpv1alpha1.MCPServer) {
		server.Spec.Env = []corev1.EnvVar{{Name: "TLS_MIN_VERSION", Value: "VersionTLS10"}, {Name: "LOG", Value: "info"}}
	}))
	w.reconciler.TLSEnvVars = []corev1.EnvVar{{Name: "TLS_MIN_VERSION", Value: "VersionTLS13"}}
	w.pass()
	d := &appsv1.Deployment{ObjectMeta: makeServer().ObjectMeta}
	w.get(d)
	want := []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}, {Name: "LOG", Value: "info"}, {Name: "TLS_MIN_VERSION", Value: "VersionTLS13"}}
	if diff := cmp.Diff(want, d.Spec.Template.Spec.Containers[0].Env); diff != "" {
		t.Errorf("environment (-want +got)\n%s", diff)
	}
}

func TestAnEmptySpecificationIsReconciledWithTheDefaultsOfTheCode(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, makeServer(func(server *mcpv1alpha1.MCPServer) {
		server.Generation, server.Spec = 0, mcpv1alpha1.MCPServerSpec{
			Config: &mcpv1alpha1.ServerConfig{}, PodSecurity: &mcpv1alpha1.PodSecurity{}, Resources: &mcpv1alpha1.Resources{},
			Probes: &mcpv1alpha1.Probes{}, Scheduling: &mcpv1alpha1.Scheduling{}, UpdateStrategy: &mcpv1alpha1.UpdateStrategy{},
			Network: &mcpv1alpha1.Network{}, EnvFrom: []corev1.EnvFromSource{{}}, Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{}}},
		}
	}))
	w.pass()
	w.rollOut()
	server, _, _ := w.pass()
	is(t, server, controller.ConditionTypeReady, metav1.ConditionTrue, controller.ReasonAvailable, "")
	if diff := cmp.Diff([]string{endpoint}, w.dialled); diff != "" {
		t.Errorf("dialled (-want +got)\n%s", diff)
	}
}

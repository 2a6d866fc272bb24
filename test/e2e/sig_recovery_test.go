package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestAForeignChildOfTheCompatibilityAPIIsToldByItsKindAndTheServerGoesOnWhenItGoes(t *testing.T) {
	t.Parallel()
	selector := map[string]string{"who": "somebody-else"}
	meta := metav1.ObjectMeta{Name: "taken"}
	template := echoPod("foreign")
	template.Labels = selector
	tests := map[string]struct {
		foreign client.Object
		reason  string // of Ready
	}{
		"Deployment": {reason: "DeploymentUnavailable", foreign: &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: corev1.PodSpec{Containers: template.Spec.Containers}},
		}}},
		"Service": {reason: "ServiceUnavailable", foreign: &corev1.Service{
			ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 80}}},
		}},
		"NetworkPolicy": {reason: "NetworkPolicyUnavailable", foreign: &networkingv1.NetworkPolicy{
			ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: selector}},
		}},
	}
	for kind, tt := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := withCompatibilityAPI(t)
			f.create(tt.foreign)
			f.settle(tt.foreign)
			version := tt.foreign.GetResourceVersion()
			f.create(sigServer("taken"))
			said := []string{"Failed to reconcile " + kind + ": resource " + f.namespace + "/taken exists but has no controller owner"}
			taken := f.sigSays("taken", readySoon, metav1.ConditionFalse, tt.reason, said...)
			if problem := isSaid(taken, "Accepted", metav1.ConditionTrue, "Valid", "Configuration is valid"); problem != "" {
				t.Errorf("Accepted: %s", problem)
			}
			if taken.Status.Address != nil {
				t.Errorf("a server that cannot be reached has the address %v", taken.Status.Address)
			}
			await(t, "a Warning event says so too", readySoon, func() string { return f.warned("taken", append(said, tt.reason)...) })
			f.read("taken", tt.foreign)
			if now := tt.foreign.GetResourceVersion(); now != version {
				t.Errorf("the foreign %s was written: its resourceVersion was %s and is %s", kind, version, now)
			}
			f.remove(tt.foreign)
			if f.sigReady("taken").Status.Address == nil {
				t.Error("a server that is ready has no address")
			}
		})
	}
}

// A server that is made while it is paused has no Deployment, whatever the cluster does: so Initializing lasts and can be looked at.
func TestAServerWithoutADeploymentIsInitializingAndBecomesReadyOnceItIsMade(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	held := sigServer("held")
	held.Annotations = map[string]string{mcpv1alpha1.AnnotationPaused: "true"}
	f.create(held)
	starting := f.sigSays("held", readySoon, metav1.ConditionUnknown, "Initializing", "Waiting for Deployment to report status")
	if status := starting.Status; status.Address != nil || status.DeploymentName != "" || status.ServerInfo != nil {
		t.Errorf("before anything runs the status is %+v", status)
	}
	if err := cluster.client.Get(t.Context(), f.key("held"), &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("a paused server has a Deployment: %v", err)
	}
	f.patch("held", held, func() { held.Annotations = nil })
	f.sigReady("held")
}

func TestAServerWhoseImageWasNeverPulledIsReadyOnceTheImageIsMended(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(sigServer("misspelt", func(spec *sigv1alpha1.MCPServerSpec) { spec.Source.ContainerImage.Ref = "registry.invalid/none:1" }))
	failing := f.sigSays("misspelt", 2*podStart, metav1.ConditionFalse, "DeploymentUnavailable",
		`Image pull failed for "registry.invalid/none:1": `, "(pod: misspelt-")
	if failing.Status.Address != nil {
		t.Errorf("a server that never ran has the address %v", failing.Status.Address)
	}
	f.sigEdit("misspelt", func(spec *sigv1alpha1.MCPServerSpec) { spec.Source.ContainerImage.Ref = imageOf("echo") })
	if healed := f.sigReady("misspelt"); healed.Status.Address == nil || healed.Status.ServerInfo == nil || healed.Status.ReadyReplicas != 1 {
		t.Errorf("the status of the mended server is %+v", healed.Status)
	}
}

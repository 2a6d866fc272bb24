package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcp-operator/mcp-operator/internal/desired"
)

func TestOfAPodOnlyWhatIsReadIsKept(t *testing.T) {
	t.Parallel()
	full := makePod(ready, func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{"a": "b"}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		pod.Spec.NodeName = "node-1"
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar", Image: "proxy:1"})
		pod.Spec.Volumes = []corev1.Volume{{Name: "tmp"}}
		pod.Status.Phase, pod.Status.HostIP, pod.Status.StartTime = corev1.PodRunning, "192.0.2.9", new(ago(0))
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init"}}
	})
	want := full.DeepCopy()
	want.Annotations, want.ManagedFields, want.Status.HostIP = nil, nil, ""
	want.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: desired.WorkloadName, Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}}
	asBefore := diagnosePod(full, now)

	got, err := trimPod(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got)\n%s", diff)
	}
	trimmed, ok := got.(*corev1.Pod)
	if !ok || diagnosePod(trimmed, now) != asBefore || podPort(trimmed) != 8080 || !isReady(trimmed) {
		t.Errorf("a trimmed pod is judged differently: %+v", got)
	}
	if other, err := trimPod("tombstone"); other != "tombstone" || err != nil {
		t.Errorf("what is no pod became %v, %v", other, err)
	}
}

func TestOfForeignObjectsOnlyTheMetadataIsKept(t *testing.T) {
	t.Parallel()
	type owners = []metav1.OwnerReference
	tests := map[string]struct {
		owners owners
		ours   bool
	}{
		"the label alone does not make it ours":         {},
		"a controller of another kind":                  {owners: owners{{Kind: "StatefulSet", Name: "demo", Controller: new(true)}}},
		"a server that is an owner, not the controller": {owners: owners{{Kind: "MCPServer", Name: "demo"}}},
		"ours": {owners: makeDeployment().OwnerReferences, ours: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := metav1.ObjectMeta{
				Name: "demo", OwnerReferences: tt.owners, Labels: map[string]string{desired.LabelMCPServer: "demo"},
				Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			}
			trimmed, kept := full, full
			trimmed.Annotations, trimmed.ManagedFields, kept.ManagedFields = nil, nil, nil
			deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}, Status: appsv1.DeploymentStatus{Replicas: 1}}
			service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "192.0.2.1"}}
			policy := &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress"}}}
			want := []client.Object{
				&appsv1.Deployment{ObjectMeta: trimmed}, &corev1.Service{ObjectMeta: trimmed}, &networkingv1.NetworkPolicy{ObjectMeta: trimmed},
			}
			if tt.ours {
				deployment.ObjectMeta, service.ObjectMeta, policy.ObjectMeta = kept, kept, kept
				want = []client.Object{deployment.DeepCopy(), service.DeepCopy(), policy.DeepCopy()}
			}
			deployment.ObjectMeta, service.ObjectMeta, policy.ObjectMeta = *full.DeepCopy(), *full.DeepCopy(), *full.DeepCopy()
			for i, obj := range []client.Object{deployment, service, policy} {
				got, err := trimForeign(obj)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(any(want[i]), got); diff != "" {
					t.Errorf("kept of a %T (-want +got)\n%s", obj, diff)
				}
			}
		})
	}
}

func TestOfWhatIsOnlyLookedForNoCopyOfItsContentIsKept(t *testing.T) {
	t.Parallel()
	options, err := CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	trimmed := 0
	for kind, by := range options.ByObject {
		switch kind.(type) {
		case *corev1.Secret, *corev1.ConfigMap, *corev1.Namespace:
		default:
			continue
		}
		trimmed++
		got, err := by.Transform(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "demo", Namespace: "team", UID: "uid-1", ResourceVersion: "7", Labels: map[string]string{"team": "a"},
			Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: `{"stringData":{"token":"secret"}}`},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team", UID: "uid-1", ResourceVersion: "7"}}
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Errorf("kept of a %T (-want +got)\n%s", kind, diff)
		}
	}
	if trimmed != 3 {
		t.Errorf("%d kinds are trimmed, want Secret, ConfigMap and Namespace", trimmed)
	}
	if other, err := trimMetadata("tombstone"); other != "tombstone" || err != nil {
		t.Errorf("what is no object became %v, %v", other, err)
	}
}

func TestOnlyPodsOfServersAreCached(t *testing.T) {
	t.Parallel()
	options, err := CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	var selected k8slabels.Selector
	for obj, by := range options.ByObject {
		if _, isPod := obj.(*corev1.Pod); isPod {
			selected = by.Label
		}
	}
	if selected == nil || selected.String() != "mcp-server" {
		t.Errorf("pods are selected by %v, want the label mcp-server, whatever its value", selected)
	}
}

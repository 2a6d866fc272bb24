package engine

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
)

func TestOfAPodOnlyWhatIsReadIsKept(t *testing.T) {
	t.Parallel()
	probing := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path}}}
	}
	full := makePod(ready, func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{"a": "b"}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		pod.Spec.NodeName = "node-1"
		c := &pod.Spec.Containers[0]
		c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = probing("/start"), probing("/ready"), probing("/live")
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar", Image: "proxy:1"})
		pod.Spec.Volumes = []corev1.Volume{{Name: "tmp"}}
		pod.Status.Phase, pod.Status.HostIP, pod.Status.StartTime = corev1.PodRunning, "192.0.2.9", new(ago(0))
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init"}}
	})
	want := full.DeepCopy()
	want.Annotations, want.ManagedFields, want.Status.HostIP = nil, nil, ""
	want.Spec = corev1.PodSpec{Containers: []corev1.Container{{
		Name: desired.WorkloadName, Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
		StartupProbe: probing("/start"), ReadinessProbe: probing("/ready"), LivenessProbe: probing("/live"),
	}}}
	asBefore := diagnose.Subject{}.Pod(full, now)

	got, err := trimPod(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got)\n%s", diff)
	}
	trimmed, ok := got.(*corev1.Pod)
	if !ok || (diagnose.Subject{}).Pod(trimmed, now) != asBefore || podPort(trimmed) != 8080 || !diagnose.IsReady(trimmed) {
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
		"a server's": {owners: makeDeployment().OwnerReferences, ours: true},
		"an agent's": {owners: owners{{Kind: "MCPAgent", Name: "demo", Controller: new(true)}}, ours: true},
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
			for _, obj := range contentful() {
				want := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object) //nolint:forcetypeassert // of obj's type
				setMeta(want, trimmed)
				if tt.ours {
					want = obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of it
					setMeta(want, kept)
				}
				setMeta(obj, full)
				got, err := trimForeign(obj)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(any(want), got); diff != "" {
					t.Errorf("kept of a %T (-want +got)\n%s", obj, diff)
				}
			}
		})
	}
}

// contentful returns an object with content of every kind of children that is cached whole.
func contentful() []client.Object {
	return []client.Object{
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}, Status: appsv1.DeploymentStatus{Replicas: 1}},
		&corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "192.0.2.1"}},
		&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress"}}},
		&corev1.ServiceAccount{
			AutomountServiceAccountToken: new(true), Secrets: []corev1.ObjectReference{{Name: "a"}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "b"}},
		},
		&rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Name: "a"}, Subjects: []rbacv1.Subject{{Name: "b"}}},
		&autoscalingv2.HorizontalPodAutoscaler{
			Spec:   autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 1},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 1},
		},
		&policyv1.PodDisruptionBudget{
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
			Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1},
		},
	}
}

func setMeta(obj client.Object, meta metav1.ObjectMeta) {
	reflect.ValueOf(obj).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(*meta.DeepCopy()))
}

func TestOfEveryKindThatIsCachedWholeForeignObjectsAreTrimmed(t *testing.T) {
	t.Parallel()
	options, err := CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	trimmed := map[reflect.Type]bool{}
	for kind := range options.ByObject {
		trimmed[reflect.TypeOf(kind)] = true
	}
	for _, obj := range contentful() {
		if !trimmed[reflect.TypeOf(obj)] {
			t.Errorf("the cache keeps all content of every %T of the cluster", obj)
		}
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
			Name: "demo", Namespace: "team", UID: "uid-1", ResourceVersion: "7", Labels: map[string]string{"team": "a", "mcp.operator/tool": "x"},
			Annotations: map[string]string{
				corev1.LastAppliedConfigAnnotation: `{"stringData":{"token":"secret"}}`, "mcp.operator/allowed-hosts": "api.example.com",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "demo", Namespace: "team", UID: "uid-1", ResourceVersion: "7",
			Labels: map[string]string{"mcp.operator/tool": "x"}, Annotations: map[string]string{"mcp.operator/allowed-hosts": "api.example.com"},
		}}
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

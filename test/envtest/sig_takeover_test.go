package envtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

// Whoever moves has servers in use: their pods must not be replaced for that.
func TestTakingOverADeploymentReplacesNoPod(t *testing.T) {
	f := start(t, nil)
	f.stop()
	server := f.sigServer("in-use")
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1536Mi"), corev1.ResourceCPU: resource.MustParse("0.5")}
	probe := func() *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	}
	variables := []corev1.EnvVar{
		{Name: "PLAIN", Value: "x"},
		{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		{Name: "MEMORY", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
	}
	server.Spec.Config.Env = variables
	server.Spec.Config.Storage = []sigv1alpha1.StorageMount{{
		Path: "/data", Permissions: sigv1alpha1.PermissionsReadWrite,
		Source: sigv1alpha1.StorageSource{Type: sigv1alpha1.StorageEmptyDir, EmptyDir: &corev1.EmptyDirVolumeSource{}},
	}}
	server.Spec.ExtraLabels = map[string]string{"team": "a"}
	server.Spec.Runtime = &sigv1alpha1.Runtime{
		Resources: &corev1.ResourceRequirements{Limits: limits},
		Security:  &sigv1alpha1.Security{ServiceAccountName: "cloud"},
		Health:    &sigv1alpha1.Health{LivenessProbe: probe()},
	}
	f.create(server)
	labels := map[string]string{"app": "mcp-server", "mcp-server": "in-use", "team": "a"}
	theirs := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "in-use", Namespace: f.namespace, Labels: labels,
			Annotations:     map[string]string{"mcp.x-k8s.io/managed-extra-labels": `{"team":"a"}`},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(server, sigv1alpha1.GroupVersion.WithKind("MCPServer"))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"mcp-server": "in-use"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "cloud", SecurityContext: &corev1.PodSecurityContext{},
					Volumes: []corev1.Volume{{Name: "vol-0", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
					Containers: []corev1.Container{{
						Name: "mcp-server", Image: "registry.example.com/server:1", Env: variables,
						Ports:          []corev1.ContainerPort{{Name: "mcp", ContainerPort: 8080}},
						Resources:      corev1.ResourceRequirements{Limits: limits},
						VolumeMounts:   []corev1.VolumeMount{{Name: "vol-0", MountPath: "/data"}},
						LivenessProbe:  probe(),
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}},
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
							Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
							SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
						},
					}},
				},
			},
		},
	}
	if err := f.client.Create(f.ctx, theirs, client.FieldOwner("manager")); err != nil {
		t.Fatal(err)
	}
	f.run(nil)
	f.eventually("the last child is there", func() error { return f.get(&corev1.Service{}, "in-use") })
	f.quiet()
	ours := &appsv1.Deployment{}
	if err := f.get(ours, "in-use"); err != nil {
		t.Fatal(err)
	}
	if ours.Annotations["mcp.operator/applied-hash"] == "" {
		t.Error("it was not taken over")
	}
	if diff := cmp.Diff(theirs.Spec.Template, ours.Spec.Template); diff != "" {
		t.Errorf("template of the pods (-theirs +ours)\n%s", diff)
	}
}

package e2e

import (
	"fmt"
	"strings"
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

func TestStorageOfEachTypeIsMountedAsPermitted(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "from-the-configmap"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"b": "from-the-secret"}},
	)
	f.create(sigServer("stored", func(spec *sigv1alpha1.MCPServerSpec) {
		spec.Config.Storage = []sigv1alpha1.StorageMount{
			{Path: "/settings", Source: sigv1alpha1.StorageSource{Type: "ConfigMap", ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Items: []corev1.KeyToPath{{Key: "a", Path: "renamed"}},
			}}},
			{Path: "/keys", Permissions: sigv1alpha1.PermissionsRecursiveReadOnly, Source: sigv1alpha1.StorageSource{
				Type: "Secret", Secret: &corev1.SecretVolumeSource{SecretName: "keys"},
			}},
			{
				Path: "/data", Permissions: sigv1alpha1.PermissionsReadWrite,
				Source: sigv1alpha1.StorageSource{Type: "EmptyDir", EmptyDir: &corev1.EmptyDirVolumeSource{}},
			},
		}
	}))
	f.sigReady("stored")
	pod := f.key(f.sigPod("stored"))
	for path, want := range map[string]string{"/settings/renamed": "from-the-configmap", "/keys/b": "from-the-secret"} {
		if out, err := execute(t.Context(), pod, "/echo", "cat", path); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v: %s", path, err, out)
		}
	}
	mounts, err := execute(t.Context(), pod, "/echo", "cat", "/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for path, option := range map[string]string{"/settings": "ro", "/keys": "ro", "/data": "rw"} {
		if !mountedAs(mounts, path, option) {
			t.Errorf("%s is not mounted %s:\n%s", path, option, mounts)
		}
	}
}

// mountedAs says whether a path is a mount with that option first, in the words of /proc/self/mounts.
func mountedAs(mounts, path, option string) bool {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[1] == path {
			return strings.HasPrefix(fields[3], option)
		}
	}
	return false
}

func TestServersOfTheCompatibilityAPIRecoverByThemselves(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(sigServer("late", func(spec *sigv1alpha1.MCPServerSpec) {
		spec.Runtime = &sigv1alpha1.Runtime{Replicas: new(int32(1))}
		spec.Config.EnvFrom = allOf("settings")
		spec.Config.Storage = []sigv1alpha1.StorageMount{{Path: "/keys", Source: sigv1alpha1.StorageSource{
			Type: "Secret", Secret: &corev1.SecretVolumeSource{SecretName: "keys"},
		}}}
	}))
	notFound := func(message string) string {
		return fmt.Sprintf("%s not found in namespace '%s'", message, f.namespace)
	}
	f.sigSays("late", readySoon, metav1.ConditionFalse, "ConfigurationInvalid", "Configuration must be fixed", notFound("Secret 'keys'"))
	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}})
	f.sigSays("late", readySoon, metav1.ConditionFalse, "ConfigurationInvalid", notFound("ConfigMap 'settings' (envFrom index 0)"))
	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}})
	f.sigReady("late")

	f.sigEdit("late", func(spec *sigv1alpha1.MCPServerSpec) { spec.Source.ContainerImage.Ref = "registry.invalid/none:1" })
	f.sigAwait("late", "stays ready while a bad image cannot replace what serves", readySoon, func(server *sigv1alpha1.MCPServer) string {
		if server.Status.ReadyReplicas != 1 || server.Status.Address == nil {
			return fmt.Sprintf("%+v", server.Status)
		}
		return ""
	})
	f.sigEdit("late", func(spec *sigv1alpha1.MCPServerSpec) { spec.Source.ContainerImage.Ref = imageOf("echo") })
	f.sigReady("late")

	service, deployment := &corev1.Service{}, &appsv1.Deployment{}
	f.patch("late", service, func() { service.Spec.Ports[0].Port = 1 })
	await(t, "the port is mended", readySoon, func() string {
		if f.read("late", service); service.Spec.Ports[0].Port != 8080 {
			return fmt.Sprint(service.Spec.Ports)
		}
		return ""
	})
	f.kubectl("scale", "deployment", "late", "--replicas=3")
	await(t, "the number of replicas is mended", readySoon, func() string {
		if f.read("late", deployment); *deployment.Spec.Replicas != 1 {
			return fmt.Sprint(*deployment.Spec.Replicas)
		}
		return ""
	})
	for _, child := range []client.Object{deployment, service, &networkingv1.NetworkPolicy{}} {
		f.read("late", child)
		uid := child.GetUID()
		f.remove(child)
		await(t, fmt.Sprintf("a deleted %T is made anew", child), readySoon, func() string {
			err := cluster.client.Get(t.Context(), f.key("late"), child)
			if err != nil || child.GetUID() == uid {
				return fmt.Sprintf("%v, UID %s", err, child.GetUID())
			}
			return ""
		})
	}
	f.sigReady("late")
}

func TestWhoScalesTheDeploymentOrRestartsItIsLet(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(sigServer("scaled"))
	f.sigReady("scaled")
	f.kubectl("scale", "deployment", "scaled", "--replicas=2")
	f.sigSays("scaled", readySoon+podStart, metav1.ConditionTrue, "Available", "(2 of 2 instances healthy)")
	f.kubectl("rollout", "restart", "deployment/scaled")
	f.kubectl("rollout", "status", "deployment/scaled", "--timeout=3m")
	f.sigSays("scaled", readySoon+podStart, metav1.ConditionTrue, "Available", "(2 of 2 instances healthy)")
}

func TestChildrenOfTheCompatibilityAPIGoWithTheirServer(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(sigServer("mortal"))
	f.sigReady("mortal")
	f.kubectl("delete", "mcpservers.mcp.x-k8s.io", "mortal")
	for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}} {
		await(t, fmt.Sprintf("the %T is gone", child), podStart, func() string {
			if err := cluster.client.Get(t.Context(), f.key("mortal"), child); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("it is not: %v", err)
			}
			return ""
		})
	}
}

func TestTwoAPIsWithOneNameDoNotHurtEachOther(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	first := f.run(server("shared"))
	isReady := has(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable)
	first.await("is ready", readySoon+podStart, isReady)
	f.create(sigServer("shared"))
	f.sigSays("shared", readySoon, metav1.ConditionFalse, "DeploymentUnavailable", "Failed to reconcile Deployment: ", "is owned by MCPServer/shared")
	first.await("is ready as before", readySoon, isReady)
	f.kubectl("delete", "mcpservers.mcp.operator", "shared")
	f.sigReady("shared")
}

func TestCallersOfTheCompatibilityAPIAreLimitedOnRequestOnly(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	outside := &fixture{t: t, namespace: newNamespace(t)}
	stranger := outside.echo(echoPod("stranger", "sleep"))
	friend := f.echo(echoPod("friend", "sleep"))
	f.create(sigServer("open"))
	address := f.sigReady("open").Status.Address.URL
	reaches(t, "a stranger", stranger, address)
	f.sigEdit("open", func(spec *sigv1alpha1.MCPServerSpec) {
		only := &metav1.LabelSelector{MatchLabels: map[string]string{"name": "friend"}}
		spec.Network = &sigv1alpha1.Network{IngressFrom: []networkingv1.NetworkPolicyPeer{{PodSelector: only}}}
	})
	isKeptOut(t, "a stranger", stranger, address)
	reaches(t, "a friend", friend, address)
	f.sigReady("open")
}

package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// volume makes a PersistentVolumeClaim, bound to a folder of the node.
func (f *fixture) volume(name string) {
	f.t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: f.namespace, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/tmp/" + f.namespace + "-" + name, Type: new(corev1.HostPathDirectoryOrCreate),
			}},
		},
	}
	if err := cluster.client.Create(f.t.Context(), volume); err != nil {
		f.t.Fatalf("create a PersistentVolume: %v", err)
	}
	f.t.Cleanup(func() {
		if err := cluster.client.Delete(context.Background(), volume); err != nil && !apierrors.IsNotFound(err) {
			f.t.Error(err)
		}
	})
	f.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: volume.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size},
			StorageClassName: new(""), VolumeName: volume.Name,
		},
	})
}

func TestStorageOfEveryKindIsMountedAsAskedAndWhatIsMissingIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	f := start(t)
	named := func(name string) mcpv1alpha1.ObjectName { return mcpv1alpha1.ObjectName{Name: name} }
	s := f.run(server("stored").echo("serve").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Storage = []mcpv1alpha1.StorageMount{
			{MountPath: "/scratch", EmptyDir: &mcpv1alpha1.EmptyDirStorage{Medium: corev1.StorageMediumMemory, SizeLimit: "1Mi"}},
			{MountPath: "/files", ConfigMap: &mcpv1alpha1.ObjectStorage{ObjectName: named("files"), Items: []mcpv1alpha1.KeyFile{{Key: "a", Path: "b/c"}}}},
			{MountPath: "/keys", Secret: &mcpv1alpha1.ObjectStorage{ObjectName: named("keys")}},
			{MountPath: "/data", Access: mcpv1alpha1.AccessReadWrite, PersistentVolumeClaim: &mcpv1alpha1.ClaimStorage{ClaimName: "data"}},
			{MountPath: "/models", PersistentVolumeClaim: &mcpv1alpha1.ClaimStorage{ClaimName: "data"}},
		}
	}))
	invalid := func(words ...string) check {
		return has(mcpv1alpha1.ConditionAccepted, metav1.ConditionFalse, mcpv1alpha1.ReasonInvalid, words...)
	}
	s.await("misses its ConfigMap", readySoon, invalid("ConfigMap 'files'", "not found"))
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"z": "z"}}
	f.create(files)
	s.await("misses a key of it", readySoon, invalid("has no key 'a'"))
	f.patch("files", files, func() { files.Data["a"] = "content-of-a" })
	s.await("misses its Secret", readySoon, invalid("Secret 'keys'", "not found"))
	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"k": "content-of-k"}})
	s.await("misses its claim", podStart, has(mcpv1alpha1.ConditionAvailable, metav1.ConditionFalse, mcpv1alpha1.ReasonUnschedulable, `"data" not found`))
	f.volume("data")

	pod := s.runningPod()
	for _, tt := range []struct {
		command []string
		want    []string
	}{
		{[]string{"cat", "/files/b/c"}, []string{"content-of-a"}},
		{[]string{"cat", "/keys/k"}, []string{"content-of-k"}},
		{[]string{"cat", "/proc/self/mountinfo"}, []string{" /scratch rw,", " /files ro,", " /keys ro,", " /data rw,", " /models ro,"}},
	} {
		out, err := execute(t.Context(), pod, append([]string{"/echo"}, tt.command...)...)
		if err != nil {
			t.Errorf("%v: %v\n%s", tt.command, err, out)
			continue
		}
		if err := missing(out, tt.want); err != nil {
			t.Errorf("%v: %v", tt.command, err)
		}
	}

	f.patch("files", files, func() { files.Data["a"] = "other-content" })
	s.await("another content replaces the pod", podStart, func(*mcpv1alpha1.MCPServer) string {
		if names := s.podNames(); len(names) != 1 || names[pod.Name] {
			return "the old pod is still there"
		}
		return ""
	})
}

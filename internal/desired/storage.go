package desired

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// storageVolumeName is the name of the volume at a mount path. It does not depend on the order of the list, so that a volume
// which is added in front of others leaves these alone.
func storageVolumeName(mountPath mcpv1alpha1.MountPath) string {
	sum := sha256.Sum256([]byte(mountPath))
	return "storage-" + hex.EncodeToString(sum[:8])
}

// storageVolume says every default, so that what is applied is complete.
func storageVolume(asked mcpv1alpha1.StorageMount) corev1.Volume {
	volume := corev1.Volume{Name: storageVolumeName(asked.MountPath)}
	switch {
	case asked.EmptyDir != nil:
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: asked.EmptyDir.Medium}
		if limit, err := resource.ParseQuantity(asked.EmptyDir.SizeLimit); err == nil { // the schema admits nothing else but none
			volume.EmptyDir.SizeLimit = &limit
		}
	case asked.ConfigMap != nil:
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: asked.ConfigMap.Name},
			Items:                keyFiles(asked.ConfigMap.Items), DefaultMode: fileMode(asked.ConfigMap), Optional: new(asked.ConfigMap.Optional),
		}
	case asked.Secret != nil:
		volume.Secret = &corev1.SecretVolumeSource{
			SecretName: asked.Secret.Name,
			Items:      keyFiles(asked.Secret.Items), DefaultMode: fileMode(asked.Secret), Optional: new(asked.Secret.Optional),
		}
	case asked.PersistentVolumeClaim != nil:
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: asked.PersistentVolumeClaim.ClaimName}
	}
	return volume
}

func keyFiles(asked []mcpv1alpha1.KeyFile) []corev1.KeyToPath {
	var items []corev1.KeyToPath
	for _, item := range asked {
		items = append(items, corev1.KeyToPath{Key: item.Key, Path: item.Path, Mode: item.Mode})
	}
	return items
}

func fileMode(asked *mcpv1alpha1.ObjectStorage) *int32 {
	if asked.DefaultMode != nil {
		return asked.DefaultMode
	}
	return new(readableMode)
}

func storageMount(asked mcpv1alpha1.StorageMount) corev1.VolumeMount {
	access := asked.Access
	if asked.EmptyDir != nil {
		access = cmp.Or(access, mcpv1alpha1.AccessReadWrite) // without it the folder would stay empty
	}
	mount := corev1.VolumeMount{
		Name: storageVolumeName(asked.MountPath), MountPath: string(asked.MountPath), ReadOnly: access != mcpv1alpha1.AccessReadWrite,
	}
	if access == mcpv1alpha1.AccessRecursiveReadOnly {
		mount.RecursiveReadOnly = new(corev1.RecursiveReadOnlyEnabled)
	}
	return mount
}

package desired

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

func sigPodTemplate(server *sigv1alpha1.MCPServer, env Environment, configHash string) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: sigLabels(server), Annotations: sigAnnotations(server)},
		Spec: corev1.PodSpec{
			Containers:      []corev1.Container{sigContainer(server, env)},
			SecurityContext: &corev1.PodSecurityContext{},
		},
	}
	if configHash != "" {
		template.Annotations[SIGAnnotationConfigHash] = configHash
	}
	if security := sigSecurity(server); security != nil {
		template.Spec.ServiceAccountName = security.ServiceAccountName
		// The API server copies the one into the other, both ways: without owning both, a name could never be given up.
		template.Spec.DeprecatedServiceAccount = security.ServiceAccountName
		template.Spec.SecurityContext = cmp.Or(security.PodSecurityContext, template.Spec.SecurityContext)
	}
	for i, mount := range server.Spec.Config.Storage {
		template.Spec.Volumes = append(template.Spec.Volumes, sigVolume(i, mount.Source))
	}
	return template
}

func sigSecurity(server *sigv1alpha1.MCPServer) *sigv1alpha1.Security {
	if server.Spec.Runtime == nil {
		return nil
	}
	return server.Spec.Runtime.Security
}

func sigContainer(server *sigv1alpha1.MCPServer, env Environment) corev1.Container {
	config := server.Spec.Config
	c := corev1.Container{
		Name:           WorkloadName,
		Args:           config.Arguments,
		Ports:          []corev1.ContainerPort{{Name: portName, ContainerPort: config.Port, Protocol: corev1.ProtocolTCP}},
		Env:            sigEnvironment(config.Env, env.ExtraEnv),
		EnvFrom:        config.EnvFrom,
		Resources:      resources(nil),
		ReadinessProbe: sigProbe(&corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(config.Port)}}}),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			RunAsNonRoot:             new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if image := server.Spec.Source.ContainerImage; image != nil {
		c.Image = image.Ref
	}
	for i, mount := range config.Storage {
		c.VolumeMounts = append(c.VolumeMounts, sigVolumeMount(i, mount))
	}
	if security := sigSecurity(server); security != nil {
		c.SecurityContext = cmp.Or(security.SecurityContext, c.SecurityContext)
	}
	if runtime := server.Spec.Runtime; runtime != nil {
		if runtime.Resources != nil {
			asked := runtime.Resources
			c.Resources = corev1.ResourceRequirements{Requests: rounded(asked.Requests), Limits: rounded(asked.Limits), Claims: asked.Claims}
		}
		if health := runtime.Health; health != nil {
			c.LivenessProbe = sigProbe(health.LivenessProbe)
			c.ReadinessProbe = cmp.Or(sigProbe(health.ReadinessProbe), c.ReadinessProbe)
		}
	}
	return c
}

// sigProbe returns a probe with every default said, so that what is applied is complete.
func sigProbe(asked *corev1.Probe) *corev1.Probe {
	if asked == nil {
		return nil
	}
	probe := asked.DeepCopy()
	probe.PeriodSeconds = cmp.Or(probe.PeriodSeconds, 10)
	probe.TimeoutSeconds = cmp.Or(probe.TimeoutSeconds, 1)
	probe.SuccessThreshold = cmp.Or(probe.SuccessThreshold, 1)
	probe.FailureThreshold = cmp.Or(probe.FailureThreshold, 3)
	if get := probe.HTTPGet; get != nil {
		get.Path = cmp.Or(get.Path, "/")
		get.Scheme = cmp.Or(get.Scheme, corev1.URISchemeHTTP)
	}
	if probe.GRPC != nil && probe.GRPC.Service == nil {
		probe.GRPC.Service = new("")
	}
	return probe
}

func sigVolumeName(index int) string { return fmt.Sprintf("vol-%d", index) }

func sigVolume(index int, source sigv1alpha1.StorageSource) corev1.Volume {
	volume := corev1.Volume{Name: sigVolumeName(index)}
	switch {
	case source.ConfigMap != nil:
		volume.ConfigMap = source.ConfigMap
		if volume.ConfigMap.DefaultMode == nil {
			volume.ConfigMap.DefaultMode = new(readableMode)
		}
	case source.Secret != nil:
		volume.Secret = source.Secret
		if volume.Secret.DefaultMode == nil {
			volume.Secret.DefaultMode = new(readableMode)
		}
	case source.EmptyDir != nil:
		volume.EmptyDir = source.EmptyDir
	}
	return volume
}

func sigVolumeMount(index int, mount sigv1alpha1.StorageMount) corev1.VolumeMount {
	m := corev1.VolumeMount{Name: sigVolumeName(index), MountPath: mount.Path, ReadOnly: mount.Permissions != sigv1alpha1.PermissionsReadWrite}
	if mount.Permissions == sigv1alpha1.PermissionsRecursiveReadOnly {
		m.RecursiveReadOnly = new(corev1.RecursiveReadOnlyEnabled)
	}
	return m
}

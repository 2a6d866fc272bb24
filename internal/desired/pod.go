package desired

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

const (
	// portName is the name of the container's and the Service's port.
	portName = "mcp"

	inlineConfigKey        = "config.json"
	defaultConfigPath      = "/etc/mcp/config"
	defaultSecretsPath     = "/etc/mcp/secrets/" //nolint:gosec // G101: a folder, not a credential
	configEnv              = "MCP_CONFIG"
	tmpPath                = "/tmp"
	defaultGraceSeconds    = int64(30)
	mostLingerSeconds      = int64(15)
	readableMode           = int32(0o644)
	defaultStartupFailures = int32(150)
)

func podTemplate(server *mcpv1alpha1.MCPServer, env Environment, configHash string) corev1.PodTemplateSpec {
	spec := &server.Spec
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: childLabels(server), Annotations: childAnnotations(server)},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{container(server, env)},
			Volumes:                       volumes(server),
			SecurityContext:               podSecurityContext(spec.PodSecurity),
			AutomountServiceAccountToken:  new(spec.PodSecurity != nil && spec.PodSecurity.AutomountServiceAccountToken),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(defaultGraceSeconds),
		},
	}
	for key, value := range spec.PodLabels {
		template.Labels[key] = string(value)
	}
	for key, value := range spec.PodAnnotations {
		template.Annotations[key] = string(value)
	}
	maps.Copy(template.Labels, labels(server.Name))
	if configHash != "" {
		template.Annotations[AnnotationConfigHash] = configHash
	}
	if spec.PodSecurity != nil {
		template.Spec.ServiceAccountName = spec.PodSecurity.ServiceAccountName
		// The API server copies the one into the other, both ways: without owning both, a name could never be given up.
		template.Spec.DeprecatedServiceAccount = spec.PodSecurity.ServiceAccountName
	}
	if spec.TerminationGracePeriodSeconds != nil {
		template.Spec.TerminationGracePeriodSeconds = spec.TerminationGracePeriodSeconds
	}
	template.Spec.ImagePullSecrets = localReferences(spec.ImagePullSecrets)
	place(&template.Spec, spec.Scheduling, server.Name)
	if NeedsBridge(server) {
		bridged(&template.Spec, server, env) // it drains by itself
	} else {
		template.Spec.Containers[0].Lifecycle = lingers(spec.UpdateStrategy, *template.Spec.TerminationGracePeriodSeconds)
	}
	return template
}

// lingers has a pod that is to end serve on for a while before its process is told: half of its grace period, and no more than
// gateways need to leave it (upstream.Limits.ConnAge, and podAway with what DNS is late). Calls under way end meanwhile, whatever the
// server makes of SIGTERM. Where pods are replaced one after the other, nobody else would serve in that time.
func lingers(asked *mcpv1alpha1.UpdateStrategy, graceSeconds int64) *corev1.Lifecycle {
	seconds := min(graceSeconds/2, mostLingerSeconds)
	if seconds == 0 || strategy(asked).Type == appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}}
}

func localReferences(names []mcpv1alpha1.ObjectName) []corev1.LocalObjectReference {
	var list []corev1.LocalObjectReference
	for _, n := range names {
		list = append(list, corev1.LocalObjectReference{Name: n.Name})
	}
	return list
}

func place(pod *corev1.PodSpec, asked *mcpv1alpha1.Scheduling, server string) {
	if asked == nil {
		return
	}
	if len(asked.NodeSelector) > 0 {
		pod.NodeSelector = map[string]string{}
	}
	for key, value := range asked.NodeSelector {
		pod.NodeSelector[key] = string(value)
	}
	pod.Tolerations = asked.Tolerations
	pod.Affinity = asked.Affinity
	pod.PriorityClassName = asked.PriorityClassName
	for _, constraint := range asked.TopologySpreadConstraints {
		if constraint.LabelSelector == nil {
			constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: Selector(server)}
		}
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, constraint)
	}
}

func container(server *mcpv1alpha1.MCPServer, env Environment) corev1.Container {
	spec := &server.Spec
	readOnlyRoot := spec.PodSecurity == nil || spec.PodSecurity.ReadOnlyRootFilesystem == nil || *spec.PodSecurity.ReadOnlyRootFilesystem
	c := corev1.Container{
		Name:            WorkloadName,
		Image:           spec.Image,
		ImagePullPolicy: spec.ImagePullPolicy,
		Command:         spec.Command,
		Args:            spec.Args,
		Ports:           []corev1.ContainerPort{{Name: portName, ContainerPort: Port(server), Protocol: corev1.ProtocolTCP}},
		Env:             environment(spec, env.ExtraEnv),
		EnvFrom:         spec.EnvFrom,
		Resources:       resources(spec.Resources),
		VolumeMounts:    volumeMounts(spec),
		ReadinessProbe:  probe(server, &mcpv1alpha1.Probe{}, 2, 3),
		SecurityContext: securityContext(readOnlyRoot),
	}
	if probes := spec.Probes; probes != nil {
		c.StartupProbe = probe(server, probes.Startup, 2, defaultStartupFailures)
		c.LivenessProbe = probe(server, probes.Liveness, 10, 3)
		if probes.Readiness != nil {
			c.ReadinessProbe = probe(server, probes.Readiness, 2, 3)
		}
	}
	return c
}

func securityContext(readOnlyRoot bool) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		// Said though it is the default: a field that we own is put back when somebody else sets it.
		Privileged:               new(false),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   &readOnlyRoot,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// environment is the user's variables, and ours. HOME points to the one writable folder, since many runtimes write there.
func environment(spec *mcpv1alpha1.MCPServerSpec, extra []corev1.EnvVar) []corev1.EnvVar {
	isSet := func(vars []corev1.EnvVar, name string) bool {
		return slices.ContainsFunc(vars, func(v corev1.EnvVar) bool { return v.Name == name })
	}
	var vars []corev1.EnvVar
	if !isSet(spec.Env, "HOME") {
		vars = append(vars, corev1.EnvVar{Name: "HOME", Value: tmpPath})
	}
	if spec.Config != nil {
		vars = append(vars, corev1.EnvVar{Name: configEnv, Value: configPath(spec.Config)})
	}
	for _, v := range spec.Env {
		vars = append(vars, withDefaults(v))
	}
	// Server-side apply refuses a name that is there twice.
	vars = slices.DeleteFunc(vars, func(v corev1.EnvVar) bool { return isSet(extra, v.Name) })
	return append(vars, extra...)
}

// withDefaults says what the API server would add, so that what is applied is complete: these references are replaced as a
// whole, and one without its defaults would differ from the live one for ever.
func withDefaults(v corev1.EnvVar) corev1.EnvVar {
	v = *v.DeepCopy()
	if v.ValueFrom == nil {
		return v
	}
	if ref := v.ValueFrom.FieldRef; ref != nil {
		ref.APIVersion = cmp.Or(ref.APIVersion, "v1")
	}
	return v
}

func resources(asked *mcpv1alpha1.Resources) corev1.ResourceRequirements {
	if asked != nil {
		return corev1.ResourceRequirements{Requests: rounded(asked.Requests), Limits: rounded(asked.Limits)}
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

// rounded returns amounts as the API server keeps them: no finer than a thousandth.
func rounded(list corev1.ResourceList) corev1.ResourceList {
	list = list.DeepCopy()
	for name, amount := range list {
		amount.RoundUp(resource.Milli)
		list[name] = amount
	}
	return list
}

// probe returns a kubelet probe of the server's own port, with every default said, so that what is applied is complete.
func probe(server *mcpv1alpha1.MCPServer, asked *mcpv1alpha1.Probe, period, failures int32) *corev1.Probe {
	if asked == nil {
		return nil
	}
	handler := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(Port(server))}}
	if asked.Path != "" {
		scheme := corev1.URISchemeHTTP
		if server.Spec.TLS != nil {
			scheme = corev1.URISchemeHTTPS
		}
		handler = corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: asked.Path, Port: intstr.FromInt32(Port(server)), Scheme: scheme}}
	}
	return &corev1.Probe{
		ProbeHandler:        handler,
		InitialDelaySeconds: asked.InitialDelaySeconds,
		PeriodSeconds:       cmp.Or(asked.PeriodSeconds, period),
		TimeoutSeconds:      cmp.Or(asked.TimeoutSeconds, 1),
		SuccessThreshold:    cmp.Or(asked.SuccessThreshold, 1),
		FailureThreshold:    cmp.Or(asked.FailureThreshold, failures),
	}
}

func podSecurityContext(asked *mcpv1alpha1.PodSecurity) *corev1.PodSecurityContext {
	sc := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if asked == nil {
		return sc
	}
	sc.RunAsUser, sc.RunAsGroup, sc.FSGroup = asked.RunAsUser, asked.RunAsGroup, asked.FSGroup
	if asked.RunAsNonRoot != nil {
		sc.RunAsNonRoot = asked.RunAsNonRoot
	}
	if profile := asked.SeccompProfile; profile != nil {
		sc.SeccompProfile = &corev1.SeccompProfile{Type: profile.Type}
		if profile.LocalhostProfile != "" {
			sc.SeccompProfile.LocalhostProfile = new(profile.LocalhostProfile)
		}
	}
	return sc
}

func configPath(config *mcpv1alpha1.ServerConfig) string {
	return cmp.Or(string(config.MountPath), defaultConfigPath)
}

func volumes(server *mcpv1alpha1.MCPServer) []corev1.Volume {
	list := []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if config := server.Spec.Config; config != nil {
		name := ConfigMapName(server.Name)
		if config.ConfigMapRef != nil {
			name = config.ConfigMapRef.Name
		}
		list = append(list, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, DefaultMode: new(readableMode),
		}}})
	}
	for _, ref := range server.Spec.SecretRefs {
		list = append(list, corev1.Volume{Name: secretVolumeName(ref.Name), VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: ref.Name, DefaultMode: new(readableMode), Optional: new(ref.Optional),
		}}})
	}
	for _, asked := range server.Spec.Storage {
		list = append(list, storageVolume(asked))
	}
	return list
}

func volumeMounts(spec *mcpv1alpha1.MCPServerSpec) []corev1.VolumeMount {
	list := []corev1.VolumeMount{{Name: "tmp", MountPath: tmpPath}}
	if spec.Config != nil {
		list = append(list, corev1.VolumeMount{Name: "config", MountPath: configPath(spec.Config), ReadOnly: true})
	}
	for _, ref := range spec.SecretRefs {
		path := cmp.Or(string(ref.MountPath), defaultSecretsPath+ref.Name)
		list = append(list, corev1.VolumeMount{Name: secretVolumeName(ref.Name), MountPath: path, ReadOnly: true})
	}
	for _, asked := range spec.Storage {
		list = append(list, storageMount(asked))
	}
	return list
}

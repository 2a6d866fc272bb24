package desired

import (
	"fmt"
	"path"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

const (
	// TableKey is the key of the routing table in its ConfigMap.
	TableKey = "table.json"

	// The keys of the Secret: of the key that seals session ids, of the name of that key, and of the token for the gateway's status.
	sessionKeyID      = "k1"
	sessionKeyCurrent = "current"
	statusTokenKey    = "status-token"

	tablePath       = "/etc/mcp-gateway/table"
	sessionPath     = "/etc/mcp-gateway/session"
	statusPath      = "/etc/mcp-gateway/status"
	gatewayTLSPath  = "/etc/mcp-gateway/tls"
	definitionsPath = "/var/cache/mcp-gateway"
	apiAccessPath   = "/var/run/secrets/kubernetes.io/serviceaccount"

	gatewayUser       = int64(65532)
	gatewayMode       = int32(0o440)
	gatewayHealthName = "health"
	apiTokenSeconds   = int64(3600)
)

// AgentGatewayRevision is a digest of everything that the pods of an agent's gateway are asked to be, but for their image: as long as it is
// the same, pods need not be replaced. A request for another image (AnnotationUpgradeGateway) changes it too.
func AgentGatewayRevision(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) string {
	env.GatewayImage = ""
	agent = &mcpv1alpha1.MCPAgent{ObjectMeta: agent.ObjectMeta, Spec: *agent.Spec.DeepCopy()}
	return digestOf(gatewayTemplate(agent, env), agent.Annotations[mcpv1alpha1.AnnotationUpgradeGateway])
}

func gatewayDeployment(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: agentMeta(agent, GatewayName(agent.Name), ComponentGateway),
		Spec: appsv1.DeploymentSpec{
			RevisionHistoryLimit: new(int32(3)),
			Selector:             &metav1.LabelSelector{MatchLabels: AgentSelector(agent.Name, ComponentGateway)},
			Strategy:             strategy(nil),
			Template:             gatewayTemplate(agent, env),
		},
	}
	if !HasRuntime(agent) {
		d.Spec.Strategy = strategy(agent.Spec.Rollout)
	}
	if replicas, scaled := GatewayReplicas(agent); !scaled {
		d.Spec.Replicas = &replicas
	}
	return d
}

// gatewayTemplate depends on spec.gateway and on what is mounted, and not on the table or on anything that was found out.
func gatewayTemplate(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) corev1.PodTemplateSpec {
	name := GatewayName(agent.Name)
	volumes, mounts := gatewayVolumes(agent, env)
	resources := gatewayResources(agent.Spec.Gateway)
	var pullSecrets []corev1.LocalObjectReference
	if gateway := agent.Spec.Gateway; gateway != nil {
		pullSecrets = localReferences(gateway.ImagePullSecrets)
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: agentLabels(agent.Name, ComponentGateway)},
		Spec: corev1.PodSpec{
			ServiceAccountName: name,
			// The API server copies the one into the other, both ways.
			DeprecatedServiceAccount:      name,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			ImagePullSecrets:              pullSecrets,
			TerminationGracePeriodSeconds: new(gatewayGraceSeconds),
			TopologySpreadConstraints:     spread(agent.Name),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(gatewayUser), RunAsGroup: new(gatewayUser), FSGroup: new(gatewayUser),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:    GatewayContainerName,
				Image:   env.GatewayImage,
				Command: gatewayCommand(agent),
				Env:     gatewayEnv(resources),
				Ports: []corev1.ContainerPort{
					{Name: portName, ContainerPort: GatewayPort, Protocol: corev1.ProtocolTCP},
					{Name: gatewayHealthName, ContainerPort: GatewayHealthPort, Protocol: corev1.ProtocolTCP},
				},
				Resources:       resources,
				VolumeMounts:    mounts,
				ReadinessProbe:  gatewayProbe("/readyz", 2),
				LivenessProbe:   gatewayProbe("/livez", 10),
				SecurityContext: securityContext(true),
			}},
			Volumes: volumes,
		},
	}
}

// gatewayGraceSeconds is what --drain-delay and --drain-timeout add up to, 10 s to end sessions at backends, and 2 s to spare. A call that
// takes all of the gateway's 60 s is answered though it began when the delay ended; where none runs, the pod ends after the delay.
const gatewayGraceSeconds = int64(80)

// gatewayEnv has the garbage collector work harder near the limit rather than let the kernel end the process: what a gateway holds at
// most is bounded, what waits to be collected is not.
func gatewayEnv(resources corev1.ResourceRequirements) []corev1.EnvVar {
	limit := resources.Limits.Memory().Value()
	if limit == 0 {
		return nil
	}
	return []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit/10*9, 10)}}
}

// gatewayCommand drains, and closes sessions at their backends, within the grace period.
func gatewayCommand(agent *mcpv1alpha1.MCPAgent) []string {
	command := []string{
		"/mcp-gateway", "serve",
		"--table=" + path.Join(tablePath, TableKey),
		"--configmap=" + agent.Namespace + "/" + GatewayName(agent.Name),
		"--session-keys=" + sessionPath,
		"--status-token-file=" + path.Join(statusPath, "token"),
		"--definitions-cache=" + definitionsPath,
		fmt.Sprintf("--listen=:%d", GatewayPort),
		fmt.Sprintf("--health-listen=:%d", GatewayHealthPort),
		"--drain-delay=3s", "--drain-timeout=65s",
	}
	if agent.Spec.Gateway != nil && agent.Spec.Gateway.TLS != nil {
		command = append(command,
			"--tls-cert="+path.Join(gatewayTLSPath, corev1.TLSCertKey), "--tls-key="+path.Join(gatewayTLSPath, corev1.TLSPrivateKeyKey))
	}
	return command
}

func gatewayResources(asked *mcpv1alpha1.AgentGateway) corev1.ResourceRequirements {
	if asked != nil && asked.Resources != nil {
		return resources(asked.Resources)
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

func gatewayProbe(at string, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: at, Port: intstr.FromInt32(GatewayHealthPort), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds: period, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

// spread prefers other zones and other nodes for the pods of one revision. It keeps none from running.
func spread(agent string) []corev1.TopologySpreadConstraint {
	var list []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
		list = append(list, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:  &metav1.LabelSelector{MatchLabels: AgentSelector(agent, ComponentGateway)},
			MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		})
	}
	return list
}

// gatewayVolumes says every default, so that what is applied is complete.
func gatewayVolumes(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	add := func(name, at string, source corev1.VolumeSource, readOnly bool) {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: readOnly})
	}
	session := SessionSecretName(agent.Name)
	add("table", tablePath, configMapVolume(GatewayName(agent.Name), nil, item(TableKey, TableKey)), true)
	add("session", sessionPath, secretVolume(session, nil, item(sessionKeyID, sessionKeyID), item(sessionKeyCurrent, sessionKeyCurrent)), true)
	add("status", statusPath, secretVolume(session, nil, item(statusTokenKey, "token")), true)
	add("definitions", definitionsPath, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("256Mi"))}}, false)
	add("api-access", apiAccessPath, apiAccess(), true)
	if agent.Spec.Gateway != nil && agent.Spec.Gateway.TLS != nil {
		add("tls", gatewayTLSPath, secretVolume(agent.Spec.Gateway.TLS.SecretName, nil,
			item(corev1.TLSCertKey, corev1.TLSCertKey), item(corev1.TLSPrivateKeyKey, corev1.TLSPrivateKeyKey)), true)
	}
	for _, m := range env.Mounts {
		var items []corev1.KeyToPath
		for _, key := range m.Keys {
			items = append(items, item(key, key))
		}
		source := configMapVolume(m.Name, new(true), items...)
		if m.Kind == MountSecret {
			source = secretVolume(m.Name, new(true), items...)
		}
		add(mountVolumeName(m), m.folder(), source, true)
	}
	return volumes, mounts
}

// MountsOf are the Mounts of a gateway's Deployment as it is in the cluster. What of its volumes is none of them is left out.
func MountsOf(gateway *appsv1.Deployment) []Mount {
	var mounts []Mount
	for i := range gateway.Spec.Template.Spec.Volumes {
		volume := &gateway.Spec.Template.Spec.Volumes[i]
		m, items := Mount{}, []corev1.KeyToPath(nil)
		switch {
		case volume.Secret != nil:
			m, items = Mount{Kind: MountSecret, Name: volume.Secret.SecretName}, volume.Secret.Items
		case volume.ConfigMap != nil:
			m, items = Mount{Kind: MountConfigMap, Name: volume.ConfigMap.Name}, volume.ConfigMap.Items
		}
		if m.Name == "" || volume.Name != mountVolumeName(m) {
			continue
		}
		for _, item := range items {
			m.Keys = append(m.Keys, item.Key)
		}
		mounts = append(mounts, m)
	}
	return mounts
}

func item(key, file string) corev1.KeyToPath { return corev1.KeyToPath{Key: key, Path: file} }

func secretVolume(name string, optional *bool, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: name, Items: items, DefaultMode: new(gatewayMode), Optional: optional,
	}}
}

func configMapVolume(name string, optional *bool, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items, DefaultMode: new(gatewayMode), Optional: optional,
	}}
}

// apiAccess is what a pod needs to speak with the API server.
func apiAccess() corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(gatewayMode), Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(apiTokenSeconds), Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{item("ca.crt", "ca.crt")},
		}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
		}}},
	}}}
}

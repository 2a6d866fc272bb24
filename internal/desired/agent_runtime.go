package desired

import (
	"path"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

const (
	// The variables by which an agent's workload finds its endpoint and its token.
	endpointEnv  = "MCP_SERVER_URL"
	tokenFileEnv = "MCP_TOKEN_FILE" //nolint:gosec // G101: the name of a variable, not a credential

	agentTokenFolder  = "/var/run/secrets/mcp.operator" //nolint:gosec // G101: a folder, not a credential
	agentTokenFile    = "token"
	agentTokenSeconds = int64(600)
)

// runtimeDeployment is nil while the address of the gateway's Service, which the pods are told as a host alias, is not known.
func runtimeDeployment(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) *appsv1.Deployment {
	if env.ServiceIP == "" {
		return nil
	}
	d := &appsv1.Deployment{
		ObjectMeta: agentMeta(agent, RuntimeName(agent.Name), ComponentRuntime),
		Spec: appsv1.DeploymentSpec{
			RevisionHistoryLimit: new(int32(3)),
			Selector:             &metav1.LabelSelector{MatchLabels: AgentSelector(agent.Name, ComponentRuntime)},
			Strategy:             strategy(agent.Spec.Rollout),
			Template:             runtimeTemplate(agent, env),
		},
	}
	if agent.Spec.Scaling == nil {
		d.Spec.Replicas = new(int32(1))
	}
	return d
}

func runtimeTemplate(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) corev1.PodTemplateSpec {
	asked, name := agent.Spec.Runtime, RuntimeName(agent.Name)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: agentLabels(agent.Name, ComponentRuntime)},
		Spec: corev1.PodSpec{
			ServiceAccountName: name,
			// The API server copies the one into the other, both ways.
			DeprecatedServiceAccount:      name,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(defaultGraceSeconds),
			SecurityContext:               podSecurityContext(asked.PodSecurity),
			HostAliases: []corev1.HostAlias{{
				IP: env.ServiceIP, Hostnames: []string{GatewayDNSName(agent, env.ClusterDomain), GatewayName(agent.Name)},
			}},
			Containers: []corev1.Container{runtimeContainer(agent, env)},
			Volumes:    []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	if agent.Spec.Auth.Type == mcpv1alpha1.AgentAuthTokens {
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: "token", VolumeSource: agentToken(agent, env)})
	}
	template.Spec.ImagePullSecrets = localReferences(asked.ImagePullSecrets)
	if env.ConfigHash != "" {
		template.Annotations = map[string]string{AnnotationConfigHash: env.ConfigHash}
	}
	return template
}

func runtimeContainer(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) corev1.Container {
	asked := agent.Spec.Runtime
	security := asked.PodSecurity
	readOnlyRoot := security == nil || security.ReadOnlyRootFilesystem == nil || *security.ReadOnlyRootFilesystem
	c := corev1.Container{
		Name:            AgentContainerName,
		Image:           asked.Image,
		ImagePullPolicy: asked.ImagePullPolicy,
		Command:         asked.Command,
		Args:            asked.Args,
		Env:             runtimeEnvironment(agent, env),
		Resources:       resources(asked.Resources),
		VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: tmpPath}},
		SecurityContext: securityContext(readOnlyRoot),
	}
	if agent.Spec.Auth.Type == mcpv1alpha1.AgentAuthTokens {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: agentTokenFolder, ReadOnly: true})
	}
	return c
}

// runtimeEnvironment is the user's variables, and ours, which win. HOME points to the one writable folder, since many runtimes write there.
func runtimeEnvironment(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) []corev1.EnvVar {
	vars := []corev1.EnvVar{{Name: endpointEnv, Value: GatewayEndpoint(agent, env.ClusterDomain)}}
	if agent.Spec.Auth.Type == mcpv1alpha1.AgentAuthTokens {
		vars = append(vars, corev1.EnvVar{Name: tokenFileEnv, Value: path.Join(agentTokenFolder, agentTokenFile)})
	}
	asked := agent.Spec.Runtime.Env
	if !slices.ContainsFunc(asked, func(v corev1.EnvVar) bool { return v.Name == "HOME" }) {
		vars = append(vars, corev1.EnvVar{Name: "HOME", Value: tmpPath})
	}
	for _, v := range asked {
		if v.Name != endpointEnv && v.Name != tokenFileEnv {
			vars = append(vars, withDefaults(v))
		}
	}
	return vars
}

// agentToken is a token that is good for the agent's own endpoint alone.
func agentToken(agent *mcpv1alpha1.MCPAgent, env AgentEnvironment) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(readableMode), Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: GatewayEndpoint(agent, env.ClusterDomain), ExpirationSeconds: new(agentTokenSeconds), Path: agentTokenFile,
		}},
	}}}
}

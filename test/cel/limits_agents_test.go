package cel

import "strings"

// granted is an agent with a server, besides which a list of tools may be empty.
func granted(members string) string { return "spec: {serverRef: {name: a}, " + members + "}" }

// server is an MCPServer that is granted.
func server(members string) string { return "spec: {servers: [{name: a, " + members + "}]}" }

// tokens is an agent that demands tokens of an account.
func tokens(members string) string {
	return "spec: {auth: {type: Tokens, serviceAccounts: [{name: a}], " + members + "}}"
}

// issuer is an agent that takes the tokens of one.
func issuer(members string) string {
	return "spec: {auth: {type: Tokens, oidc: [{issuer: 'https://a', " + members + "}]}}"
}

// workload is an agent with a workload of its own.
func workload(members string) string { return "spec: {runtime: {image: a, " + members + "}}" }

// connected is an agent with a workload, and a network.
func connected(members string) string {
	return "spec: {runtime: {image: a}, network: {" + members + "}}"
}

func gateway(members string) string { return "spec: {gateway: {" + members + "}}" }

func scaling(members string) string { return "spec: {scaling: {" + members + "}}" }

func rollout(members string) string { return "spec: {rollout: {" + members + "}}" }

func agentLimits() limits {
	return limits{agentNumbers, agentTexts, agentLists, agentChoices}
}

var agentNumbers = []number{
	{scaling("maxReplicas: 1000, minReplicas: %d"), "spec.scaling.minReplicas", 1, 1000},
	{scaling("minReplicas: 1, maxReplicas: %d"), "spec.scaling.maxReplicas", 1, 1000},
	{scaling("maxReplicas: 2, targetCPUUtilizationPercentage: %d"), "spec.scaling.targetCPUUtilizationPercentage", 1, 1000},
	{gateway("replicas: %d"), "spec.gateway.replicas", 1, 100},
	{"spec: {servers: [{name: a, timeoutSeconds: %d}]}", "spec.servers[].timeoutSeconds", 1, 3600},
	{workload("podSecurity: {runAsNonRoot: false, runAsUser: %d}"), "spec.runtime.podSecurity.runAsUser", 0, 2147483647},
	{workload("podSecurity: {runAsGroup: %d}"), "spec.runtime.podSecurity.runAsGroup", 0, 2147483647},
	{workload("podSecurity: {fsGroup: %d}"), "spec.runtime.podSecurity.fsGroup", 0, 2147483647},
	{connected("egressTo: [{podSelector: {}}], egressPorts: [{port: %d}]"), "spec.network.egressPorts[].port", 1, 65535},
	{connected("egressTo: [{podSelector: {}}], egressPorts: [{port: 1, endPort: %d}]"), "spec.network.egressPorts[].endPort", 1, 65535},
}

const profile = "podSecurity: {seccompProfile: {type: Localhost, localhostProfile: %s}}"

var agentTexts = []text{
	{"spec: {serverRef: {name: %s}}", "spec.serverRef.name", "", 1, 253},
	{"spec: {servers: [{name: %s}]}", "spec.servers[].name", "", 1, 253},
	{"spec: {tools: [{name: %s}]}", "spec.tools[].name", "", 1, 253},
	{server("prefix: %s"), "spec.servers[].prefix", "", 1, 32},
	{server("tools: {allow: [%s]}"), "spec.servers[].tools.allow[]", "", 1, 128},
	{server("tools: {deny: [%s]}"), "spec.servers[].tools.deny[]", "", 1, 128},
	{server("tools: {rename: {a: %s}}"), "spec.servers[].tools.rename.a", "", 1, 128},
	{"spec: {auth: {type: Tokens, serviceAccounts: [{name: %s}]}}", "spec.auth.serviceAccounts[].name", "", 1, 253},
	{tokens("audiences: [%s]"), "spec.auth.audiences[]", "", 1, 512},
	{"spec: {auth: {type: Tokens, oidc: [{issuer: %s}]}}", "spec.auth.oidc[].issuer", "https://a/", 9, 512},
	{issuer("audiences: [%s]"), "spec.auth.oidc[].audiences[]", "", 1, 512},
	{issuer("subjects: [%s]"), "spec.auth.oidc[].subjects[]", "", 1, 512},
	{issuer("claims: {a: %s}"), "spec.auth.oidc[].claims.a", "", 1, 512},
	{issuer("caBundle: {configMapRef: {name: %s, key: a}}"), "spec.auth.oidc[].caBundle.configMapRef.name", "", 1, 253},
	{issuer("caBundle: {configMapRef: {name: a, key: %s}}"), "spec.auth.oidc[].caBundle.configMapRef.key", "", 1, 253},
	{issuer("caBundle: {secretRef: {name: %s, key: a}}"), "spec.auth.oidc[].caBundle.secretRef.name", "", 1, 253},
	{issuer("caBundle: {secretRef: {name: a, key: %s}}"), "spec.auth.oidc[].caBundle.secretRef.key", "", 1, 253},
	{"spec: {runtime: {image: %s}}", "spec.runtime.image", "", 1, 512},
	{workload("imagePullSecrets: [{name: %s}]"), "spec.runtime.imagePullSecrets[].name", "", 1, 253},
	{workload("command: [%s]"), "spec.runtime.command[]", "", 0, 4096},
	{workload("args: [%s]"), "spec.runtime.args[]", "", 0, 4096},
	{workload(profile), "spec.runtime.podSecurity.seccompProfile.localhostProfile", "", 1, 253},
	{gateway("imagePullSecrets: [{name: %s}]"), "spec.gateway.imagePullSecrets[].name", "", 1, 253},
	{gateway("tls: {secretName: %s}"), "spec.gateway.tls.secretName", "", 1, 253},
	{gateway("publicURL: %s"), "spec.gateway.publicURL", address, 8, 1024},
	{gateway("allowedHosts: [%s]"), "spec.gateway.allowedHosts[]", strings.Repeat("b.", 96), 1, 253},
	{gateway("allowedOrigins: [%s]"), "spec.gateway.allowedOrigins[]", "a://" + strings.Repeat("b.", 96), 5, 256},
	{gateway("instructions: %s"), "spec.gateway.instructions", "", 1, 8192},
	{"status: {endpoint: %s}", "status.endpoint", "", 0, 1024},
	{"status: {tableRevision: %s}", "status.tableRevision", "", 0, 64},
	{"status: {gatewayImage: %s}", "status.gatewayImage", "", 0, 512},
	{"status: {gatewayRevision: %s}", "status.gatewayRevision", "", 0, 64},
	{"status: {effectiveTools: [{name: %s, source: a, verdict: Served}]}", "status.effectiveTools[].name", "", 0, 256},
	{"status: {effectiveTools: [{source: %s, verdict: Served}]}", "status.effectiveTools[].source", "", 1, 128},
	{"status: {effectiveTools: [{source: a, verdict: Served, reason: %s}]}", "status.effectiveTools[].reason", "", 0, 512},
	{"status: {effectiveTools: [{source: a, verdict: Served, digest: %s}]}", "status.effectiveTools[].digest", "", 0, 80},
}

var agentLists = []list{
	{"spec: {servers: [%s]}", "spec.servers", "{name: s%d}", 64},
	{granted("tools: [%s]"), "spec.tools", "{name: t%d}", 128},
	{server("tools: {deny: [%s]}"), "spec.servers[].tools.deny", "t%d", 256},
	{server("tools: {rename: {%s}}"), "spec.servers[].tools.rename", "a%[1]d: b%[1]d", 50},
	{tokens("audiences: [%s]"), "spec.auth.audiences", "a%d", 16},
	{"spec: {auth: {type: Tokens, oidc: [{issuer: 'https://a'}], serviceAccounts: [%s]}}", "spec.auth.serviceAccounts", "{name: a%d}", 64},
	{tokens("oidc: [%s]"), "spec.auth.oidc", "{issuer: 'https://a/%d'}", 16},
	{issuer("audiences: [%s]"), "spec.auth.oidc[].audiences", "a%d", 16},
	{issuer("subjects: [%s]"), "spec.auth.oidc[].subjects", "a%d", 256},
	{issuer("claims: {%s}"), "spec.auth.oidc[].claims", "a%d: b", 16},
	{workload("imagePullSecrets: [%s]"), "spec.runtime.imagePullSecrets", "{name: s%d}", 16},
	{workload("command: [%s]"), "spec.runtime.command", "c%d", 64},
	{workload("args: [%s]"), "spec.runtime.args", "a%d", 256},
	{workload("env: [%s]"), "spec.runtime.env", "{name: E%d}", 256},
	{workload("resources: {requests: {%s}}"), "spec.runtime.resources.requests", "example.com/r%d: 1", 16},
	{workload("resources: {limits: {%s}}"), "spec.runtime.resources.limits", "example.com/r%d: 1", 16},
	{gateway("imagePullSecrets: [%s]"), "spec.gateway.imagePullSecrets", "{name: s%d}", 16},
	{gateway("resources: {requests: {%s}}"), "spec.gateway.resources.requests", "example.com/r%d: 1", 16},
	{gateway("resources: {limits: {%s}}"), "spec.gateway.resources.limits", "example.com/r%d: 1", 16},
	{gateway("allowedHosts: [%s]"), "spec.gateway.allowedHosts", "h%d.example.com", 32},
	{gateway("allowedOrigins: [%s]"), "spec.gateway.allowedOrigins", "'https://a:1%02d'", 32},
	{"spec: {network: {ingressFrom: [%s]}}", "spec.network.ingressFrom", "{ipBlock: {cidr: 10.0.%d.0/24}}", 30},
	{connected("egressTo: [%s]"), "spec.network.egressTo", "{ipBlock: {cidr: 10.0.%d.0/24}}", 30},
	{connected("egressTo: [{podSelector: {}}], egressPorts: [%s]"), "spec.network.egressPorts", "{port: 4%02d}", 32},
	{"status: {effectiveTools: [%s]}", "status.effectiveTools", "{name: t%d, source: a, verdict: Served}", 512},
	{
		"status: {conditions: [%s]}", "status.conditions",
		"{type: T%d, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}", 16,
	},
}

var agentChoices = []choice{
	{"spec: {auth: {type: %s, serviceAccounts: null}, runtime: {image: a}}", "spec.auth.type", []string{"None", "Tokens"}},
	{rollout("type: %s"), "spec.rollout.type", []string{"RollingUpdate"}},
	{workload("imagePullPolicy: %s"), "spec.runtime.imagePullPolicy", []string{"Always", "IfNotPresent", "Never"}},
	{workload("podSecurity: {seccompProfile: {type: %s}}"), "spec.runtime.podSecurity.seccompProfile.type", []string{"RuntimeDefault"}},
	{"spec: {network: {ingress: %s}}", "spec.network.ingress", []string{"Namespace", "Listed"}},
	{connected("egressTo: [{podSelector: {}}], egressPorts: [{port: 1, protocol: %s}]"), "spec.network.egressPorts[].protocol", []string{"TCP", "UDP", "SCTP"}},
	{"status: {phase: %s}", "status.phase", []string{"Pending", "Ready", "Degraded", "Failed"}},
	{
		"status: {effectiveTools: [{source: a, verdict: %s}]}", "status.effectiveTools[].verdict",
		[]string{"Served", "Denied", "Conflict", "Missing", "Invalid", "Unavailable", "Pending"},
	},
}

package cel

import (
	"slices"
	"strings"
)

func acceptedAgents() []accepted {
	return slices.Concat(meantAgents, agentLimits().within())
}

// meantAgents is what a rule might refuse by mistake.
var meantAgents = []accepted{
	{"the smallest agent", "{}"},
	{"one server alone", "spec: {serverRef: {name: a}, tools: null}"},
	{"servers alone", "spec: {servers: [{name: a}], tools: null}"},
	{"one server beside a list that is empty", "spec: {serverRef: {name: a}, servers: [], tools: []}"},
	{
		"some tools of some servers", `spec: {servers: [{name: a, prefix: web_, trusted: true, tools: {allow: ['get_*', 'a/b:c@d.e-f'], deny: ['*'],
		readOnly: true, denyDestructive: true, rename: {'get weather ü': weather, b: c}}}, {name: b, tools: {deny: [a]}}]}`,
	},
	{"256 patterns", list{server("tools: {allow: [%s]}"), "", "t%d", 0}.of(256)},
	{"tokens of accounts", "spec: {auth: {type: Tokens, serviceAccounts: [{name: a}, {name: b.c}], audiences: ['https://mcp.example.com/a', mcp]}}"},
	{"tokens of its own workload alone", "spec: {auth: {type: Tokens}, runtime: {image: a}}"},
	{
		"tokens of an issuer",
		issuer(`audiences: [a], subjects: ['repo:a/b:ref:refs/heads/main', 'user name'], claims: {groups: 'Größe ✓', 'https://a/b': 'true'},
		caBundle: {secretRef: {name: ca, key: ca.crt}}`),
	},
	{
		"an issuer with a path and a port",
		"spec: {auth: {type: Tokens, oidc: [{issuer: 'https://login.example.com:8443/realms/team/'}, {issuer: 'https://192.0.2.1'}]}}",
	},
	{"an issuer at an IPv6 address", "spec: {auth: {type: Tokens, oidc: [{issuer: 'https://[2001:db8::1]:8443/a'}]}}"},
	{"a gateway that is scaled", scaling("maxReplicas: 2")},
	{"a gateway that is scaled with a request", "spec: {scaling: {maxReplicas: 2}, gateway: {resources: {requests: {cpu: 1}}}}"},
	{"a gateway that is scaled with a limit", "spec: {scaling: {minReplicas: 3, maxReplicas: 3}, gateway: {resources: {limits: {cpu: 1}}}}"},
	{"a workload that is scaled beside a gateway that is not", "spec: {scaling: {maxReplicas: 2}, runtime: {image: a}, gateway: {replicas: 3, resources: {}}}"},
	{"a workload that is scaled with a request", "spec: {scaling: {maxReplicas: 2}, runtime: {image: a, resources: {requests: {cpu: 100m}}}}"},
	{"a gateway that is replaced slowly", rollout("maxSurge: 0, maxUnavailable: 1")},
	{"a rollout by percentages", rollout("maxSurge: 100%, maxUnavailable: 25%")},
	{"a workload that is stopped first", "spec: {rollout: {type: Recreate}, runtime: {image: a}}"},
	{"nothing of a workload", "spec: {runtime: {}}"},
	{
		"a workload with everything", `spec: {runtime: {image: 'r.example.com:5000/team/agent:1.2.3', imagePullPolicy: Always, imagePullSecrets: [{name: a}],
		command: [/agent], args: [--flag=$(A), ''], env: [{name: A, value: b}, {name: B, valueFrom: {configMapKeyRef: {name: c, key: d}}},
		{name: C, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: D, value: '', valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, {name: E}],
		resources: {requests: {cpu: 1}, limits: {cpu: '1', nvidia.com/gpu: 1}}, podSecurity: {runAsUser: 1000, automountServiceAccountToken: false}}}`,
	},
	{"variables that matter to libraries", workload("env: [{name: LD_PRELOAD, value: a}, {name: HTTPS_PROXY, value: b}, {name: HOME, value: /data}]")},
	{"a variable of 32768 characters", workload("env: [{name: A, value: " + strings.Repeat("x", 32768) + "}]")},
	{"root, said aloud", workload("podSecurity: {runAsUser: 0, runAsNonRoot: false, readOnlyRootFilesystem: false}")},
	{
		"a gateway with everything",
		gateway(`replicas: 3, resources: {limits: {memory: 1Gi}}, tls: {secretName: tls.example}, publicURL: 'https://mcp.example.com/team',
		allowedOrigins: ['https://app.example.com', 'http://localhost:6274', 'http://[2001:db8::1]:443', 'https://a:80', 'http://192.0.2.1',
		'vscode-webview://abc'], allowedHosts: [mcp.example.com, Gateway_1, '*.team.example', 192.0.2.1, '2001:db8::1', a.1b, localhost], lenientHeaders: true,
		instructions: "Use these\n\tas ünusual ✓ 🙂 tools."`),
	},
	{"callers of every kind", `spec: {network: {ingress: Listed, ingressFrom: [{podSelector: {}}, {namespaceSelector: {}}, {ipBlock: {cidr: 'fd00::/8'}}]}}`},
	{
		"destinations and ports of a workload",
		connected("egressTo: [{ipBlock: {cidr: 192.0.2.7/32}}, {podSelector: {}}], egressPorts: [{port: 443}, {protocol: UDP, port: 8000, endPort: 8999}]"),
	},
	{"destinations without a port", connected("egressTo: [{podSelector: {}}]")},
	{"lists that are given and empty", "spec: {network: {ingressFrom: [], egressTo: [], egressPorts: []}}"},
}

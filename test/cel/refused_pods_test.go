package cel

import (
	"fmt"
	"strings"
)

func longVariable(length int) string {
	return fmt.Sprintf("spec: {env: [{name: A, value: %s}]}", strings.Repeat("x", length))
}

var refusedPods = []refused{
	{"root is said aloud", "spec: {podSecurity: {runAsUser: 0}}", "spec.podSecurity", "requires runAsNonRoot: false"},
	{"root is not denied and asked for at once", "spec: {podSecurity: {runAsUser: 0, runAsNonRoot: true}}", "spec.podSecurity", "requires runAsNonRoot: false"},
	{"a ServiceAccount has the name of an object", "spec: {podSecurity: {serviceAccountName: 'a:b'}}", "spec.podSecurity.serviceAccountName", "ServiceAccount"},
	{"a seccomp profile has a type", "spec: {podSecurity: {seccompProfile: {}}}", "spec.podSecurity.seccompProfile.type", "Required value"},
	{"seccomp is not switched off", "spec: {podSecurity: {seccompProfile: {type: Unconfined}}}", "spec.podSecurity.seccompProfile.type", "supported values"},
	{"a local seccomp profile is named", "spec: {podSecurity: {seccompProfile: {type: Localhost}}}", "spec.podSecurity.seccompProfile", "if, and only if"},
	{
		"the runtime's seccomp profile has no name", "spec: {podSecurity: {seccompProfile: {type: RuntimeDefault, localhostProfile: a.json}}}",
		"spec.podSecurity.seccompProfile", "if, and only if",
	},
	{
		"a local seccomp profile lies in its folder", "spec: {podSecurity: {seccompProfile: {type: Localhost, localhostProfile: ../a.json}}}",
		"spec.podSecurity.seccompProfile.localhostProfile", "without '..'",
	},
	{"a startup probe succeeds once", "spec: {probes: {startup: {successThreshold: 2}}}", "spec.probes.startup", "1 for a startup probe"},
	{"a liveness probe succeeds once", "spec: {probes: {liveness: {successThreshold: 2}}}", "spec.probes.liveness", "1 for a liveness probe"},
	{"a startup probe succeeds at least once", "spec: {probes: {startup: {successThreshold: 0}}}", "spec.probes.startup.successThreshold", "equal to 1"},
	{"a liveness probe succeeds at least once", "spec: {probes: {liveness: {successThreshold: 0}}}", "spec.probes.liveness.successThreshold", "equal to 1"},
	{
		"a startup probe does not succeed 101 times", "spec: {probes: {startup: {successThreshold: 101}}}",
		"spec.probes.startup.successThreshold", "equal to 100",
	},
	{
		"a liveness probe does not succeed 101 times", "spec: {probes: {liveness: {successThreshold: 101}}}",
		"spec.probes.liveness.successThreshold", "equal to 100",
	},
	{"a probe's path begins with a slash", "spec: {probes: {readiness: {path: healthz}}}", "spec.probes.readiness.path", "absolute path"},
	{"a probe's path names no other host", "spec: {probes: {liveness: {path: //example.com/}}}", "spec.probes.liveness.path", "absolute path"},
	{"a probe's path has no line feed", `spec: {probes: {startup: {path: "/a\nb"}}}`, "spec.probes.startup.path", "absolute path"},
	{"a probe's path has whole escapes", "spec: {probes: {startup: {path: /a%2}}}", "spec.probes.startup.path", "absolute path"},
	{"the label app is ours", "spec: {podLabels: {app: x}}", "spec.podLabels", "the operator sets them"},
	{"the label mcp-server is ours", "spec: {podLabels: {mcp-server: x}}", "spec.podLabels", "the operator sets them"},
	{"labels under mcp.operator are ours", "spec: {podLabels: {mcp.operator/server: other}}", "spec.podLabels", "the operator sets them"},
	{"a server does not pass for the operator", "spec: {podLabels: {app.kubernetes.io/name: mcp-operator}}", "spec.podLabels", "the operator sets them"},
	{"a label's key is a qualified name", "spec: {podLabels: {'a b': x}}", "spec.podLabels", "must be qualified names"},
	{"a label's key has one slash at most", "spec: {podLabels: {a/b/c: x}}", "spec.podLabels", "must be qualified names"},
	{"a label's value is a label value", "spec: {podLabels: {team: 'a b'}}", "spec.podLabels", "must be label values"},
	{"a label's value ends in a letter or digit", "spec: {podLabels: {team: a-}}", "spec.podLabels", "must be label values"},
	{"annotations under mcp.operator are ours", "spec: {podAnnotations: {mcp.operator/config-hash: x}}", "spec.podAnnotations", "the operator sets them"},
	{"an annotation's key is a qualified name", "spec: {podAnnotations: {'a b': x}}", "spec.podAnnotations", "must be qualified names"},
	{
		"pods that are all stopped first are not replaced one by one", "spec: {updateStrategy: {type: Recreate, maxSurge: 1}}",
		"spec.updateStrategy", "must not be set when type is Recreate",
	},
	{"a rollout without a pod more or less is none", "spec: {updateStrategy: {maxSurge: 0}}", "spec.updateStrategy", "must not both be 0"},
	{"a rollout by zero percent is none", "spec: {updateStrategy: {maxSurge: 0%, maxUnavailable: 0}}", "spec.updateStrategy", "must not both be 0"},
	{"a surge is not negative", "spec: {updateStrategy: {maxSurge: -1}}", "spec.updateStrategy.maxSurge", "from 0 to 1000"},
	{"a surge is not absurd", "spec: {updateStrategy: {maxSurge: 1001}}", "spec.updateStrategy.maxSurge", "from 0 to 1000"},
	{"a surge in words is a percentage", "spec: {updateStrategy: {maxSurge: '1'}}", "spec.updateStrategy.maxSurge", "should match"},
	{"missing pods are not negative", "spec: {updateStrategy: {maxUnavailable: -1}}", "spec.updateStrategy.maxUnavailable", "from 0 to 1000"},
	{"no more pods than all are missing", "spec: {updateStrategy: {maxUnavailable: 101%}}", "spec.updateStrategy.maxUnavailable", "should match"},
}

var refusedPlacements = []refused{
	{"a node's label has a qualified name", "spec: {scheduling: {nodeSelector: {'a b': x}}}", "spec.scheduling.nodeSelector", "must be qualified names"},
	{"a node's label has a label value", "spec: {scheduling: {nodeSelector: {zone: 'a b'}}}", "spec.scheduling.nodeSelector", "must be label values"},
	{"a toleration's operator exists", "spec: {scheduling: {tolerations: [{key: a, operator: Has}]}}", "spec.scheduling.tolerations", "operator must be"},
	{"a toleration's effect exists", "spec: {scheduling: {tolerations: [{key: a, effect: NoRun}]}}", "spec.scheduling.tolerations", "effect must be"},
	{"a toleration of every taint says so", "spec: {scheduling: {tolerations: [{effect: NoSchedule}]}}", "spec.scheduling.tolerations", "without a key"},
	{
		"a toleration of any value names none", "spec: {scheduling: {tolerations: [{key: a, operator: Exists, value: b}]}}",
		"spec.scheduling.tolerations", "must have no value",
	},
	{
		"a toleration for some time is of an eviction", "spec: {scheduling: {tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 60}]}}",
		"spec.scheduling.tolerations", "must have the effect NoExecute",
	},
	{
		"a spread has a skew", "spec: {scheduling: {topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}",
		"spec.scheduling.topologySpreadConstraints", "maxSkew must be at least 1",
	},
	{
		"a spread is over something", "spec: {scheduling: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: '', whenUnsatisfiable: DoNotSchedule}]}}",
		"spec.scheduling.topologySpreadConstraints", "topologyKey must not be empty",
	},
	{
		"a spread that cannot be has a consequence",
		"spec: {scheduling: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Maybe}]}}",
		"spec.scheduling.topologySpreadConstraints", "whenUnsatisfiable must be",
	},
	{
		"a number of domains is demanded or not given",
		"spec: {scheduling: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}]}}",
		"spec.scheduling.topologySpreadConstraints", "minDomains must be at least 1",
	},
	{
		"a spread is given once",
		`spec: {scheduling: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule},
		{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}`,
		"spec.scheduling.topologySpreadConstraints[]", "Duplicate value",
	},
	{"a priority class has the name of an object", "spec: {scheduling: {priorityClassName: High}}", "spec.scheduling.priorityClassName", "PriorityClass"},
}

var refusedNetworks = []refused{
	{"a caller is somebody", "spec: {network: {ingressFrom: [{}]}}", "spec.network.ingressFrom", "must have either ipBlock"},
	{
		"a caller is not pods and addresses at once", "spec: {network: {ingressFrom: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}}",
		"spec.network.ingressFrom", "must have either ipBlock",
	},
	{"a caller's addresses are a CIDR", "spec: {network: {ingressFrom: [{ipBlock: {cidr: 10.0.0.1}}]}}", "spec.network.ingressFrom", "must be a CIDR"},
	{"a destination is somewhere", "spec: {network: {egressTo: [{}]}}", "spec.network.egressTo", "must have either ipBlock"},
	{"a destination is no name", "spec: {network: {egressTo: [{ipBlock: {cidr: example.com}}]}}", "spec.network.egressTo", "must be a CIDR"},
	{"a port is needed", "spec: {network: {egressPorts: [{protocol: TCP}]}}", "spec.network.egressPorts[].port", "Required value"},
	{"a range of ports goes up", "spec: {network: {egressPorts: [{port: 90, endPort: 80}]}}", "spec.network.egressPorts[]", "must not be less than port"},
}

var refusedStatuses = []refused{
	{"a condition has one state", `status: {conditions: [
		{type: A, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'},
		{type: A, status: 'False', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}`, "status.conditions[]", "Duplicate value"},
	{"a tool is listed once", "status: {tools: [{name: a}, {name: a}]}", "status.tools[]", "Duplicate value"},
	{"a tool has a name", "status: {tools: [{digest: x}]}", "status.tools[].name", "Required value"},
}

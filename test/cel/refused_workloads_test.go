package cel

import "strings"

const (
	ofWorkload   = "spec.runtime."
	imageMissing = "runtime.image is required"
)

var refusedWorkloads = []refused{
	{"a workload has an image", "spec: {runtime: {args: [a]}}", "spec.runtime", imageMissing},
	{"a workload with a command has an image", "spec: {runtime: {command: [a]}}", "spec.runtime", imageMissing},
	{"a workload with variables has an image", "spec: {runtime: {env: [{name: A}]}}", "spec.runtime", imageMissing},
	{"a workload with resources has an image", "spec: {runtime: {resources: {}}}", "spec.runtime", imageMissing},
	{"a workload with security settings has an image", "spec: {runtime: {podSecurity: {}}}", "spec.runtime", imageMissing},
	{"a workload with a pull policy has an image", "spec: {runtime: {imagePullPolicy: Always}}", "spec.runtime", imageMissing},
	{"a workload with pull secrets has an image", "spec: {runtime: {imagePullSecrets: [{name: a}]}}", "spec.runtime", imageMissing},
	{"an image is one", "spec: {runtime: {image: 'a b'}}", ofWorkload + "image", "must be an image reference"},
	{"a pull secret has a name", workload("imagePullSecrets: [{}]"), ofWorkload + "imagePullSecrets[].name", "Required value"},
	{"a pull secret has the name of an object", workload("imagePullSecrets: [{name: A}]"), ofWorkload + "imagePullSecrets[].name", "name of an object"},
	{"a pull secret is given once", workload("imagePullSecrets: [{name: a}, {name: a}]"), ofWorkload + "imagePullSecrets[]", "Duplicate value"},
	{"a gateway's pull secret has a name", gateway("imagePullSecrets: [{}]"), "spec.gateway.imagePullSecrets[].name", "Required value"},
	{"a gateway's pull secret is the name of an object", gateway("imagePullSecrets: [{name: A}]"), "spec.gateway.imagePullSecrets[].name", "name of an object"},
	{"a gateway's pull secret is given once", gateway("imagePullSecrets: [{name: a}, {name: a}]"), "spec.gateway.imagePullSecrets[]", "Duplicate value"},
	{"a variable is given once", workload("env: [{name: A}, {name: A}]"), ofWorkload + "env[]", "Duplicate value"},
	{"a variable has a name", workload("env: [{name: ''}]"), ofWorkload + "env", "1 to 253 characters"},
	{
		"a variable is not longer than Linux allows", workload("env: [{name: A, value: " + strings.Repeat("x", 32769) + "}]"),
		ofWorkload + "env", "at most 32768",
	},
	{"the endpoint is told by the operator", workload("env: [{name: MCP_SERVER_URL, value: a}]"), ofWorkload + "env", "must not set MCP_SERVER_URL"},
	{"the token is told by the operator", workload("env: [{name: MCP_TOKEN_FILE, value: a}]"), ofWorkload + "env", "must not set MCP_SERVER_URL"},
	{
		"an agent holds no credential", workload("env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]"),
		ofWorkload + "env", "an agent holds no credential",
	},
	{
		"an agent reads no file of another container", workload("env: [{name: A, valueFrom: {fileKeyRef: {key: k, path: p, volumeName: v}}}]"),
		ofWorkload + "env", "an agent holds no credential",
	},
	{
		"a variable has one source", workload("env: [{name: A, value: a, valueFrom: {configMapKeyRef: {name: a, key: b}}}]"),
		ofWorkload + "env", "not have both value and valueFrom",
	},
	{"a variable from nothing has no value", workload("env: [{name: A, valueFrom: {}}]"), ofWorkload + "env", "exactly one of configMapKeyRef"},
	{
		"a variable from a ConfigMap names it", workload("env: [{name: A, valueFrom: {configMapKeyRef: {key: b}}}]"),
		ofWorkload + "env", "configMapKeyRef must have a name",
	},
}

const itsOwnAccount = "has an account of its own"

var refusedWorkloadPods = []refused{
	{"a workload has no other account", workload("podSecurity: {serviceAccountName: a}"), ofWorkload + "podSecurity", itsOwnAccount},
	{"a workload has no token for the API", workload("podSecurity: {automountServiceAccountToken: true}"), ofWorkload + "podSecurity", itsOwnAccount},
	{
		"an account that is none is not the only thing wrong", workload("podSecurity: {serviceAccountName: A_b}"),
		ofWorkload + "podSecurity.serviceAccountName", "must be the name of a ServiceAccount",
	},
	{"an account has a name", workload("podSecurity: {serviceAccountName: ''}"), ofWorkload + "podSecurity.serviceAccountName", "at least 1 chars"},
	{
		"an account has a name of at most 253 characters", workload("podSecurity: {serviceAccountName: " + strings.Repeat("a", 254) + "}"),
		ofWorkload + "podSecurity.serviceAccountName", "may not be more than 253",
	},
	{"root is said aloud", workload("podSecurity: {runAsUser: 0}"), ofWorkload + "podSecurity", "requires runAsNonRoot: false"},
	{
		"a profile on the node has a path", workload("podSecurity: {seccompProfile: {type: Localhost}}"),
		ofWorkload + "podSecurity.seccompProfile", "localhostProfile must be set if",
	},
	{
		"a profile has a type", workload("podSecurity: {seccompProfile: {localhostProfile: a}}"),
		ofWorkload + "podSecurity.seccompProfile.type", "Required value",
	},
	{
		"a profile does not climb up", workload("podSecurity: {seccompProfile: {type: Localhost, localhostProfile: ../a}}"),
		ofWorkload + "podSecurity.seccompProfile.localhostProfile", "must be a relative path",
	},
	{"requests do not exceed limits", workload("resources: {requests: {cpu: 2}, limits: {cpu: 1}}"), ofWorkload + "resources", "must not exceed limits"},
	{"requests are of what exists", workload("resources: {requests: {mem: 1}}"), ofWorkload + "resources.requests", "requests must be of cpu"},
	{"limits are of what exists", workload("resources: {limits: {mem: 1}}"), ofWorkload + "resources.limits", "limits must be of cpu"},
	{"requests are not negative", workload("resources: {requests: {cpu: -1}}"), ofWorkload + "resources.requests", "must not be negative"},
	{"limits are not negative", workload("resources: {limits: {cpu: -1}}"), ofWorkload + "resources.limits", "must not be negative"},
}

var refusedAgentNetworks = []refused{
	{"where nothing runs nothing connects", "spec: {network: {egressTo: [{podSelector: {}}]}}", "spec", "need runtime.image"},
	{
		"where nothing runs no port is connected to", "spec: {network: {egressTo: [{podSelector: {}}], egressPorts: [{port: 1}]}, runtime: {}}",
		"spec", "need runtime.image",
	},
	{"ports are of somewhere", connected("egressPorts: [{port: 1}]"), "spec.network", "egressPorts needs egressTo"},
	{"a caller is somebody", "spec: {network: {ingressFrom: [{}]}}", "spec.network.ingressFrom", "must have either ipBlock"},
	{"a caller is at an address", "spec: {network: {ingressFrom: [{ipBlock: {cidr: a}}]}}", "spec.network.ingressFrom", "must be a CIDR"},
	{
		"a destination is something", connected("egressTo: [{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}]"),
		"spec.network.egressTo", "must have either ipBlock",
	},
	{"a destination is at an address", connected("egressTo: [{ipBlock: {cidr: 10.0.0.1}}]"), "spec.network.egressTo", "must be a CIDR"},
	{"a port has a number", connected("egressTo: [{podSelector: {}}], egressPorts: [{protocol: TCP}]"), "spec.network.egressPorts[].port", "Required value"},
	{
		"a range of ports does not end before it begins", connected("egressTo: [{podSelector: {}}], egressPorts: [{port: 2, endPort: 1}]"),
		"spec.network.egressPorts[]", "endPort must not be less than port",
	},
}

var refusedAgentStatuses = []refused{
	{"a tool belongs to something", "status: {effectiveTools: [{name: a, verdict: Served}]}", "status.effectiveTools[].source", "Required value"},
	{"something becomes of a tool", "status: {effectiveTools: [{name: a, source: b}]}", "status.effectiveTools[].verdict", "Required value"},
	{
		"a condition is in a status once", `status: {conditions: [
		{type: A, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'},
		{type: A, status: 'False', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}`, "status.conditions[]", "Duplicate value",
	},
}

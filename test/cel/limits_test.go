package cel

import (
	"fmt"
	"slices"
	"strings"
)

// number is a field that takes whole numbers from low to high.
type number struct {
	change    string // %d is the number
	field     string
	low, high int
}

var numbers = []number{
	{"spec: {port: %d}", "spec.port", 1, 65535},
	{"spec: {replicas: %d}", "spec.replicas", 0, 1000},
	{"spec: {terminationGracePeriodSeconds: %d}", "spec.terminationGracePeriodSeconds", 0, 3600},
	{"spec: {podSecurity: {runAsNonRoot: false, runAsUser: %d}}", "spec.podSecurity.runAsUser", 0, 2147483647},
	{"spec: {podSecurity: {runAsGroup: %d}}", "spec.podSecurity.runAsGroup", 0, 2147483647},
	{"spec: {podSecurity: {fsGroup: %d}}", "spec.podSecurity.fsGroup", 0, 2147483647},
	{"spec: {network: {egressPorts: [{port: %d}]}}", "spec.network.egressPorts[].port", 1, 65535},
	{"spec: {network: {egressPorts: [{port: 1, endPort: %d}]}}", "spec.network.egressPorts[].endPort", 1, 65535},
	{"spec: {storage: [{mountPath: /a, configMap: {name: a, defaultMode: %d}}]}", "spec.storage[].configMap.defaultMode", 0, 511},
	{"spec: {storage: [{mountPath: /a, secret: {name: a, defaultMode: %d}}]}", "spec.storage[].secret.defaultMode", 0, 511},
	{
		"spec: {storage: [{mountPath: /a, configMap: {name: a, items: [{key: a, path: a, mode: %d}]}}]}",
		"spec.storage[].configMap.items[].mode", 0, 511,
	},
	{"spec: {storage: [{mountPath: /a, secret: {name: a, items: [{key: a, path: a, mode: %d}]}}]}", "spec.storage[].secret.items[].mode", 0, 511},
	{"spec: {probes: {readiness: {successThreshold: %d}}}", "spec.probes.readiness.successThreshold", 1, 100},
}

// probeNumbers are the limits that all three probes have.
var probeNumbers = []number{
	{"initialDelaySeconds: %d", "initialDelaySeconds", 0, 3600},
	{"periodSeconds: %d", "periodSeconds", 1, 3600},
	{"timeoutSeconds: %d", "timeoutSeconds", 1, 300},
	{"failureThreshold: %d", "failureThreshold", 1, 10000},
}

// text is a field that takes from low to high characters.
type text struct {
	change    string // %s is the text
	field     string
	begin     string // how a valid text begins
	low, high int
}

var texts = []text{
	{"spec: {image: %s}", "spec.image", "", 1, 512},
	{"spec: {imagePullSecrets: [{name: %s}]}", "spec.imagePullSecrets[].name", "", 1, 253},
	{"spec: {path: %s}", "spec.path", "/", 1, 253},
	{"spec: {hostHeader: %s}", "spec.hostHeader", "", 1, 253},
	{"spec: {command: [%s]}", "spec.command[]", "", 0, 4096},
	{"spec: {args: [%s]}", "spec.args[]", "", 0, 4096},
	{"spec: {config: {configMapRef: {name: %s}}}", "spec.config.configMapRef.name", "", 1, 253},
	{"spec: {config: {inline: {}, mountPath: %s}}", "spec.config.mountPath", "/", 2, 253},
	{"spec: {secretRefs: [{name: %s}]}", "spec.secretRefs[].name", "", 1, 253},
	{"spec: {secretRefs: [{name: a, mountPath: %s}]}", "spec.secretRefs[].mountPath", "/", 2, 253},
	{"spec: {storage: [{mountPath: %s, emptyDir: {}}]}", "spec.storage[].mountPath", "/", 2, 253},
	{"spec: {storage: [{mountPath: /a, configMap: {name: %s}}]}", "spec.storage[].configMap.name", "", 1, 253},
	{"spec: {storage: [{mountPath: /a, configMap: {name: a, items: [{key: %s, path: a}]}}]}", "spec.storage[].configMap.items[].key", "", 1, 253},
	{"spec: {storage: [{mountPath: /a, configMap: {name: a, items: [{key: a, path: %s}]}}]}", "spec.storage[].configMap.items[].path", "", 1, 253},
	{"spec: {storage: [{mountPath: /a, secret: {name: %s}}]}", "spec.storage[].secret.name", "", 1, 253},
	{"spec: {storage: [{mountPath: /a, secret: {name: a, items: [{key: %s, path: a}]}}]}", "spec.storage[].secret.items[].key", "", 1, 253},
	{"spec: {storage: [{mountPath: /a, secret: {name: a, items: [{key: a, path: %s}]}}]}", "spec.storage[].secret.items[].path", "", 1, 253},
	{"spec: {storage: [{mountPath: /a, persistentVolumeClaim: {claimName: %s}}]}", "spec.storage[].persistentVolumeClaim.claimName", "", 1, 253},
	{"spec: {storage: [{mountPath: /a, emptyDir: {sizeLimit: %s}}]}", "spec.storage[].emptyDir.sizeLimit", "1234567890123456Mi", 1, 18},
	{"spec: {tls: {caSecretRef: {name: %s}}}", "spec.tls.caSecretRef.name", "", 1, 253},
	{"spec: {tls: {caSecretRef: {name: a, key: %s}}}", "spec.tls.caSecretRef.key", "", 1, 253},
	{"spec: {labels: {team: %s}}", "spec.labels.team", "", 0, 63},
	{"spec: {annotations: {team: %s}}", "spec.annotations.team", "", 0, 4096},
	{"spec: {podSecurity: {serviceAccountName: %s}}", "spec.podSecurity.serviceAccountName", "", 1, 253},
	{
		"spec: {podSecurity: {seccompProfile: {type: Localhost, localhostProfile: %s}}}",
		"spec.podSecurity.seccompProfile.localhostProfile", "", 1, 253,
	},
	{"spec: {probes: {startup: {path: %s}}}", "spec.probes.startup.path", "/", 1, 253},
	{"spec: {probes: {readiness: {path: %s}}}", "spec.probes.readiness.path", "/", 1, 253},
	{"spec: {probes: {liveness: {path: %s}}}", "spec.probes.liveness.path", "/", 1, 253},
	{"spec: {podLabels: {team: %s}}", "spec.podLabels.team", "", 0, 63},
	{"spec: {podAnnotations: {team: %s}}", "spec.podAnnotations.team", "", 0, 4096},
	{"spec: {scheduling: {nodeSelector: {disk: %s}}}", "spec.scheduling.nodeSelector.disk", "", 0, 63},
	{"spec: {scheduling: {priorityClassName: %s}}", "spec.scheduling.priorityClassName", "", 1, 253},
	{"status: {endpoint: %s}", "status.endpoint", "", 0, 1024},
	{"status: {selector: %s}", "status.selector", "", 0, 1024},
	{"status: {gatewayImage: %s}", "status.gatewayImage", "", 0, 512},
	{"status: {gatewayRevision: %s}", "status.gatewayRevision", "", 0, 64},
	{"status: {serverInfo: {name: %s}}", "status.serverInfo.name", "", 0, 256},
	{"status: {serverInfo: {version: %s}}", "status.serverInfo.version", "", 0, 256},
	{"status: {serverInfo: {protocolVersion: %s}}", "status.serverInfo.protocolVersion", "", 0, 64},
	{"status: {serverInfo: {protocolVersions: [%s]}}", "status.serverInfo.protocolVersions[]", "", 0, 64},
	{"status: {serverInfo: {instructions: %s}}", "status.serverInfo.instructions", "", 0, 4096},
	{"status: {tools: [{name: %s}]}", "status.tools[].name", "", 1, 128},
	{"status: {tools: [{name: a, digest: %s}]}", "status.tools[].digest", "", 0, 80},
}

// list is a field that takes at most high items or properties.
type list struct {
	change string // %s is the items
	field  string
	item   string // one of them; %d makes it different from the others
	high   int
}

var lists = []list{
	{"spec: {imagePullSecrets: [%s]}", "spec.imagePullSecrets", "{name: s%d}", 16},
	{"spec: {command: [%s]}", "spec.command", "c%d", 64},
	{"spec: {args: [%s]}", "spec.args", "a%d", 256},
	{"spec: {env: [%s]}", "spec.env", "{name: E%d}", 256},
	{"spec: {envFrom: [%s]}", "spec.envFrom", "{secretRef: {name: s%d}}", 32},
	{"spec: {secretRefs: [%s]}", "spec.secretRefs", "{name: s%d}", 32},
	{"spec: {storage: [%s]}", "spec.storage", "{mountPath: /s%d, emptyDir: {}}", 64},
	{"spec: {storage: [{mountPath: /a, configMap: {name: a, items: [%s]}}]}", "spec.storage[].configMap.items", "{key: k, path: p%d}", 64},
	{"spec: {storage: [{mountPath: /a, secret: {name: a, items: [%s]}}]}", "spec.storage[].secret.items", "{key: k, path: p%d}", 64},
	{"spec: {labels: {%s}}", "spec.labels", "l%d: x", 32},
	{"spec: {annotations: {%s}}", "spec.annotations", "a%d: x", 32},
	{"spec: {podLabels: {%s}}", "spec.podLabels", "l%d: x", 32},
	{"spec: {podAnnotations: {%s}}", "spec.podAnnotations", "a%d: x", 32},
	{"spec: {resources: {requests: {%s}}}", "spec.resources.requests", "example.com/r%d: 1", 16},
	{"spec: {resources: {limits: {%s}}}", "spec.resources.limits", "example.com/r%d: 1", 16},
	{"spec: {scheduling: {nodeSelector: {%s}}}", "spec.scheduling.nodeSelector", "l%d: x", 32},
	{"spec: {scheduling: {tolerations: [%s]}}", "spec.scheduling.tolerations", "{key: k%d}", 32},
	{
		"spec: {scheduling: {topologySpreadConstraints: [%s]}}", "spec.scheduling.topologySpreadConstraints",
		"{maxSkew: 1, topologyKey: k%d, whenUnsatisfiable: DoNotSchedule}", 8,
	},
	{"spec: {network: {ingressFrom: [%s]}}", "spec.network.ingressFrom", "{ipBlock: {cidr: 10.0.%d.0/24}}", 30},
	{"spec: {network: {egressTo: [%s]}}", "spec.network.egressTo", "{ipBlock: {cidr: 10.0.%d.0/24}}", 30},
	{"spec: {network: {egressPorts: [%s]}}", "spec.network.egressPorts", "{port: 4%02d}", 32},
	{"status: {tools: [%s]}", "status.tools", "{name: t%d}", 512},
	{"status: {serverInfo: {protocolVersions: [%s]}}", "status.serverInfo.protocolVersions", "v%d", 16},
	{
		"status: {conditions: [%s]}", "status.conditions",
		"{type: T%d, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}", 16,
	},
}

// choice is a field that takes one of some words.
type choice struct {
	change string // %s is the word
	field  string
	words  []string
}

var choices = []choice{
	{"spec: {imagePullPolicy: %s}", "spec.imagePullPolicy", []string{"Always", "IfNotPresent", "Never"}},
	{"spec: {transport: %s}", "spec.transport", []string{"StreamableHTTP", "SSE"}},
	{"spec: {storage: [{mountPath: /a, access: %s, emptyDir: {}}]}", "spec.storage[].access", []string{"ReadOnly", "ReadWrite", "RecursiveReadOnly"}},
	{"spec: {storage: [{mountPath: /a, emptyDir: {medium: %s}}]}", "spec.storage[].emptyDir.medium", []string{"Memory"}},
	{"spec: {sessions: %s}", "spec.sessions", []string{"Auto", "Stateful", "Stateless"}},
	{"spec: {updateStrategy: {type: %s}}", "spec.updateStrategy.type", []string{"RollingUpdate", "Recreate"}},
	{"spec: {network: {ingress: %s}}", "spec.network.ingress", []string{"Namespace", "Gateways", "Listed"}},
	{"spec: {network: {egressPorts: [{port: 53, protocol: %s}]}}", "spec.network.egressPorts[].protocol", []string{"TCP", "UDP", "SCTP"}},
	{"spec: {podSecurity: {seccompProfile: {type: %s}}}", "spec.podSecurity.seccompProfile.type", []string{"RuntimeDefault"}},
	{"status: {phase: %s}", "status.phase", []string{"Pending", "Ready", "Degraded", "Failed", "ScaledToZero"}},
	{"status: {sessions: %s}", "status.sessions", []string{"Stateful", "Stateless"}},
}

// limits are the limits of the fields of a kind.
type limits struct {
	numbers []number
	texts   []text
	lists   []list
	choices []choice
}

// serverLimits are the limits of an MCPServer.
func serverLimits() limits { return limits{allNumbers(), texts, lists, choices} }

// allNumbers is numbers, and probeNumbers for each probe.
func allNumbers() []number {
	all := slices.Clone(numbers)
	for _, probe := range []string{"startup", "readiness", "liveness"} {
		for _, n := range probeNumbers {
			n.change = fmt.Sprintf("spec: {probes: {%s: {%s}}}", probe, n.change)
			n.field = "spec.probes." + probe + "." + n.field
			all = append(all, n)
		}
	}
	return all
}

// of returns a text of so many characters, as YAML.
func (c text) of(length int) string {
	return fmt.Sprintf(c.change, "'"+c.begin[:min(length, len(c.begin))]+strings.Repeat("a", max(0, length-len(c.begin)))+"'")
}

// of returns a list of so many items, as YAML.
func (c list) of(length int) string {
	items := make([]string, length)
	for i := range items {
		items[i] = fmt.Sprintf(c.item, i)
	}
	return fmt.Sprintf(c.change, strings.Join(items, ", "))
}

// within is every field at its limits.
func (l limits) within() []accepted {
	var cases []accepted
	add := func(change, format string, args ...any) {
		cases = append(cases, accepted{fmt.Sprintf(format, args...), change})
	}
	for _, c := range l.numbers {
		add(fmt.Sprintf(c.change, c.low), "%s may be %d", c.field, c.low)
		add(fmt.Sprintf(c.change, c.high), "%s may be %d", c.field, c.high)
	}
	for _, c := range l.texts {
		add(c.of(c.low), "%s may have %d characters", c.field, c.low)
		add(c.of(c.high), "%s may have %d characters", c.field, c.high)
	}
	for _, c := range l.lists {
		add(c.of(0), "%s may be empty", c.field)
		add(c.of(c.high), "%s may have %d entries", c.field, c.high)
	}
	for _, c := range l.choices {
		for _, word := range c.words {
			add(fmt.Sprintf(c.change, word), "%s may be %s", c.field, word)
		}
	}
	return cases
}

// beyond is every field one beyond each of its limits.
func (l limits) beyond() []refused {
	var cases []refused
	add := func(change, field, says, format string, args ...any) {
		cases = append(cases, refused{field + " " + fmt.Sprintf(format, args...), change, field, says})
	}
	for _, c := range l.numbers {
		add(fmt.Sprintf(c.change, c.low-1), c.field, fmt.Sprintf("greater than or equal to %d", c.low), "must not be %d", c.low-1)
		add(fmt.Sprintf(c.change, c.high+1), c.field, fmt.Sprintf("less than or equal to %d", c.high), "must not be %d", c.high+1)
	}
	for _, c := range l.texts {
		if c.low > 0 {
			add(c.of(c.low-1), c.field, fmt.Sprintf("at least %d chars", c.low), "must not have %d characters", c.low-1)
		}
		add(c.of(c.high+1), c.field, fmt.Sprintf("may not be more than %d", c.high), "must not have %d characters", c.high+1)
	}
	for _, c := range l.lists {
		add(c.of(c.high+1), c.field, fmt.Sprintf("must have at most %d", c.high), "must not have %d entries", c.high+1)
	}
	for _, c := range l.choices {
		add(fmt.Sprintf(c.change, "Other"), c.field, `supported values: "`, "must not be Other")
	}
	return cases
}

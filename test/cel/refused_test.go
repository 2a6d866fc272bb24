package cel

import "slices"

func allRefused() []refused {
	return slices.Concat(
		refusedNames, refusedContainers, refusedTransports, refusedMounts, refusedStorage, refusedItems(), refusedMetadata, refusedPods,
		refusedPlacements, refusedNetworks, refusedStatuses, serverLimits().beyond(),
	)
}

var refusedNames = []refused{
	{
		"a name of 55 characters does not fit its children", "metadata: {name: a234567890123456789012345678901234567890123456789012345}",
		"", "at most 54 characters",
	},
	{"a name that begins with a digit is no name of a Service", "metadata: {name: 1demo}", "", "must start with a letter"},
	{"a name with a dot is no name of a Service", "metadata: {name: demo.v1}", "", "must start with a letter"},
	{"a name like that of a Service of ours collides", "metadata: {name: demo-svc}", "", "must not end in -svc"},
	{"a name like that of a ConfigMap of ours collides", "metadata: {name: demo-config}", "", "must not end in -svc"},
	{"a name like that of a gateway of ours collides", "metadata: {name: demo-gateway}", "", "must not end in -svc"},
	{"a name like that of a headless Service of ours collides", "metadata: {name: demo-pods}", "", "must not end in -svc"},
	{"a name like that of a session key of ours collides", "metadata: {name: demo-session}", "", "must not end in -svc"},
	{"a server without a specification is nothing", "spec: null", "spec", "Required value"},
}

var refusedContainers = []refused{
	{"an image is needed", "spec: {image: null}", "spec.image", "Required value"},
	{"an image with a space is no image", "spec: {image: 'server 1'}", "spec.image", "must be an image reference"},
	{"an image with a line feed is no image", `spec: {image: "server:1\n"}`, "spec.image", "must be an image reference"},
	{"an image with a URL scheme is no image", "spec: {image: 'https://example.com/server:1'}", "spec.image", "must be an image reference"},
	{"a repository in upper case is no image", "spec: {image: example.com/Team/Server:1}", "spec.image", "in lower case"},
	{"an image with an empty tag is no image", "spec: {image: 'server:'}", "spec.image", "must be an image reference"},
	{"an image with two tags is no image", "spec: {image: 'server:1:2'}", "spec.image", "must be an image reference"},
	{"an image that climbs up is no image", "spec: {image: example.com/../server}", "spec.image", "must be an image reference"},
	{"an image with a short digest is no image", "spec: {image: 'server@sha256:abc'}", "spec.image", "must be an image reference"},
	{"a pull secret needs a name", "spec: {imagePullSecrets: [{}]}", "spec.imagePullSecrets[].name", "Required value"},
	{"a pull secret is given once", "spec: {imagePullSecrets: [{name: a}, {name: a}]}", "spec.imagePullSecrets[]", "Duplicate value"},
	{"a pull secret has the name of an object", "spec: {imagePullSecrets: [{name: A_b}]}", "spec.imagePullSecrets[].name", "name of an object"},
	{"a path begins with a slash", "spec: {path: mcp}", "spec.path", "must start with '/'"},
	{"a path has no query", "spec: {path: '/mcp?token=1'}", "spec.path", "no query"},
	{"a path has no fragment", "spec: {path: '/mcp#a'}", "spec.path", "no query"},
	{"a path has no line feed", `spec: {path: "/mcp\r\nX: y"}`, "spec.path", "no query"},
	{"a path has no percent sign", "spec: {path: /mcp%2f}", "spec.path", "no query"},
	{"a path has no letters beyond ASCII", "spec: {path: /müller}", "spec.path", "no query"},
	{"a path does not climb up", "spec: {path: /mcp/../admin}", "spec.path", "must not hold '//'"},
	{"a path does not end by climbing up", "spec: {path: /mcp/..}", "spec.path", "must not hold '//'"},
	{"a path has no dot for a part", "spec: {path: /./mcp}", "spec.path", "must not hold '//'"},
	{"a path has no empty part", "spec: {path: //evil.example.com/mcp}", "spec.path", "must not hold '//'"},
	{"a Host header has no second header in it", `spec: {hostHeader: "localhost\r\nX-Admin: 1"}`, "spec.hostHeader", "must be a host name or address"},
	{"a Host header has no scheme", "spec: {hostHeader: 'http://localhost'}", "spec.hostHeader", "must be a host name or address"},
	{"a Host header has no path", "spec: {hostHeader: localhost/x}", "spec.hostHeader", "must be a host name or address"},
	{"a Host header has no user", "spec: {hostHeader: 'me@localhost'}", "spec.hostHeader", "must be a host name or address"},
	{"a Host header has no empty label", "spec: {hostHeader: a..b}", "spec.hostHeader", "must be a host name or address"},
	{"a Host header has a port that exists", "spec: {hostHeader: 'localhost:65536'}", "spec.hostHeader", "must be a host name or address"},
	{"a variable is given once", "spec: {env: [{name: A, value: b}, {name: A, value: c}]}", "spec.env[]", "Duplicate value"},
	{"a variable has a name", "spec: {env: [{name: ''}]}", "spec.env", "1 to 253 characters"},
	{"a variable is not longer than Linux allows", longVariable(32769), "spec.env", "at most 32768 characters"},
	{
		"a variable has one source", "spec: {env: [{name: A, value: x, valueFrom: {secretKeyRef: {name: s, key: k}}}]}",
		"spec.env", "not have both value and valueFrom",
	},
	{"a variable from nothing has no value", "spec: {env: [{name: A, valueFrom: {}}]}", "spec.env", "exactly one of secretKeyRef"},
	{
		"a variable from two sources has two values",
		"spec: {env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}, configMapKeyRef: {name: c, key: k}}}]}", "spec.env", "exactly one of secretKeyRef",
	},
	{
		"a variable from a file of another container is not supported",
		"spec: {env: [{name: A, valueFrom: {fileKeyRef: {key: k, path: p, volumeName: v}}}]}", "spec.env", "fileKeyRef is not supported",
	},
	{"a variable from a Secret names the Secret", "spec: {env: [{name: A, valueFrom: {secretKeyRef: {key: k}}}]}", "spec.env", "secretKeyRef must have a name"},
	{
		"a variable from a Secret names the key", "spec: {env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: ''}}}]}",
		"spec.env", "secretKeyRef must have a name",
	},
	{
		"a variable from a ConfigMap names the ConfigMap", "spec: {env: [{name: A, valueFrom: {configMapKeyRef: {key: k}}}]}",
		"spec.env", "configMapKeyRef must have a name",
	},
	{
		"the folder of the configuration is told by one variable", "spec: {config: {inline: {}}, env: [{name: MCP_CONFIG, value: /x}]}",
		"spec", "must not set MCP_CONFIG",
	},
	{"variables from nothing are none", "spec: {envFrom: [{prefix: A_}]}", "spec.envFrom", "exactly one of configMapRef and secretRef"},
	{
		"variables come from one object each", "spec: {envFrom: [{configMapRef: {name: a}, secretRef: {name: b}}]}",
		"spec.envFrom", "exactly one of configMapRef and secretRef",
	},
	{"variables from a ConfigMap name it", "spec: {envFrom: [{configMapRef: {}}]}", "spec.envFrom", "must name the ConfigMap or Secret"},
	{"variables from a Secret name it", "spec: {envFrom: [{secretRef: {optional: true}}]}", "spec.envFrom", "must name the ConfigMap or Secret"},
	{
		"requests of memory do not exceed the limit", "spec: {resources: {requests: {memory: 1Gi}, limits: {memory: 512Mi}}}",
		"spec.resources", "requests must not exceed limits",
	},
	{
		"requests of processors do not exceed the limit", "spec: {resources: {requests: {cpu: 2}, limits: {cpu: 1500m}}}",
		"spec.resources", "requests must not exceed limits",
	},
	{"requests are of what exists", "spec: {resources: {requests: {mem: 1Gi}}}", "spec.resources.requests", "requests must be of cpu, memory"},
	{"limits are of what exists", "spec: {resources: {limits: {CPU: 1}}}", "spec.resources.limits", "limits must be of cpu, memory"},
	{"requests are not negative", "spec: {resources: {requests: {cpu: -1}}}", "spec.resources.requests", "must not be negative"},
	{"limits are not negative", "spec: {resources: {limits: {memory: '-1Gi'}}}", "spec.resources.limits", "must not be negative"},
}

var refusedMounts = []refused{
	{"a configuration without a source is none", "spec: {config: {mountPath: /etc/app}}", "spec.config", "exactly one of inline and configMapRef"},
	{
		"a configuration has one source", "spec: {config: {inline: {a: 1}, configMapRef: {name: c}}}",
		"spec.config", "exactly one of inline and configMapRef",
	},
	{"a ConfigMap has a name", "spec: {config: {configMapRef: {}}}", "spec.config.configMapRef.name", "Required value"},
	{"a ConfigMap has the name of an object", "spec: {config: {configMapRef: {name: a/b}}}", "spec.config.configMapRef.name", "name of an object"},
	{"a mount path is absolute", "spec: {config: {inline: {}, mountPath: etc/app}}", "spec.config.mountPath", "absolute path"},
	{"a mount path does not climb up", "spec: {config: {inline: {}, mountPath: /etc/../root}}", "spec.config.mountPath", "absolute path"},
	{"a mount path does not end by climbing up", "spec: {config: {inline: {}, mountPath: /etc/app/..}}", "spec.config.mountPath", "absolute path"},
	{"a mount path has no colon", "spec: {config: {inline: {}, mountPath: '/etc/app:ro'}}", "spec.config.mountPath", "absolute path"},
	{"a mount path does not end in a slash", "spec: {config: {inline: {}, mountPath: /etc/app/}}", "spec.config.mountPath", "absolute path"},
	{"a mount does not hide /etc", "spec: {config: {inline: {}, mountPath: /etc}}", "spec.config.mountPath", "must not hide a folder of the system"},
	{"a mount does not hide /tmp", "spec: {config: {inline: {}, mountPath: /tmp}}", "spec.config.mountPath", "must not hide a folder of the system"},
	{"a Secret has a name", "spec: {secretRefs: [{optional: true}]}", "spec.secretRefs[].name", "Required value"},
	{"a Secret has the name of an object", "spec: {secretRefs: [{name: -a}]}", "spec.secretRefs[].name", "name of an object"},
	{"a Secret is mounted once", "spec: {secretRefs: [{name: a, mountPath: /x/a}, {name: a, mountPath: /x/b}]}", "spec.secretRefs[]", "Duplicate value"},
	{
		"two Secrets are not mounted at one path", "spec: {secretRefs: [{name: a, mountPath: /x/s}, {name: b, mountPath: /x/s}]}",
		"spec.secretRefs", "must be different for each Secret",
	},
	{
		"a Secret is not mounted at the default path of another", "spec: {secretRefs: [{name: a}, {name: b, mountPath: /etc/mcp/secrets/a}]}",
		"spec.secretRefs", "must be different for each Secret",
	},
	{
		"a Secret is not mounted where the configuration is", "spec: {config: {inline: {}}, secretRefs: [{name: a, mountPath: /etc/mcp/config}]}",
		"spec", "must differ from config.mountPath",
	},
	{
		"a configuration is not mounted where a Secret is", "spec: {config: {inline: {}, mountPath: /etc/mcp/secrets/a}, secretRefs: [{name: a}]}",
		"spec", "must differ from config.mountPath",
	},
	{"a Secret is not mounted below /proc", "spec: {secretRefs: [{name: a, mountPath: /proc/self}]}", "spec.secretRefs[].mountPath", "must not hide"},
	{"a Secret is not mounted at /dev", "spec: {secretRefs: [{name: a, mountPath: /dev}]}", "spec.secretRefs[].mountPath", "must not hide"},
	{
		"a Secret is not mounted where the account's token is",
		"spec: {secretRefs: [{name: a, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]}", "spec.secretRefs[].mountPath", "must not hide",
	},
	{"a Secret's path does not climb up", "spec: {secretRefs: [{name: a, mountPath: /x/../y}]}", "spec.secretRefs[].mountPath", "absolute path"},
}

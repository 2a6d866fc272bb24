package cel

// meantStorage is what a rule of storage, TLS, transports or metadata might refuse by mistake.
var meantStorage = []accepted{
	{"a server of events", "spec: {transport: SSE, path: /events/sse}"},
	{"a server of events with probes beside its stream", "spec: {transport: SSE, path: /e, probes: {readiness: {path: /sse}, liveness: {path: /e2}}}"},
	{"a server of standard input and output", "spec: {transport: Stdio, command: [node, server.js], args: [--verbose]}"},
	{"a bridge at another path", "spec: {transport: Stdio, command: [a], path: /team-a/~mcp.v1}"},
	{"a bridge at the root", "spec: {transport: Stdio, command: [a], path: /}"},
	{"a bridge with timings for its probes", "spec: {transport: Stdio, command: [a], probes: {readiness: {periodSeconds: 5}, liveness: {}, startup: {}}}"},
	{"port 8088 without a bridge", "spec: {port: 8088}"},
	{"an empty folder", "spec: {storage: [{mountPath: /data, emptyDir: {}}]}"},
	{"an empty folder in memory, with a limit", "spec: {storage: [{mountPath: /tmp/cache, access: ReadWrite, emptyDir: {medium: Memory, sizeLimit: 64Mi}}]}"},
	{"an empty folder of a number of bytes", "spec: {storage: [{mountPath: /data, emptyDir: {sizeLimit: '1000000'}}]}"},
	{"a ConfigMap and a Secret of one name", "spec: {storage: [{mountPath: /a, configMap: {name: x}}, {mountPath: /b, secret: {name: x, optional: true}}]}"},
	{"a claim to write to", "spec: {storage: [{mountPath: /var/lib/data, access: ReadWrite, persistentVolumeClaim: {claimName: data}}]}"},
	{"a claim to read, with all that is below", "spec: {storage: [{mountPath: /models, access: RecursiveReadOnly, persistentVolumeClaim: {claimName: m}}]}"},
	{
		"keys as files in folders",
		`spec: {storage: [{mountPath: /a, configMap: {name: x, defaultMode: 0400,
		items: [{key: a.b_c-d, path: e/f.g, mode: 0755}, {key: a.b_c-d, path: h..i}]}}]}`,
	},
	{"a Secret in a folder that is written to", "spec: {storage: [{mountPath: /home/app, emptyDir: {}}], secretRefs: [{name: a, mountPath: /home/app/.aws}]}"},
	{
		"a configuration in a claim that is written to",
		"spec: {storage: [{mountPath: /app, access: ReadWrite, persistentVolumeClaim: {claimName: a}}], config: {inline: {}, mountPath: /app/config}}",
	},
	{"folders whose names only begin alike", "spec: {storage: [{mountPath: /data, configMap: {name: a}}, {mountPath: /data2, configMap: {name: b}}]}"},
	{"storage in other storage that is written to", "spec: {storage: [{mountPath: /data, emptyDir: {}}, {mountPath: /data/a, secret: {name: a}}]}"},
	{"the default folder of the configuration where there is none", "spec: {storage: [{mountPath: /etc/mcp/config, configMap: {name: a}}]}"},
	{"HTTPS that the authorities of the world vouch for", "spec: {tls: {}}"},
	{"HTTPS that an authority of the cluster vouches for", "spec: {tls: {caSecretRef: {name: ca.example}, insecureSkipVerify: false}}"},
	{"HTTPS that nobody vouches for, said aloud", "spec: {tls: {insecureSkipVerify: true}}"},
	{"labels for every child", "spec: {labels: {team: a, app.kubernetes.io/part-of: shop, example.com/Cost.Center_1: ''}}"},
	{"annotations for every child", "spec: {annotations: {Example.com/Note: \"a\\nb\", prometheus.io/scrape: 'true'}}"},
}

var refusedTransports = []refused{
	{"a child process is a command", "spec: {transport: Stdio}", "spec", "command is required"},
	{"a child process is not an empty command", "spec: {transport: Stdio, command: []}", "spec", "command is required"},
	{"a child process has a name", "spec: {transport: Stdio, command: ['', a]}", "spec", "command is required"},
	{"a bridge has two ports", "spec: {transport: Stdio, command: [a], port: 8088}", "spec", "port must not be 8088"},
	{"a bridge serves one spelling of a path", "spec: {transport: Stdio, command: [a], path: /mcp/}", "spec", "path of transport Stdio"},
	{"a bridge serves plain paths", "spec: {transport: Stdio, command: [a], path: '/v1:mcp'}", "spec", "path of transport Stdio"},
	{"a bridge serves metadata itself", "spec: {transport: Stdio, command: [a], path: /.well-known/mcp}", "spec", "path of transport Stdio"},
	{"a bridge takes the Service's name", "spec: {transport: Stdio, command: [a], hostHeader: localhost}", "spec", "hostHeader and tls must not be set"},
	{"a bridge speaks plain HTTP", "spec: {transport: Stdio, command: [a], tls: {}}", "spec", "hostHeader and tls must not be set"},
	{"a bridge has its own readiness", "spec: {transport: Stdio, command: [a], probes: {readiness: {path: /}}}", "spec", "has health checks of its own"},
	{"a bridge has its own liveness", "spec: {transport: Stdio, command: [a], probes: {liveness: {path: /}}}", "spec", "has health checks of its own"},
	{"a bridge has its own start", "spec: {transport: Stdio, command: [a], probes: {startup: {path: /}}}", "spec", "has health checks of its own"},
	{"an event stream is a session", "spec: {transport: SSE, sessions: Stateless}", "spec", "sessions must not be Stateless"},
	{"an event stream is no readiness", "spec: {transport: SSE, probes: {readiness: {path: /sse}}}", "spec", "must not be that of the event stream"},
	{"an event stream is no liveness", "spec: {transport: SSE, path: /e, probes: {liveness: {path: '/e?a=b'}}}", "spec", "that of the event stream"},
	{"an event stream is no start", "spec: {transport: SSE, probes: {startup: {path: /sse}}}", "spec", "must not be that of the event stream"},
	{"a Secret is not mounted where the bridge is", "spec: {secretRefs: [{name: a, mountPath: /mcp-bridge}]}", "spec.secretRefs[].mountPath", "must not hide"},
	{
		"a certificate is verified or it is not", "spec: {tls: {caSecretRef: {name: a}, insecureSkipVerify: true}}",
		"spec.tls", "mutually exclusive",
	},
	{"an authority's Secret has a name", "spec: {tls: {caSecretRef: {}}}", "spec.tls.caSecretRef.name", "Required value"},
	{"an authority's Secret has the name of an object", "spec: {tls: {caSecretRef: {name: A}}}", "spec.tls.caSecretRef.name", "name of an object"},
	{"an authority's key is a key", "spec: {tls: {caSecretRef: {name: a, key: a/b}}}", "spec.tls.caSecretRef.key", "must be a key of a Secret"},
}

var refusedStorage = []refused{
	{"storage is something", "spec: {storage: [{mountPath: /a}]}", "spec.storage[]", "exactly one of emptyDir"},
	{"storage is one thing", "spec: {storage: [{mountPath: /a, emptyDir: {}, secret: {name: a}}]}", "spec.storage[]", "exactly one of emptyDir"},
	{"storage is somewhere", "spec: {storage: [{emptyDir: {}}]}", "spec.storage[].mountPath", "Required value"},
	{"storage has a place of its own", "spec: {storage: [{mountPath: /a, emptyDir: {}}, {mountPath: /a, emptyDir: {}}]}", "spec.storage[]", "Duplicate value"},
	{"storage is not /tmp", "spec: {storage: [{mountPath: /tmp, emptyDir: {}}]}", "spec.storage[].mountPath", "must not hide"},
	{"storage is at a path", "spec: {storage: [{mountPath: 'data:ro', emptyDir: {}}]}", "spec.storage[].mountPath", "must be an absolute path"},
	{"a Secret is not written to", "spec: {storage: [{mountPath: /a, access: ReadWrite, secret: {name: a}}]}", "spec.storage[]", "must not be ReadWrite"},
	{"a ConfigMap is not written to", "spec: {storage: [{mountPath: /a, access: ReadWrite, configMap: {name: a}}]}", "spec.storage[]", "must not be ReadWrite"},
	{
		"storage is not where the configuration is", "spec: {config: {inline: {}}, storage: [{mountPath: /etc/mcp/config, emptyDir: {}}]}",
		"spec", "lie in, config.mountPath",
	},
	{
		"storage is not below the configuration", "spec: {config: {inline: {}, mountPath: /x}, storage: [{mountPath: /x/y, emptyDir: {}}]}",
		"spec", "lie in, config.mountPath",
	},
	{
		"storage to read holds no configuration", "spec: {config: {inline: {}}, storage: [{mountPath: /etc/mcp, configMap: {name: a}}]}",
		"spec", "lie in, config.mountPath",
	},
	{
		"storage is not where a Secret is", "spec: {secretRefs: [{name: a}], storage: [{mountPath: /etc/mcp/secrets/a, emptyDir: {}}]}",
		"spec", "lie in, secretRefs[].mountPath",
	},
	{
		"storage to read holds no Secret", "spec: {secretRefs: [{name: a}], storage: [{mountPath: /etc/mcp, access: ReadOnly, emptyDir: {}}]}",
		"spec", "lie in, secretRefs[].mountPath",
	},
	{
		"storage to read holds no storage", "spec: {storage: [{mountPath: /a/b, emptyDir: {}}, {mountPath: /a, secret: {name: a}}]}",
		"spec.storage", "that is read-only",
	},
	{"an empty folder has room", "spec: {storage: [{mountPath: /a, emptyDir: {sizeLimit: '0'}}]}", "spec.storage[].emptyDir.sizeLimit", "above 0"},
	{"room is not less than nothing", "spec: {storage: [{mountPath: /a, emptyDir: {sizeLimit: -1Mi}}]}", "spec.storage[].emptyDir.sizeLimit", "above 0"},
	{"room is a quantity", "spec: {storage: [{mountPath: /a, emptyDir: {sizeLimit: much}}]}", "spec.storage[].emptyDir.sizeLimit", "above 0"},
	{"mounted keys have a Secret", "spec: {storage: [{mountPath: /a, secret: {}}]}", "spec.storage[].secret.name", "Required value"},
	{"mounted keys have a ConfigMap", "spec: {storage: [{mountPath: /a, configMap: {}}]}", "spec.storage[].configMap.name", "Required value"},
	{"a mounted Secret has the name of an object", "spec: {storage: [{mountPath: /a, secret: {name: A}}]}", "spec.storage[].secret.name", "name of an object"},
	{
		"a mounted ConfigMap has the name of an object", "spec: {storage: [{mountPath: /a, configMap: {name: A}}]}",
		"spec.storage[].configMap.name", "name of an object",
	},
	{"a claim has a name", "spec: {storage: [{mountPath: /a, persistentVolumeClaim: {}}]}", "spec.storage[].persistentVolumeClaim.claimName", "Required value"},
	{
		"a claim has the name of an object", "spec: {storage: [{mountPath: /a, persistentVolumeClaim: {claimName: A}}]}",
		"spec.storage[].persistentVolumeClaim.claimName", "name of a PersistentVolumeClaim",
	},
}

// refusedItems is what items of a ConfigMap and of a Secret must not be.
func refusedItems() []refused {
	var list []refused
	for _, kind := range []string{"configMap", "secret"} {
		add := func(name, items, field, says string) {
			list = append(list, refused{
				"of a " + kind + ", " + name, "spec: {storage: [{mountPath: /a, " + kind + ": {name: a, items: [" + items + "]}}]}",
				"spec.storage[]." + kind + ".items" + field, says,
			})
		}
		add("a file has a key", "{path: a}", "[].key", "Required value")
		add("a file has a path", "{key: a}", "[].path", "Required value")
		add("a file has a path of its own", "{key: a, path: x}, {key: b, path: x}", "[]", "Duplicate value")
		add("a key is no path", "{key: a/b, path: x}", "[].key", "must be a key")
		add("a key does not climb up", "{key: .., path: x}", "[].key", "must be a key")
		add("a path is relative", "{key: a, path: /x}", "[].path", "must be a relative path")
		add("a path does not climb up", "{key: a, path: x/../y}", "[].path", "must be a relative path")
		add("a path does not begin like the kubelet's own folders", "{key: a, path: ..x}", "[].path", "must be a relative path")
	}
	return list
}

var refusedMetadata = []refused{
	{"the label mcp-server of a child is ours", "spec: {labels: {mcp-server: x}}", "spec.labels", "the operator sets them"},
	{"labels of children under mcp.operator are ours", "spec: {labels: {mcp.operator/server: x}}", "spec.labels", "the operator sets them"},
	{"a child's label has a qualified name", "spec: {labels: {'a b': x}}", "spec.labels", "must be qualified names"},
	{"a child's label has a label value", "spec: {labels: {team: 'a b'}}", "spec.labels", "must be label values"},
	{"annotations of children under mcp.operator are ours", "spec: {annotations: {mcp.operator/paused: x}}", "spec.annotations", "others write them"},
	{"a revision is the Deployment controller's", "spec: {annotations: {deployment.kubernetes.io/revision: '7'}}", "spec.annotations", "others write them"},
	{"a restart is kubectl's", "spec: {annotations: {kubectl.kubernetes.io/restartedAt: now}}", "spec.annotations", "others write them"},
	{"a child's annotation has a qualified name", "spec: {annotations: {'a b': x}}", "spec.annotations", "must be qualified names"},
}

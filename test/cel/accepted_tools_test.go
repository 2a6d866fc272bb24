package cel

import "slices"

func acceptedTools() []accepted {
	return slices.Concat(meantTools, toolLimits().within())
}

func at(endpoint string) string { return "spec: {endpoint: '" + endpoint + "'}" }

func path(template string) string { return "spec: {http: {path: \"" + template + "\"}}" }

// withToken is an endpoint that is sent a credential.
func withToken(endpoint string) string {
	return "spec: {endpoint: '" + endpoint + "', auth: {type: Bearer, secretRef: {name: a}}}"
}

// meantTools is what a rule might refuse by mistake.
var meantTools = []accepted{
	{"the smallest tool", "{}"},
	{"a tool that ends as other kinds must not", "metadata: {name: backup-config}"},
	{"a host of one label", at("http://a")},
	{"a host with a dot at its end", at("https://api.example.com./mcp/")},
	{"a host with a port", at("https://api.example.com:65535/")},
	{"a host with a low line", at("http://my_service/")},
	{"a host with a number in front", at("http://10.example.com")},
	{"an IPv4 address", at("http://192.0.2.7:8080/mcp")},
	{"an IPv6 address", at("http://[2001:db8::1]:80/mcp")},
	{"a path with escapes and signs", at("https://a/%20b/@c/d:e;f,g=h+i!j$k&l(m)*/%C3%BC~n_o-p.q")},
	{"a path with dots in its parts", at("https://a/..b/.c/d..")},
	{"a path that ends in a slash", at("https://a/b/")},
	{"a name of a Service without a credential", at("http://api.team.svc.cluster.local:8080/v1")},
	{"a Service with a credential", withToken("http://api.team.svc")},
	{"a pod of a Service with a credential", withToken("http://web-0.web.team.svc.cluster.local./v1")},
	{"another name of the cluster with a credential", withToken("http://gateway.cluster.local:80")},
	{"HTTPS with a credential", withToken("https://api.example.com")},
	{"Bearer with a key", auth("Bearer", "secretRef: {name: a, keys: {token: API_TOKEN}}")},
	{"Basic with keys", auth("Basic", "secretRef: {name: a, keys: {username: u, password: p}}")},
	{"a header of its own with a key", auth("Header", "header: X-API-Key, secretRef: {name: a, keys: {token: t}}")},
	{"a header that only begins like a reserved one", auth("Header", "header: Content, secretRef: {name: a}")},
	{"a header of a vendor", auth("Header", "header: PRIVATE-TOKEN, secretRef: {name: a}")},
	{"a certificate with keys", auth("ClientCertificate", "secretRef: {name: a, keys: {certificate: tls.crt, key: tls.key}}")},
	{"no keys, said", auth("Bearer", "secretRef: {name: a, keys: {}}")},
	{"a key that begins with a dot", auth("Bearer", "secretRef: {name: a, keys: {token: .dockerconfigjson}}")},
	{"authorities of a ConfigMap", "spec: {caBundle: {configMapRef: {name: ca.example, key: ca.crt}}}"},
	{"authorities of a Secret", "spec: {caBundle: {secretRef: {name: ca, key: ca.crt}}}"},
	{
		"a tool with everything that tells of it", `spec: {title: Weather, description: "Tells ⚠️ the weather\nof a place.", timeoutSeconds: 5,
		annotations: {readOnly: true, destructive: false, idempotent: true, openWorld: true}, schema: {inline: {
		input: {type: object, properties: {city: {type: string, $ref: '#/$defs/a', default: null}}, required: [city]}, output: {type: object}}}}`,
	},
	{"a schema of results alone", "spec: {schema: {inline: {output: {}}}}"},
	{"schemas of a ConfigMap", "spec: {schema: {configMapRef: {name: schemas, key: weather.yaml}}}"},
	{"the smallest operation", "spec: {http: {}}"},
	{"a path of a slash", path("/")},
	{"a path with arguments", path("/users/{user}/repos/{repo-name}.json/")},
	{"two arguments in one part", path("/tiles/{x},{y};z={z z}")},
	{"an argument that is a word of a path", path("/{..}/.{a}")},
	{"every sign that a path may have", path("/-._~!$&'()*+,;=:@/a")},
	{
		"an operation with everything", `spec: {http: {method: PATCH, path: '/a/{id}', query: [{name: 'filter[name]', argument: name, style: DeepObject},
		{name: v, value: 1}, {name: q, value: 'x'}, {name: b, value: true}], headers: [{name: X-Trace, argument: trace}, {name: X-A, value: a}],
		body: {type: JSON, members: [{name: a, argument: b}, {name: c, value: {d: [1, null]}}]}, response: {select: '/data/~0a~1b/0'}}}`,
	},
	{"a body that is one argument", "spec: {http: {method: PUT, body: {argument: document}}}"},
	{"a form", "spec: {http: {body: {type: Form, members: [{name: a}]}}}"},
	{"a body with the default method", "spec: {http: {body: {}}}"},
	{"a body of a DELETE", "spec: {http: {method: DELETE, body: {}}}"},
	{"a pointer to letters beyond ASCII", "spec: {http: {response: {select: /größe}}}"},
	{"a document by its address", "spec: {type: openapi, endpoint: null, openapi: {document: {url: 'https://api.example.com/openapi.yaml?version=3&a=[b]'}}}"},
	{
		"a document by its address with a credential",
		"spec: {type: openapi, endpoint: null, auth: {type: Bearer, secretRef: {name: a}}, openapi: {document: {url: 'https://api.example.com/openapi.yaml'}}}",
	},
	{
		"a document of one's own decides where a credential is sent",
		"spec: {type: openapi, endpoint: null, auth: {type: Bearer, secretRef: {name: a}}, openapi: {document: {configMapRef: {name: a, key: b}}}}",
	},
	{"a document that is given", "spec: {type: openapi, openapi: {document: {inline: {openapi: 3.1.0, info: {title: A, version: '1'}, paths: {}}}}}"},
	{
		"some operations", openapi(`prefix: shop_, include: [{operation: 'get*', tag: read, method: GET, path: '/pets/*'}, {path: '*/search'}],
		exclude: [{operation: getSecret}]`),
	},
	{"a limit of what an operation answers", "spec: {type: openapi, maxResponseBytes: 2048, openapi: {document: {inline: {}}}}"},
	{
		"a statement with everything", `spec: {type: postgres, endpoint: 'postgres://db.team.svc:5433/My_shop-1.0$', title: Orders, description: Lists orders,
		maxResponseBytes: 4096, schema: {inline: {input: {}}}, annotations: {destructive: true}, caBundle: {configMapRef: {name: ca, key: ca.crt}},
		auth: {type: Password, secretRef: {name: db, keys: {password: DB_PASSWORD}}}, postgres: {statement: "SELECT *\nFROM orders WHERE id = $1",
		parameters: [{argument: id, type: 'Integer[]'}, {argument: id}], user: müller, maxRows: 5, tls: VerifyCA}}`,
	},
	{"a database at an IPv6 address", "spec: {type: postgres, endpoint: 'postgres://[2001:db8::1]:5432/a', postgres: {statement: SELECT 1, user: a}}"},
	{
		"a database that knows its clients by their certificates",
		"spec: {type: postgres, endpoint: 'postgres://db/a', auth: {type: ClientCertificate, secretRef: {name: a}}, postgres: {statement: SELECT 1, user: a}}",
	},
	{
		"a database without TLS and with a password",
		`spec: {type: postgres, endpoint: 'postgres://db/a', auth: {type: Password, secretRef: {name: a}},
		postgres: {statement: SELECT 1, user: a, tls: Disable}}`,
	},
	{"a remote server", "spec: {type: mcp}"},
	{
		"some tools of a remote server that is trusted",
		remote(`prefix: web_, transport: SSE, trusted: true, tools: {allow: ['get_*', 'a/b:c@d.e-f'], deny: ['*'],
		readOnly: true, denyDestructive: true, rename: {'get weather ü': weather, b: c}}`),
	},
	{"some tools of a remote server that is not", remote("tools: {deny: [a], readOnly: false, denyDestructive: false, rename: {}}")},
	{"a pattern of tools", remote("tools: {allow: ['*']}")},
	{"256 patterns", list{remote("tools: {allow: [%s]}"), "", "t%d", 0}.of(256)},
}

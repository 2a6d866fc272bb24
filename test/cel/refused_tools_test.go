package cel

import (
	"slices"
	"strings"
)

func refusedTools() []refused {
	return slices.Concat(refusedToolNames, refusedEndpoints, refusedCredentials, refusedOperations, refusedDocuments, refusedStatements,
		refusedRemotes, refusedToolStatuses, toolLimits().beyond())
}

var refusedToolNames = []refused{
	{
		"a name of 55 characters does not fit its children", "metadata: {name: a234567890123456789012345678901234567890123456789012345}",
		"", "at most 54 characters",
	},
	{"a name that begins with a digit is no name of a tool", "metadata: {name: 1demo}", "", "must start with a letter"},
	{"a name with a dot is no name of a tool", "metadata: {name: demo.v1}", "", "must start with a letter"},
	{"a tool without a specification is nothing", "spec: null", "spec", "Required value"},
	{"a tool has a type", "spec: {type: null}", "spec.type", "Required value"},
	{"a tool is not of two types", "spec: {mcp: {}}", "spec", "only the member that type names"},
	{"a statement is no operation", "spec: {postgres: {statement: SELECT 1, user: a}}", "spec", "only the member that type names"},
	{"a document is no operation", "spec: {openapi: {document: {inline: {}}}}", "spec", "only the member that type names"},
	{"an operation is no remote server", "spec: {type: mcp, http: {}}", "spec", "only the member that type names"},
	{"a document is given", "spec: {type: openapi}", "spec", "openapi is required"},
	{"a statement is given", "spec: {type: postgres, endpoint: 'postgres://db/a'}", "spec", "postgres is required"},
	{"a remote server has a title of its own", "spec: {type: mcp, title: a}", "spec", "title, description, schema and annotations"},
	{"a remote server has a description of its own", "spec: {type: mcp, description: a}", "spec", "title, description, schema and annotations"},
	{
		"operations have schemas of their own", "spec: {type: openapi, openapi: {document: {inline: {}}}, schema: {inline: {input: {}}}}",
		"spec", "schema and annotations",
	},
	{"operations have annotations of their own", "spec: {type: openapi, openapi: {document: {inline: {}}}, annotations: {}}", "spec", "schema and annotations"},
	{"results of a remote server have no limit here", "spec: {type: mcp, maxResponseBytes: 2048}", "spec", "maxResponseBytes must not be set"},
	{"schemas without a source are none", "spec: {schema: {}}", "spec.schema", "exactly one of inline and configMapRef"},
	{
		"schemas have one source", "spec: {schema: {inline: {input: {}}, configMapRef: {name: a, key: b}}}",
		"spec.schema", "exactly one of inline and configMapRef",
	},
	{"no schemas are not given", "spec: {schema: {inline: {}}}", "spec.schema.inline", "at least 1 properties"},
	{"a schema is an object", "spec: {schema: {inline: {input: true}}}", "spec.schema.inline.input", "must be of type object"},
	{"a schema of results is an object", "spec: {schema: {inline: {output: [a]}}}", "spec.schema.inline.output", "must be of type object"},
	{"schemas of a ConfigMap name it", "spec: {schema: {configMapRef: {key: a}}}", "spec.schema.configMapRef.name", "Required value"},
	{"schemas of a ConfigMap name the key", "spec: {schema: {configMapRef: {name: a}}}", "spec.schema.configMapRef.key", "Required value"},
	{"schemas of a ConfigMap name an object", "spec: {schema: {configMapRef: {name: A_b, key: a}}}", "spec.schema.configMapRef.name", "name of an object"},
	{"schemas are under a key that exists", "spec: {schema: {configMapRef: {name: a, key: a/b}}}", "spec.schema.configMapRef.key", "must consist of letters"},
}

const (
	notAURL = "must be a URL such as"
	noHost  = "must have a host name or an IP address"
	noPath  = "must consist of letters, digits, -._~"
)

// refusedEndpoints are addresses that not every reader understands alike.
var refusedEndpoints = slices.Concat(
	each("an endpoint is not", at, "spec.endpoint", notAURL,
		"api.example.com", "//api.example.com/a", "/api/v1/mcp", "ftp://example.com", "file:///etc/passwd", "HTTPS://example.com", "https:a.example",
		"https://me@example.com", "https://me:secret@example.com/", "https://a/?x=1", "https://a/b#c", "https://?a=b",
	),
	each("an endpoint has no host", at, "spec.endpoint", noHost,
		"https://-a/b", "https://a-/b", "https://a..b/", "https://.a/b", "https://a*/b", "https://a b/c", "https://\u0430pple.example/", `https://a\\b/c`,
		"https://a:0/b", "https://a:/b", "https://a:65536/", "https://a:080/", "https://a:b/c", "https://a:1:2/c", "https://2130706433/",
		"https://0x7f000001/", "https://127.1/a", "https://0177.0.0.1/", "https://127.0.0.1./", "https://256.1.1.1/", "https://127.0.0.0x1",
		"https://[fe80::1%25eth0]/", "https://[10.0.0.1]/a", "https://[::1", "https://[::g]/a", "https://"+strings.Repeat("a", 64)+".com/",
		"https://"+strings.Repeat("a.", 127)+"com",
	),
	each("the path of an endpoint is not", at, "spec.endpoint", noPath,
		"https://a/../b", "https://a/b/..", "https://a/./b", "https://a/b/.", "https://a//b", "https://a/b//", "https://a//",
		"https://a/%2e%2e/b", "https://a/%2E/b", "https://a/b%2fc", "https://a/b%5Cc", "https://a/b%25c", "https://a/%0d%0aX", "https://a/%7f", "https://a/%",
		"https://a/%zz", "https://a/b c", "https://a/{b}", "https://a/b|c", `https://a/b\\c`, "https://a/ü", `https://a/"`,
	),
	[]refused{
		{"an endpoint has no line feed", `spec: {endpoint: "https://example.com/a\n"}`, "spec.endpoint", noPath},
		{"a tool is somewhere", "spec: {endpoint: null}", "spec", "endpoint is required"},
		{"a remote server is somewhere", "spec: {type: mcp, endpoint: null}", "spec", "endpoint is required"},
		{"an HTTP API is no database", at("postgres://db/a"), "spec", "must begin with postgres://"},
		{
			"a database is no HTTP API", "spec: {type: postgres, endpoint: 'https://db/a', postgres: {statement: SELECT 1, user: a}}",
			"spec", "must begin with postgres://",
		},
	},
	each("a database is not at", func(endpoint string) string {
		return "spec: {type: postgres, endpoint: '" + endpoint + "', postgres: {statement: SELECT 1, user: a}}"
	}, "spec", "must be postgres://host:port/database",
		"postgres://db", "postgres://db/", "postgres://db/a/b", "postgres://db/a/", "postgres://db/a%20b", "postgres://db/a,b",
		"postgres://db/"+strings.Repeat("a", 64),
	),
)

// each is one case for each of some values.
func each(name string, change func(string) string, field, says string, values ...string) []refused {
	cases := make([]refused, len(values))
	for i, value := range values {
		cases[i] = refused{name + " " + value, change(value), field, says}
	}
	return cases
}

const (
	inTheClear = "would cross the network in the clear"
	unusedKeys = "only keys that type uses"
)

var refusedCredentials = slices.Concat(
	each("a credential is not sent to", withToken, "spec", inTheClear,
		"http://api.example.com", "http://192.0.2.7/a", "http://a", "http://a.svc", "http://api.team.svcs/", "http://api.example.com/a.b.svc/",
		"http://api.team.svc-example.com/", "http://cluster.local", "http://api.cluster.local.example.com", "http://api.team.svc.example.org",
	),
	each("a header for credentials is not", func(header string) string {
		return auth("Header", "header: '"+header+"', secretRef: {name: a}")
	}, "spec.auth.header", "must not be one that the connection",
		"Authorization", "cookie", "Host", "HOST", "Content-Length", "Connection", "Transfer-Encoding", "Mcp-Session-Id", "mcp-method", "Proxy-Authorization",
		"X-Forwarded-For", "Sec-Fetch-Mode", "If-None-Match", "Accept", "Accept-Encoding", "Access-Control-Allow-Origin", "Idempotency-Key", "Traceparent",
		"Te", "Last-Event-ID",
	),
	each("a header for credentials is not named", func(header string) string {
		return auth("Header", "header: \""+header+"\", secretRef: {name: a}")
	}, "spec.auth.header", "must be the name of an HTTP header", "X_Key", "X Key", "X:", `X\r\nY`, "Ü", "a/b"),
	[]refused{
		{"a credential has a type", "spec: {auth: {secretRef: {name: a}}}", "spec.auth.type", "Required value"},
		{"a credential is in a Secret", "spec: {auth: {type: Bearer}}", "spec.auth.secretRef", "Required value"},
		{"a credential is in a Secret that has a name", auth("Bearer", "secretRef: {}"), "spec.auth.secretRef.name", "Required value"},
		{"a credential is in a Secret of this namespace", auth("Bearer", "secretRef: {name: a/b}"), "spec.auth.secretRef.name", "name of an object"},
		{"an API takes no password of databases", auth("Password", "secretRef: {name: a}"), "spec", "must not be Password"},
		{
			"a database takes no token", "spec: {type: postgres, endpoint: 'postgres://db/a', auth: {type: Bearer, secretRef: {name: a}}, " +
				"postgres: {statement: SELECT 1, user: a}}", "spec", "must be Password or ClientCertificate",
		},
		{"a header has a name", auth("Header", "secretRef: {name: a}"), "spec.auth", "header is required"},
		{"Bearer has a header already", auth("Bearer", "header: X-Key, secretRef: {name: a}"), "spec.auth", "header is required when type is Header"},
		{"Bearer has no username", auth("Bearer", "secretRef: {name: a, keys: {username: u}}"), "spec.auth", unusedKeys},
		{"Bearer has no password", auth("Bearer", "secretRef: {name: a, keys: {password: u}}"), "spec.auth", unusedKeys},
		{"Basic has no token", auth("Basic", "secretRef: {name: a, keys: {token: t}}"), "spec.auth", unusedKeys},
		{"Basic has no private key", auth("Basic", "secretRef: {name: a, keys: {key: t}}"), "spec.auth", unusedKeys},
		{"a header has no certificate", auth("Header", "header: X-A, secretRef: {name: a, keys: {certificate: t}}"), "spec.auth", unusedKeys},
		{"a certificate has no token", auth("ClientCertificate", "secretRef: {name: a, keys: {token: t}}"), "spec.auth", unusedKeys},
		{"a key has no folder", auth("Bearer", "secretRef: {name: a, keys: {token: ../b}}"), keyField + "token", "must consist of letters"},
		{"a key is not two dots", auth("Basic", "secretRef: {name: a, keys: {username: ..}}"), keyField + "username", "must consist of letters"},
		{"a key does not begin with two dots", auth("Basic", "secretRef: {name: a, keys: {password: ..a}}"), keyField + "password", "not begin with '..'"},
		{"a key is not a dot", auth("ClientCertificate", "secretRef: {name: a, keys: {certificate: .}}"), keyField + "certificate", "must consist"},
		{"a key has no space", auth("ClientCertificate", "secretRef: {name: a, keys: {key: a b}}"), keyField + "key", "must consist of letters"},
		{
			"a certificate is not shown without TLS", "spec: {endpoint: 'http://api.team.svc', auth: {type: ClientCertificate, secretRef: {name: a}}}",
			"spec", "ClientCertificate needs TLS",
		},
		{
			"a certificate is not shown to a database without TLS", "spec: {type: postgres, endpoint: 'postgres://db/a', " +
				"auth: {type: ClientCertificate, secretRef: {name: a}}, postgres: {statement: SELECT 1, user: a, tls: Disable}}",
			"spec", "ClientCertificate needs TLS",
		},
		{"authorities without a source are none", "spec: {caBundle: {}}", "spec.caBundle", "exactly one of configMapRef and secretRef"},
		{
			"authorities have one source", "spec: {caBundle: {configMapRef: {name: a, key: b}, secretRef: {name: a, key: b}}}",
			"spec.caBundle", "exactly one of configMapRef and secretRef",
		},
		{"authorities of a ConfigMap name it", "spec: {caBundle: {configMapRef: {key: b}}}", "spec.caBundle.configMapRef.name", "Required value"},
		{"authorities of a ConfigMap name the key", "spec: {caBundle: {configMapRef: {name: b}}}", "spec.caBundle.configMapRef.key", "Required value"},
		{"authorities of a Secret name it", "spec: {caBundle: {secretRef: {key: b}}}", "spec.caBundle.secretRef.name", "Required value"},
		{"authorities of a Secret name the key", "spec: {caBundle: {secretRef: {name: b}}}", "spec.caBundle.secretRef.key", "Required value"},
		{"authorities are in a ConfigMap", "spec: {caBundle: {configMapRef: {name: B, key: b}}}", "spec.caBundle.configMapRef.name", "name of an object"},
		{"authorities are in a Secret", "spec: {caBundle: {secretRef: {name: B, key: b}}}", "spec.caBundle.secretRef.name", "name of an object"},
		{"authorities are under a key", "spec: {caBundle: {configMapRef: {name: b, key: ü}}}", "spec.caBundle.configMapRef.key", "must consist of letters"},
		{
			"authorities of a Secret are under a key", "spec: {caBundle: {secretRef: {name: b, key: ü}}}",
			"spec.caBundle.secretRef.key", "must consist of letters",
		},
		{
			"authorities verify nothing without TLS", "spec: {endpoint: 'http://api.team.svc', caBundle: {secretRef: {name: a, key: b}}}",
			"spec", "caBundle needs TLS",
		},
		{
			"authorities verify no database without TLS", "spec: {type: postgres, endpoint: 'postgres://db/a', caBundle: {secretRef: {name: a, key: b}}, " +
				"postgres: {statement: SELECT 1, user: a, tls: Disable}}", "spec", "caBundle needs TLS",
		},
		{"an authority is named for VerifyCA", statement("tls: VerifyCA"), "spec", "caBundle is required"},
	},
)

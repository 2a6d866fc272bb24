package cel

import "strings"

// The types of an MCPTool besides http, each with further members.
func openapi(members string) string {
	return "spec: {type: openapi, openapi: {document: {inline: {}}, " + members + "}}"
}

func postgres(members string) string {
	return "spec: {type: postgres, endpoint: 'postgres://db.example.com/shop', postgres: {" + members + "}}"
}

func statement(members string) string { return postgres("statement: SELECT 1, user: app, " + members) }

func remote(members string) string { return "spec: {type: mcp, mcp: {" + members + "}}" }

// auth is an http tool's credential of a type.
func auth(kind, members string) string {
	return "spec: {auth: {type: " + kind + ", " + members + "}}"
}

// key is a key of its Secret.
func key(kind, member string) string {
	return auth(kind, "secretRef: {name: a, keys: {"+member+": %s}}")
}

const (
	keyField = "spec.auth.secretRef.keys."
	// address is where a text at an address begins.
	address = "http://a/"
)

func toolLimits() limits {
	return limits{toolNumbers, toolTexts, toolLists, toolChoices}
}

var toolNumbers = []number{
	{"spec: {timeoutSeconds: %d}", "spec.timeoutSeconds", 1, 3600},
	{"spec: {maxResponseBytes: %d}", "spec.maxResponseBytes", 1024, 16777216},
	{statement("maxRows: %d"), "spec.postgres.maxRows", 1, 10000},
}

var toolTexts = []text{
	{"spec: {endpoint: %s}", "spec.endpoint", address, 8, 2048},
	{"spec: {title: %s}", "spec.title", "", 1, 256},
	{"spec: {description: %s}", "spec.description", "", 1, 8192},
	{auth("Bearer", "secretRef: {name: %s}"), "spec.auth.secretRef.name", "", 1, 253},
	{key("Bearer", "token"), keyField + "token", "", 1, 253},
	{key("Basic", "username"), keyField + "username", "", 1, 253},
	{key("Basic", "password"), keyField + "password", "", 1, 253},
	{key("ClientCertificate", "certificate"), keyField + "certificate", "", 1, 253},
	{key("ClientCertificate", "key"), keyField + "key", "", 1, 253},
	{auth("Header", "header: %s, secretRef: {name: a}"), "spec.auth.header", "X-", 1, 128},
	{"spec: {caBundle: {configMapRef: {name: %s, key: a}}}", "spec.caBundle.configMapRef.name", "", 1, 253},
	{"spec: {caBundle: {configMapRef: {name: a, key: %s}}}", "spec.caBundle.configMapRef.key", "", 1, 253},
	{"spec: {caBundle: {secretRef: {name: %s, key: a}}}", "spec.caBundle.secretRef.name", "", 1, 253},
	{"spec: {caBundle: {secretRef: {name: a, key: %s}}}", "spec.caBundle.secretRef.key", "", 1, 253},
	{"spec: {schema: {configMapRef: {name: %s, key: a}}}", "spec.schema.configMapRef.name", "", 1, 253},
	{"spec: {schema: {configMapRef: {name: a, key: %s}}}", "spec.schema.configMapRef.key", "", 1, 253},
	{"spec: {http: {path: %s}}", "spec.http.path", "/", 1, 1024},
	{"spec: {http: {query: [{name: %s}]}}", "spec.http.query[].name", "", 1, 128},
	{"spec: {http: {query: [{name: a, argument: %s}]}}", "spec.http.query[].argument", "", 1, 128},
	{"spec: {http: {headers: [{name: %s}]}}", "spec.http.headers[].name", "", 1, 128},
	{"spec: {http: {headers: [{name: a, argument: %s}]}}", "spec.http.headers[].argument", "", 1, 128},
	{"spec: {http: {body: {argument: %s}}}", "spec.http.body.argument", "", 1, 128},
	{"spec: {http: {body: {members: [{name: %s}]}}}", "spec.http.body.members[].name", "", 1, 128},
	{"spec: {http: {body: {members: [{name: a, argument: %s}]}}}", "spec.http.body.members[].argument", "", 1, 128},
	{"spec: {http: {response: {select: %s}}}", "spec.http.response.select", "/", 1, 512},
	{"spec: {type: openapi, openapi: {document: {url: %s}}}", "spec.openapi.document.url", address, 8, 2048},
	{"spec: {type: openapi, openapi: {document: {configMapRef: {name: %s, key: a}}}}", "spec.openapi.document.configMapRef.name", "", 1, 253},
	{"spec: {type: openapi, openapi: {document: {configMapRef: {name: a, key: %s}}}}", "spec.openapi.document.configMapRef.key", "", 1, 253},
	{openapi("prefix: %s"), "spec.openapi.prefix", "", 1, 32},
	{openapi("include: [{operation: %s}]"), "spec.openapi.include[].operation", "", 1, 128},
	{openapi("include: [{tag: %s}]"), "spec.openapi.include[].tag", "", 1, 128},
	{openapi("include: [{path: %s}]"), "spec.openapi.include[].path", "/", 1, 512},
	{openapi("exclude: [{operation: %s}]"), "spec.openapi.exclude[].operation", "", 1, 128},
	{openapi("exclude: [{tag: %s}]"), "spec.openapi.exclude[].tag", "", 1, 128},
	{openapi("exclude: [{path: %s}]"), "spec.openapi.exclude[].path", "*", 1, 512},
	{postgres("user: app, statement: %s"), "spec.postgres.statement", "", 1, 16384},
	{postgres("user: %s, statement: SELECT 1"), "spec.postgres.user", "", 1, 63},
	{statement("parameters: [{argument: %s}]"), "spec.postgres.parameters[].argument", "", 1, 128},
	{remote("prefix: %s"), "spec.mcp.prefix", "", 1, 32},
	{remote("tools: {allow: [%s]}"), "spec.mcp.tools.allow[]", "", 1, 128},
	{remote("tools: {deny: [%s]}"), "spec.mcp.tools.deny[]", "", 1, 128},
	{remote("tools: {rename: {a: %s}}"), "spec.mcp.tools.rename.a", "", 1, 128},
	{"status: {tools: [{name: %s}]}", "status.tools[].name", "", 1, 128},
	{"status: {tools: [{name: a, digest: %s}]}", "status.tools[].digest", "", 0, 80},
	{"status: {documentDigest: %s}", "status.documentDigest", "", 0, 64},
	{definitions("name: %s, key: a, sha256: " + digest + ", endpoint: 'http://a'"), "status.definitions.name", "", 1, 253},
	{definitions("name: a, key: %s, sha256: " + digest + ", endpoint: 'http://a'"), "status.definitions.key", "", 1, 253},
	{definitions("name: a, key: a, sha256: %s, endpoint: 'http://a'"), "status.definitions.sha256", strings.Repeat("a", 64), 64, 64},
	{definitions("name: a, key: a, sha256: " + digest + ", endpoint: %s"), "status.definitions.endpoint", "", 1, 2048},
}

func definitions(members string) string { return "status: {definitions: {" + members + "}}" }

var toolLists = []list{
	{"spec: {http: {query: [%s]}}", "spec.http.query", "{name: q%d}", 64},
	{"spec: {http: {headers: [%s]}}", "spec.http.headers", "{name: h%d}", 32},
	{"spec: {http: {body: {members: [%s]}}}", "spec.http.body.members", "{name: m%d}", 128},
	{openapi("include: [%s]"), "spec.openapi.include", "{tag: t%d}", 128},
	{openapi("exclude: [%s]"), "spec.openapi.exclude", "{tag: t%d}", 128},
	{statement("parameters: [%s]"), "spec.postgres.parameters", "{argument: p%d}", 64},
	{remote("tools: {deny: [%s]}"), "spec.mcp.tools.deny", "t%d", 256},
	{remote("tools: {rename: {%s}}"), "spec.mcp.tools.rename", "a%[1]d: b%[1]d", 50},
	{"status: {tools: [%s]}", "status.tools", "{name: t%d}", 512},
	{
		"status: {conditions: [%s]}", "status.conditions",
		"{type: T%d, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}", 16,
	},
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

var toolChoices = []choice{
	{"spec: {type: %s}", "spec.type", []string{"http", "mcp"}},
	{auth("%s", "secretRef: {name: a}"), "spec.auth.type", []string{"Bearer", "Basic", "ClientCertificate"}},
	{"spec: {http: {method: %s}}", "spec.http.method", methods},
	{"spec: {http: {query: [{name: a, style: %s}]}}", "spec.http.query[].style", []string{"Repeat", "Comma", "Space", "Pipe", "DeepObject", "JSON"}},
	{"spec: {http: {body: {type: %s}}}", "spec.http.body.type", []string{"JSON", "Form"}},
	{openapi("include: [{method: %s}]"), "spec.openapi.include[].method", methods},
	{openapi("exclude: [{method: %s}]"), "spec.openapi.exclude[].method", methods},
	{statement("tls: %s"), "spec.postgres.tls", []string{"VerifyFull", "Disable"}},
	{statement("parameters: [{argument: a, type: %s}]"), "spec.postgres.parameters[].type", []string{
		"Text", "Integer", "Number", "Boolean", "JSON", "Timestamp", "Date", "UUID",
		"'Text[]'", "'Integer[]'", "'Number[]'", "'Boolean[]'", "'JSON[]'", "'Timestamp[]'", "'Date[]'", "'UUID[]'",
	}},
	{remote("transport: %s"), "spec.mcp.transport", []string{"StreamableHTTP", "SSE"}},
	{"status: {phase: %s}", "status.phase", []string{"Pending", "Ready", "Degraded", "Failed"}},
}

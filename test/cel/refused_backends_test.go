package cel

import "slices"

func headers(name string) string { return "spec: {http: {headers: [{name: \"" + name + "\"}]}}" }

const (
	twoSources  = "must not have both argument and value"
	notASCII    = "must consist of letters, digits and signs of ASCII"
	notATool    = "the name of a tool must consist of"
	needTrusted = "need trusted"
	hidden      = "none of them invisible"
)

// refusedOperations are what the gateway would refuse, too.
var refusedOperations = slices.Concat(
	each("the path of an operation is not", path, "spec.http.path", "path must begin with '/'",
		"a", "?a", "/a?b", "/a#b", "//", "//a", "/a//b", "/a//", "/..", "/a/../b", "/a/..", "/./a", "/.", "/a/./", "/a b", "/a%20b", "/ü", `/a\\b`, "/a|b",
		"/{", "/}", "/{}", "/{a", "/a}", "/{a}}", "/{{a}}", "/{a{b}", "/{a/b}", "/{ü}", `/{a\n}`, "{a}", `/a\n`, "/[a]", "https://a/b",
	),
	each("a header of an operation is not", headers, "spec.http.headers", "must not be one that the connection",
		"Authorization", "Cookie", "host", "Content-Type", "Connection", "Transfer-Encoding", "Mcp-Session-Id", "Proxy-Connection", "Accept", "User-Agent",
		"X-Forwarded-Host", "Idempotency-Key", "X-Idempotency-Key", "Origin", "Forwarded", "Upgrade", "Via", "Baggage", "Tracestate", "Trailer",
	),
	each("a header of an operation is not named", headers, "spec.http.headers", "must be the name of an HTTP header", "X_Key", "a b", "a:", "(a)"),
	[]refused{
		{"a GET has no body", "spec: {http: {method: GET, body: {}}}", "spec.http", "body must not be set"},
		{"a HEAD has no body", "spec: {http: {method: HEAD, body: {argument: a}}}", "spec.http", "body must not be set"},
		{"a parameter has a name", "spec: {http: {query: [{argument: a}]}}", "spec.http.query[].name", "Required value"},
		{"a header has a name", "spec: {http: {headers: [{argument: a}]}}", "spec.http.headers[].name", "Required value"},
		{"a member has a name", "spec: {http: {body: {members: [{argument: a}]}}}", "spec.http.body.members[].name", "Required value"},
		{"a parameter has one source", "spec: {http: {query: [{name: a, argument: b, value: c}]}}", "spec.http.query[]", twoSources},
		{"a header has one source", "spec: {http: {headers: [{name: a, argument: b, value: 1}]}}", "spec.http.headers[]", twoSources},
		{"a member has one source", "spec: {http: {body: {members: [{name: a, argument: b, value: {}}]}}}", "spec.http.body.members[]", twoSources},
		{"a parameter's name can be read", "spec: {http: {query: [{name: ä}]}}", "spec.http.query[].name", notASCII},
		{"a parameter's argument can be read", "spec: {http: {query: [{name: a, argument: \"\\t\"}]}}", "spec.http.query[].argument", notASCII},
		{"a header's argument can be read", "spec: {http: {headers: [{name: a, argument: ä}]}}", "spec.http.headers[].argument", notASCII},
		{"a member's name can be read", "spec: {http: {body: {members: [{name: ä}]}}}", "spec.http.body.members[].name", notASCII},
		{"a member's argument can be read", "spec: {http: {body: {members: [{name: a, argument: ä}]}}}", "spec.http.body.members[].argument", notASCII},
		{"a body's argument can be read", "spec: {http: {body: {argument: ä}}}", "spec.http.body.argument", notASCII},
		{"a header's name can be read", headers("ä"), "spec.http.headers[].name", notASCII},
		{"a header has no style", "spec: {http: {headers: [{name: a, style: Comma}]}}", "spec.http.headers", "style must not be set"},
		{"a member has no style", "spec: {http: {body: {members: [{name: a, style: JSON}]}}}", "spec.http.body.members", "style must not be set"},
		{"a header has no style that is not known", "spec: {http: {headers: [{name: a, style: A}]}}", "spec.http.headers[].style", "supported values"},
		{
			"a member has no style that is not known", "spec: {http: {body: {members: [{name: a, style: A}]}}}",
			"spec.http.body.members[].style", "supported values",
		},
		{
			"a body is one argument or members", "spec: {http: {body: {argument: a, members: [{name: b}]}}}",
			"spec.http.body", "not have both argument and members",
		},
		{"a form is not one argument", "spec: {http: {body: {type: Form, argument: a}}}", "spec.http.body", "argument must not be set when type is Form"},
		{"a pointer begins with a slash", "spec: {http: {response: {select: data}}}", "spec.http.response.select", "must be a JSON pointer"},
		{"a pointer has no other escape", "spec: {http: {response: {select: /a~2}}}", "spec.http.response.select", "must be a JSON pointer"},
		{"a pointer does not end in an escape", "spec: {http: {response: {select: /a~}}}", "spec.http.response.select", "must be a JSON pointer"},
		{"a pointer has at most 512 bytes", text{"spec: {http: {response: {select: %s}}}", "", "/ä", 0, 0}.of(513), "spec.http.response.select", "512 bytes"},
	},
)

func document(url string) string {
	return "spec: {type: openapi, openapi: {document: {url: \"" + url + "\"}}}"
}

var refusedDocuments = slices.Concat(
	each("a document is not at", document, "spec.openapi.document.url", notAURL,
		"api.example.com/a", "file:///etc/passwd", "https://me@example.com/a", "https://a/b#c", "https://a/b?c d", "https://a/ü", `https://a/b\n`,
		"postgres://db/a",
	),
	each("a document is on no host", document, "spec.openapi.document.url", noHost,
		"https://127.1/a", "https://[fe80::1%25eth0]/", "https://a:0?b", "https://-/",
	),
	[]refused{
		{"a document is said", "spec: {type: openapi, openapi: {}}", "spec.openapi.document", "Required value"},
		{"a document is somewhere", "spec: {type: openapi, openapi: {document: {}}}", "spec.openapi.document", "at least 1 properties"},
		{
			"a document is in one place", "spec: {type: openapi, openapi: {document: {inline: {}, url: 'https://a'}}}",
			"spec.openapi.document", "exactly one of url, inline and configMapRef",
		},
		{
			"a document is an object", "spec: {type: openapi, openapi: {document: {inline: 'openapi: 3.1.0'}}}",
			"spec.openapi.document.inline", "must be of type object",
		},
		{"a document of a ConfigMap names it", "spec: {type: openapi, openapi: {document: {configMapRef: {key: a}}}}", inDocument + "name", "Required value"},
		{
			"a document of a ConfigMap names the key", "spec: {type: openapi, openapi: {document: {configMapRef: {name: a}}}}",
			inDocument + "key", "Required value",
		},
		{
			"a document is in a ConfigMap", "spec: {type: openapi, openapi: {document: {configMapRef: {name: a_b, key: a}}}}",
			inDocument + "name", "name of an object",
		},
		{
			"a document is under a key", "spec: {type: openapi, openapi: {document: {configMapRef: {name: a, key: ..}}}}",
			inDocument + "key", "must consist of letters",
		},
		{"a prefix is part of a name", openapi("prefix: 'a:'"), "spec.openapi.prefix", "prefix must consist of"},
		{"a choice of nothing is none", openapi("include: [{}]"), "spec.openapi.include[]", "at least 1 properties"},
		{"an exception of nothing is none", openapi("exclude: [{}]"), "spec.openapi.exclude[]", "at least 1 properties"},
		{"a chosen path begins with a slash", openapi("include: [{path: pets}]"), "spec.openapi.include[].path", "path must begin with '/'"},
		{"an excepted path begins with a slash", openapi("exclude: [{path: 'pets/*'}]"), "spec.openapi.exclude[].path", "path must begin with '/'"},
	},
)

const inDocument = "spec.openapi.document.configMapRef."

var refusedStatements = []refused{
	{"a tool has a statement", postgres("user: a"), "spec.postgres.statement", "Required value"},
	{"a tool logs in as somebody", postgres("statement: SELECT 1"), "spec.postgres.user", "Required value"},
	{"a statement says something", postgres(`user: a, statement: " \n\t"`), "spec.postgres.statement", "must be an SQL statement"},
	{"a statement has no NUL", postgres(`user: a, statement: "SELECT 1\0"`), "spec.postgres.statement", "without NUL"},
	{"a role can be read", postgres(`statement: SELECT 1, user: "a\u200b"`), "spec.postgres.user", "no invisible characters"},
	{"a role hides nothing", postgres(`statement: SELECT 1, user: "a\ufe0f"`), "spec.postgres.user", "no invisible characters"},
	{"a role has at most 63 bytes", text{postgres("statement: SELECT 1, user: %s"), "", "ä", 0, 0}.of(64), "spec.postgres.user", "at most 63 bytes"},
	{"a parameter is an argument", statement("parameters: [{type: Text}]"), "spec.postgres.parameters[].argument", "Required value"},
	{"a parameter can be read", statement("parameters: [{argument: ä}]"), "spec.postgres.parameters[].argument", notASCII},
	{"a parameter has no other type", statement("parameters: [{argument: a, type: 'Text[][]'}]"), "spec.postgres.parameters[].type", "supported values"},
}

const ofRemote = "spec.mcp.tools."

var refusedRemotes = []refused{
	{"the prefix of a server is part of a name", remote("prefix: 'ü_'"), "spec.mcp.prefix", "prefix must consist of"},
	{"nothing is not allowed by an empty list", remote("tools: {allow: []}"), ofRemote + "allow", "at least 1 items"},
	{"there are at most 256 patterns", list{remote("tools: {allow: [%s]}"), "", "t%d", 0}.of(257), ofRemote + "allow", "must have at most 256"},
	{"a tool is allowed once", remote("tools: {allow: [a, b, a]}"), ofRemote + "allow[]", "Duplicate value"},
	{"a tool is denied once", remote("tools: {deny: [a, b, a]}"), ofRemote + "deny[]", "Duplicate value"},
	{"a pattern has no sign of another language", remote("tools: {allow: ['get_?']}"), ofRemote + "allow", "which is any run of characters"},
	{"a pattern has no brackets", remote("tools: {deny: ['get_[ab]']}"), ofRemote + "deny", "which is any run of characters"},
	{"a pattern has no space", remote("tools: {deny: ['get it']}"), ofRemote + "deny", "which is any run of characters"},
	{"a new name is the name of a tool", remote("tools: {rename: {a: 'b c'}}"), ofRemote + "rename.a", notATool},
	{"a new name is given once", remote("tools: {rename: {a: c, b: c}}"), ofRemote + "rename", "must not give two tools one name"},
	{"a renamed tool has a name", remote("tools: {rename: {'': c}}"), ofRemote + "rename", hidden},
	{"a renamed tool is not a pattern", remote("tools: {rename: {'a*': c}}"), ofRemote + "rename", "no '*'"},
	{"a renamed tool can be read", remote(`tools: {rename: {"a\u200b": c}}`), ofRemote + "rename", hidden},
	{"a renamed tool hides nothing", remote(`tools: {rename: {"a\ufe0f": c}}`), ofRemote + "rename", hidden},
	{"what a stranger says of its tools decides nothing", remote("tools: {readOnly: true}"), "spec.mcp", needTrusted},
	{"what a stranger says is not destructive may be", remote("tools: {denyDestructive: true}, trusted: false"), "spec.mcp", needTrusted},
}

var refusedToolStatuses = []refused{
	{"a tool in a status has a name", "status: {tools: [{digest: a}]}", "status.tools[].name", "Required value"},
	{"a tool is in a status once", "status: {tools: [{name: a}, {name: a}]}", "status.tools[]", "Duplicate value"},
	{"definitions are in a ConfigMap", definitions("key: a, sha256: " + digest + ", endpoint: 'http://a'"), "status.definitions.name", "Required value"},
	{
		"definitions are in an object", definitions("name: a_b, key: a, sha256: " + digest + ", endpoint: 'http://a'"),
		"status.definitions.name", "name of an object",
	},
	{"definitions have a key", definitions("name: a, sha256: " + digest + ", endpoint: 'http://a'"), "status.definitions.key", "Required value"},
	{
		"definitions have a real key", definitions("name: a, key: a b, sha256: " + digest + ", endpoint: 'http://a'"),
		"status.definitions.key", "must consist of letters",
	},
	{"definitions have a digest", definitions("name: a, key: a, endpoint: 'http://a'"), "status.definitions.sha256", "Required value"},
	{"definitions have an endpoint", definitions("name: a, key: a, sha256: " + digest), "status.definitions.endpoint", "Required value"},
	{
		"a condition is in a status once", `status: {conditions: [
		{type: A, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'},
		{type: A, status: 'False', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}`, "status.conditions[]", "Duplicate value",
	},
}

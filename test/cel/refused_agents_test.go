package cel

import (
	"slices"
	"strings"
)

func refusedAgents() []refused {
	return slices.Concat(refusedAgentNames, refusedGrants, refusedCallers, refusedGateways, refusedWorkloads, refusedWorkloadPods,
		refusedAgentNetworks, refusedAgentStatuses, agentLimits().beyond())
}

var refusedAgentNames = []refused{
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
	{"an agent without a specification is nothing", "spec: null", "spec", "Required value"},
}

const (
	ofServer = "spec.servers[].tools."
	nothing  = "must be granted something"
)

var refusedGrants = []refused{
	{"an agent has one server or several", "spec: {serverRef: {name: a}, servers: [{name: b}]}", "spec", "mutually exclusive"},
	{"an agent is granted something", "spec: {tools: null}", "spec", nothing},
	{"an agent is granted more than empty lists", "spec: {servers: [], tools: []}", "spec", nothing},
	{"a server has a name", "spec: {serverRef: {}}", "spec.serverRef.name", "Required value"},
	{"a server has the name of an object", "spec: {serverRef: {name: A_b}}", "spec.serverRef.name", "name of an object"},
	{"a server of several has a name", "spec: {servers: [{prefix: a}]}", "spec.servers[].name", "Required value"},
	{"a server of several has the name of an object", "spec: {servers: [{name: a/b}]}", "spec.servers[].name", "name of an object"},
	{"a server is granted once", "spec: {servers: [{name: a}, {name: a, prefix: b_}]}", "spec.servers[]", "Duplicate value"},
	{"a tool has a name", "spec: {tools: [{}]}", "spec.tools[].name", "Required value"},
	{"a tool has the name of an object", "spec: {tools: [{name: A_b}]}", "spec.tools[].name", "name of an object"},
	{"a tool is granted once", "spec: {tools: [{name: a}, {name: a}]}", "spec.tools[]", "Duplicate value"},
	{"a prefix is part of a name", server("prefix: 'a/'"), "spec.servers[].prefix", "prefix must consist of"},
	{"nothing is not allowed by an empty list", server("tools: {allow: []}"), ofServer + "allow", "at least 1 items"},
	{"there are at most 256 patterns", list{server("tools: {allow: [%s]}"), "", "t%d", 0}.of(257), ofServer + "allow", "must have at most 256"},
	{"a tool is allowed once", server("tools: {allow: [a, b, a]}"), ofServer + "allow[]", "Duplicate value"},
	{"a tool is denied once", server("tools: {deny: [a, b, a]}"), ofServer + "deny[]", "Duplicate value"},
	{"a pattern has no sign of another language", server("tools: {allow: ['get_?']}"), ofServer + "allow", "which is any run of characters"},
	{"a pattern has no letters beyond ASCII", server("tools: {deny: ['ä*']}"), ofServer + "deny", "which is any run of characters"},
	{"a new name is the name of a tool", server("tools: {rename: {a: 'b/c'}}"), ofServer + "rename.a", notATool},
	{"a new name is given once", server("tools: {rename: {a: c, b: c, d: e}}"), ofServer + "rename", "must not give two tools one name"},
	{
		"a renamed tool has a name of at most 128 characters", server("tools: {rename: {" + strings.Repeat("a", 129) + ": c}}"),
		ofServer + "rename", "1 to 128 characters",
	},
	{"a renamed tool is not a pattern", server("tools: {rename: {'a*': c}}"), ofServer + "rename", "no '*'"},
	{"what a stranger says of its tools decides nothing", server("tools: {readOnly: true}"), "spec.servers[]", needTrusted},
	{"what a stranger says is not destructive may be", server("tools: {denyDestructive: true}, trusted: false"), "spec.servers[]", needTrusted},
}

const (
	ofIssuer = "spec.auth.oidc[]."
	nobody   = "nobody could call otherwise"
	everyone = "everybody is let in"
)

func issuedBy(url string) string {
	return "spec: {auth: {type: Tokens, oidc: [{issuer: \"" + url + "\"}]}}"
}

var refusedCallers = slices.Concat(
	each("an issuer is not", issuedBy, ofIssuer+"issuer", notAURL,
		"http://login.example.com", "login.example.com", "https://me@login.example.com", "https://login.example.com?a=b", "https://login.example.com/#a"),
	each("an issuer has no host", issuedBy, ofIssuer+"issuer", noHost, "https://127.1/a", "https://a:0/b", "https://a..b/", "https://[::1%25a]/"),
	each("the path of an issuer is not", issuedBy, ofIssuer+"issuer", noPath, "https://a/../b", "https://a//b", "https://a/%2e", "https://a/b c"),
	[]refused{
		{"who may call is said", "spec: {auth: null}", "spec.auth", "Required value"},
		{"how callers are known is said", "spec: {auth: {type: null}}", "spec.auth.type", "Required value"},
		{"somebody can call", "spec: {auth: {type: Tokens}}", "spec", nobody},
		{"somebody can call, beside empty lists", "spec: {auth: {type: Tokens, serviceAccounts: [], oidc: []}, runtime: {}}", "spec", nobody},
		{"everybody needs no account", "spec: {auth: {serviceAccounts: [{name: a}]}}", "spec.auth", everyone},
		{"everybody needs no issuer", "spec: {auth: {oidc: [{issuer: 'https://a'}]}}", "spec.auth", everyone},
		{"everybody needs no audience", "spec: {auth: {audiences: [a]}}", "spec.auth", everyone},
		{"an audience is given once", tokens("audiences: [a, a]"), "spec.auth.audiences[]", "Duplicate value"},
		{"an audience has no space", tokens("audiences: ['a b']"), "spec.auth.audiences", "without spaces"},
		{"an account has a name", "spec: {auth: {type: Tokens, serviceAccounts: [{}]}}", "spec.auth.serviceAccounts[].name", "Required value"},
		{
			"an account is of this namespace", "spec: {auth: {type: Tokens, serviceAccounts: [{name: 'system:serviceaccount:a:b'}]}}",
			"spec.auth.serviceAccounts[].name", "name of an object",
		},
		{"an account is given once", "spec: {auth: {type: Tokens, serviceAccounts: [{name: a}, {name: a}]}}", "spec.auth.serviceAccounts[]", "Duplicate value"},
		{"an issuer has an address", "spec: {auth: {type: Tokens, oidc: [{subjects: [a]}]}}", ofIssuer + "issuer", "Required value"},
		{
			"an issuer is given once", "spec: {auth: {type: Tokens, oidc: [{issuer: 'https://a'}, {issuer: 'https://a'}]}}",
			"spec.auth.oidc[]", "Duplicate value",
		},
		{"an issuer's audience is given once", issuer("audiences: [a, a]"), ofIssuer + "audiences[]", "Duplicate value"},
		{"an issuer's audience has no space", issuer("audiences: ['a b']"), ofIssuer + "audiences", "without spaces"},
		{"a subject is given once", issuer("subjects: [a, a]"), ofIssuer + "subjects[]", "Duplicate value"},
		{"a subject is of ASCII", issuer("subjects: ['ä']"), ofIssuer + "subjects", "subjects[] must consist of"},
		{"a claim has a name", issuer("claims: {'': a}"), ofIssuer + "claims", "must have 1 to 512 bytes"},
		{"a claim's name has at most 512 bytes", issuer("claims: {" + strings.Repeat("a", 513) + ": a}"), ofIssuer + "claims", "must have 1 to 512 bytes"},
		{"a claim's name hides nothing", issuer(`claims: {"a\u200b": a}`), ofIssuer + "claims", "no invisible characters"},
		{"a claim has a value that hides nothing", issuer(`claims: {a: "a\u2060"}`), ofIssuer + "claims.a", "no invisible characters"},
		{"a claim's value has at most 512 bytes", text{issuer("claims: {a: %s}"), "", "ä", 0, 0}.of(513), ofIssuer + "claims.a", "at most 512 bytes"},
		{"an issuer's authorities have a source", issuer("caBundle: {}"), ofIssuer + "caBundle", "exactly one of configMapRef and secretRef"},
		{
			"an issuer's authorities of a ConfigMap name it", issuer("caBundle: {configMapRef: {key: a}}"),
			ofIssuer + "caBundle.configMapRef.name", "Required value",
		},
		{
			"an issuer's authorities of a ConfigMap name the key", issuer("caBundle: {configMapRef: {name: a}}"),
			ofIssuer + "caBundle.configMapRef.key", "Required value",
		},
		{"an issuer's authorities of a Secret name it", issuer("caBundle: {secretRef: {key: a}}"), ofIssuer + "caBundle.secretRef.name", "Required value"},
		{"an issuer's authorities of a Secret name the key", issuer("caBundle: {secretRef: {name: a}}"), ofIssuer + "caBundle.secretRef.key", "Required value"},
		{
			"an issuer's authorities are in a ConfigMap", issuer("caBundle: {configMapRef: {name: A, key: a}}"),
			ofIssuer + "caBundle.configMapRef.name", "name of an object",
		},
		{
			"an issuer's authorities are in a Secret", issuer("caBundle: {secretRef: {name: A, key: a}}"),
			ofIssuer + "caBundle.secretRef.name", "name of an object",
		},
		{
			"an issuer's authorities are under a key", issuer("caBundle: {configMapRef: {name: a, key: ..}}"),
			ofIssuer + "caBundle.configMapRef.key", "must consist of letters",
		},
		{
			"an issuer's authorities are under a key of a Secret", issuer("caBundle: {secretRef: {name: a, key: ..}}"),
			ofIssuer + "caBundle.secretRef.key", "must consist of letters",
		},
	},
)

func public(url string) string { return gateway("publicURL: \"" + url + "\"") }

func host(name string) string { return gateway("allowedHosts: [\"" + name + "\"]") }

func origin(of string) string { return gateway("allowedOrigins: [\"" + of + "\"]") }

var refusedGateways = slices.Concat(
	each("a public URL is not", public, "spec.gateway.publicURL", notAURL,
		"mcp.example.com/a", "https://me:secret@mcp.example.com", "https://mcp.example.com?a=b", "https://mcp.example.com#a", "ftp://mcp.example.com",
		"postgres://db/a",
	),
	each("a public URL has no host", public, "spec.gateway.publicURL", noHost, "https://127.1/a", "https://a:0/b", "https://a..b/", "https://[::1%25a]/"),
	each("the path of a public URL is not", public, "spec.gateway.publicURL", noPath, "https://a/../b", "https://a//b", "https://a/%2e", "https://a/b c"),
	each("an origin is not", origin, "spec.gateway.allowedOrigins", "must be an origin as browsers write it",
		"a.example.com", "https://", "https://*.example.com", "https://a/", "https://a/b", "https://A.example", "https://u@a", "https://a:0", "://abc",
		"1://abc",
		"https://a?b", "HTTPS://a", "https://ü", "https://a b", "https://[::g]", "https://[10.0.0.1]", "https://a:443", "http://a:80"),
	each("an origin has no host", origin, "spec.gateway.allowedOrigins", "allowedOrigins[] must have a host name",
		"https://127.1", "https://2130706433:80", "https://[::1:2:3:4:5:6:7:8:9]"),
	each("a host is not", host, "spec.gateway.allowedHosts", "must be a host name or an IP address",
		"mcp.example.com:443", "https://mcp.example.com", "*", "*.com", "a.*.com", "*a.example.com", "mcp.example.com.", "[2001:db8::1]", "127.1", "0x7f.1",
		"2130706433", "1.2.3.4.", "*.1.2.3.4", "a b", "-a", "ü", "fe80::1%eth0"),
	[]refused{
		{"a host is given once", gateway("allowedHosts: [a, a]"), "spec.gateway.allowedHosts[]", "Duplicate value"},
		{"an origin is given once", gateway("allowedOrigins: ['https://a', 'https://a']"), "spec.gateway.allowedOrigins[]", "Duplicate value"},
		{"a certificate is in a Secret", gateway("tls: {}"), "spec.gateway.tls.secretName", "Required value"},
		{"a certificate is in a Secret of this namespace", gateway("tls: {secretName: a/b}"), "spec.gateway.tls.secretName", "name of a Secret"},
		{"instructions hide nothing", gateway(`instructions: "a\u200bb"`), "spec.gateway.instructions", "no invisible characters"},
		{"instructions have no control characters", gateway(`instructions: "a\u001b[31m"`), "spec.gateway.instructions", "no invisible characters"},
		{
			"instructions have at most 16384 bytes",
			gateway("instructions: '" + strings.Repeat("€", 6000) + "'"), "spec.gateway.instructions", "at most 16384 bytes",
		},
		{"a gateway is scaled by one", "spec: {scaling: {maxReplicas: 2}, gateway: {replicas: 2}}", "spec", "gateway.replicas must not be set"},
		{
			"a gateway is scaled by one, beside no workload", "spec: {scaling: {maxReplicas: 2}, gateway: {replicas: 2}, runtime: {}}",
			"spec", "gateway.replicas must not",
		},
		{
			"a gateway that is scaled asks for CPU", "spec: {scaling: {maxReplicas: 2}, gateway: {resources: {limits: {memory: 1Gi}}}}",
			"spec", "request or limit of cpu",
		},
		{"a gateway that is scaled asks for something", "spec: {scaling: {maxReplicas: 2}, gateway: {resources: {}}}", "spec", "request or limit of cpu"},
		{"a workload that is scaled asks for CPU", "spec: {scaling: {maxReplicas: 2}, runtime: {image: a, resources: {}}}", "spec", "request or limit of cpu"},
		{"scaling has an end", "spec: {scaling: {minReplicas: 1}}", "spec.scaling.maxReplicas", "Required value"},
		{"scaling does not end before it begins", scaling("minReplicas: 3, maxReplicas: 2"), "spec.scaling", "must not be less than minReplicas"},
		{"scaling does not end before it begins by default", scaling("maxReplicas: 1"), "spec.scaling", "must not be less than minReplicas"},
		{"a gateway is not stopped first", rollout("type: Recreate"), "spec", "must not be Recreate"},
		{
			"what is stopped first needs no more pods", "spec: {runtime: {image: a}, rollout: {type: Recreate, maxSurge: 1}}",
			"spec.rollout", "must not be set when type is Recreate",
		},
		{"a rollout gets on", rollout("maxSurge: 0"), "spec.rollout", "must not both be 0"},
		{"a rollout has at most 1000 pods more", rollout("maxSurge: 1001"), "spec.rollout.maxSurge", "must be a number from 0 to 1000"},
		{"a rollout has at most 1000 pods less", rollout("maxUnavailable: -1"), "spec.rollout.maxUnavailable", "must be a number from 0 to 1000"},
		{"a rollout has a share of pods more", rollout("maxSurge: 101%"), "spec.rollout.maxSurge", "should match"},
		{"a rollout has a share of pods less", rollout("maxUnavailable: half"), "spec.rollout.maxUnavailable", "should match"},
		{
			"a gateway's requests do not exceed its limits", gateway("resources: {requests: {cpu: 2}, limits: {cpu: 1}}"),
			"spec.gateway.resources", "must not exceed limits",
		},
		{"a gateway's requests are of what exists", gateway("resources: {requests: {mem: 1}}"), "spec.gateway.resources.requests", "requests must be of cpu"},
		{"a gateway's limits are of what exists", gateway("resources: {limits: {mem: 1}}"), "spec.gateway.resources.limits", "limits must be of cpu"},
		{"a gateway's requests are not negative", gateway("resources: {requests: {cpu: -1}}"), "spec.gateway.resources.requests", "must not be negative"},
		{"a gateway's limits are not negative", gateway("resources: {limits: {cpu: -1}}"), "spec.gateway.resources.limits", "must not be negative"},
	},
)

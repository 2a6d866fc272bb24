package table

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// valid is a table that everybody may call, with one backend.
func valid() *Table {
	return &Table{
		Version: 1, Auth: Auth{Type: AuthNone},
		Backends: []Backend{{Name: "a", URL: "https://a.example.com/mcp"}},
	}
}

// tokens is a table that takes tokens of the cluster.
func tokens() *Table {
	t := valid()
	t.Endpoint.PublicURL = "https://mcp.example.com"
	t.Auth = Auth{Type: AuthTokens, ServiceAccounts: &ServiceAccounts{
		Issuer: "kubernetes", Keys: json.RawMessage(`{"keys":[{"kty":"EC"}]}`), Subjects: []string{"system:serviceaccount:ns:agent"},
	}}
	return t
}

// stdio is a table with a child.
func stdio() *Table {
	t := valid()
	t.Backends[0] = Backend{Name: "a", Transport: TransportStdio, Command: []string{"server"}}
	return t
}

type refusal struct {
	base   func() *Table
	change func(*Table)
	want   []string
}

func testRefusals(t *testing.T, cases map[string]refusal) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			table := tc.base()
			if err := table.Validate(); err != nil {
				t.Fatalf("already refused before the change: %v", err)
			}
			tc.change(table)
			if diff := cmp.Diff(tc.want, problemsOf(t, table.Validate())); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEndpointIsValidated(t *testing.T) {
	testRefusals(t, map[string]refusal{
		"another version": {valid, func(t *Table) { t.Version = 0 }, []string{"version: 0 is not known; this build reads version 1"}},
		"a long revision": {
			valid, func(t *Table) { t.Revision = strings.Repeat("r", 129) },
			[]string{"revision: must be at most 128 visible ASCII characters"},
		},
		"a revision with a line feed": {
			valid, func(t *Table) { t.Revision = "a\nb" },
			[]string{"revision: must be at most 128 visible ASCII characters"},
		},
		"a name that turns text around": {
			valid, func(t *Table) { t.Endpoint.Name = "abc\u202e" },
			[]string{"endpoint.name: must be at most 128 printable characters"},
		},
		"instructions with hidden characters": {
			valid, func(t *Table) { t.Endpoint.Instructions = "read\u200bthis" },
			[]string{"endpoint.instructions: must be at most 16384 bytes of printable text"},
		},
		"instructions without end": {
			valid, func(t *Table) { t.Endpoint.Instructions = strings.Repeat("x", 16385) },
			[]string{"endpoint.instructions: must be at most 16384 bytes of printable text"},
		},
		"the path of the metadata": {
			valid, func(t *Table) { t.Endpoint.Path = "/.well-known/x" },
			[]string{"endpoint.path: must not lie under /.well-known, where the metadata of RFC 9728 is served"},
		},
		"a public URL with a query": {
			valid, func(t *Table) { t.Endpoint.PublicURL = "https://mcp.example.com/?a" },
			[]string{"endpoint.publicURL: must be without query, fragment and backslash"},
		},
		"any host": {
			valid, func(t *Table) { t.Endpoint.AllowedHosts = []string{"*"} },
			[]string{`endpoint.allowedHosts[0]: "*" must be a host name or IP address without port, or "*." and a name of two labels or more`},
		},
		"any origin": {
			valid, func(t *Table) { t.Endpoint.AllowedOrigins = []string{"https://a.example.com", "*"} },
			[]string{`endpoint.allowedOrigins[1]: "*" must be <scheme>://<host>, with a port unless it is the scheme's own, in lower case`},
		},
		"a host twice": {
			valid, func(t *Table) { t.Endpoint.AllowedHosts = []string{"a.b", "c.d", "a.b"} },
			[]string{"endpoint.allowedHosts[2]: is the same as endpoint.allowedHosts[0]"},
		},
		"a list without end": {
			valid, func(t *Table) { t.Endpoint.AllowedHosts = make([]string, 513) },
			[]string{"endpoint.allowedHosts: has 513 entries, the limit is 512"},
		},
	})
}

func TestAuthIsValidated(t *testing.T) {
	const noAudienceFor = ": has no audience: give auth.audiences or endpoint.publicURL, or tokens meant for others would have to be taken"
	issuer := OIDC{Issuer: "https://login.example.com"}
	testRefusals(t, map[string]refusal{
		"no type": {
			valid, func(t *Table) { t.Auth.Type = "" },
			[]string{"auth.type: must be given: Tokens, or None to let everybody call"},
		},
		"an unknown type": {valid, func(t *Table) { t.Auth.Type = "none" }, []string{`auth.type: "none" is not known: Tokens or None`}},
		"None with what would keep callers out": {
			tokens, func(t *Table) { t.Auth.Type, t.Auth.Audiences, t.Auth.OIDC = AuthNone, []string{"x"}, []OIDC{issuer} },
			[]string{
				"auth.audiences: must not be given with type None, which lets everybody call",
				"auth.serviceAccounts: must not be given with type None, which lets everybody call",
				"auth.oidc: must not be given with type None, which lets everybody call",
			},
		},
		"Tokens of nobody": {
			tokens, func(t *Table) { t.Auth.ServiceAccounts = nil },
			[]string{"auth: type Tokens needs serviceAccounts or oidc, or nobody could call"},
		},
		"tokens for anybody": {
			tokens, func(t *Table) { t.Endpoint.PublicURL, t.Auth.OIDC = "", []OIDC{issuer} },
			[]string{"auth.serviceAccounts" + noAudienceFor, "auth.oidc[0]" + noAudienceFor},
		},
		"an empty audience": {
			tokens, func(t *Table) { t.Auth.Audiences = []string{""} },
			[]string{"auth.audiences[0]: must be 1 to 512 visible ASCII characters"},
		},
		"no cluster issuer": {
			tokens, func(t *Table) { t.Auth.ServiceAccounts.Issuer = "" },
			[]string{"auth.serviceAccounts.issuer: must be 1 to 512 visible ASCII characters"},
		},
		"a whole namespace": {
			tokens, func(t *Table) {
				t.Auth.ServiceAccounts.Subjects = []string{"system:serviceaccounts:ns", "system:serviceaccount:ns:*"}
			},
			[]string{
				`auth.serviceAccounts.subjects[0]: "system:serviceaccounts:ns" must be system:serviceaccount:<namespace>:<name>`,
				`auth.serviceAccounts.subjects[1]: "system:serviceaccount:ns:*" must be system:serviceaccount:<namespace>:<name>`,
			},
		},
		"an issuer without TLS": {
			tokens, func(t *Table) { t.Auth.OIDC = []OIDC{{Issuer: "http://login.example.com"}} },
			[]string{"auth.oidc[0].issuer: must be an https URL"},
		},
		"an issuer twice": {
			tokens, func(t *Table) { t.Auth.OIDC = []OIDC{issuer, issuer} },
			[]string{"auth.oidc[1].issuer: is the issuer of auth.oidc[0] too"},
		},
		"the cluster's issuer again": {
			tokens, func(t *Table) { t.Auth.ServiceAccounts.Issuer, t.Auth.OIDC = issuer.Issuer, []OIDC{issuer} },
			[]string{"auth.oidc[0].issuer: is the issuer of auth.serviceAccounts too"},
		},
		"a claim that is empty": {
			tokens, func(t *Table) { t.Auth.OIDC = []OIDC{{Issuer: issuer.Issuer, Claims: map[string]string{"group": ""}}} },
			[]string{"auth.oidc[0].claims.group: name and value must be 1 to 512 bytes of printable text"},
		},
		"a subject that is empty, and a relative file": {
			tokens, func(t *Table) {
				t.Auth.OIDC = []OIDC{{Issuer: issuer.Issuer, Subjects: []string{""}, CAFile: "ca.crt"}}
			},
			[]string{
				"auth.oidc[0].subjects[0]: must be 1 to 512 bytes of printable text",
				"auth.oidc[0].caFile: must be an absolute path of at most 1024 bytes without '.', '..', '//' or a slash at the end",
			},
		},
	})
}

func TestOnlyPublicKeysAreTaken(t *testing.T) {
	const noSet = `auth.serviceAccounts.keys: must be a JSON Web Key Set, {"keys":[…]}, with at least one key`
	for keys, want := range map[string]string{
		``:                                    "auth.serviceAccounts.keys: must be the cluster's JSON Web Key Set",
		`[]`:                                  noSet,
		`{"keys":[]}`:                         noSet,
		`{"keys":["a"]}`:                      noSet,
		`{"keys":[{"kty":"oct","k":"c2Vj"}]}`: "auth.serviceAccounts.keys: key 0 must be asymmetric: kty RSA, EC or OKP",
		`{"keys":[{"kty":"EC"},{"kty":"RSA","d":"AQAB"}]}`: "auth.serviceAccounts.keys: key 1 is a private key (it has \"d\"); " +
			"the table holds public keys only",
	} {
		table := tokens()
		table.Auth.ServiceAccounts.Keys = json.RawMessage(keys)
		if diff := cmp.Diff([]string{want}, problemsOf(t, table.Validate())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", keys, diff)
		}
	}
}

func TestBackendsAreValidated(t *testing.T) {
	change := func(f func(b *Backend)) func(*Table) { return func(t *Table) { f(&t.Backends[0]) } }
	const (
		noChild = "must not be given with transport Stdio"
		name63  = " must be 1 to 63 of a-z, 0-9, '-'"
	)
	testRefusals(t, map[string]refusal{
		"no name":             {valid, change(func(b *Backend) { b.Name = "" }), []string{`backends[0].name: ""` + name63}},
		"a name in capitals":  {valid, change(func(b *Backend) { b.Name = "Web" }), []string{`backends[0].name: "Web"` + name63}},
		"a name with a slash": {valid, change(func(b *Backend) { b.Name = "ns/web" }), []string{`backends[0].name: "ns/web"` + name63}},
		"a name twice": {
			valid, func(t *Table) { t.Backends = append(t.Backends, t.Backends[0]) },
			[]string{`backends[1].name: "a" is the name of backends[0] too`},
		},
		"too many": {
			valid, func(t *Table) {
				for i := range 256 {
					t.Backends = append(t.Backends, Backend{Name: fmt.Sprint("b", i), URL: "http://b"})
				}
			},
			[]string{"backends: are 257, the limit is 256"},
		},
		"no URL": {valid, change(func(b *Backend) { b.URL = "" }), []string{"backends[0].url: must be given"}},
		"an unknown transport": {
			valid, change(func(b *Backend) { b.Transport = "stdio" }),
			[]string{`backends[0].transport: "stdio" is not known: StreamableHTTP, SSE, Stdio or Toolset`},
		},
		"a command without Stdio": {
			valid, change(func(b *Backend) { b.Command = []string{"sh"} }),
			[]string{"backends[0].command: must not be given without transport Stdio"},
		},
		"a child without command": {
			stdio, change(func(b *Backend) { b.Command = nil }),
			[]string{"backends[0].command: must name a program with transport Stdio"},
		},
		"a child without program": {
			stdio, change(func(b *Backend) { b.Command[0] = "" }),
			[]string{"backends[0].command: must name a program with transport Stdio"},
		},
		"arguments that end early, or that Linux does not pass on": {
			stdio, change(func(b *Backend) { b.Command = []string{"a", "\x00", strings.Repeat("a", 1<<17)} }),
			[]string{"backends[0].command[1]: must be at most 131071 bytes without NUL", "backends[0].command[2]: must be at most 131071 bytes without NUL"},
		},
		"a child with what only HTTP has": {
			stdio, change(func(b *Backend) {
				b.URL, b.HostHeader, b.PodsHost, b.CAFile, b.Credential = "http://a", "a", "a", "/a", &Credential{Type: CredentialBearer}
				b.ClientCertificate = &ClientCertificate{CertFile: "/c", KeyFile: "/k"}
			}),
			[]string{
				"backends[0].url: " + noChild, "backends[0].hostHeader: " + noChild, "backends[0].podsHost: " + noChild,
				"backends[0].credential: " + noChild, "backends[0].caFile: " + noChild,
				"backends[0].clientCertificate: " + noChild,
			},
		},
		"a host header with a line feed": {
			valid, change(func(b *Backend) { b.HostHeader = "a\r\nX: y" }),
			[]string{"backends[0].hostHeader: must have a port of 1 to 65535, or none"},
		},
		"a pods host with a port": {
			valid, change(func(b *Backend) { b.PodsHost = "pods.ns:80" }),
			[]string{"backends[0].podsHost: must have a DNS name or an IP address as its host"},
		},
		"a version that cannot be pinned": {
			valid, change(func(b *Backend) { b.ProtocolVersion = "2024-11-05" }),
			[]string{`backends[0].protocolVersion: "2024-11-05" cannot be pinned: 2025-11-25 or 2026-07-28`},
		},
		"a version that SSE does not carry": {
			valid, change(func(b *Backend) { b.Transport, b.ProtocolVersion = TransportSSE, "2026-07-28" }),
			[]string{"backends[0].protocolVersion: 2026-07-28 is not spoken over SSE"},
		},
		"a prefix with a slash": {
			valid, change(func(b *Backend) { b.Prefix = "web/" }),
			[]string{`backends[0].prefix: "web/" must be at most 64 of A-Z, a-z, 0-9, '_', '-', '.'`},
		},
		"a long timeout": {
			valid, change(func(b *Backend) { b.TimeoutSeconds = 3601 }),
			[]string{"backends[0].timeoutSeconds: 3601 must be 1 to 3600, or 0 for the default"},
		},
		"certificates for plain HTTP": {
			valid, change(func(b *Backend) {
				b.URL, b.CAFile, b.ClientCertificate = "http://a", "/etc/ca.crt", &ClientCertificate{CertFile: "/c", KeyFile: "/k"}
			}),
			[]string{
				"backends[0].caFile: verifies nothing, since the url is not https",
				"backends[0].clientCertificate: proves nothing, since the url is not https",
			},
		},
		"a client certificate without its key": {
			valid, change(func(b *Backend) { b.ClientCertificate = &ClientCertificate{CertFile: "c"} }),
			[]string{
				"backends[0].clientCertificate.certFile: must be an absolute path of at most 1024 bytes without '.', '..', '//' or a slash at the end",
				"backends[0].clientCertificate.keyFile: must be given",
			},
		},
	})
}

func TestToolPoliciesAreValidated(t *testing.T) {
	const signs = " must be 1 to 128 of A-Z, a-z, 0-9, '_', '-', '.', '/', ':', '@', with '*' for any run of characters"
	const target = " must be 1 to 128 of A-Z, a-z, 0-9, '_', '-', '.'"
	change := func(f func(p *ToolPolicy)) func(*Table) { return func(t *Table) { f(&t.Backends[0].Tools) } }
	testRefusals(t, map[string]refusal{
		"patterns of other languages": {
			valid, change(func(p *ToolPolicy) { p.Allow, p.Deny = []string{"get_?", "[a-z]*"}, []string{"a|b", "^x$", " x", ""} }),
			[]string{
				`backends[0].tools.allow[0]: "get_?"` + signs, `backends[0].tools.allow[1]: "[a-z]*"` + signs,
				`backends[0].tools.deny[0]: "a|b"` + signs, `backends[0].tools.deny[1]: "^x$"` + signs,
				`backends[0].tools.deny[2]: " x"` + signs, `backends[0].tools.deny[3]: ""` + signs,
			},
		},
		"annotations of a server that is not trusted": {
			valid, change(func(p *ToolPolicy) { p.ReadOnly, p.DenyDestructive = true, true }),
			[]string{
				"backends[0].tools.readOnly: needs trusted, since it believes the server's own annotations",
				"backends[0].tools.denyDestructive: needs trusted, since it believes the server's own annotations",
			},
		},
		"two tools of one name": {
			valid, change(func(p *ToolPolicy) { p.Rename = map[string]string{"b": "x", "a": "x", "c": "y"} }),
			[]string{`backends[0].tools.rename.b: "x" is the new name of "a" too`},
		},
		"new names that are none": {
			valid, change(func(p *ToolPolicy) {
				p.Rename = map[string]string{"a": "", "b": "b c", "c": strings.Repeat("c", 129)}
			}),
			[]string{
				`backends[0].tools.rename.a: ""` + target, `backends[0].tools.rename.b: "b c"` + target,
				`backends[0].tools.rename.c: "` + strings.Repeat("c", 64) + `…"` + target,
			},
		},
		"a pattern to be renamed": {
			valid, change(func(p *ToolPolicy) { p.Rename = map[string]string{"a*": "b"} }),
			[]string{`backends[0].tools.rename["a*"]: the key must be a tool's original name: 1 to 128 printable characters, no '*'`},
		},
	})
}

func TestCredentialsAreValidated(t *testing.T) {
	const notAFile = "must be an absolute path of at most 1024 bytes without '.', '..', '//' or a slash at the end"
	for name, tc := range map[string]struct {
		credential Credential
		want       []string
	}{
		"no type":       {Credential{ValueFile: "/a"}, []string{`type: "" is not known: Bearer, Basic or Header`}},
		"Bearer":        {Credential{Type: CredentialBearer, ValueFile: "/a"}, nil},
		"Bearer, empty": {Credential{Type: CredentialBearer}, []string{"valueFile: must be given"}},
		"Bearer in a header": {
			Credential{Type: CredentialBearer, ValueFile: "/a", Header: "X-Token"},
			[]string{"header: must not be given with type Bearer"},
		},
		"Basic": {Credential{Type: CredentialBasic, UsernameFile: "/a", PasswordFile: "/b"}, nil},
		"Basic with a value": {
			Credential{Type: CredentialBasic, UsernameFile: "/a", ValueFile: "/b"},
			[]string{"valueFile: must not be given with type Basic", "passwordFile: must be given"},
		},
		"Header": {Credential{Type: CredentialHeader, ValueFile: "/a", Header: "X-Api-Key"}, nil},
		"Header for a user": {
			Credential{Type: CredentialHeader, ValueFile: "/a", Header: "X-Api-Key", UsernameFile: "/b", PasswordFile: "/c"},
			[]string{"usernameFile: must not be given with type Header", "passwordFile: must not be given with type Header"},
		},
		"Header without name": {
			Credential{Type: CredentialHeader, ValueFile: "/a"},
			[]string{`header: "" must be the name of an HTTP header, without '_'`},
		},
		"a relative file": {Credential{Type: CredentialBearer, ValueFile: "token"}, []string{"valueFile: " + notAFile}},
		"a file elsewhere": {
			Credential{Type: CredentialBearer, ValueFile: "/etc/mcp/../../var/run/secrets/token"},
			[]string{"valueFile: " + notAFile},
		},
		"a folder": {Credential{Type: CredentialBearer, ValueFile: "/etc/mcp/"}, []string{"valueFile: " + notAFile}},
	} {
		t.Run(name, func(t *testing.T) {
			table := valid()
			table.Backends[0].Credential = &tc.credential
			want := slices.Clone(tc.want)
			for i := range want {
				want[i] = "backends[0].credential." + want[i]
			}
			if diff := cmp.Diff(want, problemsOf(t, table.Validate())); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACredentialTakesNoHeaderOfTheConnection(t *testing.T) {
	for _, name := range []string{
		"Host", "host", "Content-Length", "content-type", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Connection",
		"Keep-Alive", "Proxy-Authorization", "Mcp-Session-Id", "MCP-Protocol-Version", "mcp-name", "Accept", "Accept-Encoding",
		"Traceparent", "Origin", "Last-Event-ID", "Expect", "Idempotency-Key", "X-Idempotency-Key", "X-Forwarded-For",
		"X_Api_Key", "X Api", "X-Api:", "X-Api\r\nHost", "Ключ", strings.Repeat("x", 129),
	} {
		if checkCredentialHeader(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "apikey", "Cookie", "PRIVATE-TOKEN"} {
		if err := checkCredentialHeader(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

package table

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	smallTool = `{"name":"do","inputSchema":{"type":"object"}}`
	sha       = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// toolset is a backend with the members given, besides its name and transport.
func toolset(members string) string {
	return `{"version":1,"endpoint":{},"auth":{"type":"None"},"backends":[{"name":"t","transport":"Toolset",` + members + `}]}`
}

func operation(members string) string {
	return toolset(`"url":"https://a.example","toolset":{"http":[{"definition":` + smallTool + `,` + members + `}]}`)
}

func postgres(members, beside string) string {
	return toolset(`"toolset":{"postgres":{"definition":` + smallTool + `,"statement":"SELECT 1","host":"db","database":"d","user":"u"` +
		members + `}}` + beside)
}

func TestToolsetsAreValidated(t *testing.T) {
	t.Parallel()
	const op, pg = "backends[0].toolset.http[0]", "backends[0].toolset.postgres"
	cases := map[string]struct {
		table string
		want  []string
	}{
		"a small operation": {operation(`"method":"GET"`), nil},
		"a large operation": {operation(`"method":"POST","path":"/a/{b c}/d:{e}","query":[{"name":"q","argument":"a","style":"Comma"},{"name":"c","value":1}],
			"header":[{"name":"X-A"}],"body":{"type":"Form","members":[{"name":"m","value":"x"}]},"response":{"maxBytes":1000,"select":"/a/0"}`), nil},
		"a file": {toolset(`"url":"https://a","credential":{"type":"Bearer","valueFile":"/t"},"caFile":"/ca","allowPrivate":true,
			"toolset":{"files":[{"file":"/etc/x.json","sha256":"` + sha + `"}]}`), nil},
		"a file in a ConfigMap": {toolset(`"url":"https://a","toolset":{"files":[{"configMap":"weather-0123.x","key":"tools.json.gz",
			"sha256":"` + sha + `"}]}`), nil},
		"a client certificate": {postgres("", `,"clientCertificate":{"certFile":"/c","keyFile":"/k"}`), nil},
		"a small statement":    {postgres("", ""), nil},
		"a large statement": {postgres(`,"params":[{"argument":"a","type":"Integer[]"},{"argument":"b"}],"write":true,"maxRows":10000,"maxBytes":1024,
			"port":5433,"passwordFile":"/p","tls":"VerifyCA"`, `,"caFile":"/ca"`), nil},
		"a guarded server in the cluster": {
			`{"version":1,"endpoint":{},"auth":{"type":"None"},"backends":[{"name":"t","url":"http://a","guarded":true,"allowPrivate":true}]}`, nil,
		},
		"a guarded child": {
			`{"version":1,"endpoint":{},"auth":{"type":"None"},"backends":[{"name":"t","transport":"Stdio","command":["a"],"guarded":true}]}`,
			[]string{"backends[0].guarded: is for servers over HTTP: a Toolset always is, and a child is not dialled"},
		},
		"a database without TLS in the cluster": {postgres(`,"tls":"Disable"`, `,"allowPrivate":true`), nil},
		"a database at an IPv6 address":         {strings.Replace(postgres("", ""), `"db"`, `"fd00::1"`, 1), nil},
		"a schema that is nested": {strings.Replace(operation(`"method":"GET"`), `{"type":"object"}`,
			strings.Repeat(`{"properties":{"a":`, 20)+`{}`+strings.Repeat(`}}`, 20), 1), nil},

		"nothing":      {toolset(`"url":"https://a"`), []string{"backends[0].toolset: must be given with transport Toolset"}},
		"an empty set": {toolset(`"url":"https://a","toolset":{}`), []string{"backends[0].toolset: must have http, files or postgres"}},
		"a set of another transport": {
			strings.Replace(operation(`"method":"GET"`), `"Toolset"`, `"SSE"`, 1),
			[]string{"backends[0].toolset: must not be given without transport Toolset"},
		},
		"private addresses of another transport": {
			`{"version":1,"endpoint":{},"auth":{"type":"None"},"backends":[{"name":"t","url":"http://a","allowPrivate":true}]}`,
			[]string{"backends[0].allowPrivate: must not be given without transport Toolset"},
		},
		"what has no effect": {
			strings.Replace(operation(`"method":"GET"`), `"url"`, `"command":["a"],"hostHeader":"a","podsHost":"a","protocolVersion":"2025-11-25","url"`, 1),
			[]string{
				"backends[0].command: must not be given with transport Toolset", "backends[0].hostHeader: must not be given with transport Toolset",
				"backends[0].podsHost: must not be given with transport Toolset", "backends[0].protocolVersion: must not be given with transport Toolset",
			},
		},
		"a URL with a password": {
			strings.Replace(operation(`"method":"GET"`), "https://", "https://u:p@", 1),
			[]string{"backends[0].url: must be without user and password; use credential"},
		},
		"a definition that is none": {
			strings.Replace(operation(`"method":"GET"`), smallTool, `[]`, 1), []string{op + ".definition: must be a tool object"},
		},
		"a definition without what it needs": {
			strings.Replace(operation(`"method":"GET"`), smallTool, `{"Name":"a","name":"a b","inputSchema":[],"outputSchema":true}`, 1),
			[]string{
				op + ".definition.name: must be 1 to 128 of A-Z, a-z, 0-9, '_', '-', '.'",
				op + ".definition.inputSchema: must be a JSON Schema that is an object",
				op + ".definition.outputSchema: must be a JSON Schema that is an object",
			},
		},
		"one name twice": {
			toolset(`"url":"https://a","toolset":{"http":[{"method":"GET","definition":` + smallTool + `},{"method":"GET","definition":` + smallTool + `}]}`),
			[]string{`backends[0].toolset.http[1].definition.name: "do" is the name of backends[0].toolset.http[0] too`},
		},
		"a method":        {operation(`"method":"CONNECT"`), []string{op + `.method: "CONNECT" is not GET, HEAD, POST, PUT, PATCH or DELETE`}},
		"a body of a GET": {operation(`"method":"GET","body":{}`), []string{op + `.body: must not be given with method "GET"`}},
		"headers that are not for arguments": {
			operation(`"method":"GET","header":[{"name":"authorization"},{"name":"Cookie"},{"name":"HOST"},{"name":"Content-Type"},{"name":"a b"},
				{"name":"Transfer-Encoding"},{"name":"X-Forwarded-For"}]`),
			func() (want []string) {
				for i, name := range []string{"authorization", "Cookie", "HOST", "Content-Type", "a b", "Transfer-Encoding", "X-Forwarded-For"} {
					want = append(want, index(op+".header", i)+`.name: "`+name+
						`" is not for arguments: it is no header, or the gateway, the connection or the credential sets it`)
				}
				return want
			}(),
		},
		"parameters": {
			operation(`"method":"POST","query":[{"name":""},{"name":"a","argument":"b","value":1},{"name":"b","value":{}},{"name":"c","style":"Odd"}],
				"body":{"members":[{"name":"a","style":"Comma"},{"name":"b","value":{}}]}`),
			[]string{
				op + ".query[0].name: must be 1 to 128 printable bytes", op + ".query[1].value: must not be given with an argument",
				op + ".query[2].value: must be a string, a number or a boolean",
				op + `.query[3].style: "Odd" is not known: Repeat, Comma, Space, Pipe, DeepObject or JSON`,
				op + ".body.members[0].style: must not be given outside of the query",
			},
		},
		"names twice": {
			operation(`"method":"POST","query":[{"name":"a"},{"name":"A"},{"name":"a","value":1}],"header":[{"name":"X-A"},{"name":"x-a"}],
				"body":{"members":[{"name":"m"},{"name":"M"},{"name":"m","argument":"n"}]}`),
			[]string{
				op + `.query[2].name: "a" is the name of ` + op + ".query[0] too", op + `.header[1].name: "x-a" is the name of ` + op + ".header[0] too",
				op + `.body.members[2].name: "m" is the name of ` + op + ".body.members[0] too",
			},
		},
		"headers that cannot be sent": {
			operation(`"method":"GET","header":[{"name":"X-A","value":"a\r\nb"},{"name":"X-B","value":"\u0000"},{"name":"X-C","value":" a"},
				{"name":"X-D","value":"a b"},{"name":"X-E","value":1},{"name":"X-F","value":"\u0085"}]`),
			[]string{
				op + ".header[0].value: must have no control characters and no space at its ends: it is sent in a header",
				op + ".header[1].value: must have no control characters and no space at its ends: it is sent in a header",
				op + ".header[2].value: must have no control characters and no space at its ends: it is sent in a header",
				op + ".header[5].value: must have no control characters and no space at its ends: it is sent in a header",
			},
		},
		"a response without content": {
			strings.Replace(operation(`"method":"HEAD","response":{"select":"/a"}`), `{"type":"object"}`,
				`{"type":"object"},"outputSchema":{"type":"object"}`, 1),
			[]string{
				op + ".definition.outputSchema: must not be given with method HEAD, whose responses have no content",
				op + ".response.select: must not be given with method HEAD, whose responses have no content",
			},
		},
		"a body of two kinds": {
			operation(`"method":"POST","body":{"type":"XML","argument":"a","members":[{"name":"a"}]}`),
			[]string{op + `.body.type: "XML" is not known: JSON or Form`, op + ".body.members: must not be given with an argument"},
		},
		"a form of one argument": {
			operation(`"method":"POST","body":{"type":"Form","argument":"a"}`),
			[]string{op + ".body.argument: must be at most 128 printable bytes, with type JSON"},
		},
		"a response": {
			operation(`"method":"GET","response":{"maxBytes":999999999,"select":"a"}`),
			[]string{
				op + ".response.maxBytes: 999999999 must be 1 to 16777216, or 0 for the default",
				op + ".response.select: must be a JSON pointer of at most 512 bytes, which begins with '/'",
			},
		},
		"a file of no kind": {
			toolset(`"url":"https://a","toolset":{"files":[{"file":"x","sha256":"E3"}]}`),
			[]string{
				"backends[0].toolset.files[0].file: must be an absolute path of at most 1024 bytes without '.', '..', '//' or a slash at the end",
				"backends[0].toolset.files[0].sha256: must be 64 lower-case hexadecimal digits",
			},
		},
		"files that are nowhere, in two places, and in ConfigMaps of no kind": {
			toolset(`"url":"https://a","toolset":{"files":[{"sha256":"` + sha + `"},{"file":"/a","configMap":"a","key":"k","sha256":"` + sha + `"},
				{"file":"/a","key":"k","sha256":"` + sha + `"},{"configMap":"a/b","key":"..","sha256":"` + sha + `"},
				{"configMap":"-a","key":"","sha256":"` + sha + `"}]}`),
			[]string{
				"backends[0].toolset.files[0]: must have a file or a configMap",
				"backends[0].toolset.files[1].file: must not be given with a configMap",
				"backends[0].toolset.files[2].key: must not be given without a configMap",
				`backends[0].toolset.files[3].configMap: "a/b" must be the name of a ConfigMap: at most 253 of a-z, 0-9, '-', '.'`,
				"backends[0].toolset.files[3].key: must be 1 to 253 of A-Z, a-z, 0-9, '_', '-', '.': a key of the ConfigMap",
				`backends[0].toolset.files[4].configMap: "-a" must be the name of a ConfigMap: at most 253 of a-z, 0-9, '-', '.'`,
				"backends[0].toolset.files[4].key: must be 1 to 253 of A-Z, a-z, 0-9, '_', '-', '.': a key of the ConfigMap",
			},
		},
		"a statement beside operations": {
			toolset(`"url":"https://a","credential":{"type":"Bearer","valueFile":"/t"},"toolset":{"http":[],"files":[{"file":"/a","sha256":"` + sha + `"}],
				"postgres":{"definition":` + smallTool + `,"statement":"SELECT 1","host":"db","database":"d","user":"u"}}`),
			[]string{
				"backends[0].url: must not be given with a Postgres tool", "backends[0].credential: must not be given with a Postgres tool",
				"backends[0].toolset.files: must not be given with a Postgres tool",
			},
		},
		"a statement of no kind": {
			toolset(`"toolset":{"postgres":{"definition":` + smallTool + `,"statement":" ","host":"a/b","port":70000,"database":"",
				"user":"\u0000","maxRows":10001,"maxBytes":1,"passwordFile":"p","tls":"Prefer","params":[{"argument":"","type":"int"}]}}`),
			[]string{
				pg + ".statement: must be 1 to 65536 bytes without NUL", pg + ".params[0].argument: must be 1 to 128 printable bytes",
				pg + `.params[0].type: "int" is not known: Text, Integer, Number, Boolean, JSON, Timestamp, Date, UUID, or one of them with []`,
				pg + ".maxRows: 10001 must be 1 to 10000, or 0 for the default", pg + ".maxBytes: 1 must be 1024 to 16777216, or 0 for the default",
				pg + ".host: must have a DNS name or an IP address as its host", pg + ".port: 70000 must be 1 to 65535, or 0 for 5432",
				pg + ".database: must be 1 to 63 printable bytes", pg + ".user: must be 1 to 63 printable bytes",
				pg + ".passwordFile: must be an absolute path of at most 1024 bytes without '.', '..', '//' or a slash at the end",
				pg + `.tls: "Prefer" is not known: VerifyFull, VerifyCA or Disable`,
			},
		},
		"no TLS outside of the cluster": {
			postgres(`,"tls":"Disable"`, `,"caFile":"/ca","clientCertificate":{"certFile":"/c","keyFile":"/k"}`), []string{
				"backends[0].caFile: must not be given with TLS mode Disable",
				"backends[0].clientCertificate: must not be given with TLS mode Disable",
				pg + ".tls: Disable needs allowPrivate: nothing is sent unencrypted to a public address",
			},
		},
		"a CA of nobody":     {postgres(`,"tls":"VerifyCA"`, ""), []string{"backends[0].caFile: must be given with TLS mode VerifyCA"}},
		"a field of no kind": {operation(`"method":"GET","follow":true`), []string{op + ".follow: is not a field of table version 1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(tc.table))
			var got []string
			if invalid, ok := errors.AsType[*InvalidError](err); ok {
				got = invalid.Problems
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPathTemplatesHaveOneReading(t *testing.T) {
	t.Parallel()
	for template, ok := range map[string]bool{
		"": true, "/": true, "/a/": true, "/{a}": true, "/{a}{b}.json": true, "/a:b@c;d=e,f": true, "/{filter[x]}": true,
		"a": false, "//": false, "/a//b": false, "/..": false, "/./a": false, "/a/../b": false, "/%2e%2e": false, "/a?b": false, "/a#b": false, `/a\b`: false,
		"/{": false, "/}": false, "/{}": false, "/{a{b}}": false, "/a b": false, "/ü": false, "http://a": false,
	} {
		if err := checkTemplate(template); (err == nil) != ok {
			t.Errorf("%q: %v", template, err)
		}
	}
}

func TestAFileOfToolsIsReadStrictly(t *testing.T) {
	t.Parallel()
	tools, err := ParseTools([]byte(`{"http":[{"definition":` + smallTool + `,"method":"GET","path":"/a"}]}`))
	want := []HTTPTool{{Definition: json.RawMessage(smallTool), Method: "GET", Path: "/a"}}
	if diff := cmp.Diff(want, tools); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for content, want := range map[string]string{
		`{"http":[],"x":1}`: "x: is not a field of table version 1", `{"HTTP":[]}`: "HTTP: is not a field", `{`: "file: is not JSON",
		`{"http":[{"definition":{},"method":"GET"}]}`: "http[0].definition.name: must be 1 to 128", "\xff": "file: is not valid UTF-8",
		strings.Repeat(" ", MaxToolFileBytes+1): "file: is 4194305 bytes long, the limit is 4194304", `{"http":[]} {}`: "file: is not JSON",
	} {
		if _, err := ParseTools([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", content, err, want)
		}
	}
}

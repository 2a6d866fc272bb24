package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/schema"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// toolOf is an MCPTool with a specification in YAML.
func toolOf(t *testing.T, spec string) *mcpv1alpha1.MCPTool {
	t.Helper()
	tool := &mcpv1alpha1.MCPTool{}
	tool.Name, tool.Namespace = "orders", "team"
	if err := yaml.UnmarshalStrict([]byte(spec), &tool.Spec); err != nil {
		t.Fatalf("%v in %s", err, spec)
	}
	return tool
}

const (
	httpBase     = "{type: http, endpoint: 'https://a.example.com', "
	postgresBase = "{type: postgres, endpoint: 'postgres://db.example.com/shop', "
)

func TestAToolThatCannotWorkIsRefusedInTheWordsOfItsAuthor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ spec, want string }{
		"no known type": {"{type: grpc}", "type must be http, openapi, postgres or mcp"},
		"no endpoint":   {"{type: http}", "endpoint: must be given"},
		"http endpoint with a password": {
			"{type: http, endpoint: 'https://u:p@a.example.com'}", "endpoint: must be without user and password; use credential",
		},
		"a part of the path that may be absent": {
			httpBase + "http: {path: '/a/{id}'}, schema: {inline: {input: {properties: {id: {type: string}}}}}}",
			"http.path: schema.input must require the argument 'id', which is a part of the path",
		},
		"a parameter that is no argument": {
			httpBase + "http: {method: GET, query: [{name: a, value: 1}, {name: q}]}}",
			"http.query[1]: the argument 'q' is none of the properties of schema.input",
		},
		"a header that is no argument": {
			httpBase + "http: {headers: [{name: X-A, argument: why}]}}",
			"http.headers[0]: the argument 'why' is none of the properties of schema.input",
		},
		"a member that is no argument": {
			httpBase + "http: {body: {members: [{name: a}]}}}", "http.body.members[0]: the argument 'a' is none of the properties of schema.input",
		},
		"a body that is no argument": {
			httpBase + "http: {body: {argument: a}}}", "http.body.argument: the argument 'a' is none of the properties of schema.input",
		},
		"a body with GET": {httpBase + "http: {method: GET, body: {}}}", `http.body: must not be given with method "GET"`},
		"a constant that is a list in a query": {
			httpBase + "http: {query: [{name: a, value: [1]}]}}", "http.query[0].value: must be a string, a number or a boolean",
		},
		"an input that is no object": {httpBase + "schema: {inline: {input: []}}}", "schema.input: must be a JSON Schema that is an object"},
		"an input of another type":   {httpBase + "schema: {inline: {input: {type: array}}}}", `schema.input: must have the type "object"`},
		"an output of another type":  {httpBase + "schema: {inline: {output: {type: string}}}}", `schema.output: must have the type "object"`},
		"a schema that lies elsewhere": {
			httpBase + "schema: {inline: {input: {properties: {a: {$ref: 'https://example.com/schema'}}}}}}",
			"schema.input: its $ref refers to another document, which nobody may fetch: put that under $defs",
		},
		"a header of 2026-07-28 that is none": {
			httpBase + "schema: {inline: {input: {properties: {a: {type: object, x-mcp-header: A}}}}}}",
			"schema.input: x-mcp-header is only for properties of type string, integer or boolean",
		},
		"read-only and destructive": {
			httpBase + "annotations: {readOnly: true, destructive: true}}", "annotations: readOnly and destructive must not both be true",
		},
		"a database by http": {
			"{type: postgres, endpoint: 'https://db.example.com/shop', postgres: {user: u, statement: SELECT 1}}",
			"endpoint: must be postgres://host:5432/database",
		},
		"a database with a password in its endpoint": {
			"{type: postgres, endpoint: 'postgres://u:p@db.example.com/shop', postgres: {user: u, statement: SELECT 1}}",
			"endpoint: must be postgres://host:5432/database, without user, password, query and fragment; give auth and postgres.user",
		},
		"a database with parameters": {
			"{type: postgres, endpoint: 'postgres://db.example.com/shop?sslmode=disable', postgres: {user: u, statement: SELECT 1}}",
			"endpoint: must be postgres://host:5432/database, without user, password, query and fragment; give auth and postgres.user",
		},
		"no database": {
			"{type: postgres, endpoint: 'postgres://db.example.com', postgres: {user: u, statement: SELECT 1}}",
			"endpoint: must have a host and the name of one database, as in postgres://host:5432/database",
		},
		"two databases": {
			"{type: postgres, endpoint: 'postgres://db.example.com/a/b', postgres: {user: u, statement: SELECT 1}}",
			"endpoint: must have a host and the name of one database, as in postgres://host:5432/database",
		},
		"a port that is none": {
			"{type: postgres, endpoint: 'postgres://db.example.com:0/a', postgres: {user: u, statement: SELECT 1}}",
			"endpoint: must have a port of 1 to 65535, or none for 5432",
		},
		"no statement at all": {postgresBase + "}", "postgres must be given with type postgres"},
		"a statement that is empty": {
			postgresBase + "postgres: {user: u, statement: ' '}}", "postgres.statement: must be 1 to 65536 bytes without NUL",
		},
		"two statements": {
			postgresBase + "postgres: {user: u, statement: 'DELETE FROM x; SELECT 1'}}",
			"postgres.statement: there is another statement behind a semicolon: a tool is one; WITH can hold several",
		},
		"a parameter of a statement that is no argument": {
			postgresBase + "postgres: {user: u, statement: SELECT $1, parameters: [{argument: id}]}}",
			"postgres.parameters[0]: the argument 'id' is none of the properties of schema.input",
		},
		"an output that describes one row": {
			postgresBase + "postgres: {user: u, statement: SELECT 1}, schema: {inline: {output: {properties: {id: {type: integer}}}}}}",
			"schema.output: the result of a statement has the members rows, rowsAffected and truncated, and no 'id': " +
				"describe rows as a list of objects by column name",
		},
		"an output that requires a column": {
			postgresBase + "postgres: {user: u, statement: SELECT 1}, schema: {inline: {output: {required: [id]}}}}",
			"schema.output: the result of a statement has the members rows, rowsAffected and truncated, and no 'id': " +
				"describe rows as a list of objects by column name",
		},
		"certificates of whatever authority": {
			postgresBase + "postgres: {user: u, statement: SELECT 1, tls: VerifyCA}}", "caBundle: must be given with TLS mode VerifyCA",
		},
		"a token for a database": {
			postgresBase + "postgres: {user: u, statement: SELECT 1}, auth: {type: Bearer, secretRef: {name: s}}}",
			"auth.type Bearer is not for a database: Password or ClientCertificate",
		},
		"a password for an API": {
			httpBase + "auth: {type: Password, secretRef: {name: s}}}", "auth.type Password is not for type http: Bearer, Basic, Header or ClientCertificate",
		},
		"a header that is not sent": {
			httpBase + "auth: {type: Bearer, header: X-A, secretRef: {name: s}}}", "auth.header must not be given with type Bearer",
		},
		"a header that is the connection's": {
			httpBase + "auth: {type: Header, header: Host, secretRef: {name: s}}}",
			`auth.header: "Host" is not for credentials: the gateway or the connection sets it`,
		},
		"a Secret of no legal name": {
			httpBase + "auth: {type: Bearer, secretRef: {name: '../s'}}}", "auth.secretRef: '../s' is no name of a Secret",
		},
		"a key of no legal name": {
			httpBase + "caBundle: {secretRef: {name: s, key: '..'}}}",
			"caBundle: '..' is no key of a Secret: at most 253 letters, digits, '-', '_' and '.', and not '..' at its beginning",
		},
		"a certificate without TLS": {
			"{type: http, endpoint: 'http://a.example.com', auth: {type: ClientCertificate, secretRef: {name: s}}}",
			"auth: proves nothing, since the url is not https",
		},
		"openapi without a document": {"{type: openapi}", "openapi must be given with type openapi"},
		"openapi at no legal address": {
			"{type: openapi, endpoint: 'ftp://a', openapi: {document: {url: 'https://a.example.com'}}}", "endpoint: must begin with http:// or https://",
		},
		"a remote server at no legal address": {
			"{type: mcp, endpoint: 'https://a.example.com/?a=b'}", "endpoint: must be without query, fragment and backslash",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ToolDefinition(toolOf(t, tc.spec), SchemaText{})
			var refused *InvalidError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			if refused.Message != tc.want {
				t.Errorf("got  %s\nwant %s", refused.Message, tc.want)
			}
		})
	}
}

func TestAnnotationsFollowFromWhatAToolDoes(t *testing.T) {
	t.Parallel()
	statement := "postgres: {user: u, statement: SELECT 1}, "
	for name, tc := range map[string]struct {
		spec string
		want hints
	}{
		"GET":                            {httpBase + "http: {method: GET}}", hints{ReadOnly: true, Idempotent: true, OpenWorld: true}},
		"POST":                           {httpBase + "}", hints{Destructive: true, OpenWorld: true}},
		"PUT":                            {httpBase + "http: {method: PUT}}", hints{Destructive: true, Idempotent: true, OpenWorld: true}},
		"DELETE":                         {httpBase + "http: {method: DELETE}}", hints{Destructive: true, Idempotent: true, OpenWorld: true}},
		"a POST that reads":              {httpBase + "annotations: {readOnly: true}}", hints{ReadOnly: true, Idempotent: true, OpenWorld: true}},
		"a POST that adds":               {httpBase + "annotations: {destructive: false}}", hints{OpenWorld: true}},
		"a GET that counts":              {httpBase + "http: {method: GET}, annotations: {idempotent: false}}", hints{ReadOnly: true, OpenWorld: true}},
		"a statement":                    {postgresBase + statement + "}", hints{ReadOnly: true, Idempotent: true}},
		"a statement that writes":        {postgresBase + statement + "annotations: {destructive: true}}", hints{Destructive: true}},
		"a statement with a side effect": {postgresBase + statement + "annotations: {readOnly: false, openWorld: true}}", hints{OpenWorld: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ToolDefinition(toolOf(t, tc.spec), SchemaText{})
			if err != nil {
				t.Fatal(err)
			}
			var described struct {
				Annotations hints `json:"annotations"`
			}
			if err := json.Unmarshal(rawDefinition(got), &described); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, described.Annotations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Postgres != nil && got.Postgres.Write != tc.want.Destructive {
				t.Errorf("the statement may write: %t, and the tool says it is destructive: %t", got.Postgres.Write, tc.want.Destructive)
			}
		})
	}
}

func rawDefinition(d Definition) json.RawMessage {
	if d.HTTP != nil {
		return d.HTTP.Definition
	}
	return d.Postgres.Definition
}

func TestSchemasOfConfigMapsAreReadStrictly(t *testing.T) {
	t.Parallel()
	spec := httpBase + "schema: {configMapRef: {name: schemas, key: k}}}"
	for name, tc := range map[string]struct {
		text SchemaText
		want string // of the error; empty for none
	}{
		"JSON":             {SchemaText{Text: `{"input": {"type": "object"}}`}, ""},
		"YAML":             {SchemaText{Text: "# both\ninput: {type: object}\noutput: {type: object}\n"}, ""},
		"only an output":   {SchemaText{Text: "output: {}"}, ""},
		"nothing":          {SchemaText{Text: " \n"}, "schema.configMapRef: the key is empty, and must hold the schemas"},
		"no ConfigMap":     {SchemaText{Problem: "ConfigMap 'schemas' does not exist"}, "schema.configMapRef: ConfigMap 'schemas' does not exist"},
		"a misspelt key":   {SchemaText{Text: "inputs: {}"}, "schema.configMapRef: the key has the member 'inputs', and only input and output are known"},
		"a key twice":      {SchemaText{Text: `{"input": {}, "input": {}}`}, "schema.configMapRef: the key: JSON object with the same key twice"},
		"a list":           {SchemaText{Text: "- input"}, "schema.configMapRef: the key must hold an object with the members input and output"},
		"null as an input": {SchemaText{Text: "input: null"}, "schema.input: must be a JSON Schema that is an object"},
		"a schema that is too deep": {
			SchemaText{Text: `{"input":` + strings.Repeat(`{"not":`, 70) + "{}" + strings.Repeat("}", 71)},
			"schema.configMapRef: the key: JSON nested too deep",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if _, err := ToolDefinition(toolOf(t, spec), tc.text); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
	t.Run("YAML with a key twice, or none at all", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"input: {}\ninput: {}", "a: b: c", "a: &a [*a]"} {
			_, err := ToolDefinition(toolOf(t, spec), SchemaText{Text: text})
			if err == nil || !strings.HasPrefix(err.Error(), "schema.configMapRef: the key is neither JSON nor YAML: ") {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

func TestAnArgumentThatASchemaNamesElsewhereIsTaken(t *testing.T) {
	t.Parallel()
	for _, keyword := range []string{"allOf: [{properties: {q: {}}}]", "$ref: '#/$defs/a', $defs: {a: {properties: {q: {}}}}", "patternProperties: {q: {}}"} {
		spec := httpBase + "http: {method: GET, query: [{name: q}]}, schema: {inline: {input: {" + keyword + "}}}}"
		if _, err := ToolDefinition(toolOf(t, spec), SchemaText{}); err != nil {
			t.Errorf("%s: %v", keyword, err)
		}
	}
}

// What is promised of a tool has to be what a gateway makes of it: whether it is served, and its digest.
func TestGatewaysAndProbersSeeTheSameDefinition(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, in := range goldenInputs(t) {
		for _, tool := range in.Tools {
			definition, err := ToolDefinition(tool, in.Schemas[tool.Name])
			if err != nil || definition.Name == "" {
				continue
			}
			checked++
			raw := rawDefinition(definition)
			list := append(append([]byte(`{"tools":[`), raw...), `]}`...)
			_, statuses, _ := catalog.FilterTools(list, table.Backend{Name: "b"}, nil)
			want := []table.ToolStatus{{Name: tool.Name, Original: tool.Name, Digest: definition.Digest, Verdict: table.ToolServed}}
			if diff := cmp.Diff(want, statuses); diff != "" {
				t.Errorf("%s: %s at a gateway (-want +got):\n%s", name, tool.Name, diff)
			}
			if probed, err := mcp.NewDigester(1 << 20).Tool(raw); err != nil || probed != definition.Digest {
				t.Errorf("%s: %s has the digest %s at the prober (%v), and %s here", name, tool.Name, probed, err, definition.Digest)
			}
			for _, member := range []string{"inputSchema", "outputSchema"} {
				if s := wire.Field(raw, member); s != nil {
					if _, err := schema.Compile(s); err != nil {
						t.Errorf("%s: %s: a gateway cannot check by its %s: %v", name, tool.Name, member, err)
					}
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d tools were looked at", checked)
	}
}

// A schema that the gateway's catalog would not offer must not be accepted here, and the other way round.
func TestSchemasAreHeldToTheRulesOfTheCatalog(t *testing.T) {
	t.Parallel()
	many := make([]string, maxSubschemas+1)
	for i := range many {
		many[i] = fmt.Sprintf("%q:{}", fmt.Sprint("p", i))
	}
	for name, schema := range map[string]string{
		"plain":                    `{"type":"object"}`,
		"a reference within":       `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`,
		"a reference elsewhere":    `{"type":"object","properties":{"a":{"$ref":"other"}}}`,
		"a reference as a value":   `{"type":"object","default":{"$ref":"other"},"properties":{"a":{"enum":[{"$ref":"other"}]}}}`,
		"a property called $ref":   `{"type":"object","properties":{"$ref":{"type":"string"}}}`,
		"an unknown keyword":       `{"type":"object","x-more":{"$dynamicRef":"other"}}`,
		"as many parts as may be":  `{"type":"object","properties":{` + strings.Join(many[:maxSubschemas-1], ",") + `}}`,
		"more parts than may be":   `{"type":"object","properties":{` + strings.Join(many, ",") + `}}`,
		"a header":                 `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		"a header of two words":    `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`,
		"a header within a choice": `{"type":"object","anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := `{"tools":[{"name":"a","inputSchema":` + schema + `}]}`
			_, statuses, _ := catalog.FilterTools(json.RawMessage(list), table.Backend{Name: "b"}, nil)
			offered := statuses[0].Verdict == table.ToolServed
			_, err := schemasOf(&mcpv1alpha1.ToolSchema{ConfigMapRef: &mcpv1alpha1.KeyRef{}}, SchemaText{Text: `{"input":` + schema + `}`})
			if offered != (err == nil) {
				t.Errorf("the catalog says %v, and here it is %v", statuses[0], err)
			}
		})
	}
}

package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// makeDocument is a document with the paths given, as YAML in one line each.
func makeDocument(paths ...string) string {
	return "openapi: 3.1.0\nservers: [{url: https://api.example.com}]\npaths:\n  " + strings.Join(paths, "\n  ") + "\n"
}

func TestDocumentsThatCannotBeUsedSayWhy(t *testing.T) {
	t.Parallel()
	fine := "/a: {get: {responses: {}}}"
	tests := map[string]struct {
		document string
		opts     Options
		want     string
	}{
		"nothing":                        {document: "", want: "it is empty"},
		"no text":                        {document: "\xff\xfe", want: "it is not UTF-8 text"},
		"neither JSON nor YAML":          {document: "{a: [", want: "it is neither JSON nor YAML: yaml: line 1: did not find expected node content"},
		"a list":                         {document: "[]", want: "it is not an object, so no OpenAPI document"},
		"something else":                 {document: "a: b", want: `it has no member "openapi", so it is no OpenAPI document`},
		"Swagger":                        {document: `swagger: "2.0"`, want: "it is of OpenAPI 2.0 (Swagger): 3.0 and 3.1 are read; convert it"},
		"a version to come":              {document: `openapi: 3.2.0`, want: `it is of OpenAPI "3.2.0": 3.0 and 3.1 are read`},
		"a version that only looks like": {document: `openapi: 3.10.0`, want: `it is of OpenAPI "3.10.0": 3.0 and 3.1 are read`},
		"two documents":                  {document: "a: b\n---\nc: d\n", want: "it holds more than one YAML document"},
		"a member twice in JSON":         {document: `{"a": 1, "a": 2}`, want: `it has the member "a" twice in one object`},
		"a member twice in YAML":         {document: "a: 1\na: 2\n", want: `it has the member "a" twice in one object`},
		"a key that is a list":           {document: "? [a]\n: b\n", want: "line 1: a key must be a text"},
		"too large": {
			document: strings.Repeat(" ", MaxDocumentBytes+1), want: "it has 8388609 bytes, the limit is 8388608: cut out what is not needed",
		},
		"too deep": {
			document: strings.Repeat("[", 300) + strings.Repeat("]", 300), want: "it is nested deeper than 256 levels",
		},
		"too deep in YAML": {
			document: "a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), want: "it is nested deeper than 256 levels",
		},
		"too many values": {
			document: "[" + strings.Repeat("0,", 1_000_000) + "0]", want: "it has more than 1000000 values, those counted that YAML aliases repeat",
		},
		"too many parts of YAML": {
			document: "a: [" + strings.Repeat("a,", 1_000_000) + "0]", want: "it is YAML of more than 1000000 parts: write it as JSON",
		},
		"aliases that multiply": {document: bomb(9, 10), want: "it has more than 1000000 values, those counted that YAML aliases repeat"},
		"aliases of a long text": {
			document: "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 40) + "]\n",
			want:     "its texts have more than 33554432 bytes, those counted that YAML aliases repeat",
		},
		"an alias of what it is in": {document: "a: &a [*a]", want: "it is nested deeper than 256 levels"},
		"no server": {
			document: "openapi: 3.0.0\npaths: {" + fine + "}",
			want:     "it names no server by an absolute URL; give the address in the tool's endpoint",
		},
		"a server by another scheme": {
			document: strings.Replace(makeDocument(fine), "https", "ftp", 1),
			want:     `its server "ftp://api.example.com" is not at an http or https URL; give the address in the tool's endpoint`,
		},
		"servers that are no list": {
			document: strings.Replace(makeDocument(fine), "[{url: https://api.example.com}]", "{url: https://api.example.com}", 1),
			want:     "its servers are not a list; give the address in the tool's endpoint",
		},
		"a server that is no object": {
			document: strings.Replace(makeDocument(fine), "{url: https://api.example.com}", "https://api.example.com", 1),
			want:     "its first server is not an object; give the address in the tool's endpoint",
		},
		"a server with a password": {
			document: strings.Replace(makeDocument(fine), "api.", "user:hunter2@api.", 1),
			want:     `its server "https://user:xxxxx@api.example.com" has a user, a query or a fragment; give the address in the tool's endpoint`,
		},
		"a server that climbs": {
			document: strings.Replace(makeDocument(fine), "example.com", "example.com/a/../b", 1),
			want:     `its server "https://api.example.com/a/../b" has '.', '..' or '//' in its path; give the address in the tool's endpoint`,
		},
		"a schema that refers to itself for the same value": {
			document: makeDocument("/a: {post: {requestBody: {content: {application/json: {schema: {$ref: \"#/components/schemas/A\"}}}}}}") +
				"components: {schemas: {A: {anyOf: [{type: string}, {not: {$ref: \"#/components/schemas/B\"}}]}, " +
				"B: {allOf: [{$ref: \"#/components/schemas/A\"}]}}}",
			want: "no tool can be made of it: POST /a: a schema in it refers to itself for the same value, without end",
		},
		"a server with a variable that has no value": {
			document: strings.Replace(makeDocument(fine), "https://api.example.com", `"https://{region}.example.com"`, 1),
			want:     `its server "https://{region}.example.com" is no URL; give the address in the tool's endpoint`,
		},
		"no operations": {document: makeDocument("/a: {}"), want: "no tool can be made of it: it has no operations, or include and exclude choose none"},
		"none that is chosen": {
			document: makeDocument(fine), opts: Options{Include: []mcpv1alpha1.OperationMatch{{Tag: "x"}}},
			want: "no tool can be made of it: include[0] (tag x) matches no operation",
		},
		"none that is left": {
			document: makeDocument(fine), want: "no tool can be made of it: it has no operations, or include and exclude choose none",
			opts: Options{
				Include: []mcpv1alpha1.OperationMatch{{Path: "/*"}, {Tag: "x"}},
				Exclude: []mcpv1alpha1.OperationMatch{{Path: "/*"}, {Tag: "y"}},
			},
		},
		"none that can be expressed": {
			document: makeDocument("/a: {get: 7}"), want: "no tool can be made of it: GET /a: it is not an object",
		},
		"too many operations": {
			document: makeDocument(many(513)...), want: "513 of its operations are chosen, the limit is 512: choose fewer by include and exclude",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := compile(t.Context(), []byte(tt.document), tt.opts)
			if err == nil {
				t.Fatalf("it was compiled to %v", result.Names)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got)\n%s", diff)
			}
		})
	}
}

// bomb is a document of levels that each repeat the one before.
func bomb(levels, times int) string {
	out := "l0: &l0 [x]\n"
	for level := 1; level <= levels; level++ {
		out += fmt.Sprintf("l%d: &l%d [%s]\n", level, level, strings.Repeat(fmt.Sprintf("*l%d,", level-1), times))
	}
	return out
}

func many(n int) []string {
	var paths []string
	for i := range n {
		paths = append(paths, fmt.Sprintf("/p%d: {get: {responses: {}}}", i))
	}
	return paths
}

func TestTheLargestNumberOfToolsIsMade(t *testing.T) {
	t.Parallel()
	result, err := compile(t.Context(), []byte(makeDocument(many(512)...)), Options{})
	if err != nil || len(result.Tools) != MaxTools {
		t.Errorf("%d tools, %v", len(result.Tools), err)
	}
	checkServed(t, result)
}

func TestNamesAreLegalUniqueAndStay(t *testing.T) {
	t.Parallel()
	byID := func(id string) string { return fmt.Sprintf("{operationId: %q, responses: {}}", id) }
	tests := map[string]struct {
		paths  []string
		prefix string
		want   []string
	}{
		"an operationId stays as it is":   {paths: []string{"/a: {get: " + byID("pets.get-one_V2") + "}"}, want: []string{"pets.get-one_V2"}},
		"other characters are replaced":   {paths: []string{"/a: {get: " + byID("pets/get one!") + "}"}, want: []string{"pets_get_one"}},
		"nothing that is legal: the path": {paths: []string{"/a: {get: " + byID("ä") + "}"}, want: []string{"get_a"}},
		"none: method and path": {
			paths: []string{"/: {get: {}}", "/pets/{pet-id}/photos.json: {put: {parameters: [{name: pet-id, in: path}]}}"},
			want:  []string{"get", "put_pets_by_pet_id_photos_json"},
		},
		"a prefix comes before all": {paths: []string{"/a: {get: " + byID("x") + ", post: {}}"}, prefix: "p_", want: []string{"p_x", "p_post_a"}},
		"an operationId wins over what was made legal, which wins over a path": {
			paths: []string{"/a: {get: {}}", "/b: {get: " + byID("get a") + "}", "/c: {get: " + byID("get_a") + "}"},
			want:  []string{"get_a_f302dfbc", "get_a_db789e7b", "get_a"},
		},
		"of two equal operationIds the first path has it": {
			paths: []string{"/a: {get: " + byID("x") + "}", "/b: {get: " + byID("x") + "}"}, want: []string{"x", "x_db789e7b"},
		},
		"what is too long ends in a hash": {
			paths: []string{"/a: {get: " + byID(strings.Repeat("a", 129)) + "}", "/b: {get: " + byID(strings.Repeat("a", 130)) + "}"},
			want:  []string{strings.Repeat("a", 119) + "_c12cb024", strings.Repeat("a", 119) + "_1e3c4f47"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := compile(t.Context(), []byte(makeDocument(tt.paths...)), Options{Prefix: tt.prefix})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, result.Names); diff != "" {
				t.Errorf("names (-want +got)\n%s", diff)
			}
		})
	}
}

func TestOperationsAreChosen(t *testing.T) {
	t.Parallel()
	document := makeDocument(
		"/pets: {get: {operationId: listPets, tags: [read, pets]}, post: {operationId: addPet, tags: [pets]}}",
		"/pets/{id}: {parameters: [{name: id, in: path}], get: {tags: [read]}, delete: {operationId: deletePet}}",
	)
	match := func(m ...mcpv1alpha1.OperationMatch) []mcpv1alpha1.OperationMatch { return m }
	tests := map[string]struct {
		include, exclude []mcpv1alpha1.OperationMatch
		want             []string
	}{
		"all by default":             {want: []string{"listPets", "addPet", "get_pets_by_id", "deletePet"}},
		"by operationId":             {include: match(mcpv1alpha1.OperationMatch{Operation: "*Pet"}), want: []string{"addPet", "deletePet"}},
		"one without an operationId": {include: match(mcpv1alpha1.OperationMatch{Operation: "*"}), want: []string{"listPets", "addPet", "deletePet"}},
		"by tag":                     {include: match(mcpv1alpha1.OperationMatch{Tag: "read"}), want: []string{"listPets", "get_pets_by_id"}},
		"by method":                  {include: match(mcpv1alpha1.OperationMatch{Method: "GET"}), want: []string{"listPets", "get_pets_by_id"}},
		"by path":                    {include: match(mcpv1alpha1.OperationMatch{Path: "/pets/*"}), want: []string{"get_pets_by_id", "deletePet"}},
		"by all that is given":       {include: match(mcpv1alpha1.OperationMatch{Method: "GET", Path: "/pets"}), want: []string{"listPets"}},
		"by any of a list": {
			include: match(mcpv1alpha1.OperationMatch{Tag: "read"}, mcpv1alpha1.OperationMatch{Method: "POST"}),
			want:    []string{"listPets", "addPet", "get_pets_by_id"},
		},
		"without what is excluded": {exclude: match(mcpv1alpha1.OperationMatch{Method: "DELETE"}), want: []string{"listPets", "addPet", "get_pets_by_id"}},
		"excluded of what is included": {
			include: match(mcpv1alpha1.OperationMatch{Tag: "pets"}),
			exclude: match(mcpv1alpha1.OperationMatch{Operation: "add*"}),
			want:    []string{"listPets"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := compile(t.Context(), []byte(document), Options{Include: tt.include, Exclude: tt.exclude})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, result.Names); diff != "" {
				t.Errorf("names (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAnEndpointReplacesWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	document := makeDocument("/a: {servers: [{url: https://other.example.com}], get: {}}")
	result, err := compile(t.Context(), []byte(document), Options{Endpoint: "https://mine.example.com/v1/", MaxResponseBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	if result.BaseURL != "https://mine.example.com/v1" || !slices.Equal(result.Names, []string{"get_a"}) {
		t.Errorf("%s serves %v", result.BaseURL, result.Names)
	}
	if got := result.Tools[0].Response.MaxBytes; got != 4096 {
		t.Errorf("a response has at most %d bytes", got)
	}
}

func TestYAMLAndJSONMeanTheSame(t *testing.T) {
	t.Parallel()
	yaml := `
openapi: 3.0
servers: [&s {url: "https://api.example.com"}]
x-base: &base {operationId: a, description: null, deprecated: yes}
paths:
  /a:
    get:
      <<: *base
      operationId: b
      parameters:
      - {name: n, in: query, schema: {type: integer, minimum: 0x10, maximum: 1_000, default: +7, multipleOf: .5}}
      responses: {200: {description: 2026-01-01}}
`
	same := `{"openapi": "3.0", "servers": [{"url": "https://api.example.com"}], "paths": {"/a": {"get": {"operationId": "b", "deprecated": true,
		"parameters": [{"name": "n", "in": "query", "schema": {"type": "integer", "minimum": 16, "maximum": 1000, "default": 7, "multipleOf": 0.5}}],
		"responses": {"200": {"description": "2026-01-01"}}}}}}`
	var results [2]Result
	for i, document := range []string{strings.Replace(yaml, "deprecated: yes", "deprecated: true", 1), same} {
		result, err := compile(t.Context(), []byte(document), Options{})
		if err != nil {
			t.Fatal(err)
		}
		results[i] = result
	}
	if diff := cmp.Diff(results[1], results[0]); diff != "" {
		t.Errorf("JSON and YAML (-JSON +YAML)\n%s", diff)
	}
}

func TestToolsThatAreTooLargeTogetherAreRefused(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`{"name":"a","inputSchema":{"title":"` + strings.Repeat("x", table.MaxToolFileBytes) + `"}}`)
	_, err := Encode([]table.HTTPTool{{Definition: large, Method: "GET"}})
	want := "its tools have 4194384 bytes, the limit is 4194304: choose fewer by include and exclude"
	if err == nil || err.Error() != want {
		t.Errorf("error: %v\nwant:  %s", err, want)
	}
}

// FuzzCompile looks for documents that make it panic, take long, or make tools that a gateway would refuse.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(makeDocument("/a/{b}: {get: {parameters: [{name: b, in: path}], responses: {200: {content: {application/json: {schema: {type: object}}}}}}}")))
	f.Add([]byte(`{"openapi":"3.0.0","servers":[{"url":"https://a"}],"paths":{"/a":{"post":
		{"requestBody":{"content":{"application/json":{"schema":{"nullable":true}}}}}}}}`))
	f.Add([]byte(bomb(3, 3)))
	f.Fuzz(func(t *testing.T, document []byte) {
		result, err := compile(t.Context(), document, Options{Endpoint: "https://api.example.com"})
		if err == nil {
			checkServed(t, result)
		}
	})
}

package openapi

import (
	"fmt"
	"strings"
	"testing"
)

// Each of these would take hours, or all memory, if what many operations share were looked at for each of them, or if what multiplies were
// followed.
func TestHostileDocumentsTakeBoundedWork(t *testing.T) {
	t.Parallel()
	shared := func(parameter string) string {
		var paths []string
		for i := range MaxTools {
			paths = append(paths, fmt.Sprintf(`/p%d: {get: {parameters: [{$ref: "#/components/parameters/Shared"}]}}`, i))
		}
		return makeDocument(paths...) + "components: {parameters: {Shared: {name: a, in: query, " + parameter + "}}}\n"
	}
	branching := func(schema string) string {
		return makeDocument(`/a: {get: {parameters: [{name: a, in: query, schema: {$ref: "#/components/schemas/A"}}]}}`) +
			"components: {schemas: {A: " + schema + "}}\n"
	}
	ten := strings.Repeat(`{$ref: "#/components/schemas/A"},`, 10)
	var chain strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&chain, "  A%d: {allOf: [{$ref: \"#/components/schemas/A%d\"}, {type: object}]}\n", i, i+1)
	}
	tests := map[string]struct {
		document string
		tools    int // that are made all the same
	}{
		"a long description": {
			document: shared("schema: {type: string, description: '" + strings.Repeat("x", 2<<20) + "'}, description: '" + strings.Repeat("y", 2<<20) + "'"),
			tools:    MaxTools,
		},
		"a long list of values":              {document: shared("schema: {enum: [" + strings.Repeat("aaaaaaaa,", 300_000) + "a]}"), tools: MaxTools},
		"a schema of many parts":             {document: shared("schema: {anyOf: [" + strings.Repeat("{},", 200_000) + "{}]}"), tools: MaxTools},
		"a schema that branches into itself": {document: branching("{allOf: [" + ten + "]}"), tools: 1},
		"properties that branch into itself": {document: branching("{properties: {a: {allOf: [" + ten + "]}}}"), tools: 1},
		"a chain of schemas for one value": {
			document: makeDocument(`/a: {get: {parameters: [{name: a, in: query, schema: {$ref: "#/components/schemas/A0"}}]}}`) +
				"components:\n schemas:\n" + chain.String() + "  A20000: {type: object}\n",
			tools: 1,
		},
		"a parameter in a chain without end": {
			document: makeDocument(`/a: {get: {parameters: [{$ref: "#/paths/~1a/get/parameters/0"}]}}`, "/b: {get: {}}"), tools: 1,
		},
		"a path that is another one":          {document: makeDocument(`/a: {$ref: "#/paths/~1b"}`, `/b: {$ref: "#/paths/~1a"}`, "/c: {get: {}}"), tools: 1},
		"a reference into a list that is not": {document: branching(`{$ref: "#/servers/99999999999999999999"}`), tools: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := Compile([]byte(tt.document), Options{})
			if err != nil || len(result.Tools) != tt.tools {
				t.Fatalf("%d tools, %v", len(result.Tools), err)
			}
			checkServed(t, result)
		})
	}
	if _, err := Compile([]byte(makeDocument(many(maxOperations+1)...)), Options{}); err == nil ||
		err.Error() != "it has more than 20000 operations: cut out what is not needed" {
		t.Errorf("of too many operations: %v", err)
	}
}

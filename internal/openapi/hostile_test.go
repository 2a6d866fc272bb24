package openapi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
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
		"a path that is another one": {
			document: makeDocument(`/a: {$ref: "#/paths/~1b"}`, `/b: {$ref: "#/paths/~1a"}`, "/c: {get: {}}"), tools: 1,
		},
		"a schema of many members that mean nothing": {
			document: shared("schema: {" + numbered("x-%d: 1, ", 100_000) + "type: string}"), tools: MaxTools,
		},
		"an operation of a long name that many paths share": {
			document: sharedPath("    operationId: " + strings.Repeat("n", 100_000)), tools: MaxTools,
		},
		"a form with a long list of what is required": {
			document: sharedPath("    requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {" +
				numbered("p%d: {readOnly: true}, ", 100) + "}, required: [" + strings.Repeat("a, ", 6000) + "]}}}}"),
			tools: MaxTools,
		},
		"a reference into a list that is not": {document: branching(`{$ref: "#/servers/99999999999999999999"}`), tools: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := compile(t.Context(), []byte(tt.document), Options{})
			if err != nil || len(result.Tools) != tt.tools {
				t.Fatalf("%d tools, %v", len(result.Tools), err)
			}
			checkServed(t, result)
		})
	}
	if _, err := compile(t.Context(), []byte(makeDocument(many(maxOperations+1)...)), Options{}); err == nil ||
		err.Error() != "it has more than 20000 operations: cut out what is not needed" {
		t.Errorf("of too many operations: %v", err)
	}
}

// numbered repeats a text with a number in it.
func numbered(format string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// chained is a document whose one operation has n properties, each of which refers to a chain of schemas with names of so many characters,
// each of which is written as two.
func chained(length, n int) string {
	name := func(i int) string { return fmt.Sprintf("%02d%s", i, strings.Repeat("~1", length)) }
	var out strings.Builder
	out.WriteString(makeDocument(`/a: {post: {requestBody: {content: {application/json: {schema: {type: object, properties: {` +
		numbered(`p%d: {$ref: "#/components/schemas/s"}, `, n) + `}}}}}}}`))
	out.WriteString("components:\n schemas:\n  s: {$ref: \"#/components/schemas/" + name(0) + "\"}\n")
	for i := range 13 {
		fmt.Fprintf(&out, "  ? %s\n  : {$ref: \"#/components/schemas/%s\"}\n", strings.ReplaceAll(name(i), "~1", "/"), name(i+1))
	}
	fmt.Fprintf(&out, "  ? %s\n  : {type: string}\n", strings.ReplaceAll(name(13), "~1", "/"))
	return strings.Replace(out.String(), "3.1.0", "3.0.0", 1)
}

// sharedPath is a document in which as many paths as may be are one, whose operation is what is given.
func sharedPath(operation string) string {
	var paths []string
	for i := range MaxTools {
		paths = append(paths, fmt.Sprintf(`/p%d: {$ref: "#/components/pathItems/x"}`, i))
	}
	return makeDocument(paths...) + "components:\n pathItems:\n  x:\n   post:\n" + operation + "\n"
}

func TestADocumentThatTakesTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	gone := errors.New("nobody asks any more")
	for name, document := range map[string]string{
		"JSON":               `{"openapi": "3.1.0", "paths": {"/a": {"get": {}}}}`,
		"YAML":               makeDocument("/a: {get: {}}"),
		"a large one in all": sharedPath("    parameters: []"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, cause := range []error{ErrTime, gone} {
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(cause)
				if result, err := Compile(ctx, []byte(document), Options{Endpoint: "https://api.example.com"}); !errors.Is(err, cause) {
					t.Errorf("%d tools, %v, want %v", len(result.Tools), err, cause)
				}
			}
		})
	}
}

// TestReferencesAreFollowedOnce: however long their names are, and however often they occur.
func TestReferencesAreFollowedOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ length, properties int }{"many": {18_000, 3900}, "fewer, by names that are longer": {150_000, 50}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second) // it takes less than one, by far more with -race, and else minutes
			defer cancel()
			result, err := compile(ctx, []byte(chained(tt.length, tt.properties)), Options{})
			if err != nil || len(result.Tools) != 1 {
				t.Fatalf("%d tools, %v", len(result.Tools), err)
			}
			checkServed(t, result)
		})
	}
}

// TestPatternsThatWouldBeLargeCostTheirOperation: few bytes of a pattern may be a megabyte once it is compiled.
func TestPatternsThatWouldBeLargeCostTheirOperation(t *testing.T) {
	const operations, patterns = 190, 50
	paths := []string{"/fine: {get: {parameters: [{name: a, in: query, schema: {type: string, pattern: '^[a-z]{1,63}$'}}]}}"}
	for i := range operations {
		paths = append(paths, fmt.Sprintf("/p%d: {get: {parameters: [", i)+
			numbered(fmt.Sprintf("{name: p%%[1]d, in: query, schema: {type: string, pattern: 'x%d-%%[1]d(a{1,1000}){1,1}'}}, ", i), patterns)+"]}}")
	}
	before := heap()
	result, err := compile(t.Context(), []byte(makeDocument(paths...)), Options{})
	if err != nil || len(result.Tools) != 1 || len(result.Skipped) != operations {
		t.Fatalf("%d tools, %d left out, %v", len(result.Tools), len(result.Skipped), err)
	}
	const begin = "GET /p0: its schema cannot be used: at #/properties/p"
	const end = "up to here the schema takes "
	if told := result.Skipped[0]; !strings.HasPrefix(told, begin) || !strings.Contains(told, end) {
		t.Errorf("it is told as %s", told)
	}
	if took := heap() - before; took > 16<<20 {
		t.Errorf("%d bytes stay", took)
	}
	runtime.KeepAlive(result)
}

// heap is how many bytes are in use once what is not has gone.
func heap() int {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestLongChainsOfReferencesAreToldFromThoseThatLeadBack counts: sixteen are followed.
func TestLongChainsOfReferencesAreToldFromThoseThatLeadBack(t *testing.T) {
	t.Parallel()
	document := func(length int, end string) string {
		return makeDocument(`/a: {get: {parameters: [{$ref: "#/components/parameters/P0"}]}}`) + "components: {parameters: {" +
			chain(length) + fmt.Sprintf("P%d: %s}}\n", length, end)
	}
	schemas := func(n int) string {
		return strings.ReplaceAll(strings.Replace(document(n, "{type: string}"),
			`[{$ref: "#/components/parameters/P0"}]`, `[{name: a, in: query, required: true, schema: {$ref: "#/components/schemas/P0"}}]`, 1),
			"parameters/", "schemas/")
	}
	const long = "a reference to a reference, more than 16 times over: refer to it directly"
	for name, tt := range map[string]struct{ document, want string }{
		"short":          {document(14, "{name: a, in: query}"), ""},
		"long":           {document(9000, "{name: a, in: query}"), "no tool can be made of it: GET /a: a parameter is " + long},
		"that lead back": {document(9, `{$ref: "#/components/parameters/P5"}`), "no tool can be made of it: GET /a: a parameter refers to itself"},
		"of schemas": {
			strings.Replace(schemas(9000), "components: {parameters:", "components: {schemas:", 1),
			`no tool can be made of it: GET /a: its parameter "a" (query) has a schema that cannot be used: its reference "#/components/schemas/P0" is ` + long,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := compile(t.Context(), []byte(strings.Replace(tt.document, "3.1.0", "3.0.0", 1)), Options{})
			if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// chain is n members, each of which refers to the next.
func chain(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `P%d: {$ref: "#/components/parameters/P%d"}, `, i, i+1)
	}
	return out.String()
}

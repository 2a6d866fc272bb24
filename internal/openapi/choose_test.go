package openapi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const zoo = `/pets: {get: {operationId: listPets, tags: [pets]}, delete: {operationId: deletePets, tags: [admin]}, trace: {operationId: tracePets}}`

// An operation that a mistyped exclude was to hold back is served, so it is said.
func TestAnEntryThatMatchesNoOperationIsTold(t *testing.T) {
	t.Parallel()
	type matches []mcpv1alpha1.OperationMatch
	long := strings.Repeat("x", 128)
	for name, tc := range map[string]struct {
		include, exclude matches
		want             []string
	}{
		"none is given": {want: []string{"TRACE /pets: no tool can be made of the method TRACE"}},
		"all match":     {include: matches{{Operation: "*Pets"}}, exclude: matches{{Operation: "tracePets"}, {Method: "DELETE"}}},
		"a mistyped operation": {
			exclude: matches{{Method: "TRACE"}, {Operation: "deletPets"}}, want: []string{"exclude[1] (operation deletPets) matches no operation"},
		},
		"a tag in other letters": {
			exclude: matches{{Tag: "Admin"}, {Method: "TRACE"}}, want: []string{"exclude[0] (tag Admin) matches no operation"},
		},
		"a method that the path has not": {
			include: matches{{Tag: "pets"}, {Method: "POST", Path: "/pets"}}, want: []string{"include[1] (method POST, path /pets) matches no operation"},
		},
		"one that matches what include leaves out": {include: matches{{Tag: "pets"}}, exclude: matches{{Tag: "admin"}}},
		"both, and what is left out after them": {
			include: matches{{Operation: "*"}, {Path: "/cats"}}, exclude: matches{{Operation: long}},
			want: []string{
				"include[1] (path /cats) matches no operation", "exclude[0] (operation " + line(long, maxQuote) + ") matches no operation",
				"TRACE /pets: no tool can be made of the method TRACE",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := compile(t.Context(), []byte(makeDocument(zoo)), Options{Include: tc.include, Exclude: tc.exclude})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, result.Skipped); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The document does not tell what a method does that is not safe (RFC 9110, section 9.2.1).
func TestWhatMayWriteIsCalledDestructive(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"get": "true, false, true", "head": "true, false, true", "post": "false, true, false", "patch": "false, true, false",
		"put": "false, true, true", "delete": "false, true, true",
	} {
		result, err := compile(t.Context(), []byte(makeDocument("/a: {"+method+": {}}")), Options{})
		if err != nil {
			t.Fatal(err)
		}
		hints := wire.Field(result.Tools[0].Definition, "annotations")
		var all []string
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint"} {
			all = append(all, string(wire.Field(hints, hint)))
		}
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("%s: readOnly, destructive and idempotent are %s, want %s", method, got, want)
		}
	}
}

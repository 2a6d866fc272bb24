package cel

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

const page = "../../docs/api/mcpserver.md"

// TestPageNamesEveryField keeps the page of the kind complete: a field is named by its path below spec or status.
func TestPageNamesEveryField(t *testing.T) {
	t.Parallel()
	text := readPage(t)
	walk("", schemaOf(t, ownKind), func(path string, _ *schemaNode) {
		inner := strings.HasPrefix(path, "spec.") || strings.HasPrefix(path, "status.")
		if !inner || !isOurs(path) || strings.HasSuffix(path, "[]") || strings.HasSuffix(path, "{}") {
			return
		}
		for _, probe := range []string{"startup", "readiness", "liveness"} { // one table for three probes
			path = strings.Replace(path, ".probes."+probe+".", ".probes.*.", 1)
		}
		_, name, _ := strings.Cut(path, ".")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s does not explain `%s` (%s)", page, name, path)
		}
	})
}

// TestPageNamesEveryReason keeps the table of conditions complete: a reason that a user meets is told what to do about.
func TestPageNamesEveryReason(t *testing.T) {
	t.Parallel()
	text := readPage(t)
	for file, prefix := range map[string]string{
		"../../api/v1alpha1/conditions.go":       "Reason",
		"../../api/v1alpha1/mcpserver_status.go": "Phase",
		"../../internal/mcp/reason.go":           "",
	} {
		for _, value := range constantsOf(t, file, prefix) {
			if !strings.Contains(text, "`"+value+"`") {
				t.Errorf("%s does not explain `%s` of %s", page, value, file)
			}
		}
	}
}

// constantsOf returns the values of the string constants of a file whose names begin with a prefix.
func constantsOf(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if !ast.IsExported(name.Name) || !strings.HasPrefix(name.Name, prefix) || i >= len(spec.Values) {
				continue
			}
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constants %s*", file, prefix)
	}
	return values
}

func readPage(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

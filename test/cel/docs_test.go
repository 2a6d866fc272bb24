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

// pages are the pages of the kinds, and what their tables of conditions are about: groups of reasons, by how their comment begins, and
// files of further words.
var pages = map[string]struct {
	file   string
	groups []string
	words  map[string]string // prefixes of constants by file
}{
	ownKind: {
		"../../docs/api/mcpserver.md",
		[]string{"Reasons of Accepted", "Reasons of Ready", "Reasons of Applied", "Reasons of Available", "Reasons of Verified", "Reasons of Progressing"},
		map[string]string{"../../api/v1alpha1/mcpserver_status.go": "Phase", "../../internal/mcp/reason.go": ""},
	},
	toolKind: {
		"../../docs/api/mcptool.md",
		[]string{"Reasons of Accepted", "Reasons of Reachable", "Reasons of an MCPTool"},
		map[string]string{"../../api/v1alpha1/mcptool_types.go": ""},
	},
	agentKind: {
		"../../docs/api/mcpagent.md",
		[]string{"Reasons of Accepted", "Reasons of Ready", "Reasons of Applied", "Reasons of Available", "Reasons of Routed", "Reasons of Progressing"},
		map[string]string{"../../api/v1alpha1/mcpagent_status.go": "Verdict", "../../api/v1alpha1/mcpagent_auth.go": ""},
	},
}

// TestPageNamesEveryField keeps the page of a kind complete: a field is named by its path below spec or status.
func TestPageNamesEveryField(t *testing.T) {
	t.Parallel()
	for kind, page := range pages {
		text := readPage(t, page.file)
		walk("", schemaOf(t, kind), func(path string, _ *schemaNode) {
			inner := strings.HasPrefix(path, "spec.") || strings.HasPrefix(path, "status.")
			if !inner || !isOurs(kind, path) || strings.HasSuffix(path, "[]") || strings.HasSuffix(path, "{}") {
				return
			}
			for _, probe := range []string{"startup", "readiness", "liveness"} { // one table for three probes
				path = strings.Replace(path, ".probes."+probe+".", ".probes.*.", 1)
			}
			_, name, _ := strings.Cut(path, ".")
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("%s does not explain `%s` (%s)", page.file, name, path)
			}
		})
	}
}

const conditions = "../../api/v1alpha1/conditions.go"

// TestPageNamesEveryReason keeps the tables of conditions complete: a reason that a user meets is told what to do about.
func TestPageNamesEveryReason(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		text := readPage(t, page.file)
		words := map[string][]string{}
		for _, group := range page.groups {
			words[group] = constantsOf(t, conditions, group, "Reason")
		}
		for file, prefix := range page.words {
			words[file] = constantsOf(t, file, "", prefix)
		}
		for source, values := range words {
			for _, value := range values {
				if !strings.Contains(text, "`"+value+"`") {
					t.Errorf("%s does not explain `%s` of %s", page.file, value, source)
				}
			}
		}
	}
}

// TestEveryReasonIsOnAPage finds a group of reasons that no page is held to.
func TestEveryReasonIsOnAPage(t *testing.T) {
	t.Parallel()
	told := map[string]bool{}
	for _, page := range pages {
		for _, group := range page.groups {
			for _, value := range constantsOf(t, conditions, group, "Reason") {
				told[value] = true
			}
		}
	}
	for _, value := range constantsOf(t, conditions, "", "Reason") {
		if !told[value] {
			t.Errorf("the reason %s is in no group that a page is held to", value)
		}
	}
}

// constantsOf returns the values of the string constants of a file whose names begin with a prefix, from the declarations whose comment
// begins with a text.
func constantsOf(t *testing.T, file, comment, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, decl := range parsed.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || !strings.HasPrefix(group.Doc.Text(), comment) {
			continue
		}
		for _, spec := range group.Specs {
			if constant, ok := spec.(*ast.ValueSpec); ok {
				values = append(values, stringsOf(t, constant, prefix)...)
			}
		}
	}
	if len(values) == 0 {
		t.Fatalf("%s has no constants %s* under %q", file, prefix, comment)
	}
	return values
}

func stringsOf(t *testing.T, spec *ast.ValueSpec, prefix string) (values []string) {
	t.Helper()
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
	return values
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The limits of docs/architecture.md that no linter knows; the general ones
// for functions and files are in .golangci.yml.
const (
	maxMainLines      = 60
	maxReconcileLines = 25
)

func TestMainsAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range goFiles(t) {
		if strings.Contains("/"+name, "/cmd/") && filepath.Base(name) == "main.go" {
			if lines := strings.Count(read(t, name), "\n"); lines > maxMainLines {
				t.Errorf("%s has %d lines, a main has at most %d: move what it does into a package", name, lines, maxMainLines)
			}
		}
	}
}

func TestReconcileIsATableOfPhases(t *testing.T) {
	t.Parallel()
	for _, name := range goFiles(t) {
		if !strings.HasPrefix(name, "internal/controller/") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, read(t, name), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.Name != "Reconcile" {
				continue
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > maxReconcileLines {
				t.Errorf("%s: Reconcile has %d lines, at most %d: a further step is a further phase", name, lines, maxReconcileLines)
			}
		}
	}
}

func TestFilesAreNamedByWhatTheyDo(t *testing.T) {
	t.Parallel()
	vague := regexp.MustCompile(`(^|_)(utils?|helpers?|common|misc|shared)(_test)?\.go$`)
	for _, name := range goFiles(t) {
		if vague.MatchString(filepath.Base(name)) {
			t.Errorf("%s: name it by the verb, child object or policy it holds", name)
		}
	}
}

func TestKindsHaveTheSameFiles(t *testing.T) {
	t.Parallel()
	want := []string{"reconciler.go", "phases.go", "watches.go", "scope.go", "events.go"}
	kinds := map[string][]string{}
	for _, name := range goFiles(t) {
		if dir := filepath.Dir(name); filepath.Dir(dir) == "internal/controller" {
			kinds[dir] = append(kinds[dir], filepath.Base(name))
		}
	}
	for kind, have := range kinds {
		if slices.Contains(have, "dialect.go") {
			continue // what the engine runs has no phases of its own
		}
		for _, file := range want {
			if !slices.Contains(have, file) {
				t.Errorf("%s has no %s: each kind has %s", kind, file, strings.Join(want, ", "))
			}
		}
	}
}

// goFiles lists the Go files that people write.
func goFiles(t *testing.T) []string {
	t.Helper()
	return files(t, func(name string) bool {
		generated := strings.HasPrefix(name, "client/") || strings.HasPrefix(filepath.Base(name), "zz_generated")
		return strings.HasSuffix(name, ".go") && !generated
	})
}

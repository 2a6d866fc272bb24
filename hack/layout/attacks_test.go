package layout

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const attacksPage = "docs/attacks.md"

// The ids of attacks, by letter; the others are about what this project does not have.
var attackIDs = map[string]struct {
	last    int
	without []int
}{
	"A": {24, nil},
	"B": {19, nil},
	"C": {36, []int{19, 20}},
}

var (
	attackRow   = regexp.MustCompile(`(?m)^\| ([ABC]\d+) \|(.+)\|(.+)\|(.+)\|$`)
	namedTest   = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// TestEveryAttackHasATestThatExists holds the page of attacks to the code: each is there once, with a test that there is.
func TestEveryAttackHasATestThatExists(t *testing.T) {
	t.Parallel()
	defined := map[string]bool{}
	for _, name := range files(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		for _, test := range definedTest.FindAllStringSubmatch(read(t, name), -1) {
			defined[filepath.Dir(name)+"."+test[1]] = true
		}
	}
	seen := map[string]bool{}
	for _, row := range attackRow.FindAllStringSubmatch(read(t, attacksPage), -1) {
		id, tests := row[1], namedTest.FindAllStringSubmatch(row[4], -1)
		if seen[id] {
			t.Errorf("%s has %s twice", attacksPage, id)
		}
		seen[id] = true
		if len(tests) == 0 {
			t.Errorf("%s names no test for %s", attacksPage, id)
		}
		if spans := len(codeSpan.FindAllString(row[4], -1)); spans != len(tests) {
			t.Errorf("%s names for %s what is no test: write each as `folder.TestName`", attacksPage, id)
		}
		for _, test := range tests {
			if !defined[test[1]+"."+test[2]] {
				t.Errorf("%s names %s.%s for %s, which does not exist", attacksPage, test[1], test[2], id)
			}
		}
	}
	for letter, ids := range attackIDs {
		for n := 1; n <= ids.last; n++ {
			if id := fmt.Sprintf("%s%d", letter, n); !seen[id] && !slices.Contains(ids.without, n) {
				t.Errorf("%s says nothing of %s", attacksPage, id)
			}
		}
	}
}

// mayImport are what a program of ours must not do by itself, and the folders that may.
var mayImport = map[string][]string{
	"os/exec":        {"internal/gateway/child"}, // runs the commands of a table, which no request and no MCPTool or MCPAgent can write
	"net/http/pprof": nil,
	"expvar":         nil,
	"plugin":         nil,
	"text/template":  nil, // what is configured is encoded, not filled in
	"html/template":  nil,
}

// TestNothingIsExecutedFilledInOrLaidOpen: no program runs a command that an object or a request names, nor tells of its insides.
func TestNothingIsExecutedFilledInOrLaidOpen(t *testing.T) {
	t.Parallel()
	for _, name := range goFiles(t) {
		ours := strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "api/")
		if !ours || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if folders, forbidden := mayImport[imported]; forbidden && !slices.Contains(folders, filepath.Dir(name)) {
				t.Errorf("%s imports %s", name, imported)
			}
		}
	}
}

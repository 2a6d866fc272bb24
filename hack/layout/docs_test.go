// Package layout holds the checks behind `make check-layout`: what the docs
// name exists, and files keep the sizes and names agreed in CONTRIBUTING.md.
package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

var (
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	codeFence  = regexp.MustCompile("(?ms)^```.*?^```")
	makeTarget = regexp.MustCompile(`\bmake ([a-z][a-z0-9.-]*)`)
	// A path has a folder. What begins with a host name is an import path or a
	// label, not a path.
	path = regexp.MustCompile(`^(\.?[a-zA-Z0-9_*-]+(/[a-zA-Z0-9_.*-]+)+/?|[a-zA-Z0-9_-]+/)$`)
	// Or it is a file at the root with a usual ending.
	rootFile  = regexp.MustCompile(`^([a-zA-Z0-9_.-]*\.(md|mod|yml)|Makefile|LICENSE)$`)
	relative  = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)
	ownTarget = regexp.MustCompile(`(?m)^([a-z][a-z0-9.-]*):`)
)

func TestAgentsPageIsShort(t *testing.T) {
	t.Parallel()
	if lines := strings.Count(read(t, "AGENTS.md"), "\n"); lines > 60 {
		t.Errorf("AGENTS.md has %d lines, at most 60 are read", lines)
	}
}

func TestPathsNamedInTheDocsExist(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"AGENTS.md", "CONTRIBUTING.md"} {
		for _, span := range codeSpan.FindAllStringSubmatch(codeFence.ReplaceAllString(read(t, page), ""), -1) {
			if name := span[1]; path.MatchString(name) || rootFile.MatchString(name) {
				if found, err := filepath.Glob(filepath.Join(root, name)); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which does not exist", page, name)
				}
			}
		}
	}
}

func TestRelativeLinksLead(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, link := range relative.FindAllStringSubmatch(codeFence.ReplaceAllString(read(t, page), ""), -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link[1])
			}
		}
	}
}

func TestMakeTargetsNamedInTheDocsExist(t *testing.T) {
	t.Parallel()
	targets := map[string]bool{}
	for _, target := range ownTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[target[1]] = true
	}
	for _, page := range pages(t) {
		text := read(t, page)
		code := strings.Join(append(codeSpan.FindAllString(text, -1), codeFence.FindAllString(text, -1)...), "\n")
		for _, target := range makeTarget.FindAllStringSubmatch(code, -1) {
			if !targets[target[1]] {
				t.Errorf("%s says `make %s`, which is no target", page, target[1])
			}
		}
	}
}

// pages lists all Markdown files of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	return files(t, func(name string) bool { return strings.HasSuffix(name, ".md") })
}

// files lists the files that match, by their path from the root, leaving out
// hidden folders and what is built.
func files(t *testing.T, match func(name string) bool) []string {
	t.Helper()
	skipped := []string{"bin", "node_modules", "testdata"}
	var found []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && inner != "." && (strings.HasPrefix(base, ".") || slices.Contains(skipped, base)) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && match(inner) {
			found = append(found, inner)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no file matches: the check looks in the wrong place")
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

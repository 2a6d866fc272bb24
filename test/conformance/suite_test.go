package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// suite is one run of one version of the conformance suite.
type suite struct {
	name string
	// module is its folder in node_modules.
	module string
	args   []string
	// checks is how many of them a server that does everything right passes.
	checks int
}

// result is what the suite's files say.
type result struct {
	passed int
	// failures are "scenario: check", sorted.
	failures  []string
	scenarios []string
	// details are the suite's own words on the failures.
	details string
}

// run runs the suite against an endpoint.
func (b *bench) run(t *testing.T, s suite, url string) result {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	program := filepath.Join(b.modules, s.module, "dist", "index.js")
	cmd := exec.CommandContext(ctx, b.node, append([]string{program, "server", "--url", url, "-o", dir}, s.args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError // it says no more than that a check failed
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("run suite %s: %v\n%s", s.name, err, out)
	}
	r, err := read(dir)
	if err != nil || len(r.scenarios) == 0 {
		t.Fatalf("suite %s left no results: %v\n%s", s.name, err, out)
	}
	if exit != nil && len(r.failures) == 0 {
		t.Fatalf("suite %s failed, and no check of it did: %v\n%s", s.name, exit, out)
	}
	return r
}

// folder is that of a scenario: server-NAME-TIME.
var folder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

func read(dir string) (result, error) {
	var r result
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		return r, err
	}
	ran := map[string]bool{}
	var details strings.Builder
	for _, file := range files {
		name := folder.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if name == nil {
			return r, fmt.Errorf("%s is named like no scenario", file)
		}
		ran[name[1]] = true
		content, err := os.ReadFile(file)
		if err != nil {
			return r, err
		}
		var checks []struct {
			ID           string `json:"id"`
			Status       string `json:"status"`
			ErrorMessage string `json:"errorMessage"`
		}
		if err := json.Unmarshal(content, &checks); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				r.passed++
			case "FAILURE":
				r.failures = append(r.failures, name[1]+": "+c.ID)
				fmt.Fprintf(&details, "%s: %s: %s\n", name[1], c.ID, c.ErrorMessage)
			}
		}
	}
	slices.Sort(r.failures)
	r.scenarios = slices.Sorted(maps.Keys(ran))
	r.details = details.String()
	return r, nil
}

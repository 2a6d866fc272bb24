// Package conformance runs the official conformance suites of MCP against the gateway.
//
// The server behind it is the Go SDK's, which by itself passes every check. So whatever fails through the gateway is the
// gateway's doing, and is a failure here unless expected-failures.yaml says why it must be so; what is listed there and
// passes is a failure as well.
package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// suites are what is run, with the number of checks that the fixture itself passes.
var suites = []suite{
	{name: "0.1", module: "conformance-0.1", args: []string{"--suite", "active"}, checks: 40},
	{name: "2025-11-25", module: "conformance-0.2", args: []string{"--spec-version", "2025-11-25"}, checks: 73},
	{name: "2026-07-28", module: "conformance-0.2", args: []string{"--spec-version", "2026-07-28"}, checks: 42},
}

// targets are the ways through the gateway: with these backends over HTTP, or with the fixture on stdio if there are none.
var targets = []struct {
	name     string
	backends []table.Backend
}{
	{"http", []table.Backend{{Name: fixtureName}}},
	{"stdio", nil},
	{"http with sse", []table.Backend{{Name: fixtureName, Transport: table.TransportSSE}}},
	{"one of two", []table.Backend{{Name: fixtureName}, {Name: otherName, Prefix: "other_"}}},
	{"pinned to 2025-11-25", []table.Backend{{Name: fixtureName, ProtocolVersion: "2025-11-25"}}},
	{"pinned to 2026-07-28", []table.Backend{{Name: fixtureName, ProtocolVersion: "2026-07-28"}}},
}

func TestTheGatewayIsAsGoodAServerAsTheOneBehindIt(t *testing.T) {
	b := newBench(t)
	var report strings.Builder
	fmt.Fprintf(&report, "%-22s %-12s %s\n", "target", "suite", "passed/failed")
	yardstick := map[string]result{}
	for _, s := range suites {
		r := b.run(t, s, b.fixture)
		yardstick[s.name] = r
		r.print(&report, "no gateway", s)
		if r.passed != s.checks || len(r.failures) > 0 {
			t.Errorf("the fixture itself passes %d checks of suite %s, want %d; it fails %q", r.passed, s.name, s.checks, r.failures)
			t.Log(r.details)
		}
	}
	expected := expectedFailures(t)
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			url := b.start(t, target.backends)
			for _, s := range suites {
				t.Run(s.name, func(t *testing.T) {
					r := b.run(t, s, url)
					r.print(&report, target.name, s)
					if diff := cmp.Diff(yardstick[s.name].scenarios, r.scenarios); diff != "" {
						t.Errorf("other scenarios ran than with the fixture alone (-fixture +gateway):\n%s", diff)
					}
					want := expected[target.name+"/"+s.name]
					if diff := cmp.Diff(want, r.failures); diff != "" {
						t.Errorf("checks that failed (-expected +got; + is a defect, - is to be deleted from expected-failures.yaml):\n%s", diff)
						t.Log(r.details)
					}
					if len(want) == 0 && r.passed != s.checks {
						t.Errorf("%d checks passed, want %d", r.passed, s.checks)
					}
				})
			}
		})
	}
	fmt.Fprint(os.Stdout, report.String())
}

// expectedFailures are the checks that may fail, by target and suite.
func expectedFailures(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("expected-failures.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Target, Suite, Why string
		Checks             []string
	}
	if err := yaml.UnmarshalStrict(content, &groups); err != nil {
		t.Fatal(err)
	}
	expected := map[string][]string{}
	for _, g := range groups {
		if g.Why == "" {
			t.Errorf("expected-failures.yaml does not say why %q may fail", g.Checks)
		}
		key := g.Target + "/" + g.Suite
		expected[key] = append(expected[key], g.Checks...)
	}
	for key := range maps.Keys(expected) {
		slices.Sort(expected[key])
		if !isKnown(key) {
			t.Errorf("expected-failures.yaml has %q, which is nothing that is run", key)
		}
	}
	return expected
}

func isKnown(key string) bool {
	for _, target := range targets {
		for _, s := range suites {
			if key == target.name+"/"+s.name {
				return true
			}
		}
	}
	return false
}

// print adds a row to the table.
func (r *result) print(report *strings.Builder, target string, s suite) {
	fmt.Fprintf(report, "%-22s %-12s %d/%d\n", target, s.name, r.passed, len(r.failures))
	for _, failure := range r.failures {
		fmt.Fprintf(report, "%-22s %-12s   failed: %s\n", "", "", failure)
	}
}

// cacheFolder is where what does not change between runs is kept: beside the local cluster's.
func cacheFolder(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("DEVCLUSTER_DIR"); dir != "" {
		return filepath.Join(dir, "conformance")
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "mcp-operator-devcluster", "conformance")
}

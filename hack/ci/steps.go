package main

import (
	"fmt"
	"strings"
	"time"
)

// A step is one target of the Makefile.
type step struct {
	target string
	what   string        // one line for people
	budget time.Duration // on two cores with every cache empty; three times as long and the step is stopped
	needs  []need        // what the machine must have
	wants  []need        // what some of its tests are skipped without, unless everything is demanded: then they fail
	after  []string      // targets of the same list that must have passed
}

// verifySteps are those of `make verify`. The check of the work tree comes
// right after what may change it, before the slow ones.
var verifySteps = []step{
	{target: "generate", what: "deep copies, CRDs and clients are regenerated", budget: 210 * time.Second},
	{target: "check-tidy", what: "every module is tidy", budget: time.Minute},
	{target: "check-tree", what: "nothing changed by that", budget: 10 * time.Second},
	{target: "check-layout", what: "paths in the docs exist, sizes are kept", budget: 30 * time.Second},
	{target: "lint", what: "all linters, every module", budget: 4 * time.Minute},
	{target: "vulncheck", what: "known vulnerabilities in reached code", budget: time.Minute, needs: []need{vulnerabilityDatabase}},
}

// testSteps are those of `make test`, the quick ones first.
var testSteps = []step{
	{target: "test-unit", what: "unit tests with the race detector", budget: 3 * time.Minute, wants: []need{postgres}},
	{target: "test-gateway", what: "the gateway between real clients and servers", budget: 3 * time.Minute},
	{target: "cluster-build", what: "the local cluster's binaries", budget: 9 * time.Minute, needs: []need{linux, root}},
	{target: "test-cel", what: "schema rules on a real API server", budget: 45 * time.Second, needs: []need{apiServer}},
	{target: "test-envtest", what: "controllers on a real API server", budget: 240 * time.Second, needs: []need{apiServer}},
	{target: "test-envtest-oldest", what: "both, as the oldest supported Kubernetes", budget: 240 * time.Second, needs: []need{apiServer}},
	{
		target: "images", what: "images of the operator and of real MCP servers", budget: 120 * time.Second,
		needs: []need{linux, root, npm}, after: []string{"cluster-build"},
	},
	{target: "conformance", what: "the official MCP suites, through the gateway", budget: 45 * time.Second, needs: []need{linux, installedNPM}},
	{
		target: "test-e2e", what: "the operator on the local cluster", budget: 8 * time.Minute,
		needs: []need{linux, root, npm}, after: []string{"cluster-build", "images"},
	},
}

// budgetTable renders all steps as the Markdown table of CONTRIBUTING.md.
func budgetTable() string {
	var b strings.Builder
	b.WriteString("| target | what | budget |\n| --- | --- | --- |\n")
	var total time.Duration
	for _, steps := range [][]step{verifySteps, testSteps} {
		for _, s := range steps {
			fmt.Fprintf(&b, "| `make %s` | %s | %s |\n", s.target, s.what, clock(s.budget))
			total += s.budget
		}
	}
	fmt.Fprintf(&b, "| `.ci/run` | all of it | %s |\n", clock(total))
	return b.String()
}

// clock renders a duration as people read it on a watch, in whole seconds.
func clock(d time.Duration) string {
	seconds := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

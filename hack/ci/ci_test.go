package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table of CONTRIBUTING.md")

func lacking(reason string, forgiven bool) need {
	return need{forgiven: forgiven, missing: func(context.Context) string { return reason }}
}

func TestRunAndReport(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		steps    []step
		failing  string // the target that fails
		demanded bool
		wantRan  []string
		wantCode int
		wantSay  string
		wantEnd  string
	}{
		"all steps pass": {
			steps:   []step{{target: "a"}, {target: "b"}},
			wantRan: []string{"a", "b"},
			wantEnd: "2 passed, 0 failed, 0 skipped",
		},
		"a failing step stops only those that come after it": {
			steps:   []step{{target: "a"}, {target: "b", after: []string{"a"}}, {target: "c", after: []string{"b"}}, {target: "d"}},
			failing: "a",
			wantRan: []string{"a", "d"}, wantCode: 1,
			wantEnd: "1 passed, 1 failed, 2 skipped",
		},
		"what the machine cannot carry is skipped": {
			steps:   []step{{target: "a"}, {target: "b", needs: []need{lacking("", false), lacking("no root", false)}}},
			wantRan: []string{"a"},
			wantEnd: "1 passed, 0 failed, 1 skipped",
		},
		"what the machine cannot carry fails where everything is demanded": {
			steps:    []step{{target: "a"}, {target: "b", needs: []need{lacking("no root", false)}}},
			demanded: true,
			wantRan:  []string{"a"}, wantCode: 1,
			wantEnd: "1 passed, 1 failed, 0 skipped",
		},
		"tests that the machine cannot carry are named though their step passed": {
			steps:   []step{{target: "a", what: "unit tests", wants: []need{lacking("no PostgreSQL", false)}}},
			wantRan: []string{"a"},
			wantSay: "NOT EVERYTHING RAN:\n  a: unit tests: no PostgreSQL\n",
			wantEnd: "1 passed, 0 failed, 0 skipped",
		},
		"an unreachable database is forgiven even there": {
			steps:    []step{{target: "a"}, {target: "b", needs: []need{lacking("database unreachable", true)}}},
			demanded: true,
			wantRan:  []string{"a"},
			wantEnd:  "1 passed, 0 failed, 1 skipped",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran []string
			execute := func(_ context.Context, s step) error {
				ran = append(ran, s.target)
				if s.target == tc.failing {
					return errors.New("exit status 2")
				}
				return nil
			}
			var out bytes.Buffer
			code := report(&out, runAll(t.Context(), io.Discard, tc.steps, execute), tc.demanded)
			if diff := cmp.Diff(tc.wantRan, ran); diff != "" {
				t.Errorf("steps run (-want +got):\n%s", diff)
			}
			if !strings.Contains(out.String(), tc.wantSay) {
				t.Errorf("it does not say %q:\n%s", tc.wantSay, out.String())
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if end := lines[len(lines)-1]; code != tc.wantCode || end != tc.wantEnd {
				t.Errorf("got code %d and %q, want %d and %q; output:\n%s", code, end, tc.wantCode, tc.wantEnd, out.String())
			}
		})
	}
}

func TestWhatDidNotRunIsSaidWithItsReason(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	report(&out, []result{{step: step{target: "test-e2e", what: "the cluster"}, verdict: notRun, reason: "no root"}}, false)
	for _, want := range []string{"NOT EVERYTHING RAN", "test-e2e: the cluster: no root"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

func TestInterruptedRunStartsNoFurtherStep(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	results := runAll(ctx, io.Discard, []step{{target: "a"}, {target: "b"}}, func(context.Context, step) error {
		cancel()
		return nil
	})
	if got := results[1]; got.verdict != notRun || got.reason != "interrupted" {
		t.Errorf("second step: got verdict %d (%q), want not run, interrupted", got.verdict, got.reason)
	}
}

func TestCommandThatHangsIsStoppedWithItsChildren(t *testing.T) {
	t.Parallel()
	// The child holds the writing end of a pipe: its end is the pipe's.
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(pipe)
		ended <- err
	}()
	err := runBounded(t.Context(), time.Second, "sh", "-c", "sleep 60 >$0 & wait", pipe)
	if err == nil || err.Error() != "stopped after 0:01" {
		t.Errorf("got error %v, want stopped after 0:01", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the command's child still runs")
	}
}

func TestFailureOfACommandIsReported(t *testing.T) {
	t.Parallel()
	if err := runBounded(t.Context(), time.Minute, "sh", "-c", "exit 2"); err == nil || err.Error() != "exit status 2" {
		t.Errorf("got error %v, want exit status 2", err)
	}
}

func TestDatabaseMissing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script, want string
		timeout      time.Duration // default: a minute
	}{
		"a clean scan means reachable":        {script: "exit 0"},
		"findings mean reachable":             {script: "exit 3"},
		"a broken module is left to the step": {script: "echo 'govulncheck: no go.mod file' >&2; exit 1"},
		"a failed fetch means unreachable": {
			script: "echo 'fetching vulnerabilities: no such host' >&2; exit 1",
			want:   "database unreachable from this machine",
		},
		"silence for too long means unreachable": {
			script: "exec sleep 60", timeout: 300 * time.Millisecond,
			want: "database unreachable: no answer within 300ms",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.timeout == 0 {
				tc.timeout = time.Minute
			}
			// The warm-up call appends -h, which becomes $1: it must not hang.
			script := `[ "$1" = -h ] && exit 0; ` + tc.script
			if got := databaseMissing(t.Context(), tc.timeout, "sh", "-c", script, "sh"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBudgetsFitIntoOneRun(t *testing.T) {
	t.Parallel()
	var total time.Duration
	for _, s := range append(append([]step{}, verifySteps...), testSteps...) {
		total += s.budget
	}
	if limit := 45 * time.Minute; total > limit {
		t.Errorf("the budgets add up to %s, a whole cold run must stay below %s", total, limit)
	}
}

func TestEveryStepIsAMakeTarget(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(append([]step{}, verifySteps...), testSteps...) {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(s.target) + `:`).Match(makefile) {
			t.Errorf("step %q is no target of the Makefile", s.target)
		}
	}
}

func TestContributingShowsTheBudgets(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../CONTRIBUTING.md", "<!-- budgets -->\n", "<!-- /budgets -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("CONTRIBUTING.md has no table between %q and %q", begin, end)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+budgetTable()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(budgetTable(), shown); diff != "" {
		t.Errorf("CONTRIBUTING.md differs from hack/ci/steps.go; run go test ./hack/ci -update (-want +got):\n%s", diff)
	}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// A verdict is how a step ended.
type verdict int

const (
	passed verdict = iota
	failed
	notRun
)

// A result is a step with its end.
type result struct {
	step

	verdict  verdict
	reason   string // why it failed or did not run
	lacked   string // why it ran without some of its tests
	forgiven bool   // notRun, and not a failure even where everything is demanded
	took     time.Duration
}

// runAll runs the steps in order, also after one failed, and returns one
// result for each. When ctx ends, the remaining ones do not run.
func runAll(ctx context.Context, w io.Writer, steps []step, execute func(context.Context, step) error) []result {
	results := make([]result, 0, len(steps))
	for _, s := range steps {
		r := result{step: s}
		if r.reason, r.forgiven = obstacle(ctx, s, results); r.reason != "" {
			r.verdict = notRun
			fmt.Fprintf(w, "\n=== %s: NOT RUN: %s\n", s.target, r.reason)
			results = append(results, r)
			continue
		}
		fmt.Fprintf(w, "\n=== %s: %s (budget %s)\n", s.target, s.what, clock(s.budget))
		for _, n := range s.wants {
			r.lacked = cmp.Or(r.lacked, n.missing(ctx))
		}
		start := time.Now()
		if err := execute(ctx, s); err != nil {
			r.verdict, r.reason = failed, err.Error()
		}
		r.took = time.Since(start)
		fmt.Fprintf(w, "=== %s: %s in %s\n", s.target, r.outcome(), clock(r.took))
		results = append(results, r)
	}
	return results
}

// obstacle says why s cannot run, and whether that is forgiven everywhere.
func obstacle(ctx context.Context, s step, earlier []result) (reason string, forgiven bool) {
	if ctx.Err() != nil {
		return "interrupted", false
	}
	for _, r := range earlier {
		if r.verdict != passed && slices.Contains(s.after, r.target) {
			return r.target + " did not pass", false
		}
	}
	for _, n := range s.needs {
		if reason := n.missing(ctx); reason != "" {
			return reason, n.forgiven
		}
	}
	return "", false
}

// makeTarget runs the step's target. One that takes three times its budget
// hangs and is stopped.
func makeTarget(ctx context.Context, s step) error {
	return runBounded(ctx, 3*s.budget, "make", "--no-print-directory", s.target)
}

// runBounded runs a command with its output on ours and nothing on its
// standard input. At the limit, or when ctx ends, it is stopped together with
// all it started that did not leave its process group.
func runBounded(ctx context.Context, limit time.Duration, name string, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("stopped after %s", clock(limit)))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// outcome is the one-word end of a step, followed by what people should know.
func (r result) outcome() string {
	switch r.verdict {
	case failed:
		return "FAILED (" + r.reason + ")"
	case notRun:
		return "NOT RUN"
	case passed:
	}
	if r.took > r.budget {
		return "ok, OVER BUDGET"
	}
	return "ok"
}

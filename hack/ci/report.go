package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// report prints the time of each step beside its budget, then loudly what did
// not run or lacked some of its tests, then one closing line that counts the steps. It returns the exit
// code: 1 if a step failed or, where everything is demanded, did not run.
func report(w io.Writer, results []result, demanded bool) int {
	counts := map[verdict]int{}
	var total, budget time.Duration
	var unrun []result
	fmt.Fprintf(w, "\n%-20s %7s %7s\n", "step", "time", "budget")
	for _, r := range results {
		if r.verdict == notRun {
			if demanded && !r.forgiven {
				r.verdict = failed
				r.reason += " (demanded here)"
			}
			unrun = append(unrun, r)
			fmt.Fprintf(w, "%-20s %7s %7s  NOT RUN\n", r.target, "-", clock(r.budget))
		} else {
			fmt.Fprintf(w, "%-20s %7s %7s  %s\n", r.target, clock(r.took), clock(r.budget), r.outcome())
		}
		if r.lacked != "" {
			r.reason = r.lacked
			unrun = append(unrun, r)
		}
		counts[r.verdict]++
		total += r.took
		budget += r.budget
	}
	fmt.Fprintf(w, "%-20s %7s %7s\n", "total", clock(total), clock(budget))
	if len(unrun) > 0 {
		stars := strings.Repeat("*", 72)
		fmt.Fprintf(w, "\n%s\nNOT EVERYTHING RAN:\n", stars)
		for _, r := range unrun {
			fmt.Fprintf(w, "  %s: %s: %s\n", r.target, r.what, r.reason)
		}
		fmt.Fprintln(w, stars)
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", counts[passed], counts[failed], counts[notRun])
	if counts[failed] > 0 {
		return 1
	}
	return 0
}

// Command ci runs the steps behind `make verify` and `make test`: each is a
// target of the Makefile with a time budget and with what it needs of the
// machine. It guarantees that a step which did not run is named, with the
// reason, at the end; and that where everything is demanded (CI=true or
// DEMAND_ALL=1) such a step is a failure.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: go run ./hack/ci COMMAND

  verify    regenerate, lint, scan; fail if the work tree then differs
  test      every test this machine can carry; CI=true or DEMAND_ALL=1: all of them
  budgets   print the table of steps and budgets that CONTRIBUTING.md shows
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1])
	stop()
	os.Exit(code)
}

// run carries out one command and returns the exit code of the process.
func run(ctx context.Context, command string) int {
	var steps []step
	switch command {
	case "verify":
		steps = verifySteps
	case "test":
		steps = testSteps
	case "budgets":
		fmt.Print(budgetTable())
		return 0
	default:
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	demanded := os.Getenv("CI") == "true" || os.Getenv("DEMAND_ALL") == "1"
	results := runAll(ctx, os.Stdout, steps, makeTarget)
	return report(os.Stdout, results, demanded)
}

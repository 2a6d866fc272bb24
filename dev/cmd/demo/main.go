// Command demo shows the product on the local cluster: it installs the operator, applies examples/dev-stack.yaml, calls the agent's tools as
// its workload does, and tries every way that must be closed. It fails if one is open. `make demo` runs it when the cluster is up.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	begin := time.Now()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	fmt.Printf("\nAll of it took %.0f s.  Look around:  eval \"$(go run -C dev ./cmd/devcluster env)\"; kubectl get mcp-operator -A\n"+
		"When you are done:  make demo-down\n", time.Since(begin).Seconds())
}

func run() error {
	k, err := newKubectl()
	if err != nil {
		return err
	}
	for _, part := range []func(*kubectl) error{install, apply, show, callTools, tryClosedWays} {
		if err := part(k); err != nil {
			return err
		}
	}
	return nil
}

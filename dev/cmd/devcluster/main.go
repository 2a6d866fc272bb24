//go:build linux

// Command devcluster runs a real Kubernetes cluster on this machine, for development and tests.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/mcp-operator/mcp-operator/dev/internal/cli"
)

func main() {
	err := cli.Run(os.Args[1:])
	if err == nil {
		return
	}
	if !errors.Is(err, cli.ErrNotUp) {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
	}
	os.Exit(1)
}

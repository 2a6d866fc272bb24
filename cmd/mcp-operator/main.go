// Command mcp-operator is the manager: it runs MCP servers on Kubernetes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mcp-operator/mcp-operator/internal/operator"
)

func main() {
	options, err := operator.Parse(os.Args[1:], os.Environ(), os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "mcp-operator:", err)
		os.Exit(2)
	}
	if err := operator.Run(ctrl.SetupSignalHandler(), options); err != nil {
		fmt.Fprintln(os.Stderr, "mcp-operator:", err)
		os.Exit(1)
	}
}

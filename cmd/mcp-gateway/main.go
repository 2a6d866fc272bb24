// Command mcp-gateway is the data plane: one MCP endpoint in front of MCP servers of any protocol version, or of a server
// that it runs as its child.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcp-operator/mcp-operator/internal/gateway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := gateway.Command(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, gateway.ErrUsage):
		fmt.Fprintln(os.Stderr, "mcp-gateway:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "mcp-gateway:", err)
		os.Exit(1)
	}
}

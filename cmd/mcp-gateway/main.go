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
	"github.com/mcp-operator/mcp-operator/internal/version"
)

const usage = `mcp-gateway serves MCP servers of any protocol version on one endpoint.

Usage:
  mcp-gateway serve --table FILE --session-keys FOLDER [flags]   serve the backends of a routing table
  mcp-gateway stdio [flags] -- COMMAND [ARGUMENTS]               run a server on stdin and stdout, and serve it over HTTP
  mcp-gateway check FILE                                         say what is wrong with a routing table
  mcp-gateway install --to FILE                                  copy this binary
  mcp-gateway version                                            print the version

mcp-gateway COMMAND --help tells a command's flags.
`

func main() {
	err := run(os.Args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "mcp-gateway:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "mcp-gateway:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("see mcp-gateway --help")

func run(args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("a command is missing; %w", errUsage)
	}
	command, args := args[0], args[1:]
	switch command {
	case "serve":
		options, err := gateway.ParseServe(args, os.Getenv, os.Stdout)
		return serve(options, err)
	case "stdio":
		options, err := gateway.ParseStdio(args, os.Getenv, os.Stdout)
		return serve(options, err)
	case "check":
		if len(args) != 1 {
			return fmt.Errorf("check takes one file; %w", errUsage)
		}
		return gateway.Check(args[0], os.Stdout)
	case "install":
		if len(args) != 2 || args[0] != "--to" {
			return fmt.Errorf("install takes --to FILE; %w", errUsage)
		}
		return gateway.Install(args[1])
	case "version", "--version":
		fmt.Println(version.String())
		return nil
	case "help", "--help", "-h":
		fmt.Print(usage)
		return nil
	}
	return fmt.Errorf("unknown command %q; %w", command, errUsage)
}

func serve(options gateway.Options, err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err != nil {
		return errors.Join(err, errUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return gateway.Run(ctx, options)
}

package gateway

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/version"
)

const usage = `mcp-gateway serves MCP servers of any protocol version on one endpoint.

Usage:
  mcp-gateway serve --table FILE --session-keys FOLDER [flags]   serve the backends of a routing table
  mcp-gateway stdio [flags] -- COMMAND [ARGUMENTS]               run a server on stdin and stdout, and serve it over HTTP
  mcp-gateway check FILE                                         say what is wrong with a routing table
  mcp-gateway install --to FILE                                  copy this binary
  mcp-gateway version                                            print the version

mcp-gateway serve --help and mcp-gateway stdio --help tell their flags.
`

// ErrUsage is in errors about the command line.
var ErrUsage = errors.New("see mcp-gateway --help")

// Command runs one command line until it has done its work, or ctx ends. Asked for help, it writes that to out and returns
// flag.ErrHelp.
func Command(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("a command is missing: serve, stdio, check, install or version; %w", ErrUsage)
	}
	command, args := args[0], args[1:]
	switch command {
	case "serve":
		options, err := ParseServe(args, getenv, out)
		return start(ctx, options, err)
	case "stdio":
		options, err := ParseStdio(args, getenv, out)
		return start(ctx, options, err)
	case "check":
		if len(args) != 1 || strings.HasPrefix(args[0], "-") {
			return fmt.Errorf("check takes one file, the routing table; %w", ErrUsage)
		}
		return Check(args[0], out)
	case "install":
		if len(args) != 2 || args[0] != "--to" {
			return fmt.Errorf("install takes --to FILE; %w", ErrUsage)
		}
		return Install(args[1])
	case "version", "--version":
		_, err := fmt.Fprintln(out, version.String())
		return err
	case "help", "--help", "-h":
		_, err := fmt.Fprint(out, usage)
		return errors.Join(flag.ErrHelp, err)
	}
	return fmt.Errorf("unknown command %q; %w", command, ErrUsage)
}

func start(ctx context.Context, options Options, err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err != nil {
		return errors.Join(err, ErrUsage)
	}
	return Run(ctx, options)
}

// Command echo is a small server and client for tests in pods whose images hold nothing else.
//
//	echo serve [-addr :8080] [-delay 0s] [-status 200]   answer every request with the pod's name and the request
//	echo get [-n 1] [-timeout 3s] [-H 'Name: value']... URL...   fetch each URL, print status and body
//	echo post [-timeout 3s] [-H 'Name: value']... URL BODY       the same by POST; the body is JSON unless -H says otherwise
//	echo tools [-url $MCP_SERVER_URL] [-token-file $MCP_TOKEN_FILE]   list the tools of an MCP endpoint
//	echo call  [the same] [-until FILE [-at-once 1] [-every 0s]] TOOL [ARGUMENTS]   call one of them, once or until the file exists
//	echo deny ADDR CERT KEY   be an admission webhook that refuses everything
//	echo sleep                wait until told to stop
//	echo eat                  take memory until killed
//	echo exit N               end at once with exit code N
//	echo env | cat FILE | ls DIR | touch FILE | mcp (a small MCP server, which may speak TLS: see its -h)
//
// get and post end with exit code 1 if a request had no answer, or one of status 400 or more; tools and call if there was no result, or if
// the tool says that it failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var errUsage = errors.New("usage: echo serve|mcp|get|post|tools|call|deny|sleep|eat|exit|env|cat|ls|touch [ARG]")

func main() {
	err := run(os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "echo:", err)
	if code, ok := errors.AsType[exitError](err); ok {
		os.Exit(int(code))
	}
	os.Exit(1)
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(args) == 0 || commands[args[0]] == nil {
		return errUsage
	}
	return commands[args[0]](ctx, args[1:])
}

// Command echo is a small server and client for tests in pods whose images hold nothing else.
//
//	echo serve [-addr :8080] [-delay 0s] [-status 200]   answer every request with the pod's name and the request
//	echo get [-n 1] [-timeout 3s] [-H 'Name: value']... URL...   fetch each URL, print status and body
//	echo post [-timeout 3s] [-H 'Name: value']... URL BODY       the same by POST; the body is JSON unless -H says otherwise
//	echo deny ADDR CERT KEY   be an admission webhook that refuses everything
//	echo sleep                wait until told to stop
//	echo eat                  take memory until killed
//	echo exit N               end at once with exit code N
//	echo env | cat FILE | ls DIR | mcp (a small MCP server, which may speak TLS: see its -h)
//
// get and post end with exit code 1 if a request had no answer, or one of status 400 or more.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var errUsage = errors.New("usage: echo serve|mcp|get|post|deny|sleep|eat|exit|env|cat|ls [ARG]")

// commands get the arguments after their name.
var commands = map[string]func(ctx context.Context, args []string) error{
	"serve": serve,
	"mcp":   serveMCP,
	"get":   get,
	"post":  post,
	"deny":  deny,
	"sleep": func(ctx context.Context, _ []string) error { <-ctx.Done(); return nil },
	"eat":   eat,
	"exit":  exit,
	"env":   env,
	"cat":   cat,
	"ls":    ls,
}

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

// Command echo is a small server and client for tests in pods whose images hold nothing else.
//
//	echo serve [-addr :8080] [-delay 0s] [-status 200]   answer every request with the pod's name and the request
//	echo get [-n 1] [-timeout 3s] [-H 'Name: value']... URL...   fetch each URL, print status and body
//	echo post [-timeout 3s] [-H 'Name: value']... URL BODY       the same by POST; the body is JSON unless -H says otherwise
//	echo deny ADDR CERT KEY   be an admission webhook that refuses everything
//	echo sleep                wait until told to stop
//	echo eat                  take memory until killed
//	echo exit N               end at once with exit code N
//	echo env | cat FILE | ls DIR
//
// get and post end with exit code 1 if a request had no answer, or one of status 400 or more.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

var errUsage = errors.New("usage: echo serve|get|post|deny|sleep|eat|exit|env|cat|ls [ARG]")

// exitError is what `echo exit N` was asked for.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d, as asked for", int(e)) }

// commands get the arguments after their name.
var commands = map[string]func(ctx context.Context, args []string) error{
	"serve": serve,
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

// eat takes 1 MiB after the other, and writes to it, or the kernel would not give it.
func eat(ctx context.Context, _ []string) error {
	var all [][]byte
	for len(all) < 4096 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		all = append(all, b)
	}
	return errors.New("took 4 GiB and nobody minded: is there a memory limit?")
}

func exit(_ context.Context, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("exit code: %w", err)
	}
	return exitError(code)
}

func env(context.Context, []string) error {
	for _, e := range os.Environ() {
		fmt.Println(e)
	}
	return nil
}

func cat(_ context.Context, args []string) error {
	for _, path := range args {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func ls(_ context.Context, args []string) error {
	for _, dir := range args {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			fmt.Println(e.Name())
		}
	}
	return nil
}

package main

import "context"

// commands get the arguments after their name.
var commands = map[string]func(ctx context.Context, args []string) error{
	"serve": serve,
	"mcp":   serveMCP,
	"get":   get,
	"post":  post,
	"tools": tools,
	"call":  call,
	"deny":  deny,
	"sleep": func(ctx context.Context, _ []string) error { <-ctx.Done(); return nil },
	"eat":   eat,
	"exit":  exit,
	"env":   env,
	"cat":   cat,
	"ls":    ls,
	"touch": touch,
}

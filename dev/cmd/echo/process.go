package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// exitError is what `echo exit N` was asked for.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d, as asked for", int(e)) }

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

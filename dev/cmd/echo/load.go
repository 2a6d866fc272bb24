package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// begun is what is added to the name of the file that ends a load, for the one that says that the first call was made.
const begun = ".begun"

// load does something again and again.
type load struct {
	until   string
	atOnce  int
	atLeast int
	every   time.Duration

	mu       sync.Mutex
	calls    int
	failures map[string]int
}

// run ends when the file exists and enough was done, prints what happened as JSON, and fails if a call did.
func (l *load) run(ctx context.Context, do func(context.Context) error) error {
	l.failures = map[string]int{}
	var all sync.WaitGroup
	for range l.atOnce {
		all.Go(func() {
			for !l.over(ctx) {
				l.count(do(context.WithoutCancel(ctx)))
				pause(ctx, l.every)
			}
		})
	}
	all.Wait()
	failed := 0
	for _, n := range l.failures {
		failed += n
	}
	out, err := json.Marshal(map[string]any{"calls": l.calls, "failed": failed, "failures": l.failures})
	if err != nil {
		return err
	}
	fmt.Println(string(out))
	if failed > 0 {
		return fmt.Errorf("%d of %d calls failed", failed, l.calls)
	}
	return nil
}

func (l *load) over(ctx context.Context) bool {
	_, err := os.Stat(l.until)
	l.mu.Lock()
	defer l.mu.Unlock()
	return err == nil && l.calls >= l.atLeast || ctx.Err() != nil
}

// count makes the file that tells of the first call.
func (l *load) count(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if err != nil {
		l.failures[err.Error()]++
	}
	if l.calls > 1 {
		return
	}
	if err := os.WriteFile(l.until+begun, nil, 0o600); err != nil {
		l.failures[err.Error()]++
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// touch makes an empty file, for which another command may wait.
func touch(_ context.Context, args []string) error {
	for _, path := range args {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

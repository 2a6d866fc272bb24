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
	until  string
	atOnce int
	every  time.Duration

	mu   sync.Mutex
	told outcome
}

// outcome is what came of a load.
type outcome struct {
	Calls int `json:"calls"`
	// Meanwhile is how many ended before the file was there.
	Meanwhile int            `json:"meanwhile"`
	Failed    int            `json:"failed"`
	Failures  map[string]int `json:"failures"`
	// Longest is how long the longest call took.
	Longest seconds `json:"longestSeconds"`
}

// seconds is a time that is told in seconds.
type seconds time.Duration

// MarshalJSON writes a number.
func (s seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// run ends when the file exists, prints what happened as JSON, and fails if a call did.
func (l *load) run(ctx context.Context, do func(context.Context) error) error {
	var all sync.WaitGroup
	for range l.atOnce {
		all.Go(func() {
			for !l.over() && ctx.Err() == nil {
				begin := time.Now()
				err := do(context.WithoutCancel(ctx))
				l.count(err, time.Since(begin))
				pause(ctx, l.every)
			}
		})
	}
	all.Wait()
	out, err := json.Marshal(l.told)
	if err != nil {
		return err
	}
	fmt.Println(string(out))
	if l.told.Failed > 0 {
		return fmt.Errorf("%d of %d calls failed", l.told.Failed, l.told.Calls)
	}
	return nil
}

func (l *load) over() bool {
	_, err := os.Stat(l.until)
	return err == nil
}

// count makes the file that tells of the first call.
func (l *load) count(err error, took time.Duration) {
	isOver := l.over()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told.Calls++
	l.told.Longest = max(l.told.Longest, seconds(took))
	if !isOver {
		l.told.Meanwhile++
	}
	l.failed(err)
	if l.told.Calls == 1 {
		l.failed(os.WriteFile(l.until+begun, nil, 0o600))
	}
}

// failed counts a failure, if there is one. The caller holds the lock.
func (l *load) failed(err error) {
	if err == nil {
		return
	}
	if l.told.Failures == nil {
		l.told.Failures = map[string]int{}
	}
	l.told.Failed++
	l.told.Failures[err.Error()]++
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

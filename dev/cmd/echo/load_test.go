package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestALoadEndsByTheFileAndTellsWhatCameOfItsCalls(t *testing.T) {
	t.Parallel()
	until := filepath.Join(t.TempDir(), "stop")
	synctest.Test(t, func(t *testing.T) {
		l := &load{until: until, atOnce: 1, every: time.Second}
		var toldBefore []bool // whether the first call was told, before each
		err := l.run(t.Context(), func(ctx context.Context) error {
			_, err := os.Stat(until + begun)
			toldBefore = append(toldBefore, err == nil)
			if len(toldBefore) < 3 {
				<-time.After(time.Duration(len(toldBefore)) * time.Second)
				return nil
			}
			return errors.Join(touch(ctx, []string{until}), errors.New("refused"))
		})
		if err == nil || err.Error() != "1 of 3 calls failed" {
			t.Errorf("a call failed, and it says %v", err)
		}
		if diff := cmp.Diff([]bool{false, true, true}, toldBefore); diff != "" {
			t.Errorf("whether the first call was told, before each (-want +got):\n%s", diff)
		}
		want := outcome{Calls: 3, Meanwhile: 2, Failed: 1, Failures: map[string]int{"refused": 1}, Longest: seconds(2 * time.Second)}
		if diff := cmp.Diff(want, l.told); diff != "" {
			t.Errorf("what it tells (-want +got):\n%s", diff)
		}
	})
}

func TestALoadWithoutAFailureSucceeds(t *testing.T) {
	t.Parallel()
	until := filepath.Join(t.TempDir(), "stop")
	l := &load{until: until, atOnce: 1}
	if err := l.run(t.Context(), func(ctx context.Context) error { return touch(ctx, []string{until}) }); err != nil || l.told.Calls != 1 {
		t.Errorf("%v after %d calls", err, l.told.Calls)
	}
}

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALoadTellsOfItsFirstCallAndEndsByTheFileOnceThereWereEnough(t *testing.T) {
	t.Parallel()
	until := filepath.Join(t.TempDir(), "stop")
	if err := touch(t.Context(), []string{until}); err != nil {
		t.Fatal(err)
	}
	l := &load{until: until, atOnce: 1, atLeast: 3}
	var toldBefore []bool
	err := l.run(t.Context(), func(context.Context) error {
		_, err := os.Stat(until + begun)
		toldBefore = append(toldBefore, err == nil)
		return nil
	})
	if err != nil {
		t.Errorf("no call failed, and it says %v", err)
	}
	if diff := cmp.Diff([]bool{false, true, true}, toldBefore); diff != "" {
		t.Errorf("whether the first call was told, before each (-want +got):\n%s", diff)
	}
	l = &load{until: until, atOnce: 1, atLeast: 1}
	if err := l.run(t.Context(), func(context.Context) error { return errors.New("refused") }); err == nil {
		t.Error("a call failed, and nothing is said")
	}
}

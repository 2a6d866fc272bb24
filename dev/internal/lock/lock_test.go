package lock

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheSecondOneIsToldWhoHoldsTheLockAndGetsItAfterwards(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(path, "up", time.Minute, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	second, err := Acquire(path, "down", time.Minute, func(msg string) {
		told = msg
		if err := first.Release(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Release() }()
	if !strings.Contains(told, "devcluster up (pid ") {
		t.Errorf("told %q, which does not name the holder", told)
	}
}

func TestPatienceEndsWithASentenceThatNamesTheHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(path, "build", time.Minute, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Release() }()
	_, err = Acquire(path, "up", 0, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "devcluster build (pid ") {
		t.Errorf("got %v", err)
	}
}

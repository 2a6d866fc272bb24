// Package lock lets one devcluster command at a time change a state folder.
// The kernel holds the lock (flock), so a killed holder never leaves one behind.
package lock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Patience is how long Acquire waits for another holder: longer than a cold build.
const Patience = 20 * time.Minute

// Lock is a held lock.
type Lock struct{ file *os.File }

// Acquire locks the file at path for the command named in what. While somebody else holds it, say
// is called once with a sentence that names the holder; after patience Acquire gives up.
func Acquire(path, what string, patience time.Duration, say func(string)) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the state folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the state folder: %w", err)
	}
	deadline := time.Now().Add(patience)
	for told := false; ; told = true {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if time.Now().After(deadline) {
			holder := holder(f)
			_ = f.Close()
			return nil, fmt.Errorf("%s still holds %s after %s: wait for it, or end it", holder, path, patience)
		}
		if !told {
			say("waiting for " + holder(f) + ", which holds this state folder")
		}
		time.Sleep(200 * time.Millisecond)
	}
	if err := f.Truncate(0); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	if _, err := f.WriteAt([]byte(fmt.Sprintf("devcluster %s (pid %d)", what, os.Getpid())), 0); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &Lock{file: f}, nil
}

// Release lets the next one in.
func (l *Lock) Release() error { return l.file.Close() }

func holder(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 200))
	if s := strings.TrimSpace(string(b)); err == nil && s != "" {
		return s
	}
	return "another devcluster command"
}

package mounted

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// text is a value that refuses "bad".
func text(read Reader, report func(error)) *Value[string] {
	return New(read, func(files Files) (string, error) {
		for _, content := range files {
			if string(content) == "bad" {
				return "", errors.New("it is bad")
			}
			return string(content), nil
		}
		return "", errors.New("no file")
	}, report)
}

func get(t *testing.T, v *Value[string]) string {
	t.Helper()
	value, err := v.Get()
	return fmt.Sprint(value, " ", err)
}

func pass() { time.Sleep(interval) } //nolint:forbidigo // in a bubble

func TestAValueFollowsItsFileWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "token")
		write(t, path, "one")
		v := text(Paths(10, path), nil)
		write(t, path, "two") // the same size, and perhaps the same time: only the content tells
		if got := get(t, v); got != "one <nil>" {
			t.Errorf("read again too early: %s", got)
		}
		pass()
		if got := get(t, v); got != "two <nil>" {
			t.Errorf("got %s", got)
		}
	})
}

// The kubelet replaces a folder's content by swapping one symbolic link.
func TestAValueFollowsTheKubeletsSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		swap := func(version, content string) {
			if err := os.Mkdir(filepath.Join(folder, version), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, version, "token"), content)
			if err := os.Symlink(version, filepath.Join(folder, "..data_tmp")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")); err != nil {
				t.Fatal(err)
			}
		}
		swap("..1", "one")
		if err := os.Symlink("..data/token", filepath.Join(folder, "token")); err != nil {
			t.Fatal(err)
		}
		one, all := text(Paths(10, filepath.Join(folder, "token")), nil), text(Folder(10, folder), nil)
		swap("..2", "two")
		pass()
		for name, v := range map[string]*Value[string]{"file": one, "folder": all} {
			if got := get(t, v); got != "two <nil>" {
				t.Errorf("%s: got %s", name, got)
			}
		}
	})
}

func TestAContentThatIsRefusedLeavesTheLastGoodOneAndIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "token")
		var told []string
		write(t, path, "good")
		v := text(Paths(10, path), func(err error) { told = append(told, err.Error()) })
		for _, step := range []struct {
			change func()
			want   string
		}{
			{func() { write(t, path, "bad") }, "good it is bad"},
			{func() {}, "good it is bad"},
			{func() { write(t, path, "new") }, "new <nil>"},
			{func() { write(t, path, "bad") }, "new it is bad"},
			{func() { _ = os.Remove(path) }, "new read file: stat " + path + ": no such file or directory"},
			{func() {}, "new read file: stat " + path + ": no such file or directory"},
			{func() { write(t, path, "bad") }, "new it is bad"},
			{func() { write(t, path, "back") }, "back <nil>"},
		} {
			step.change()
			pass()
			if got := get(t, v); got != step.want {
				t.Errorf("got %s, want %s", got, step.want)
			}
		}
		want := []string{"it is bad", "it is bad", "read file: stat " + path + ": no such file or directory", "it is bad"}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFilesThatAreReplacedWhileTheyAreReadAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []error
		reads := []Files{
			{"crt": []byte("1"), "key": []byte("1")},
			{"crt": []byte("1"), "key": []byte("2")}, // the kubelet swaps them just now
			{"crt": []byte("2"), "key": []byte("2")},
		}
		v := New(func() (Files, error) {
			files := reads[0]
			reads = reads[min(1, len(reads)-1):]
			return files, nil
		}, func(files Files) (string, error) {
			if string(files["crt"]) != string(files["key"]) {
				return "", errors.New("they are no pair")
			}
			return string(files["crt"]), nil
		}, func(err error) { told = append(told, err) })
		pass()
		if got := get(t, v); got != "2 <nil>" || len(told) != 0 {
			t.Errorf("got %s, told %v", got, told)
		}
	})
}

func TestAFileMayComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "token")
		v := text(Paths(10, path), nil)
		if _, err := v.Get(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		write(t, path, "here")
		pass()
		if got := get(t, v); got != "here <nil>" {
			t.Errorf("got %s", got)
		}
	})
}

func TestWhatIsNoSmallRegularFileIsRefused(t *testing.T) {
	folder := t.TempDir()
	pipe, large, many := filepath.Join(folder, "pipe"), filepath.Join(folder, "large"), t.TempDir()
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, large, "12345678901")
	for i := range maxFiles + 1 {
		write(t, filepath.Join(many, fmt.Sprint(i)), "x")
	}
	for name, c := range map[string]struct {
		read Reader
		want string
	}{
		"pipe":             {Paths(10, pipe), "not a regular file"},
		"folder":           {Paths(10, folder), "not a regular file"},
		"large":            {Paths(10, large), "larger than 10 bytes"},
		"missing":          {Paths(10, filepath.Join(folder, "none")), "no such file"},
		"missing folder":   {Folder(10, filepath.Join(folder, "none")), "no such file"},
		"folder of a pipe": {Folder(100, folder), "not a regular file"},
		"too many files":   {Folder(10, many), "more than 64 files"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.read(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestManyReadersReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		v := text(func() (Files, error) {
			reads.Add(1)
			return Files{"f": []byte("x")}, nil
		}, nil)
		pass()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if got := get(t, v); got != "x <nil>" {
					t.Errorf("got %s", got)
				}
			})
		}
		all.Wait()
		if got := reads.Load(); got != 2 {
			t.Errorf("read %d times, want once at the start and once after a second", got)
		}
	})
}

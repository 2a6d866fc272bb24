// Package mounted keeps values that are made from mounted files: tokens, keys, certificates. The kubelet may replace such
// files at any time; a value follows within a second of its next use, without a goroutine.
package mounted

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// interval is how long a value is used before its files are looked at again. Looking is reading: the files are small, and
	// neither an inode nor a time of change tells as surely that the content is another.
	interval = time.Second
	// maxFiles is how many files a folder may hold.
	maxFiles = 64
)

// Files are contents by file name.
type Files map[string][]byte

// Reader reads the files of a value. Its errors never hold content.
type Reader func() (Files, error)

// Paths reads the files named, each of at most limit bytes. They are known by their paths.
func Paths(limit int64, paths ...string) Reader {
	return func() (Files, error) {
		files := make(Files, len(paths))
		for _, path := range paths {
			content, err := read(path, limit)
			if err != nil {
				return nil, err
			}
			files[path] = content
		}
		return files, nil
	}
}

// Folder reads the files of a folder, at most 64, each of at most limit bytes. They are known by their names in it. Names
// with a leading dot are left out: the kubelet keeps its own there.
func Folder(limit int64, folder string) Reader {
	return func() (Files, error) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("read folder: %w", err)
		}
		files := Files{}
		for _, entry := range entries {
			name := entry.Name()
			if strings.HasPrefix(name, ".") {
				continue
			}
			if len(files) == maxFiles {
				return nil, fmt.Errorf("folder %s holds more than %d files", folder, maxFiles)
			}
			if files[name], err = read(filepath.Join(folder, name), limit); err != nil {
				return nil, err
			}
		}
		return files, nil
	}
}

func read(path string, limit int64) ([]byte, error) {
	// Opening a named pipe would wait for somebody to write to it.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return content, nil
}

// Value is made from files, and made again when they change. It is safe for concurrent use.
type Value[T any] struct {
	read    Reader
	parse   func(Files) (T, error)
	report  func(error)
	state   atomic.Pointer[state[T]]
	reading sync.Mutex
}

type state[T any] struct {
	value T
	err   error
	// files are what was parsed, nil if the last attempt to read them failed.
	files Files
	// due is when to look again.
	due time.Time
}

// New makes a value and reads it for the first time; Get tells how that went. Report is told, once each, why later contents
// were refused; it may be nil.
func New[T any](read Reader, parse func(Files) (T, error), report func(error)) *Value[T] {
	if report == nil {
		report = func(error) {}
	}
	v := &Value[T]{read: read, parse: parse, report: report}
	v.state.Store(v.next(&state[T]{}))
	return v
}

// Get returns the value of the newest files. With an error it is the value of the last files that could be read and parsed,
// or the zero value; the caller decides whether that may be used.
func (v *Value[T]) Get() (T, error) {
	s := v.state.Load()
	// Whoever comes while another one reads takes what there is.
	if time.Now().Before(s.due) || !v.reading.TryLock() {
		return s.value, s.err
	}
	defer v.reading.Unlock()
	if s = v.state.Load(); time.Now().Before(s.due) { // another one read between the look and the lock
		return s.value, s.err
	}
	next := v.next(s)
	v.state.Store(next)
	if next.err != nil && (s.err == nil || s.err.Error() != next.err.Error()) {
		v.report(next.err)
	}
	return next.value, next.err
}

// next reads the files and parses them unless they are those of s.
func (v *Value[T]) next(s *state[T]) *state[T] {
	next := &state[T]{value: s.value, due: time.Now().Add(interval)}
	files, err := v.read()
	if err != nil {
		next.err = err
		return next
	}
	next.files = files
	if s.files != nil && maps.EqualFunc(files, s.files, bytes.Equal) {
		next.err = s.err
		return next
	}
	value, err := v.parse(files)
	if err != nil {
		// They may have been replaced between one file and the next: then they are others already.
		if again, failed := v.read(); failed == nil && !maps.EqualFunc(again, files, bytes.Equal) {
			next.files = again
			value, err = v.parse(again)
		}
	}
	if err != nil {
		next.err = err
		return next
	}
	next.value = value
	return next
}

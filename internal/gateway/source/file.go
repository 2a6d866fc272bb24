package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// file is read again when it changed.
type file struct {
	path string
	seen os.FileInfo
	last *content
}

// read returns what is in the file. A mounted ConfigMap changes by a swap of symbolic links, which os.Stat follows.
func (f *file) read() *content {
	info, err := os.Stat(f.path)
	if err == nil && f.seen != nil && os.SameFile(info, f.seen) && info.ModTime().Equal(f.seen.ModTime()) && info.Size() == f.seen.Size() {
		return f.last
	}
	// File systems count time in ticks: what is written to within the tick of info may be written to again and look the same.
	isFresh := err == nil && time.Since(info.ModTime()) < pollInterval
	c := &content{origin: f.path}
	if err == nil {
		c.data, err = readFile(f.path)
	}
	c.err = err
	if failure, ok := errors.AsType[*os.PathError](err); ok {
		c.err = fmt.Errorf("cannot be read: %w", failure.Err) // The path is told by origin.
	}
	// A file that was written to meanwhile has another time or size than info, so the next look reads it again. So it does after an error,
	// which may be over without a change of the file.
	if f.seen, f.last = info, c; isFresh || err != nil {
		f.seen = nil
	}
	return c
}

// readFile reads no more than shows that it is too much. Its errors are *os.PathError.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, table.MaxBytes+1))
}

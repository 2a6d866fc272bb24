package source

import (
	"errors"
	"fmt"
	"io"
	"os"

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
	c := &content{origin: f.path}
	if err == nil {
		c.data, err = readFile(f.path)
	}
	c.err = err
	if failure, ok := errors.AsType[*os.PathError](err); ok {
		c.err = fmt.Errorf("cannot be read: %w", failure.Err) // The path is told by origin.
	}
	// A file that was written to meanwhile has another time or size than info, so the next look reads it again.
	f.seen, f.last = info, c
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

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
	// seen is what the last look found, nil for an error, and since when it was so.
	seen  os.FileInfo
	since time.Time
	// last is what was read last, and isFinal that it need not be read again while the file looks the same.
	last    *content
	isFinal bool
}

// read returns what is in the file. A mounted ConfigMap changes by a swap of symbolic links, which os.Stat follows.
func (f *file) read() *content {
	info, err := os.Stat(f.path)
	now := time.Now()
	if err == nil && f.seen != nil && os.SameFile(info, f.seen) && info.ModTime().Equal(f.seen.ModTime()) && info.Size() == f.seen.Size() {
		if f.isFinal {
			return f.last
		}
	} else {
		f.seen, f.since = info, now
	}
	// File systems count time in ticks: what is written to within the tick of info may be written to again and look the same. Their clock
	// may be another than this one, so that their time may lie ahead for long: the tick in which info was seen first is over all the same.
	isFresh := err == nil && now.Sub(info.ModTime()) < pollInterval && now.Sub(f.since) < pollInterval
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
	f.last, f.isFinal = c, !isFresh && err == nil
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

package child

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	// noiseBytes bounds what is logged of a line that is no message, and noiseEvery how often.
	noiseBytes = 200
	noiseEvery = time.Second
	// stderrBytes bounds one line of a child's stderr in the log; a longer one is split.
	stderrBytes = 16 << 10
)

// counts are what /status tells of all processes of a backend.
type counts struct {
	logger   *slog.Logger
	running  atomic.Int64
	restarts atomic.Int64
	noise    atomic.Int64

	mu       sync.Mutex
	lastExit string
	logged   time.Time // the last noise

	stderr sync.Mutex // so that lines of several children do not mix
}

// exited notes how a process ended, if an error is about that.
func (c *counts) exited(err error) {
	if died, ok := errors.AsType[*diedError](err); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lastExit = died.exit
	}
}

func (c *counts) status() table.ChildStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return table.ChildStatus{
		Running: int(c.running.Load()), Restarts: int(c.restarts.Load()), LastExit: c.lastExit, NoiseLines: c.noise.Load(),
	}
}

// noisy counts a line on stdout that is no message, and logs it at most once a second.
func (c *counts) noisy(pid int, line []byte) {
	c.noise.Add(1)
	c.mu.Lock()
	due := time.Since(c.logged) >= noiseEvery
	if due {
		c.logged = time.Now()
	}
	c.mu.Unlock()
	if due {
		c.logger.Warn("a line on the child's stdout is no MCP message; it was dropped", "pid", pid, "line", printable(line), "dropped", c.noise.Load())
	}
}

// printable is the start of a text without control, formatting and invalid characters.
func printable(line []byte) string {
	var b strings.Builder
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		if b.Len()+n > noiseBytes {
			b.WriteString("…")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '·'
		}
		b.WriteRune(r)
		line = line[n:]
	}
	return b.String()
}

// copyLines copies a child's stderr line by line. It reads on when w fails: a child must not be stopped by a full pipe.
func copyLines(w io.Writer, c *counts, stderr io.Reader) {
	r := bufio.NewReaderSize(stderr, stderrBytes)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			if !bytes.HasSuffix(line, []byte("\n")) {
				line = append(bytes.Clone(line), '\n')
			}
			c.stderr.Lock()
			_, _ = w.Write(line)
			c.stderr.Unlock()
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

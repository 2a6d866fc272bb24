package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// meter reads until left bytes were read; who reads piecemeal sets left anew for each piece.
type meter struct {
	r    io.Reader
	left int
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errors.New("it is longer than a ConfigMap can be")
	}
	n, err := m.r.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}

// closer closes a body and gives up the request.
type closer struct {
	io.Closer

	cancel context.CancelFunc
}

func (c closer) Close() error {
	c.cancel()
	return c.Closer.Close()
}

// readSmall reads a file of one line.
func readSmall(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	line := strings.TrimSpace(string(data))
	if line == "" || strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s must hold one line of visible ASCII characters", path)
	}
	return line, nil
}

// Package launch starts programs for tests, above all the gateway, and ends them with the test.
package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// Build builds a program into the file: a package by its path, or Go files.
func Build(tb testing.TB, file string, sources ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "go", append([]string{"build", "-o", file}, sources...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build %s: %v\n%s", file, err, out)
	}
	return file
}

// FreeAddress is an address on this machine that nothing listens on at the moment. Somebody else may be given it before it is used.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	return l.Addr().String()
}

// Await asks until there is no error any more, at most a minute long.
func Await(tb testing.TB, ask func() error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatal(err)
		}
	}
}

// Write writes a file that only this user can read.
func Write(tb testing.TB, path string, content []byte) {
	tb.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Process is a program that runs.
type Process struct {
	*exec.Cmd

	log   *os.File
	ended chan struct{}
	once  sync.Once
}

// Start starts a program, which is told to end when the test ends. What it logged is shown if the test fails.
func Start(tb testing.TB, program string, args ...string) *Process {
	tb.Helper()
	log, err := os.CreateTemp(tb.TempDir(), "log")
	if err != nil {
		tb.Fatal(err)
	}
	// The test's own context ends before its cleanup.
	p := &Process{Cmd: exec.CommandContext(context.WithoutCancel(tb.Context()), program, args...), log: log, ended: make(chan struct{})}
	p.Stdout, p.Stderr = log, log
	if err := p.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		close(p.ended)
	}()
	tb.Cleanup(func() {
		p.Stop()
		if tb.Failed() {
			content := p.Log(tb)
			tb.Logf("the end of the log of %s:\n%s", filepath.Base(program), content[max(0, len(content)-8<<10):])
		}
		_ = log.Close()
	})
	return p
}

// Stop tells the program to end, and waits until it has; after 15 s it is killed.
func (p *Process) Stop() {
	p.once.Do(func() {
		_ = p.Process.Signal(os.Interrupt)
		select {
		case <-p.ended:
		case <-time.After(15 * time.Second):
			p.Kill()
		}
	})
}

// Kill ends the program at once.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// Log is what the program has written so far.
func (p *Process) Log(tb testing.TB) []byte {
	tb.Helper()
	content, err := os.ReadFile(p.log.Name())
	if err != nil {
		tb.Error(err)
	}
	return content
}

// Gateway is a gateway that runs.
type Gateway struct {
	*Process

	// URL is that of its endpoint, Health that of what the platform asks.
	URL, Health string
	// Table is the file of its routing table, if it has one.
	Table string
}

// Serve starts a gateway with the backends and waits until it is ready. Flags are added to its command line.
func Serve(tb testing.TB, binary string, backends []table.Backend, flags ...string) *Gateway {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "table.json")
	WriteTable(tb, file, backends...)
	g := Run(tb, binary, "serve", append([]string{"--table", file, "--ephemeral-session-key"}, flags...)...)
	g.Table = file
	return g
}

// WriteTable writes a routing table that lets everybody in. It appears at once, as a mounted file does.
func WriteTable(tb testing.TB, file string, backends ...table.Backend) {
	tb.Helper()
	content, err := json.Marshal(table.Table{Version: table.Version, Auth: table.Auth{Type: table.AuthNone}, Backends: backends})
	if err != nil {
		tb.Fatal(err)
	}
	Write(tb, file+".new", content)
	if err := os.Rename(file+".new", file); err != nil {
		tb.Fatal(err)
	}
}

// Run starts a gateway with a command of its, and waits until it is ready. One that lost its address to another program, between
// the choice and its start, is started anew with another.
func Run(tb testing.TB, binary, command string, args ...string) *Gateway {
	tb.Helper()
	for range 5 {
		address, health := FreeAddress(tb), FreeAddress(tb)
		g := &Gateway{URL: "http://" + address + "/mcp", Health: "http://" + health}
		g.Process = Start(tb, binary, append([]string{command, "--listen", address, "--health-listen", health, "--drain-delay", "0s"}, args...)...)
		if g.begins(tb) {
			return g
		}
	}
	tb.Fatal("the gateway was started five times, and each time another program had taken its address")
	return nil
}

// begins waits until the gateway is ready, or has ended since its address is in use.
func (g *Gateway) begins(tb testing.TB) (ready bool) {
	tb.Helper()
	Await(tb, func() error {
		select {
		case <-g.ended:
			if log := g.Log(tb); !bytes.Contains(log, []byte("address already in use")) {
				tb.Fatalf("the gateway ended: %s", g.ProcessState)
			}
			return nil
		default:
		}
		r, err := http.Get(g.Health + "/readyz") //nolint:noctx // it is a process of this test's own
		if err != nil {
			return err
		}
		if err := r.Body.Close(); err != nil || r.StatusCode != http.StatusOK {
			return fmt.Errorf("the gateway is not ready: status %d", r.StatusCode)
		}
		ready = true
		return nil
	})
	return ready
}

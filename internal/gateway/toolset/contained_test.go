package toolset

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// TestAFaultWhileAStatementIsCheckedIsItsFailure: again and again, without an end of the connections.
func TestAFaultWhileAStatementIsCheckedIsItsFailure(t *testing.T) {
	var faults atomic.Int64
	b, d := (&impostor{}).database(t)
	b.panics = panics.New(slog.New(slog.DiscardHandler), func(string) { faults.Add(1) })
	dial := d.pool.dial
	d.pool.dial = func(context.Context, string, string) (net.Conn, error) { panic("nobody thought of that") }
	for range 2 * maxConnections {
		d.mu.Lock()
		d.err = nil // else a failure answers for the next
		d.mu.Unlock()
		if _, err := b.Describe(testContext(t)); !errors.Is(err, panics.Err) {
			t.Fatalf("described with %v", err)
		}
	}
	if n := faults.Load(); n != 2*maxConnections {
		t.Errorf("%d faults were counted", n)
	}
	d.pool.dial = dial
	d.mu.Lock()
	d.err = nil
	d.mu.Unlock()
	if got := call(t, b, "ask", `{}`); got.IsError {
		t.Errorf("answered %s", got.text())
	}
}

func TestAFaultWhileAnAPIIsDialledIsThatCallsFailure(t *testing.T) {
	var faults atomic.Int64
	b := open(t, table.Backend{URL: "http://127.0.0.1:9", Toolset: &table.Toolset{HTTP: []table.HTTPTool{plainTool}}}, Options{
		Panics: panics.New(slog.New(slog.DiscardHandler), func(string) { faults.Add(1) }),
		Dial:   func(context.Context, string, string) (net.Conn, error) { panic("nobody thought of that") },
	})
	_, err := ask(t, b, "tools/call", `{"name":"do"}`)
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classServerError || faults.Load() != 1 {
		t.Errorf("after %d faults: %v", faults.Load(), err)
	}
}

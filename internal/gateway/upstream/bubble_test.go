package upstream

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// inMemory is a listener whose connections are pipes, so that a server runs in a bubble.
type inMemory struct {
	net.Listener

	dials atomic.Int64
	conns chan net.Conn
	once  sync.Once
	over  chan struct{}
}

// Dial is for Options.
func (l *inMemory) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.dials.Add(1)
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for a connection.
func (l *inMemory) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// Close makes Accept end.
func (l *inMemory) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}

// Addr is nowhere.
func (*inMemory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// inBubble runs a test with a server and a backend whose time is the bubble's: it passes only while all wait, so that no limit is reached
// because the machine is busy.
func inBubble(t *testing.T, h http.Handler, test func(t *testing.T, b *Backend, l *inMemory), change ...func(*table.Backend, *Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &inMemory{conns: make(chan net.Conn), over: make(chan struct{})}
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
		dialling := func(_ *table.Backend, o *Options) { o.Dial = l.Dial }
		test(t, open(t, "http://web.example/mcp", append([]func(*table.Backend, *Options){dialling}, change...)...), l)
	})
}

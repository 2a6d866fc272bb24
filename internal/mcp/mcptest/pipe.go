package mcptest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Pipe runs handler behind in-memory connections, and returns a server whose
// Transport leads there whatever is dialled. Unlike a loopback port it works in a
// testing/synctest bubble, where limits of seconds cost no time.
func Pipe(tb testing.TB, handler http.Handler) *Server {
	tb.Helper()
	s := &Server{URL: "http://server.example:8080/mcp"}
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.pipe = listener
	server := &http.Server{Handler: s.record(handler), ErrorLog: discardLog()}
	served := make(chan struct{})
	go func() {
		defer close(served)
		// It always returns an error: that the listener was closed.
		_ = server.Serve(listener)
	}()
	tb.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return s
}

// pipeListener accepts the other ends of what is dialled.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, ours.Close())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), ours.Close())
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

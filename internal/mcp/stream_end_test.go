package mcp

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// late gives out a text after a second, and calls a function just before.
type late struct {
	io.Reader

	before func()
}

func (l late) Read(p []byte) (int, error) {
	<-time.After(time.Second)
	l.before()
	return l.Reader.Read(p)
}

// TestAnAnswerWithWhichTheTimeIsUpIsLate has the stream be given up when the answer has just come: the server would be said to have
// broken off the next one.
func TestAnAnswerWithWhichTheTimeIsUpIsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := mcptest.Pipe(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
		target, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		limits := DefaultLimits()
		p := &prober{limits: limits, target: target, transport: newTransport(server.Transport(), limits), result: &Result{}}
		defer p.transport.close()
		isGivenUp := false
		p.stream = &sseStream{
			post: target, cancel: func() { isGivenUp = true },
			events: wire.NewEventReader(late{strings.NewReader("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"), end}, limits.EventBytes),
		}
		p.stream.events.Whole = true
		r, err := p.call(ctx, "tools/list", "", nil)
		if err == nil {
			err = r.bodyErr
		}
		synctest.Wait()
		if !isGivenUp || r.hasRPC || ReasonOf(err) != Timeout {
			t.Errorf("the stream is given up: %t, it was answered: %t, %v", isGivenUp, r.hasRPC, err)
		}
	})
}

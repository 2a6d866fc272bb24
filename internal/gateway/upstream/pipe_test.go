package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// piped is a server over HTTP+SSE whose stream a test writes to.
type piped struct {
	// on takes a message that was posted; what it returns is written to the stream.
	on func(m *wire.Message) string
	// endpoint is named by the stream.
	endpoint string

	mu      sync.Mutex
	streams []chan string
	closed  int
}

func (p *piped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/sse":
		p.stream(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/messages":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := wire.Parse(body, wire.DefaultLimits)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		if answer := p.on(m); answer != "" {
			p.write(answer)
		}
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// write writes to the newest stream.
func (p *piped) write(text string) {
	p.mu.Lock()
	stream := p.streams[len(p.streams)-1]
	p.mu.Unlock()
	stream <- text
}

func (p *piped) stream(w http.ResponseWriter, r *http.Request) {
	stream := make(chan string, 100)
	p.mu.Lock()
	p.streams = append(p.streams, stream)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closed++
	}()
	w.Header().Set("Content-Type", mediaOfStream)
	_, _ = fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", p.endpoint)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case text := <-stream:
			if text == "end" {
				return
			}
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
			return
		}
	}
}

func answer(m *wire.Message) string {
	switch {
	case m.Kind != wire.Request:
		return ""
	case m.Method == "initialize":
		return event(string(wire.NewResult(m.ID, []byte(`{"protocolVersion":"2024-11-05","capabilities":{}}`)).Raw))
	}
	return event(string(wire.NewResult(m.ID, nil).Raw))
}

func newPiped() *piped { return &piped{on: answer, endpoint: "/messages?id=1"} }

func TestAnEndpointMayBeWrittenInManyWays(t *testing.T) {
	for name, endpoint := range map[string]string{
		"a path": "/messages", "with a query": "/messages?session=1", "relative": "messages", "absolute": "http://{host}/messages",
		"by the Host header": "http://web.example/messages",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPiped()
			s := serve(t, p)
			p.endpoint = strings.Replace(endpoint, "{host}", strings.TrimPrefix(s.URL, "http://"), 1)
			b := open(t, s.URL+"/sse", func(c *table.Backend, _ *Options) { c.HostHeader = "web.example" })
			d, err := b.Describe(testContext(t))
			if err != nil || !d.Legacy || d.Versions[0] != "2024-11-05" {
				t.Fatalf("%+v, %v", d, err)
			}
			channel, handle := openSession(t, b)
			if err := ping(t, channel); err != nil || handle.Version != "2024-11-05" {
				t.Errorf("%v, %+v", err, handle)
			}
		})
	}
}

func TestAnEndpointElsewhereIsRefused(t *testing.T) {
	b := open(t, "https://web.example:8443/sse")
	for _, endpoint := range []string{
		"https://evil.example/messages", "https://web.example/messages", "http://web.example:8443/messages", "//evil.example/messages",
		"https://web.example:8443@evil.example/messages", "https://u:p@web.example:8443/messages", "javascript:alert(1)", "https:/\\evil.example/x",
		"/" + strings.Repeat("x", maxEndpoint), "%zz", "",
	} {
		p := &pipe{Backend: b}
		if err := p.setEndpoint(endpoint); err == nil && endpoint != "" {
			t.Errorf("%.60q was taken for %s", endpoint, p.endpoint.url)
		}
	}
}

func TestASessionOverSSEEndsWithItsStream(t *testing.T) {
	p := newPiped()
	b := open(t, serve(t, p).URL+"/sse")
	channel, handle := openSession(t, b)
	asked := make(chan struct{})
	p.on = func(m *wire.Message) string {
		if m.Method == "tools/call" {
			close(asked)
		}
		return ""
	}
	ended := make(chan error, 1)
	go func() { ended <- channel.Call(testContext(t), toolCall(`1`, "slow", "", backend.Legacy), &sink{}) }()
	<-asked
	p.write("end")
	if failure := classOf(t, <-ended); failure.Class != "ServerError" || !failure.Sent || errors.Is(failure, backend.ErrSession) {
		t.Errorf("the call in flight: %v (%+v)", failure, failure)
	}
	if err := ping(t, channel); !errors.Is(err, backend.ErrSession) || classOf(t, err).Sent {
		t.Errorf("a call after: %v", err)
	}
	if err := channel.Listen(testContext(t), nil, &sink{}); !errors.Is(err, backend.ErrSession) {
		t.Errorf("Listen: %v", err)
	}
	eventually(t, "it cannot be resumed", func() bool {
		_, err := b.Resume(handle)
		return errors.Is(err, backend.ErrSession)
	})
}

func TestASessionOverSSEIsResumedInItsProcess(t *testing.T) {
	b := open(t, serve(t, newPiped()).URL+"/sse")
	_, handle := openSession(t, b)
	channel, err := b.Resume(handle)
	if err != nil {
		t.Fatal(err)
	}
	if err := ping(t, channel); err != nil {
		t.Error(err)
	}
}

func TestClosingASessionOverSSEEndsItsStream(t *testing.T) {
	p := newPiped()
	b := open(t, serve(t, p).URL+"/sse")
	channel, _ := openSession(t, b)
	if err := channel.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both streams are closed, that of Describe and its own", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.closed == 2
	})
}

func TestACancellationOverSSENamesTheRequestAsTheServerKnowsIt(t *testing.T) {
	for name, byNotification := range map[string]bool{"by leaving": false, "by a notification": true} {
		t.Run(name, func(t *testing.T) {
			p := newPiped()
			b := open(t, serve(t, p).URL+"/sse")
			channel, _ := openSession(t, b)
			posted := make(chan *wire.Message, 10)
			p.on = func(m *wire.Message) string {
				posted <- m
				return ""
			}
			ctx, leave := context.WithCancel(testContext(t))
			ended := make(chan error, 1)
			go func() { ended <- channel.Call(ctx, toolCall(`"mine"`, "slow", "", backend.Legacy), &sink{}) }()
			call := <-posted
			if byNotification {
				if err := channel.Send(testContext(t), cancellation([]byte(`"mine"`))); err != nil {
					t.Error(err)
				}
			} else {
				leave()
			}
			cancelled := <-posted
			if cancelled.Method != "notifications/cancelled" || string(cancelled.Param("requestId")) != string(call.ID) || string(call.ID) == `"mine"` {
				t.Errorf("%s after %s", cancelled.Raw, call.Raw)
			}
			leave()
			if failure := classOf(t, <-ended); failure.Class != "Timeout" || !failure.Sent {
				t.Errorf("%+v", failure)
			}
		})
	}
}

// TestASlowReaderOfAStreamIsCutOff has one caller stop reading while another one goes on.
func TestASlowReaderOfAStreamIsCutOff(t *testing.T) {
	p := newPiped()
	b := open(t, serve(t, p).URL+"/sse", func(_ *table.Backend, o *Options) { o.Limits.Queue = 10 << 10 })
	channel, _ := openSession(t, b)
	asked := make(chan struct{})
	p.on = func(m *wire.Message) string {
		if m.Method == "tools/call" {
			close(asked)
			return ""
		}
		return answer(m)
	}
	released := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- channel.Call(testContext(t), toolCall(`1`, "chatty", "", backend.Legacy), &sink{on: func(*wire.Message) error {
			<-released
			return nil
		}})
	}()
	<-asked
	message := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%q}}`, strings.Repeat("x", 1000))
	for range 30 {
		p.write(event(message))
	}
	slow := channel.(*pipe) //nolint:forcetypeassert // it is what Open returns here
	eventually(t, "the slow one is cut off", func() bool {
		slow.mu.Lock()
		defer slow.mu.Unlock()
		return len(slow.calls) == 0 || slow.calls[0].queue.isFull()
	})
	if err := ping(t, channel); err != nil {
		t.Errorf("the other caller: %v", err)
	}
	close(released)
	if failure := classOf(t, <-ended); failure.Class != "TooLarge" || !failure.Sent {
		t.Errorf("%+v", failure)
	}
}

func (q *queue) isFull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err != nil
}

func TestAnIdleSessionOverSSEEnds(t *testing.T) {
	p := newPiped()
	b := open(t, serve(t, p).URL+"/sse", func(_ *table.Backend, o *Options) { o.Limits.SessionIdle = 100 * time.Millisecond })
	channel, _ := openSession(t, b)
	eventually(t, "it is lost", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.pipes) == 0
	})
	if err := ping(t, channel); !errors.Is(err, backend.ErrSession) {
		t.Errorf("%v", err)
	}
}

func TestASessionOverSSEIsHostileToo(t *testing.T) {
	for name, c := range map[string]struct{ written, class string }{
		"garbage":                   {event("garbage"), "NotMCP"},
		"a large notification":      {event(`{"jsonrpc":"2.0","method":"x","params":{"x":"` + strings.Repeat("x", 2000) + `"}}`), "TooLarge"},
		"a response over the limit": {event(`{"jsonrpc":"2.0","id":2,"result":"` + strings.Repeat("x", 200_000) + `"}`), "TooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPiped()
			b := open(t, serve(t, p).URL+"/sse", func(_ *table.Backend, o *Options) { o.Limits.Event, o.Limits.Response = 1000, 100_000 })
			channel, _ := openSession(t, b)
			p.on = func(*wire.Message) string { return c.written }
			err := channel.Call(testContext(t), toolCall(`1`, "x", "", backend.Legacy), &sink{})
			if failure := classOf(t, err); failure.Class != c.class || !failure.Sent {
				t.Errorf("%v (%+v)", err, failure)
			}
		})
	}
}

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// deadline is longer than anything in a test takes that is right.
const deadline = 20 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// open makes a Backend of a URL, with small times unless change says otherwise.
func open(tb testing.TB, url string, change ...func(*table.Backend, *Options)) *Backend {
	tb.Helper()
	config := table.Backend{Name: "web", URL: url}
	options := Options{
		Logger: slog.New(slog.DiscardHandler), Version: "1.2.3", Hold: 3 * time.Second,
		Limits: Limits{Describe: 10 * time.Second},
	}
	for _, c := range change {
		c(&config, &options)
	}
	b, err := New(config, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return b
}

// sink records what a backend sends.
type sink struct {
	mu        sync.Mutex
	messages  []string
	response  string
	responses int
	// on is called with each message, if not nil.
	on func(m *wire.Message) error
	// inMemory says that the response came as a *bytes.Reader.
	inMemory bool
}

func (s *sink) Message(m *wire.Message) error {
	s.mu.Lock()
	s.messages = append(s.messages, string(m.Raw))
	on := s.on
	s.mu.Unlock()
	if on != nil {
		return on(m)
	}
	return nil
}

func (s *sink) Response(r io.Reader) error {
	_, inMemory := r.(interface{ Len() int })
	raw, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.response, s.inMemory = string(raw), inMemory
	s.responses++
	return err
}

func (s *sink) result(t *testing.T) *wire.Message {
	t.Helper()
	m, err := wire.Parse([]byte(s.response), wire.Limits{})
	if err != nil {
		t.Fatalf("the response %.300q: %v", s.response, err)
	}
	return m
}

// text is what a tool said.
func (s *sink) text(t *testing.T) string {
	t.Helper()
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	m := s.result(t)
	if m.Error != nil {
		t.Fatalf("the response is an error: %s", m.Error)
	}
	if err := json.Unmarshal(m.Result, &result); err != nil || len(result.Content) == 0 {
		t.Fatalf("the result %s has no content: %v", m.Result, err)
	}
	return result.Content[0].Text
}

func request(id, method, params string) *backend.Call {
	return &backend.Call{Message: wire.NewRequest(json.RawMessage(id), method, json.RawMessage(params))}
}

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// toolCall is a tools/call. A modern one says of itself what it must.
func toolCall(id, tool, arguments string, era backend.Era, meta ...string) *backend.Call {
	if era == backend.Modern {
		meta = append(meta, modernMeta)
	}
	if arguments == "" {
		arguments = "{}"
	}
	return request(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{%s}}`, tool, arguments, strings.Join(meta, ",")))
}

func classOf(t *testing.T, err error) *backend.Error {
	t.Helper()
	failure, ok := errors.AsType[*backend.Error](err)
	if !ok {
		t.Fatalf("%v is no *backend.Error", err)
	}
	return failure
}

// sdkServer is a server of the Go SDK that has what a test needs.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		//nolint:staticcheck // logging is deprecated, and in use
		Capabilities: &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}, Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	type input struct {
		Text string `json:"text,omitempty"`
		Size int    `json:"size,omitempty"`
	}
	type handler func(ctx context.Context, r *mcp.CallToolRequest, in input) (string, error)
	for name, handle := range map[string]handler{
		"echo": func(_ context.Context, _ *mcp.CallToolRequest, in input) (string, error) { return in.Text, nil },
		"big": func(_ context.Context, _ *mcp.CallToolRequest, in input) (string, error) {
			return strings.Repeat("x", in.Size), nil
		},
		"progress": func(ctx context.Context, r *mcp.CallToolRequest, _ input) (string, error) {
			for i := range 3 {
				err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
				if err != nil {
					return "", err
				}
			}
			return "done", nil
		},
		"log": func(ctx context.Context, r *mcp.CallToolRequest, in input) (string, error) {
			//nolint:staticcheck // logging is deprecated, and in use
			return "done", r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Data: in.Text})
		},
		"ask": func(ctx context.Context, r *mcp.CallToolRequest, in input) (string, error) {
			answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Text, RequestedSchema: json.RawMessage(`{"type":"object"}`)})
			if err != nil {
				return "", err
			}
			return answer.Action, nil
		},
		"poll": func(_ context.Context, r *mcp.CallToolRequest, _ input) (string, error) {
			r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 20 * time.Millisecond})
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the response has to come after the stream was closed
			return "polled", nil
		},
	} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			text, err := handle(ctx, r, in)
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
	}
	return s
}

// sdkHandlers are the ways the Go SDK serves over HTTP.
func sdkHandlers(s *mcp.Server) map[string]http.Handler {
	get := func(*http.Request) *mcp.Server { return s }
	streamable := func(stateless, json bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: json, EventStore: mcp.NewMemoryEventStore(nil)})
	}
	legacy, modern := streamable(false, false), streamable(true, false)
	return map[string]http.Handler{
		"stateful": legacy, "stateful JSON": streamable(false, true),
		"stateless": modern, "stateless JSON": streamable(true, true),
		"both by header": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Protocol-Version") >= wire.Version20260728 {
				modern.ServeHTTP(w, r)
				return
			}
			legacy.ServeHTTP(w, r)
		}),
		"SSE": mcp.NewSSEHandler(get, nil),
	}
}

// serve starts a server that ends with the test, connections that are open included.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// recorder records requests.
type recorder struct {
	http.Handler

	mu       sync.Mutex
	requests []recorded
}

type recorded struct {
	method, body string
	host         string
	header       http.Header
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.requests = append(r.requests, recorded{q.Method, string(body), q.Host, q.Header.Clone()})
	r.mu.Unlock()
	q.Body = io.NopCloser(strings.NewReader(string(body)))
	r.Handler.ServeHTTP(w, q)
}

func (r *recorder) with(part string) []recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []recorded
	for _, q := range r.requests {
		if strings.Contains(q.method+" "+q.body, part) {
			found = append(found, q)
		}
	}
	return found
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx := testContext(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

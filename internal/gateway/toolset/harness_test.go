package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// canary is the secret that must be nowhere.
const canary = "c4nary-s3cret-value"

type bearer struct{}

func (bearer) Apply(h http.Header) error {
	h.Set("Authorization", "Bearer "+canary)
	return nil
}

func (bearer) Redactor() *credential.Redactor { return credential.NewRedactor("Bearer " + canary) }

func testContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// logs are what a backend logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// open makes a backend that may dial loopback addresses, and looks for the canary in its logs at the end.
func open(tb testing.TB, config table.Backend, options Options) *Backend {
	tb.Helper()
	written := &logs{}
	config.Name, config.Transport = "tools", table.TransportToolset
	options.Logger = slog.New(slog.NewTextHandler(written, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if options.Dial == nil {
		options.Dial = (&plainDialer).DialContext
	}
	parsed(tb, config)
	b, err := New(config, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			tb.Error(err)
		}
		if strings.Contains(written.String(), canary) {
			tb.Errorf("the secret is in the logs:\n%s", written)
		}
	})
	return b
}

// parsed fails the test unless a table with the backend is valid.
func parsed(tb testing.TB, config table.Backend) {
	tb.Helper()
	raw, err := json.Marshal(&table.Table{Version: 1, Auth: table.Auth{Type: table.AuthNone}, Backends: []table.Backend{config}})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := table.Parse(raw); err != nil {
		tb.Fatal(err)
	}
}

// api of one operation named "do", behind a base path.
func openAPI(tb testing.TB, handler http.HandlerFunc, tool table.HTTPTool) *Backend {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	if tool.Definition == nil {
		tool.Definition = json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`)
	}
	return open(tb, table.Backend{URL: server.URL + "/v1", Toolset: &table.Toolset{HTTP: []table.HTTPTool{tool}}}, Options{Credential: bearer{}})
}

// sink keeps the response.
type sink struct{ response []byte }

func (*sink) Message(m *wire.Message) error { return fmt.Errorf("unasked for: %s", m.Raw) }

func (s *sink) Response(r io.Reader) (err error) {
	s.response, err = io.ReadAll(r)
	return err
}

// ask sends a request through the backend's channel and returns the response.
func ask(tb testing.TB, b *Backend, method, params string) (*wire.Message, error) {
	tb.Helper()
	ctx := testContext(tb)
	channel, err := b.Modern(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	var s sink
	request := wire.NewRequest(json.RawMessage(`"id-1"`), method, json.RawMessage(params))
	if err := channel.Call(ctx, &backend.Call{Message: request}, &s); err != nil {
		if strings.Contains(err.Error(), canary) {
			tb.Errorf("the secret is in an error: %v", err)
		}
		return nil, err
	}
	m, err := wire.Parse(s.response, wire.Limits{Bytes: 64 << 20})
	if err != nil {
		tb.Fatalf("the response is not valid: %v: %.500s", err, s.response)
	}
	if string(m.ID) != `"id-1"` {
		tb.Errorf("the response bears the id %s", m.ID)
	}
	if strings.Contains(string(s.response), canary) {
		tb.Errorf("the secret is in the response: %s", s.response)
	}
	return m, nil
}

// outcome is a result of tools/call.
type outcome struct {
	IsError bool `json:"isError"`
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Data     string `json:"data"`
		MimeType string `json:"mimeType"`
	} `json:"content"`
	// Structured is the structuredContent.
	Structured json.RawMessage `json:"structuredContent"`
	ResultType string          `json:"resultType"`
}

func (o outcome) text() string {
	var texts []string
	for _, c := range o.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n")
}

// call calls a tool and returns its result.
func call(tb testing.TB, b *Backend, name, arguments string) outcome {
	tb.Helper()
	m, err := ask(tb, b, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
	if err != nil {
		tb.Fatal(err)
	}
	if m.Result == nil {
		tb.Fatalf("answered with %s", m.Raw)
	}
	var o outcome
	if err := json.Unmarshal(m.Result, &o); err != nil {
		tb.Fatal(err)
	}
	if o.ResultType != "complete" || o.Content == nil {
		tb.Errorf("the result lacks its type or content: %s", m.Result)
	}
	return o
}

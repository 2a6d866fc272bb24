package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	greeting = "test://greeting"
	// pages is how many tools there are besides the ones that do something: with pageSize they make three pages.
	pages, pageSize = 15, 10
)

// newServer makes a server with something of everything. What it counts it tells by a tool, since it may be another process.
func newServer(name string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
		PageSize: pageSize,
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"red", "green"}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	addTools(s)
	for i := range pages {
		addTool(s, fmt.Sprintf("tool-%02d", i), func(context.Context, *mcp.CallToolRequest, struct{}) (string, error) { return "", nil })
	}
	s.AddResource(&mcp.Resource{Name: "greeting", URI: greeting}, readResource)
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "item", URITemplate: "test://item/{id}"}, readResource)
	s.AddPrompt(&mcp.Prompt{Name: "hello", Arguments: []*mcp.PromptArgument{{Name: "name"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := "hello " + r.Params.Arguments["name"]
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
		})
	return s
}

func readResource(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "content of " + r.Params.URI}}}, nil
}

// addTool adds a tool that answers with a text.
func addTool[In any](s *mcp.Server, name string, do func(context.Context, *mcp.CallToolRequest, In) (string, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: name}, func(ctx context.Context, r *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		text, err := do(ctx, r, in)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
	})
}

type textInput struct {
	Text string `json:"text"`
}

type none struct{}

func addTools(s *mcp.Server) {
	var calls, cancelled, grown atomic.Int64
	addTool(s, "echo", func(_ context.Context, _ *mcp.CallToolRequest, in textInput) (string, error) {
		calls.Add(1)
		return in.Text, nil
	})
	addTool(s, "calls", func(context.Context, *mcp.CallToolRequest, none) (string, error) {
		return strconv.FormatInt(calls.Load(), 10), nil
	})
	addTool(s, "slow", func(ctx context.Context, r *mcp.CallToolRequest, _ none) (string, error) {
		// The client learns that the call has begun.
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		if err != nil {
			return "", err
		}
		<-ctx.Done()
		cancelled.Add(1)
		return "", ctx.Err()
	})
	addTool(s, "cancelled", func(context.Context, *mcp.CallToolRequest, none) (string, error) {
		return strconv.FormatInt(cancelled.Load(), 10), nil
	})
	addTool(s, "progress", func(ctx context.Context, r *mcp.CallToolRequest, _ none) (string, error) {
		for i := range 3 {
			p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 3}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	addTool(s, "log", func(ctx context.Context, r *mcp.CallToolRequest, _ none) (string, error) {
		for _, level := range []string{"debug", "info", "error"} {
			//nolint:staticcheck // deprecated, and in use
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(level), Data: "said"}); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	addTool(s, "grow", func(context.Context, *mcp.CallToolRequest, none) (string, error) {
		name := fmt.Sprintf("grown-%d", grown.Add(1))
		addTool(s, name, func(context.Context, *mcp.CallToolRequest, none) (string, error) { return name, nil })
		return name, nil
	})
	addTool(s, "touch", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (string, error) {
		return "done", s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: greeting})
	})
	addTool(s, "ask", func(ctx context.Context, r *mcp.CallToolRequest, _ none) (string, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{
			Message: "sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		})
		if err != nil {
			return "", err
		}
		return answer.Action, nil
	})
}

// kind is one of the kinds of servers that there are.
type kind struct {
	name string
	// handler serves the server over HTTP; nil for one on stdio.
	handler func(*mcp.Server) http.Handler
	// legacy says that it keeps sessions, so that it can ask its clients something.
	legacy bool
	// terse says that it answers calls in JSON, so that nothing comes along with an answer for whoever has no stream of its own.
	terse bool
	// anonymous says that its log messages say not of which call they are, so that none of those who share a session gets them.
	anonymous bool
	// heedless says that it goes on with calls of 2026-07-28 that were given up, also when it is called directly.
	heedless bool
}

func streamable(options *mcp.StreamableHTTPOptions) func(*mcp.Server) http.Handler {
	return func(s *mcp.Server) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, options)
	}
}

const versionHeader = "Mcp-Protocol-Version"

// both serves every protocol version.
func both(s *mcp.Server) http.Handler {
	legacy, modern := streamable(nil)(s), streamable(&mcp.StreamableHTTPOptions{Stateless: true})(s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(versionHeader) >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})
}

// modernOnly refuses what is not of 2026-07-28.
func modernOnly(s *mcp.Server) http.Handler {
	modern := streamable(&mcp.StreamableHTTPOptions{Stateless: true})(s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(versionHeader) < "2026-07-28" {
			http.Error(w, "unsupported protocol version", http.StatusBadRequest)
			return
		}
		modern.ServeHTTP(w, r)
	})
}

// legacyStateless keeps no sessions, and refuses what is of 2026-07-28.
func legacyStateless(s *mcp.Server) http.Handler {
	legacy := streamable(&mcp.StreamableHTTPOptions{Stateless: true})(s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(versionHeader) >= "2026-07-28" {
			http.Error(w, "unsupported protocol version", http.StatusBadRequest)
			return
		}
		legacy.ServeHTTP(w, r)
	})
}

var kinds = []kind{
	{name: "stateful", handler: streamable(nil), legacy: true},
	{name: "stateful, answers in JSON", handler: streamable(&mcp.StreamableHTTPOptions{JSONResponse: true}), legacy: true, terse: true},
	{name: "stateless", handler: streamable(&mcp.StreamableHTTPOptions{Stateless: true}), heedless: true},
	{name: "2026-07-28 only", handler: modernOnly, heedless: true},
	{name: "both versions", handler: both, legacy: true, heedless: true},
	{name: "HTTP+SSE", handler: func(s *mcp.Server) http.Handler {
		return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}, legacy: true, anonymous: true},
	{name: "stdio"},
}

// start starts a server of the kind, and returns it as a backend.
func (k kind) start(t *testing.T, name string) table.Backend {
	t.Helper()
	if k.handler == nil {
		return table.Backend{Name: name, Transport: table.TransportStdio, Command: []string{os.Args[0], asServer}}
	}
	return table.Backend{Name: name, URL: serve(t, k.handler(newServer(name)))}
}

func serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(func() { // not Close: a handler that waits for its client is none of this test's business any more
		_ = s.Listener.Close()
		s.CloseClientConnections()
	})
	return s.URL
}

// answering is a tool that answers this.
func answering(text string) func(context.Context, *mcp.CallToolRequest, none) (string, error) {
	return func(context.Context, *mcp.CallToolRequest, none) (string, error) { return text, nil }
}

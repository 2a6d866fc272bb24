package gateway

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// client is a client of the Go SDK and what it was told.
type client struct {
	*mcp.ClientSession

	told chan string
}

// versions are the protocol versions that clients speak.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// connect connects a client to an endpoint.
func connect(t *testing.T, url, version string) *client {
	t.Helper()
	c := &client{told: make(chan string, 100)}
	tell := func(what string) {
		select {
		case c.told <- what:
		default:
		}
	}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { tell("tools changed") },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { tell("updated " + r.Params.URI) },
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { //nolint:staticcheck // deprecated, and in use
			tell("log " + string(r.Params.Level))
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { tell("progress") },
	})
	session, err := sdk.Connect(inTime(t), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect a client of %s: %v", version, err)
	}
	t.Cleanup(func() { _ = session.Close() })
	c.ClientSession = session
	return c
}

// inTime ends a minute from now: what is asked takes a moment, and longer on a busy machine.
func inTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// call calls a tool and returns the text that it answers.
func (c *client) call(t *testing.T, name string, arguments map[string]any) string {
	t.Helper()
	text, err := c.try(inTime(t), name, arguments)
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	return text
}

func (c *client) try(ctx context.Context, name string, arguments map[string]any) (string, error) {
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	return textOf(r), nil
}

func textOf(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, content := range r.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// hears waits until the client was told something.
func (c *client) hears(t *testing.T, what string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case got := <-c.told:
			if got == what {
				return
			}
		case <-deadline:
			t.Errorf("the client was not told: %s", what)
			return
		}
	}
}

// tools lists the names of all tools, page by page.
func (c *client) tools(t *testing.T) []string {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(inTime(t), nil) {
		if err != nil {
			t.Fatalf("list tools: %v", err)
		}
		names = append(names, tool.Name)
	}
	return names
}

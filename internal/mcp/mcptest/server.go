// Package mcptest runs MCP servers inside a test: real ones built with the
// official Go SDK, hand-written ones whose every byte a test decides, and
// hostile ones. All of them listen on a loopback port, keep a log of what they
// were sent, and end with the test.
package mcptest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server is a server under test and the log of its requests.
type Server struct {
	// URL is the server's MCP endpoint.
	URL string

	sdk   *mcp.Server
	http  *httptest.Server
	pipe  *pipeListener
	mu    sync.Mutex
	log   []Request
	tools []string
}

type settings struct {
	json, stateful, stateless, hostCheck bool
	pageSize                             int
	instructions                         string
	tools                                []string
	bare                                 bool
}

// Option changes what NewServer makes.
type Option func(*settings)

// Stateful makes a server that speaks 2025-11-25 and older only, with sessions.
func Stateful() Option { return func(s *settings) { s.stateful = true } }

// Stateless makes a server without sessions: 2026-07-28, and older versions as
// far as they work without.
func Stateless() Option { return func(s *settings) { s.stateless = true } }

// JSON makes a server that answers in JSON instead of event streams.
func JSON() Option { return func(s *settings) { s.json = true } }

// Tools sets the tools the server begins with; the default is "echo".
func Tools(names ...string) Option { return func(s *settings) { s.tools = names } }

// Instructions sets the server's instructions.
func Instructions(text string) Option { return func(s *settings) { s.instructions = text } }

// PageSize sets how many entries a page of a list has.
func PageSize(n int) Option { return func(s *settings) { s.pageSize = n } }

// CheckHost makes a server that refuses Host headers other than localhost, as
// the SDK does by default for servers reached over loopback.
func CheckHost() Option { return func(s *settings) { s.hostCheck = true } }

// Bare makes a server without prompts and resources.
func Bare() Option { return func(s *settings) { s.bare = true } }

// NewServer starts a real MCP server. Without Stateful or Stateless it speaks
// both generations of the protocol, chosen by the MCP-Protocol-Version header,
// with sessions for the older.
func NewServer(tb testing.TB, options ...Option) *Server {
	tb.Helper()
	set := settings{tools: []string{"echo"}}
	for _, option := range options {
		option(&set)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "mcptest", Title: "Test server", Version: "1.2.3"}, &mcp.ServerOptions{
		Instructions: set.instructions, PageSize: set.pageSize,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	handler := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, JSONResponse: set.json, DisableLocalhostProtection: !set.hostCheck,
		})
	}
	stateful, stateless := handler(false), handler(true)
	s := Serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		modern := r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28"
		if set.stateless || modern && !set.stateful {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	}))
	s.sdk = sdk
	tb.Cleanup(func() { s.EndSessions() })
	s.SetTools(set.tools...)
	if !set.bare {
		addPromptAndResource(sdk)
	}
	return s
}

func addPromptAndResource(sdk *mcp.Server) {
	sdk.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	sdk.AddResource(&mcp.Resource{Name: "readme", URI: "test://readme"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
}

// SetTools replaces the server's tools. Their definitions depend on their names
// only.
func (s *Server) SetTools(names ...string) {
	s.mu.Lock()
	gone := s.tools
	s.tools = slices.Clone(names)
	s.mu.Unlock()
	s.sdk.RemoveTools(gone...)
	for _, name := range names {
		s.SetTool(name, "The tool "+name)
	}
}

// SetTool adds a tool or changes its description.
func (s *Server) SetTool(name, description string) {
	s.sdk.AddTool(&mcp.Tool{
		Name: name, Description: description,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
	})
}

// Sessions returns the number of sessions that were opened and not ended.
func (s *Server) Sessions() int {
	n := 0
	for range s.sdk.Sessions() {
		n++
	}
	return n
}

// EndSessions ends all sessions, as a restart of the server would.
func (s *Server) EndSessions() {
	for session := range s.sdk.Sessions() {
		// A session that is already ending is as good as ended.
		_ = session.Close()
	}
}

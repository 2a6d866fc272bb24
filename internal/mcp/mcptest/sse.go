package mcptest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// NewSSEServer starts a real MCP server that speaks HTTP with SSE (2024-11-05)
// only.
func NewSSEServer(tb testing.TB, tools ...string) *Server {
	tb.Helper()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "mcptest", Title: "Test server", Version: "1.2.3"}, nil)
	s := Serve(tb, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.SSEOptions{DisableLocalhostProtection: true}))
	s.sdk = sdk
	tb.Cleanup(func() { s.EndSessions() })
	s.SetTools(tools...)
	return s
}

// SSE is a hand-written server of HTTP with SSE. Its zero value names the
// endpoint "/post", and answers as a plain server that has one tool, "echo".
type SSE struct {
	// Script answers each method; what it writes becomes an event.
	Script Script
	// Open writes the beginning of the stream; nil writes the endpoint event.
	Open func(w http.ResponseWriter, r *http.Request)
	// Post is asked before a post is taken; false says that it answered.
	Post func(w http.ResponseWriter, r *http.Request) bool
	// Endpoint is named by the stream. Empty: "/post".
	Endpoint string
	// Close ends the stream after its beginning.
	Close bool

	mu      sync.Mutex
	streams []http.ResponseWriter
}

// ServeHTTP opens the stream, or takes a post.
func (s *SSE) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.open(w, r)
		return
	}
	if s.Post != nil && !s.Post(w, r) {
		return
	}
	answer := httptest.NewRecorder()
	Legacy(s.Script).ServeHTTP(answer, r)
	if answer.Body.Len() > 0 {
		s.Send("event: message\ndata: " + strings.ReplaceAll(answer.Body.String(), "\n", " ") + "\n\n")
	}
	w.WriteHeader(http.StatusAccepted) // only now, as some servers do
}

func (s *SSE) open(w http.ResponseWriter, r *http.Request) {
	open := s.Open
	if open == nil {
		endpoint := s.Endpoint
		if endpoint == "" {
			endpoint = "/post"
		}
		open = func(w http.ResponseWriter, _ *http.Request) {
			Raw(w, http.StatusOK, "text/event-stream", "event: endpoint\ndata: "+endpoint+"\n\n")
		}
	}
	s.mu.Lock()
	open(w, r)
	// A recorder of a test is no Flusher; a server's writer is.
	_ = http.NewResponseController(w).Flush()
	if s.Close {
		s.mu.Unlock()
		return
	}
	s.streams = append(s.streams, w) // before anybody who read the beginning is answered
	s.mu.Unlock()
	<-r.Context().Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = slices.DeleteFunc(s.streams, func(stream http.ResponseWriter) bool { return stream == w })
}

// Send writes to the open stream.
func (s *SSE) Send(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range s.streams {
		writef(stream, "%s", text)
		_ = http.NewResponseController(stream).Flush() // the client may have hung up
	}
}

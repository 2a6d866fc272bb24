package translate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

var update = flag.Bool("update", false, "capture the messages of a real client and server anew")

// bridge lets a client of one era use a server of the other one, with nothing but this package: the least that a gateway does.
type bridge struct {
	tb     testing.TB
	server string // its URL
	client backend.Era

	mu       sync.Mutex
	self     backend.Client // a legacy client, as it said in initialize
	level    string         // that a legacy client asked for
	session  string         // of a legacy server
	captured map[string][]byte
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		b.tb.Error(err)
	}
	m, err := wire.Parse(body, wire.DefaultLimits)
	if err != nil {
		b.tb.Errorf("%v: %s", err, body)
		return
	}
	if m.Kind != wire.Request {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	switch Method(m.Method, b.client, other(b.client)) {
	case Answer:
		b.write(w, b.answer(r.Context(), m))
	case Refuse:
		w.WriteHeader(http.StatusNotFound)
		b.write(w, MethodNotFound(m.ID, m.Method))
	case Forward:
		b.forward(r.Context(), w, m)
	}
}

func other(era backend.Era) backend.Era { return backend.Modern - era }

func (*bridge) write(w http.ResponseWriter, m *wire.Message) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(m.Raw)
}

// answer is what a gateway says itself.
func (b *bridge) answer(ctx context.Context, m *wire.Message) *wire.Message {
	switch m.Method {
	case "initialize":
		version, _ := m.StringParam("protocolVersion")
		b.mu.Lock()
		b.self = backend.Client{Capabilities: m.Param("capabilities"), Info: m.Param("clientInfo")}
		b.mu.Unlock()
		discover := ToModern(wire.NewRequest(m.ID, "server/discover", nil), b.self, wire.Version20260728, "")
		result := b.whole(b.post(ctx, discover))
		return wire.NewResult(m.ID, b.note("initialize.result", result, ReadDiscover(result).Across(Carries{Logging: true}).Initialize(version)))
	case "server/discover":
		initialize := wire.NewRequest(m.ID, "initialize", json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},
			"clientInfo":{"name":"bridge","version":"1"}}`))
		response := b.post(ctx, initialize)
		b.mu.Lock()
		b.session = response.Header.Get("Mcp-Session-Id")
		b.mu.Unlock()
		result := b.whole(response)
		b.post(ctx, wire.NewNotification("notifications/initialized", nil)).Body.Close()
		b.post(ctx, wire.NewRequest(m.ID, "logging/setLevel", json.RawMessage(`{"level":"debug"}`))).Body.Close()
		return wire.NewResult(m.ID, b.note("discover.result", result, ReadInitialize(result).Across(Carries{Logging: true}).Discover()))
	case "logging/setLevel":
		b.mu.Lock()
		b.level, _ = m.StringParam("level")
		b.mu.Unlock()
	}
	return wire.NewResult(m.ID, nil)
}

// whole returns the result of a response.
func (b *bridge) whole(response *http.Response) json.RawMessage {
	defer response.Body.Close()
	e, err := wire.NewEventReader(response.Body, 1<<20).Next()
	if err != nil {
		b.tb.Error(err)
	}
	return bytes.Clone(wire.Field(e.Data, "result"))
}

func (b *bridge) post(ctx context.Context, m *wire.Message) *http.Response {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.server, bytes.NewReader(m.Raw))
	if err != nil {
		b.tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client == backend.Legacy {
		m.Headers(r.Header)
	} else if m.Method != "initialize" {
		r.Header.Set("Mcp-Protocol-Version", wire.Version20251125)
		r.Header.Set("Mcp-Session-Id", b.session)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.tb.Fatal(err)
	}
	return response
}

// forward translates a request, what comes along with it, and its response.
func (b *bridge) forward(ctx context.Context, w http.ResponseWriter, m *wire.Message) {
	b.mu.Lock()
	self, level := b.self, b.level
	b.mu.Unlock()
	translated := ToLegacy(m)
	if b.client == backend.Legacy {
		translated = ToModern(m, self, wire.Version20260728, level)
	} else {
		level, _ = wire.String(m.MetaField(wire.MetaLogLevel))
	}
	name := strings.ReplaceAll(m.Method, "/", "-")
	if called, ok := m.StringParam("name"); ok {
		name += "-" + called
	}
	if uri, ok := m.StringParam("uri"); ok {
		name += "-" + strings.TrimPrefix(uri, "test://")
	}
	b.note(name+".request", m.Raw, translated.Raw)
	response := b.post(ctx, translated)
	defer response.Body.Close()
	events := wire.NewEventReader(response.Body, 1<<20)
	if response.Header.Get("Content-Type") == "application/json" {
		b.respond(response.Body, m, name, func(out []byte) { _, _ = w.Write(out) }, w)
		return
	}
	out := wire.NewEventWriter(w)
	for {
		e, err := events.Next()
		if err != nil {
			return
		}
		if n, err := wire.Parse(e.Data, wire.DefaultLimits); err == nil && n.Kind == wire.Notification {
			if ForCaller(n, b.client, level) {
				_ = out.Event(n.Raw)
			}
			continue
		}
		b.respond(bytes.NewReader(e.Data), m, name, func(data []byte) { _ = out.Event(data) }, nil)
	}
}

func (b *bridge) respond(r io.Reader, m *wire.Message, name string, emit func([]byte), w http.ResponseWriter) {
	if w != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	var original bytes.Buffer
	r = io.TeeReader(r, &original)
	stream := StreamToModern(r, m.Method)
	if b.client == backend.Legacy {
		stream = StreamToLegacy(r, m.ID)
	}
	translated, err := io.ReadAll(stream)
	if err != nil {
		b.tb.Error(err)
	}
	b.note(name+".response", original.Bytes(), translated)
	emit(translated)
}

// note keeps what went in and what came out.
func (b *bridge) note(name string, in, out []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.captured[name+".in.json"], b.captured[name+".out.json"] = bytes.Clone(in), bytes.Clone(out)
	return out
}

func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: "Echo.",
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"paris"}}}, nil
		},
	})
	object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"$comment":"\u00e4"}`)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: object}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2})
		}
		for _, message := range []mcp.LoggingMessageParams{{Level: "debug", Data: "debug"}, {Level: "error", Data: "error"}} { //nolint:staticcheck // as below
			_ = r.Session.Log(ctx, &message) //nolint:staticcheck // deprecated, and carried as long as it lives
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "Sure?"}}}, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hi"}}}}, nil
	})
	server.AddResource(&mcp.Resource{Name: "r", URI: "test://r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://r", Text: "body"}}}, nil
	})
	return server
}

// connect runs a client of one era against a server of the other one.
func connect(t *testing.T, client backend.Era) (*mcp.ClientSession, *bridge, *events) {
	t.Helper()
	fixture := newServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return fixture },
		&mcp.StreamableHTTPOptions{Stateless: client == backend.Legacy})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	b := &bridge{tb: t, server: server.URL, client: client, captured: map[string][]byte{}}
	front := httptest.NewServer(b)
	t.Cleanup(front.Close)
	seen := &events{}
	c := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1.0.0"}, &mcp.ClientOptions{
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { //nolint:staticcheck // deprecated, and carried as long as it lives
			seen.add(fmt.Sprint("log ", r.Params.Data))
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			seen.add(fmt.Sprint("progress ", r.Params.ProgressToken))
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	version := map[backend.Era]string{backend.Legacy: wire.Version20251125, backend.Modern: wire.Version20260728}[client]
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: front.URL, DisableStandaloneSSE: true},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, b, seen
}

// events are what a client was told meanwhile.
type events struct {
	mu   sync.Mutex
	seen []string
}

func (e *events) add(s string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, s)
}

func TestARealLegacyClientUsesARealModernServer(t *testing.T) {
	t.Parallel()
	session, b, seen := connect(t, backend.Legacy)
	if err := session.Ping(t.Context(), nil); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "warning"}); err != nil { //nolint:staticcheck // see above
		t.Errorf("set level: %v", err)
	}
	exercise(t, session, seen, "2025-11-25")
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{}})
	if rpcError, ok := errors.AsType[*jsonrpc.Error](err); !ok || rpcError.Code != wire.CodeInternal || !strings.Contains(rpcError.Message, "asks for input") {
		t.Errorf("a tool that asks: %v", err)
	}
	compareCaptured(t, "legacy-client", b)
}

func TestARealModernClientUsesARealLegacyServer(t *testing.T) {
	t.Parallel()
	session, b, seen := connect(t, backend.Modern)
	exercise(t, session, seen, "2026-07-28")
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{}}); err == nil {
		t.Error("a tool could ask a client that nobody can reach")
	}
	compareCaptured(t, "modern-client", b)
}

// exercise does what works across eras.
func exercise(t *testing.T, session *mcp.ClientSession, seen *events, version string) {
	t.Helper()
	ctx := t.Context()
	init := session.InitializeResult()
	if init.ProtocolVersion != version || init.ServerInfo.Name != "fixture" || init.Instructions != "Echo." {
		t.Errorf("the server is %+v of version %s", init.ServerInfo, init.ProtocolVersion)
	}
	if c := init.Capabilities; c.Tools == nil || c.Tools.ListChanged || c.Completions == nil || c.Prompts == nil || c.Resources == nil {
		t.Errorf("capabilities %+v", c)
	}
	tools, err := session.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 2 {
		t.Errorf("tools %+v, %v", tools, err)
	}
	params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "ä"}}
	params.SetMeta(mcp.Meta{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if version == wire.Version20260728 {
		params.Meta[wire.MetaLogLevel] = "warning"
	}
	params.SetProgressToken("p1")
	result, err := session.CallTool(ctx, params)
	if err != nil || len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != `{"text":"ä"}` { //nolint:forcetypeassert // a test
		t.Errorf("call: %+v, %v", result, err)
	}
	if prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"}); err != nil || len(prompt.Messages) != 1 {
		t.Errorf("prompt: %+v, %v", prompt, err)
	}
	if read, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://r"}); err != nil || read.Contents[0].Text != "body" {
		t.Errorf("resource: %+v, %v", read, err)
	}
	_, err = session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://missing"})
	if rpcError, ok := errors.AsType[*jsonrpc.Error](err); !ok || rpcError.Code != wire.CodeInvalidParams {
		t.Errorf("missing resource: %v", err)
	}
	completion, err := session.Complete(ctx, &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "a", Value: "p"},
	})
	if err != nil || len(completion.Completion.Values) != 1 {
		t.Errorf("completion: %+v, %v", completion, err)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if diff := cmp.Diff([]string{"progress p1", "log error"}, seen.seen); diff != "" {
		t.Errorf("told meanwhile (-want +got):\n%s", diff)
	}
}

// compareCaptured holds messages of a real client and server, and what becomes of them, against those in testdata.
func compareCaptured(t *testing.T, name string, b *bridge) {
	t.Helper()
	folder := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
			t.Fatal(err)
		}
		for file, raw := range b.captured {
			if err := os.WriteFile(filepath.Join(folder, file), append(bytes.TrimSpace(raw), '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) != len(b.captured) {
		t.Fatalf("%d files in %s for %d messages (go test -update captures anew), %v", len(files), folder, len(b.captured), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.captured[filepath.Base(file)]; string(bytes.TrimSpace(got)) != string(bytes.TrimSpace(want)) {
			t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
		}
	}
}

package child

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// build builds a program of the Go SDK.
func build(tb testing.TB, program string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), filepath.Base(program))
	out, err := exec.Command("go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/"+program).CombinedOutput()
	if err != nil {
		tb.Fatalf("build %s: %v: %s", program, err, out)
	}
	return path
}

// link lets a client of the Go SDK speak to a backend, as the gateway's HTTP side does for clients of its own.
type link struct {
	backend  *Backend
	mu       sync.Mutex
	channel  backend.Channel
	cancels  map[string]context.CancelFunc
	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once
}

func newLink(b *Backend) *link {
	return &link{
		backend: b, cancels: map[string]context.CancelFunc{}, incoming: make(chan jsonrpc.Message, 100), closed: make(chan struct{}),
	}
}

func (l *link) Connect(context.Context) (mcp.Connection, error) { return l, nil }

func (l *link) SessionID() string { return "" }

func (l *link) Close() error {
	l.once.Do(func() { close(l.closed) })
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cancel := range l.cancels {
		cancel()
	}
	if l.channel != nil && l.channel.Era() == backend.Legacy {
		return l.channel.Close(context.Background())
	}
	return nil
}

func (l *link) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-l.incoming:
		return m, nil
	case <-l.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *link) Message(m *wire.Message) error {
	decoded, err := jsonrpc.DecodeMessage(bytes.Clone(m.Raw))
	if err == nil {
		l.incoming <- decoded
	}
	return err
}

func (l *link) Response(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	decoded, err := jsonrpc.DecodeMessage(raw)
	if err == nil {
		l.incoming <- decoded
	}
	return err
}

func (l *link) Write(ctx context.Context, out jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(out)
	if err != nil {
		return err
	}
	m, err := wire.Parse(raw, wire.DefaultLimits)
	if err != nil {
		return err
	}
	if m.Kind == wire.Request && m.Method == "initialize" {
		return l.open(ctx, m)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channel == nil {
		if l.channel, err = l.backend.Modern(ctx); err != nil {
			return err
		}
	}
	channel := l.channel
	switch {
	case m.Method == methodCancelled:
		if cancel := l.cancels[string(m.Param("requestId"))]; cancel != nil {
			cancel()
		}
		return nil
	case m.Kind != wire.Request:
		return channel.Send(ctx, m)
	}
	calling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancels[string(m.ID)] = cancel
	go func() {
		if err := channel.Call(calling, &backend.Call{Message: m}, l); err != nil && calling.Err() == nil {
			_ = l.Message(wire.NewError(m.ID, wire.CodeInternal, err.Error(), nil))
		}
	}()
	return nil
}

func (l *link) open(ctx context.Context, m *wire.Message) error {
	version, _ := m.StringParam("protocolVersion")
	c := backend.Client{Capabilities: m.Param("capabilities"), Info: m.Param("clientInfo"), Version: version}
	channel, _, err := l.backend.Open(ctx, c)
	if err != nil {
		return err
	}
	d, err := l.backend.Describe(ctx)
	if err != nil {
		return err
	}
	listening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	l.channel, l.cancels["stream"] = channel, cancel
	l.mu.Unlock()
	go func() { _ = channel.Listen(listening, nil, l) }()
	return l.Message(wire.NewResult(m.ID, d.Initialize))
}

// user is a client of the Go SDK and what it was told.
type user struct {
	*mcp.ClientSession

	progress, logs, tools, updates chan string
}

func newUser(t *testing.T, b *Backend, version string, asked bool) *user {
	t.Helper()
	u := &user{progress: make(chan string, 100), logs: make(chan string, 100), tools: make(chan string, 100), updates: make(chan string, 100)}
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			u.progress <- fmt.Sprint(r.Params.ProgressToken, r.Params.Progress)
		},
		//nolint:staticcheck // deprecated, and served
		LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { u.logs <- fmt.Sprint(r.Params.Data) },
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { u.tools <- "changed" },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { u.updates <- r.Params.URI },
	}
	if asked {
		options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"username": "ann", "name": "ann"}}, nil
		}
		//nolint:staticcheck // deprecated, and served
		options.CreateMessageHandler = func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "sampled"}}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	s, err := client.Connect(t.Context(), newLink(b), &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	u.ClientSession = s
	return u
}

// text calls a tool and returns the text of its result.
func (u *user) text(t *testing.T, name string, args map[string]any, meta mcp.Meta) string {
	t.Helper()
	result, err := u.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args, Meta: meta})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	raw, err := json.Marshal(result.Content)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func receive(t *testing.T, what string, c chan string) string {
	t.Helper()
	select {
	case got := <-c:
		return got
	case <-time.After(testPatience):
		t.Fatalf("%s: nothing came", what)
		return ""
	}
}

func TestTheSDKsServerServesTheSDKsClientsOfBothVersions(t *testing.T) {
	t.Parallel()
	path := build(t, "conformance/everything-server")
	r := newRig(t, script{}, func(o *Options) { o.Command, o.Env = []string{path}, nil })
	d, err := r.Describe(r.context())
	if err != nil || !d.Legacy || !d.Modern || d.Versions[0] != "2026-07-28" {
		t.Fatalf("%+v, %v", d, err)
	}
	for name, c := range map[string]struct {
		version string
		asked   bool
	}{
		"2025-11-25":              {"2025-11-25", false},
		"2025-11-25, own process": {"2025-11-25", true},
		"2026-07-28":              {"2026-07-28", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modern := c.version == wire.Version20260728
			one, two := newUser(t, r.Backend, c.version, c.asked), newUser(t, r.Backend, c.version, c.asked)
			if tools, err := one.ListTools(t.Context(), nil); err != nil || len(tools.Tools) < 20 {
				t.Fatalf("%+v, %v", tools, err)
			}
			if got := one.text(t, "test_simple_text", nil, nil); !strings.Contains(got, "simple text response") {
				t.Error(got)
			}
			for _, u := range []*user{one, two} {
				u.text(t, "test_tool_with_progress", nil, mcp.Meta{"progressToken": "mine"})
				for _, want := range []string{"mine0", "mine50", "mine100"} {
					if got := receive(t, "progress", u.progress); got != want {
						t.Errorf("progress %q, want %q", got, want)
					}
				}
			}
			if err := two.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://watched-resource"}); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, "update", two.updates); got != "test://watched-resource" {
				t.Error(got)
			}
			one.text(t, "test_trigger_tool_change", nil, nil)
			receive(t, "tools", one.tools)
			if !c.asked || modern {
				receive(t, "tools of the other", two.tools)
			}
			if got := len(one.updates); got != 0 {
				t.Errorf("%d updates without a subscription", got)
			}
			askAndLog(t, one, modern, c.asked)
		})
	}
}

// askAndLog tries what a server asks of clients, and log messages.
func askAndLog(t *testing.T, u *user, modern, asked bool) {
	t.Helper()
	switch {
	case modern:
		if got := u.text(t, "test_input_required_result_elicitation", nil, nil); !strings.Contains(got, "Hello, ann") {
			t.Error(got)
		}
		u.text(t, "test_logging_tool", nil, mcp.Meta{wire.MetaLogLevel: "info"})
		receive(t, "log message", u.logs)
	case asked:
		if got := u.text(t, "test_sampling", map[string]any{"prompt": "x"}, nil); !strings.Contains(got, "sampled") {
			t.Error(got)
		}
		if got := u.text(t, "test_elicitation", map[string]any{"message": "x"}, nil); !strings.Contains(got, "ann") {
			t.Error(got)
		}
		if err := u.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil { //nolint:staticcheck // deprecated, and served
			t.Fatal(err)
		}
		u.text(t, "test_tool_with_logging", nil, nil)
		for range 3 {
			receive(t, "log message", u.logs)
		}
	default:
		if got := u.text(t, "test_elicitation", map[string]any{"message": "x"}, nil); !strings.Contains(got, "does not support elicitation") {
			t.Error(got)
		}
	}
}

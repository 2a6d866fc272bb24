package front

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/auth"
	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// silent is a backend, and each channel of it, that takes calls and never answers.
type silent struct {
	// called gets an element for each call.
	called chan struct{}
	// listening gets an element for each stream, if it is not nil.
	listening chan struct{}
	// describe and open are the errors of these.
	describe, open error
	// lost says that it knows no session.
	lost bool
}

func (s *silent) Describe(context.Context) (*backend.Description, error) {
	if s.describe != nil {
		return nil, s.describe
	}
	return &backend.Description{Legacy: true, Initialize: json.RawMessage(`{"capabilities":{"tools":{}}}`)}, nil
}

func (s *silent) Forget() {}

func (s *silent) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	return s, backend.Handle{Session: "s", Version: "2025-11-25"}, s.open
}

func (s *silent) Resume(backend.Handle) (backend.Channel, error)  { return s, nil }
func (s *silent) Modern(context.Context) (backend.Channel, error) { return nil, backend.ErrEra }
func (s *silent) Close(context.Context) error                     { return nil }
func (s *silent) Era() backend.Era                                { return backend.Legacy }
func (s *silent) Send(context.Context, *wire.Message) error       { return nil }

func (s *silent) Listen(context.Context, *backend.Call, backend.Sink) error {
	if s.listening != nil {
		s.listening <- struct{}{}
	}
	return backend.ErrNoStream
}

// Call tells of its end as upstream does: by a failure that says that the request was sent, and why it ended.
func (s *silent) Call(ctx context.Context, _ *backend.Call, _ backend.Sink) error {
	if s.lost {
		return &backend.Error{Backend: "b", Class: "NotFound", Err: backend.ErrSession}
	}
	s.called <- struct{}{}
	<-ctx.Done()
	return &backend.Error{Backend: "b", Class: "Timeout", Sent: true, Err: context.Cause(ctx)}
}

// endpoint is a gateway with one backend, and its URL. It is not watched.
func endpoint(t *testing.T, b backend.Backend) (f *Front, state func(table.Backend) *State, url string) {
	t.Helper()
	verifier, err := auth.New(t.Context(), table.Auth{Type: table.AuthNone}, auth.Options{Path: table.DefaultPath}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f = New(Options{Logger: slog.New(slog.DiscardHandler), Telemetry: telemetry.New(telemetry.Options{}), Sealer: seal.Ephemeral()})
	state = func(config table.Backend) *State {
		routes := &table.Table{Endpoint: table.Endpoint{Path: table.DefaultPath}, Backends: []table.Backend{config}}
		return &State{Table: routes, Verifier: verifier, Backends: []*Backend{NewBackend(config, b)}}
	}
	f.Use(state(table.Backend{Name: "b"}))
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, state, server.URL + table.DefaultPath
}

// ask sends a message and returns the session id that comes back, and the answer.
func ask(t *testing.T, method, url string, headers map[string]string, body string) (id, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.Header.Get(headerSession), string(content)
}

const (
	initializing = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}}`
	calling      = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}`
)

func TestACallThatWasSentIsNeverCalledSafeToTryAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *Front, state func(table.Backend) *State, url, session string){
		"its session is ended": func(_ *Front, _ func(table.Backend) *State, url, session string) {
			ask(t, http.MethodDelete, url, map[string]string{headerSession: session}, "")
		},
		"its tool is withdrawn": func(f *Front, state func(table.Backend) *State, _, _ string) {
			f.Use(state(table.Backend{Name: "b", Tools: table.ToolPolicy{Deny: []string{"t"}}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &silent{called: make(chan struct{}, 1)}
			f, state, url := endpoint(t, b)
			session, _ := ask(t, http.MethodPost, url, nil, initializing)
			answers := make(chan string, 1)
			go func() {
				_, answer := ask(t, http.MethodPost, url, map[string]string{headerSession: session}, calling)
				answers <- answer
			}()
			<-b.called
			end(f, state, url, session)
			if answer := <-answers; !strings.Contains(answer, `"sent":true`) || strings.Contains(answer, "safe to try again") {
				t.Errorf("answered %s", answer)
			}
		})
	}
}

func TestACallThatWasNotSentIsSaidToBeSafe(t *testing.T) {
	t.Parallel()
	// It is the question what the server is that was sent, and answered with nonsense.
	failure := &backend.Error{Backend: "b", Class: "NotMCP", Sent: true, Err: io.EOF}
	for name, b := range map[string]*silent{
		"nobody knows what the server is": {describe: failure},
		"no session is opened":            {lost: true, open: failure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, url := endpoint(t, b)
			headers := map[string]string{headerVersion: wire.Version20260728, "Mcp-Method": "tools/call", "Mcp-Name": "t"}
			meta := `"_meta":{"` + wire.MetaProtocolVersion + `":"2026-07-28","` + wire.MetaClientCapabilities + `":{}}`
			body := strings.Replace(calling, `"arguments":{}`, `"arguments":{},`+meta, 1)
			if b.lost { // by a client that had a session before
				open := b.open
				b.open = nil
				session, _ := ask(t, http.MethodPost, url, nil, initializing)
				b.open = open
				headers, body = map[string]string{headerSession: session}, calling
			}
			_, answer := ask(t, http.MethodPost, url, headers, body)
			if !strings.Contains(answer, `"sent":false`) || !strings.Contains(answer, "safe to try again") {
				t.Errorf("answered %s", answer)
			}
		})
	}
}

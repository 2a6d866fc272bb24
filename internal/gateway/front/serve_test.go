package front

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// lister is a backend that answers every request with one text.
type lister struct {
	silent

	answer string
}

func (l *lister) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	return l, backend.Handle{Session: "s", Version: "2025-11-25"}, nil
}

func (l *lister) Call(_ context.Context, _ *backend.Call, sink backend.Sink) error {
	return sink.Response(strings.NewReader(l.answer))
}

func TestAListThatIsNotJudgedAsItsReaderSeesItIsRefused(t *testing.T) {
	t.Parallel()
	const (
		good   = `{"name":"ok","inputSchema":{"type":"object"}}`
		bad    = `{"name":"delete_all","inputSchema":{"type":"object"}}`
		before = `{"jsonrpc":"2.0","id":2,`
	)
	for name, tc := range map[string]struct{ answer, want string }{
		"one list":           {before + `"result":{"tools":[` + good + `,` + bad + `]}}`, `"name":"ok"`},
		"an error":           {before + `"error":{"code":-32000,"message":"not now"}}`, `"not now"`},
		"the tools twice":    {before + `"result":{"tools":[` + good + `],"tools":[` + good + `,` + bad + `]}}`, `"class":"NotMCP"`},
		"the result twice":   {before + `"result":{"tools":[` + good + `]},"result":{"tools":[` + bad + `]}}`, `"class":"NotMCP"`},
		"another case":       {before + `"Result":{"tools":[` + bad + `]}}`, `"class":"NotMCP"`},
		"beside an error":    {before + `"error":{"code":1,"message":""},"result":{"tools":[` + bad + `]}}`, `"class":"NotMCP"`},
		"neither":            {before + `"tools":[` + bad + `]}`, `"class":"NotMCP"`},
		"something after it": {before + `"result":{"tools":[` + good + `]}},"tools":[` + bad + `]`, `"class":"NotMCP"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, state, url := endpoint(t, &lister{answer: tc.answer})
			f.Use(state(table.Backend{Name: "b", Tools: table.ToolPolicy{Deny: []string{"delete*"}}}))
			session, _ := ask(t, http.MethodPost, url, nil, initializing)
			_, answer := ask(t, http.MethodPost, url, map[string]string{headerSession: session}, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			if !strings.Contains(answer, tc.want) || strings.Contains(answer, "delete_all") {
				t.Errorf("answered %s, want %s", answer, tc.want)
			}
		})
	}
}

// logged is what was logged.
type logged struct {
	bytes.Buffer

	mu sync.Mutex
}

// Write notes a line.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func TestAListThatIsCutIsToldOfInTheStatusAndOnceInTheLog(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	var lines logged
	f.options.Logger = slog.New(slog.NewTextHandler(&lines, nil))
	live := f.state.Load().Backends[0]
	for range 3 {
		f.learn(live, &backend.Description{Legacy: true}, &catalog.Catalog{Truncated: []string{"tools/list"}, Unread: []string{"prompts/list"}}, nil, false)
	}
	s := f.StatusOf(live)
	if diff := cmp.Diff([][]string{{"tools/list"}, {"prompts/list"}}, [][]string{s.Truncated, s.Unread}); diff != "" {
		t.Errorf("truncated and unread -want +got:\n%s", diff)
	}
	if live.poll() == nil {
		t.Error("a list could not be read, and nobody looks again")
	}
	if n := strings.Count(lines.String(), "tools/list"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, lines.String())
	}
	f.learn(live, &backend.Description{Legacy: true}, &catalog.Catalog{}, nil, false)
	if live.poll() != nil {
		t.Error("all of it was read, it offers no list whose changes it does not tell of, and is looked at all the same")
	}
	if raw, err := json.Marshal(f.StatusOf(live)); err != nil || strings.Contains(string(raw), "/list") {
		t.Errorf("all of it was read, and the status is %s, %v", raw, err)
	}
}

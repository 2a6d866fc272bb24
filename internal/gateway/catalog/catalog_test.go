package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// script is a channel whose answers are scripted.
type script struct {
	era backend.Era
	// answer returns a result object, or with a leading '!' an error object.
	answer func(ctx context.Context, m *wire.Message) (string, error)
	// before is sent to the sink ahead of each response.
	before string
	asked  []*wire.Message
	sent   []*wire.Message
}

func (s *script) Era() backend.Era { return s.era }

func (s *script) Call(ctx context.Context, c *backend.Call, sink backend.Sink) error {
	s.asked = append(s.asked, c.Message)
	if s.before != "" {
		m, err := wire.Parse([]byte(s.before), wire.DefaultLimits)
		if err != nil {
			return err
		}
		if err := sink.Message(m); err != nil {
			return err
		}
	}
	answer, err := s.answer(ctx, c.Message)
	if err != nil {
		return err
	}
	body := `{"jsonrpc":"2.0","id":` + string(c.Message.ID) + `,"result":` + answer + `}`
	if rpcError, ok := strings.CutPrefix(answer, "!"); ok {
		body = `{"jsonrpc":"2.0","id":` + string(c.Message.ID) + `,"error":` + rpcError + `}`
	}
	return sink.Response(strings.NewReader(body))
}

func (s *script) Send(_ context.Context, m *wire.Message) error {
	s.sent = append(s.sent, m)
	return nil
}

func (*script) Listen(context.Context, *backend.Call, backend.Sink) error { return backend.ErrNoStream }

func (*script) Close(context.Context) error { return nil }

var _ backend.Channel = (*script)(nil)

// answers makes a script of results by method, and by cursor after a space.
func answers(results map[string]string) *script {
	return &script{answer: func(_ context.Context, m *wire.Message) (string, error) {
		key := m.Method
		if cursor, ok := m.StringParam("cursor"); ok {
			key += " " + cursor
		}
		if result, ok := results[key]; ok {
			return result, nil
		}
		return `!{"code":-32601,"message":"no such method"}`, nil
	}}
}

const everyList = `{"tools":{},"prompts":{},"resources":{}}`

// tool is a definition with further members.
func tool(name, members string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}%s}`, name, members)
}

// toolList is the result of tools/list.
func toolList(names ...string) string {
	tools := make([]string, 0, len(names))
	for _, name := range names {
		tools = append(tools, tool(name, ""))
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}

// source makes a source with the results given, fetched as a gateway would.
func source(tb testing.TB, b table.Backend, results map[string]string) Source {
	tb.Helper()
	c, err := Fetch(tb.Context(), answers(results), Options{Backend: b.Name, Capabilities: json.RawMessage(everyList)})
	if err != nil {
		tb.Fatalf("%s: %v", b.Name, err)
	}
	return Source{Backend: b, Catalog: c, State: table.BackendReady}
}

// toolSource makes a source with tools only.
func toolSource(tb testing.TB, b table.Backend, names ...string) Source {
	tb.Helper()
	return source(tb, b, map[string]string{"tools/list": toolList(names...)})
}

// listed returns the names a view lists of a kind, all pages.
func listed(tb testing.TB, v *View, k Kind) []string {
	tb.Helper()
	names := []string{}
	for from := ""; ; {
		result, err := v.List(nil, k, from, backend.Legacy, nil)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := wire.Check(result, wire.Limits{}); err != nil {
			tb.Fatalf("%v: %s", err, result)
		}
		for entry := range wire.Elements(wire.Field(result, lists[k].member)) {
			name, _ := wire.String(wire.Field(entry, lists[k].key))
			names = append(names, name)
		}
		var more bool
		if from, more = wire.String(wire.Field(result, "nextCursor")); !more {
			return names
		}
	}
}

// verdicts returns the status of each tool as "name<original: verdict (reason)".
func verdicts(statuses []table.ToolStatus) []string {
	out := []string{}
	for _, s := range statuses {
		line := fmt.Sprintf("%s<%s: %s", s.Name, s.Original, s.Verdict)
		if s.Reason != "" {
			line += " (" + s.Reason + ")"
		}
		out = append(out, line)
	}
	return out
}

// endless reads as a JSON string that never ends.
type endless struct{ begun bool }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if !e.begun {
		e.begun = true
		return copy(p, `{"jsonrpc":"2.0","id":1,"result":"`), nil
	}
	return len(p), nil
}

var _ io.Reader = (*endless)(nil)

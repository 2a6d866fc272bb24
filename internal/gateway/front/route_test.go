package front

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// personal is a server that lists another tool in its clients' sessions than in the gateway's own.
type personal struct{ lister }

func (p *personal) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	return p, backend.Handle{Session: "s", Version: "2025-11-25"}, nil
}

func (p *personal) Call(_ context.Context, call *backend.Call, sink backend.Sink) error {
	result := `{"tools":[{"name":"base","inputSchema":{"type":"object"}},{"name":"own","inputSchema":{"type":"object"}}]}`
	if call.Message.Method == "tools/call" {
		result = `{"content":[{"type":"text","text":"done"}]}`
	}
	return sink.Response(strings.NewReader(string(wire.NewResult(call.Message.ID, []byte(result)).Raw)))
}

func TestAToolThatALoneBackendHasForASessionAloneCanBeCalledIfPolicyLetsIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy table.ToolPolicy
		tool   string
		want   string
	}{
		"no policy":                         {table.ToolPolicy{}, "own", `"done"`},
		"granted by its whole name":         {table.ToolPolicy{Allow: []string{"base", "own"}}, "own", `"done"`},
		"renamed by its whole name":         {table.ToolPolicy{Rename: map[string]string{"own": "mine"}}, "mine", `"done"`},
		"by the name that it is renamed of": {table.ToolPolicy{Rename: map[string]string{"own": "mine"}}, "own", "unknown tool"},
		"not granted":                       {table.ToolPolicy{Allow: []string{"base"}}, "own", "unknown tool"},
		"denied":                            {table.ToolPolicy{Allow: []string{"own"}, Deny: []string{"o*"}}, "own", "unknown tool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, state, url := endpoint(t, &personal{})
			s := state(table.Backend{Name: "b", Tools: tc.policy})
			f.Use(s)
			f.learn(s.Backends[0], &backend.Description{Legacy: true}, offered("base"), nil, false)
			session, _ := ask(t, http.MethodPost, url, nil, initializing)
			in := map[string]string{headerSession: session}
			_, list := ask(t, http.MethodPost, url, in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			_, answer := ask(t, http.MethodPost, url, in, strings.Replace(calling, `"name":"t"`, `"name":"`+tc.tool+`"`, 1))
			if isShown := strings.Contains(list, `"`+tc.tool+`"`); isShown != (tc.want == `"done"`) || !strings.Contains(answer, tc.want) {
				t.Errorf("listed %s, and called: %s", list, answer)
			}
		})
	}
}

func TestConflictsAreInTheStatusOfTheirBackends(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	s := &State{Table: &table.Table{}}
	for _, name := range []string{"a", "b"} {
		b := NewBackend(table.Backend{Name: name, Prefix: name + "_"}, &silent{})
		s.Table.Backends, s.Backends = append(s.Table.Backends, b.Config), append(s.Backends, b)
	}
	f.Use(s)
	for _, b := range s.Backends {
		c := &catalog.Catalog{}
		c.Entries[catalog.Resources] = []catalog.Entry{{Name: "both:same", Raw: []byte(`{"uri":"both:same"}`)}}
		f.learn(b, &backend.Description{Legacy: true}, c, nil, false)
	}
	for _, b := range s.Backends {
		if got := f.StatusOf(b); got.ConflictCount != 1 || len(got.Conflicts) != 1 || got.Conflicts[0].Name != "both:same" {
			t.Errorf("%s: %d conflicts, %+v", got.Name, got.ConflictCount, got.Conflicts)
		}
	}
}

// offered is a catalog with tools of these names.
func offered(names ...string) *catalog.Catalog {
	c := &catalog.Catalog{}
	for _, name := range names {
		c.Entries[catalog.Tools] = append(c.Entries[catalog.Tools], catalog.Entry{
			Name: name, Raw: []byte(`{"name":"` + name + `","inputSchema":{"type":"object"}}`),
		})
	}
	return c
}

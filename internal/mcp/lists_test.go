package mcp_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// badLists are servers whose handshake succeeds.
var badLists = map[string]verdict{
	"tools/list refused": {
		mcptest.Legacy(mcptest.Script{"tools/list": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Fail(w, call, http.StatusOK, -32603, "no \x1b[31mcluster\x1b[0m")
		}}),
		mcp.Limits{},
		mcp.ToolsListFailed,
		"The MCP handshake succeeded, but tools/list failed: JSON-RPC error -32603: no cluster",
	},
	"tools/list refused by status": {mcptest.Legacy(mcptest.Script{"tools/list": func(w http.ResponseWriter, call mcptest.Call) {
		mcptest.Status(http.StatusBadGateway).ServeHTTP(w, call.Request)
	}}), mcp.Limits{}, mcp.ToolsListFailed, "The MCP handshake succeeded, but tools/list failed: HTTP 502."},
	"tools/list without tools": {
		toolsListAnswers(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required"}}`),
		mcp.Limits{},
		mcp.ToolsListFailed,
		"The MCP handshake succeeded, but tools/list failed: its result has no list of tools.",
	},
	"tools/list is a page": {
		toolsListIs(mcptest.Page(http.StatusOK)),
		mcp.Limits{},
		mcp.ToolsListFailed,
		"The answer to tools/list is not MCP: it is neither JSON nor an event stream. Check spec.image, spec.port and spec.path.",
	},
	"session forgotten": {
		mcptest.Legacy(mcptest.Script{"tools/list": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Status(http.StatusNotFound).ServeHTTP(w, call.Request)
		}}),
		mcp.Limits{},
		mcp.ToolsListFailed,
		"The server no longer knew the session it had just handed out when tools/list was sent (HTTP 404). " +
			"If it has several replicas, set spec.sessions to Stateful.",
	},
}

func allVerdicts() map[string]verdict {
	all := maps.Clone(badServers)
	maps.Copy(all, badLists)
	maps.Copy(all, refusedHosts)
	return all
}

func TestUnusableToolsAreDropped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 128)
	handler := toolsListAnswers(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[
		{"name":"good"},{"name":"` + long + `"},{"name":"A.b-c_9"},
		{"name":"good","description":"a twin"},{"name":""},{"name":"` + long + `n"},{"name":"` + long + `é"},
		{"name":"zero\u200bwidth"},{"name":"two words"},{"name":"h\u0456omoglyph"},{"name":5},{},null,"text",
		{"name":"twice","name":"twice"},{"name":"deep","inputSchema":{"properties":{"a":1,"\u0061":2}}}
	]}}`)
	got, err := client.Probe(t.Context(), target(mcptest.Serve(t, handler)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"A.b-c_9", "good", long}, toolNames(got)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if got.DroppedTools != 13 || *got.ToolCount != 3 {
		t.Errorf("%d dropped, %d counted", got.DroppedTools, *got.ToolCount)
	}
}

func TestManyToolsAreCountedAndTheFirstKept(t *testing.T) {
	t.Parallel()
	got, err := client.Probe(t.Context(), target(mcptest.Serve(t, mcptest.ManyTools(10_000, 3_000))))
	if err != nil {
		t.Fatal(err)
	}
	if *got.ToolCount != 10_000 || !got.ToolsTruncated || len(got.Tools) != 512 || got.Tools[511].Name != "tool-000511" {
		t.Errorf("%d counted, truncated %v, %d kept", *got.ToolCount, got.ToolsTruncated, len(got.Tools))
	}
}

// listsTools lists tools of these definitions, in this order.
func listsTools(definitions ...string) http.Handler {
	return toolsListAnswers(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[` + strings.Join(definitions, ",") + `]}}`)
}

func TestTheDigestOfAllToolsTellsEachChange(t *testing.T) {
	t.Parallel()
	var many []string // more than are kept
	for i := range 600 {
		many = append(many, fmt.Sprintf(`{"name":"tool-%03d"}`, i))
	}
	with := func(i int, definition string) []string {
		changed := slices.Clone(many)
		changed[i] = definition
		return changed
	}
	reversed := slices.Clone(many)
	slices.Reverse(reversed)
	cases := map[string]struct {
		before, after []string
		same          bool
	}{
		"another order":                     {before: many, after: reversed, same: true},
		"a tool that no client can use":     {before: many, after: append([]string{`{"name":"two words"}`}, many...), same: true},
		"the last tool's definition":        {before: many, after: with(599, `{"name":"tool-599","description":"other"}`)},
		"the last tool's name":              {before: many, after: with(599, `{"name":"tool-zzz"}`)},
		"a tool at the sorted end":          {before: many, after: append([]string{`{"name":"zzz"}`}, many...)},
		"a tool in the middle is gone":      {before: many, after: slices.Delete(slices.Clone(many), 555, 556)},
		"the only tool is gone":             {before: []string{`{"name":"a"}`}},
		"two tools, one in place of both":   {before: []string{`{"name":"a"}`, `{"name":"b"}`}, after: []string{`{"name":"ab"}`}},
		"two tools swap their descriptions": {before: describedTools("x", "y"), after: describedTools("y", "x")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := toolsDigest(t, listsTools(tc.before...)), toolsDigest(t, listsTools(tc.after...))
			if (before == after) != tc.same {
				t.Errorf("%s before, %s after", before, after)
			}
			for _, digest := range []string{before, after} {
				if len(digest) != 71 || !strings.HasPrefix(digest, "sha256:") {
					t.Errorf("digest %q", digest)
				}
			}
		})
	}
}

func describedTools(a, b string) []string {
	return []string{`{"name":"a","description":"` + a + `"}`, `{"name":"b","description":"` + b + `"}`}
}

func TestToolsThatWereNotReadHaveNoDigest(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.Handler{
		"credentials are asked for": mcptest.Unauthorized("Bearer"),
		"no tools are offered": mcptest.Legacy(mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Result(w, call, `{"protocolVersion":"2025-11-25","capabilities":{}}`)
		}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := toolsDigest(t, handler); got != "" {
				t.Errorf("digest %q", got)
			}
		})
	}
}

func toolsDigest(t *testing.T, handler http.Handler) string {
	t.Helper()
	got, err := client.Probe(t.Context(), target(mcptest.Serve(t, handler)))
	if err != nil {
		t.Fatal(err)
	}
	return got.ToolsDigest
}

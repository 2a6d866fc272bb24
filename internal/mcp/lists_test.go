package mcp_test

import (
	"maps"
	"net/http"
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

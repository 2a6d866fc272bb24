package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

func TestATrickyServerIsStillRead(t *testing.T) {
	t.Parallel()
	const ok = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
	cases := map[string]http.Handler{
		"response among other messages": initializeAnswers(eventType, strings.Join([]string{
			"\ufeff: hello", "",
			"id: 1", "data:", "",
			"event: ping", "data: not JSON", "",
			`data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}`, "",
			`data: {"jsonrpc":"2.0","id":"theirs","method":"roots/list"}`, "",
			`data: {"jsonrpc":"2.0","id":ID,"method":"sampling/createMessage"}`, "",
			`data: {"jsonrpc":"2.0","id":77,"result":{}}`, "",
			"event: message", `data: {"jsonrpc":"2.0","id":ID,`, `data: "result":` + ok + "}", "", "",
		}, "\r\n")),
		"carriage returns only":         initializeAnswers(eventType, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":"+ok+"}\r\r"),
		"stream without its last lines": initializeAnswers(eventType, `data: {"jsonrpc":"2.0","id":ID,"result":`+ok+"}"),
		"JSON without a content type":   initializeAnswers("", `{"jsonrpc":"2.0","id":ID,"result":`+ok+"}"),
		"JSON as text":                  initializeAnswers("text/plain; charset=utf-8", ` {"id":ID , "result":`+ok+`,"jsonrpc":"2.0" } `),
		"escaped keys":                  initializeAnswers(jsonType, `{"json\u0072pc":"2.\u0030","id":ID,"\u0072esult":`+ok+`}`),
		"version offered again": mcptest.Legacy(mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			if call.ID == "2" {
				mcptest.Raw(w, http.StatusBadRequest, jsonType,
					`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no","data":{"supported":["2025-06-18"]}}}`)
				return
			}
			mcptest.Result(w, call, ok)
		}}),
		"403 for what it does not know": mcptest.Legacy(mcptest.Script{
			"server/discover": func(w http.ResponseWriter, _ mcptest.Call) { w.WriteHeader(http.StatusForbidden) },
			"initialize":      func(w http.ResponseWriter, call mcptest.Call) { mcptest.Result(w, call, ok) },
		}),
	}
	for name, handler := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client.Probe(t.Context(), target(mcptest.Serve(t, handler)))
			if err != nil {
				t.Fatal(err)
			}
			if got.ProtocolVersion != "2025-06-18" || *got.ToolCount != 1 {
				t.Errorf("unexpected result: %+v", got)
			}
		})
	}
}

func TestAFailingSideListIsNoFailure(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, mcptest.Modern(mcptest.Script{
		"server/discover": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Result(w, call, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}}}`)
		},
		"prompts/list": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Result(w, call, `{"prompts":[{},{}]}`)
		},
		"resources/list": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Unauthorized(`Bearer resource_metadata="https://example.com"`).ServeHTTP(w, call.Request)
		},
	}))
	got, err := client.Probe(t.Context(), target(server))
	if err != nil {
		t.Fatal(err)
	}
	want := &mcp.Result{
		ProtocolVersion: "2026-07-28", ProtocolVersions: []string{"2026-07-28"},
		Capabilities: mcp.Capabilities{Tools: true, Prompts: true, Resources: true},
		Tools:        got.Tools, ToolsDigest: got.ToolsDigest, ToolCount: new(int32(1)), PromptCount: new(int32(2)),
		Unread: []string{"resources/list", "resources/templates/list"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestABearerChallengeIsNoFailure(t *testing.T) {
	t.Parallel()
	challenge := `Bearer realm="x, Basic", scope=a,resource_metadata="https://example.com/\"m\"` + "\t" + strings.Repeat("a", 300) + `"`
	metadata := `https://example.com/"m" ` + strings.Repeat("a", 229) + "…"
	cases := map[string]struct {
		handler http.Handler
		want    *mcp.Result
	}{
		"before the handshake": {
			mcptest.Unauthorized(`Basic realm="x", resource_metadata="https://other.example"`, "Negotiate abc==, "+challenge),
			&mcp.Result{AuthRequired: true, ResourceMetadata: metadata},
		},
		"without metadata": {mcptest.Unauthorized("bearer"), &mcp.Result{AuthRequired: true}},
		"after the handshake": {
			toolsListIs(mcptest.Unauthorized(challenge)),
			&mcp.Result{
				AuthRequired: true, ResourceMetadata: metadata, Server: mcp.ServerInfo{Name: "script", Version: "1"},
				ProtocolVersion: "2026-07-28", ProtocolVersions: []string{"2026-07-28"}, Capabilities: mcp.Capabilities{Tools: true},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client.Probe(t.Context(), target(mcptest.Serve(t, tc.handler)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHugeStringsAreCut(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat(`\u00e4\u202e`, 100_000)
	server := mcptest.Serve(t, initializeAnswers(jsonType, `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25",
		"capabilities":{"logging":{},"completions":{},"prompts":null,"resources":true},
		"instructions":"line\r\n`+huge+`","serverInfo":{"name":"`+huge+`","title":"\u001b]0;owned\u0007t","version":"`+huge+`"}}}`))
	got, err := client.Probe(t.Context(), target(server))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Server.Name) > 256 || len(got.Server.Version) > 256 || len(got.Instructions) > 4096 {
		t.Errorf("name %d, version %d, instructions %d bytes", len(got.Server.Name), len(got.Server.Version), len(got.Instructions))
	}
	if want := (mcp.Capabilities{Logging: true, Completions: true}); got.Capabilities != want {
		t.Errorf("capabilities %+v", got.Capabilities)
	}
	if got.Server.Title != "t" || !strings.HasPrefix(got.Instructions, "line\nää") || !strings.HasSuffix(got.Server.Name, "ä…") {
		t.Errorf("title %q, instructions %.20q, name %q", got.Server.Title, got.Instructions, got.Server.Name)
	}
}

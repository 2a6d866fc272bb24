package mcp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// raw answers initialize or, for a modern server, the given method with a body
// that stands in the test.
func raw(contentType, body string) func(http.ResponseWriter, mcptest.Call) {
	return func(w http.ResponseWriter, call mcptest.Call) {
		mcptest.Raw(w, http.StatusOK, contentType, strings.ReplaceAll(body, "ID", call.ID))
	}
}

func initializeAnswers(contentType, body string) http.Handler {
	return mcptest.Legacy(mcptest.Script{"initialize": raw(contentType, body)})
}

func toolsListAnswers(body string) http.Handler {
	return mcptest.Modern(mcptest.Script{"tools/list": raw("application/json", body)})
}

func toolsListIs(handler http.Handler) http.Handler {
	return mcptest.Modern(mcptest.Script{"tools/list": func(w http.ResponseWriter, call mcptest.Call) {
		handler.ServeHTTP(w, call.Request)
	}})
}

const (
	jsonType  = "application/json"
	eventType = "text/event-stream"
)

type verdict struct {
	handler http.Handler
	limits  mcp.Limits
	reason  mcp.Reason
	message string // PORT stands for the server's port
}

var badServers = map[string]verdict{
	"endless JSON": {
		mcptest.Endless(jsonType, `["`, strings.Repeat("a", 1<<16)),
		mcp.Limits{},
		mcp.TooLarge,
		"The server's answer to server/discover is larger than 4194304 bytes.",
	},
	"endless bodies for a 404": {
		mcptest.Legacy(mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			w.WriteHeader(http.StatusNotFound)
			mcptest.Endless(jsonType, "", strings.Repeat("a", 1<<16)).ServeHTTP(w, call.Request)
		}}),
		mcp.Limits{},
		mcp.NotFound,
		"There is nothing at path /mcp (HTTP 404). Set spec.path to the path of the MCP endpoint.",
	},
	"huge header": {
		mcptest.HugeHeader(1 << 17),
		mcp.Limits{},
		mcp.TooLarge,
		"The header of the server's answer to server/discover is larger than 65536 bytes.",
	},
	"header beyond the total": {
		mcptest.HugeHeader(1 << 15),
		mcp.Limits{TotalBytes: 1 << 14},
		mcp.TooLarge,
		"The server sent more than 16384 bytes in total; the last step was server/discover.",
	},
	"huge event": {
		mcptest.Endless(eventType, "data: ", strings.Repeat("a", 1<<16)),
		mcp.Limits{},
		mcp.TooLarge,
		"The server's answer to server/discover has an event larger than 1048576 bytes.",
	},
	"a million tiny events": {
		mcptest.Endless(eventType, "", strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n", 100)),
		mcp.Limits{},
		mcp.TooLarge, "The server's answer to server/discover has more than 10000 events.",
	},
	"a million comments": {
		mcptest.Endless(eventType, "", strings.Repeat(":\n\n", 1000)),
		mcp.Limits{},
		mcp.TooLarge, "The server's answer to server/discover has more than 10000 events.",
	},
	"long event stream": {
		mcptest.Endless(eventType, "", strings.Repeat(":"+strings.Repeat("a", 1000)+"\n\n", 10)),
		mcp.Limits{},
		mcp.TooLarge, "The server's answer to server/discover is larger than 4194304 bytes.",
	},
	"more than allowed in total": {
		toolsListIs(mcptest.Endless(jsonType, `["`, strings.Repeat("a", 1<<16))),
		mcp.Limits{TotalBytes: 1 << 20},
		mcp.TooLarge, "The server sent more than 1048576 bytes in total; the last step was tools/list.",
	},
	"gzip bomb": {
		initializeIs(mcptest.GzipBomb(16 << 20)),
		mcp.Limits{},
		mcp.ProtocolError,
		"The server compressed its answer to initialize although it was asked not to.",
	},
	"endless pages": {mcptest.EndlessPages(), mcp.Limits{}, mcp.TooLarge, "The server's tools/list has more than 100 pages."},
	"huge cursor": {
		toolsListAnswers(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"nextCursor":"` + strings.Repeat("a", 1<<20) + `"}}`),
		mcp.Limits{},
		mcp.TooLarge, "The server's tools/list has a cursor larger than 8192 bytes.",
	},
	"pages in a circle": {
		mcptest.RepeatedCursor(),
		mcp.Limits{},
		mcp.ToolsListFailed,
		"The MCP handshake succeeded, but tools/list failed: it gave the same cursor twice, so its pages never end.",
	},
	"100,000 tools": {
		mcptest.ManyTools(100_000, 5_000),
		mcp.Limits{},
		mcp.TooLarge,
		"The server's tools/list has more than 10000 entries.",
	},
	"deep JSON": {
		initializeAnswers(jsonType, strings.Repeat("[", 100_000)),
		mcp.Limits{},
		mcp.TooLarge,
		"The JSON of the server's answer to initialize is nested deeper than 64 levels.",
	},
	"a million members": {
		initializeAnswers(jsonType, `{"jsonrpc":"2.0","id":ID,"result":{`+strings.Repeat(`"a":1,`, 500_000)+`"b":1}}`),
		mcp.Limits{},
		mcp.TooLarge, "The JSON of the server's answer to initialize has an object with more than 10000 members.",
	},

	"web server": {
		mcptest.Page(http.StatusOK),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is neither JSON nor an event stream. Check spec.image, spec.port and spec.path.",
	},
	"web server that takes no POST": {
		mcptest.Page(http.StatusMethodNotAllowed),
		mcp.Limits{},
		mcp.MethodNotAllowed,
		"The server takes no POST at path /mcp (HTTP 405): " +
			"spec.path names something else than an MCP endpoint, or the server speaks only the older HTTP+SSE transport: then set spec.transport to SSE.",
	},
	"web server without the path": {
		mcptest.Page(http.StatusNotFound),
		mcp.Limits{},
		mcp.NotFound,
		"There is nothing at path /mcp (HTTP 404). Set spec.path to the path of the MCP endpoint.",
	},
	"400 for everything": {
		mcptest.Status(http.StatusBadRequest),
		mcp.Limits{},
		mcp.NotMCP,
		"The server answers initialize with HTTP 400 and no MCP error. Check spec.image, spec.port and spec.path.",
	},
	"500 for everything": {
		mcptest.Status(http.StatusInternalServerError),
		mcp.Limits{},
		mcp.ServerError,
		"The server answers initialize with HTTP 500. Look at its log.",
	},
	"202 for everything": {
		mcptest.Status(http.StatusAccepted),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is not valid JSON. Check spec.image, spec.port and spec.path.",
	},
	"nothing for everything": {
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is empty. Check spec.image, spec.port and spec.path.",
	},
	"redirect": {
		mcptest.Redirect("http://169.254.169.254/" + mcptest.Canary),
		mcp.Limits{},
		mcp.Redirected,
		"The server answers server/discover with a redirect (HTTP 307) that leads to another server or names no place: it is never followed. " +
			"Check spec.port, and what the server takes for its own address.",
	},
	"401 without a challenge": {
		mcptest.Unauthorized(),
		mcp.Limits{},
		mcp.Unauthorized,
		"The server refuses server/discover without credentials (HTTP 401), and does not ask for a Bearer token as an MCP server does.",
	},
	"401 with Basic": {
		mcptest.Unauthorized(`Basic realm="Bearer ` + mcptest.Canary + `"`),
		mcp.Limits{},
		mcp.Unauthorized,
		"The server refuses server/discover without credentials (HTTP 401), and does not ask for a Bearer token as an MCP server does.",
	},
	"hangs up": {
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		mcp.Limits{},
		mcp.ConnectionFailed,
		"The server closed the connection without answering server/discover. Look at its log.",
	},
	"hangs up in the middle": {initializeIs(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mcptest.Raw(w, http.StatusOK, jsonType, `{"jsonrpc":`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})), mcp.Limits{}, mcp.ConnectionFailed, "The server broke off its answer to initialize. Look at its log."},

	"JSON of another kind": {
		initializeAnswers(jsonType, `{"status":"ok"}`),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is not a JSON-RPC 2.0 message. Check spec.image, spec.port and spec.path.",
	},
	"batch": {
		initializeAnswers(jsonType, `[{"jsonrpc":"2.0","id":ID,"result":{}}]`),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is not a JSON-RPC 2.0 message. Check spec.image, spec.port and spec.path.",
	},
	"another id": {
		initializeAnswers(jsonType, `{"jsonrpc":"2.0","id":4711,"result":{"protocolVersion":"2025-11-25"}}`),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it answers another request. Check spec.image, spec.port and spec.path.",
	},
	"another id in a stream": {
		initializeAnswers(eventType, "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n"),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: the event stream ended without a response. Check spec.image, spec.port and spec.path.",
	},
	"key twice": {
		initializeAnswers(jsonType, `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25"},"result":{}}`),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is not a JSON-RPC 2.0 message. Check spec.image, spec.port and spec.path.",
	},
	"key in another case": {
		initializeAnswers(jsonType, `{"jsonrpc":"2.0","id":ID,"Result":{"protocolVersion":"2025-11-25"}}`),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is not a JSON-RPC 2.0 message. Check spec.image, spec.port and spec.path.",
	},
	"bad UTF-8": {
		initializeAnswers(jsonType, "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"protocolVersion\":\"\xff\"}}"),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is not valid JSON. Check spec.image, spec.port and spec.path.",
	},
	"number no float can hold": {
		initializeAnswers(jsonType, `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":1e400}}`),
		mcp.Limits{},
		mcp.NotMCP,
		"The answer to initialize is not MCP: it is not valid JSON. Check spec.image, spec.port and spec.path.",
	},
	"empty result": {
		initializeAnswers(jsonType, `{"jsonrpc":"2.0","id":ID,"result":{}}`),
		mcp.Limits{},
		mcp.ProtocolError,
		"The server's answer to initialize names no protocol version. Check spec.image, spec.port and spec.path.",
	},
	"unknown version": {
		initializeAnswers(jsonType, `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"1999-01-01\u001b[31m"}}`),
		mcp.Limits{},
		mcp.ProtocolError, `The server speaks protocol version "1999-01-01", which this operator does not know.`,
	},
	"session id of another world": {
		mcptest.Legacy(mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			w.Header().Set("Mcp-Session-Id", "two words")
			mcptest.Result(w, call, `{"protocolVersion":"2025-11-25","capabilities":{}}`)
		}}),
		mcp.Limits{},
		mcp.ProtocolError,
		"The server handed out a session id that is too long or has other than visible ASCII characters.",
	},
	"session id without an end": {
		mcptest.Legacy(mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			w.Header().Set("Mcp-Session-Id", strings.Repeat("a", 5000))
			mcptest.Result(w, call, `{"protocolVersion":"2025-11-25","capabilities":{}}`)
		}}),
		mcp.Limits{},
		mcp.ProtocolError,
		"The server handed out a session id that is too long or has other than visible ASCII characters.",
	},
	"initialize refused": {
		mcptest.Legacy(mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Fail(w, call, http.StatusBadRequest, -32600, "try\nlater\u202e"+strings.Repeat("ä", 400))
		}}),
		mcp.Limits{},
		mcp.ProtocolError,
		"The server refuses initialize: JSON-RPC error -32600: try later" + strings.Repeat("ä", 122) + "…",
	},
	"version offered again and refused again": {mcptest.Legacy(mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
		mcptest.Raw(w, http.StatusOK, jsonType,
			`{"jsonrpc":"2.0","id":`+call.ID+`,"error":{"code":-32602,"message":"no","data":{"supported":["2025-06-18"]}}}`)
	}}), mcp.Limits{}, mcp.ProtocolError, "The server refuses initialize: JSON-RPC error -32602: no"},
	"notification lost": {
		mcptest.Legacy(mcptest.Script{"notifications/initialized": func(w http.ResponseWriter, _ mcptest.Call) {
			w.WriteHeader(http.StatusNotFound)
		}}),
		mcp.Limits{},
		mcp.ProtocolError,
		"The server no longer knew the session it had just handed out when notifications/initialized was sent (HTTP 404). " +
			"If it has several replicas, set spec.sessions to Stateful.",
	},
	"notification refused": {
		mcptest.Legacy(mcptest.Script{"notifications/initialized": func(w http.ResponseWriter, _ mcptest.Call) {
			w.WriteHeader(http.StatusTeapot)
		}}),
		mcp.Limits{},
		mcp.NotMCP,
		"The server answers notifications/initialized with HTTP 418 and no MCP error. Check spec.image, spec.port and spec.path.",
	},
	"newest version refused": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mcptest.Raw(w, http.StatusBadRequest, jsonType,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"unsupported","data":{"supported":["2031-01-01"]}}}`)
	}), mcp.Limits{}, mcp.ProtocolError, "The server refuses server/discover: JSON-RPC error -32022: unsupported"},
}

func initializeIs(handler http.Handler) http.Handler {
	return mcptest.Legacy(mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
		handler.ServeHTTP(w, call.Request)
	}})
}

func TestABadServerGetsAStableVerdict(t *testing.T) {
	t.Parallel()
	for name, tc := range allVerdicts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.Serve(t, tc.handler)
			u, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(tc.message, "PORT", u.Port())
			c := &mcp.Client{Limits: tc.limits}
			for range 2 {
				result, err := c.Probe(t.Context(), target(server))
				if result != nil {
					t.Errorf("a result beside the error: %+v", result)
				}
				if got := mcp.ReasonOf(err); got != tc.reason {
					t.Errorf("reason %q, want %q", got, tc.reason)
				}
				if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
				checkMessage(t, fmt.Sprint(err))
			}
		})
	}
}

// checkMessage holds for every message whatever a server does.
func checkMessage(t *testing.T, message string) {
	t.Helper()
	if len(message) > 1024 || !utf8.ValidString(message) {
		t.Errorf("message of %d bytes, or not UTF-8", len(message))
	}
	if strings.Contains(message, mcptest.Canary) {
		t.Errorf("the message quotes the server: %s", message)
	}
	if i := strings.IndexFunc(message, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("the message has an unprintable character at %d: %q", i, message)
	}
}

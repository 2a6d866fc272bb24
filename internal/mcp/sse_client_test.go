package mcp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

func eventTarget(s *mcptest.Server) mcp.Target {
	return mcp.Target{URL: s.URL, SSE: true, Transport: s.Transport()}
}

func TestProbeOfARealServerWithSSE(t *testing.T) {
	t.Parallel()
	server := mcptest.NewSSEServer(t, "zeta", "alpha")
	got, err := client.Probe(t.Context(), eventTarget(server))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"alpha", "zeta"}, toolNames(got)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if got.Server.Name != "mcptest" || got.ProtocolVersion != "2025-11-25" || !got.Stateful {
		t.Errorf("unexpected result: %+v", got)
	}
	if diff := cmp.Diff([]string{"GET", "initialize", "notifications/initialized", "tools/list"}, server.Calls()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	server.Forget()
	if err := client.Check(t.Context(), eventTarget(server), got); err != nil {
		t.Errorf("a check of the same server: %v", err)
	}
	if diff := cmp.Diff([]string{"GET", "initialize"}, server.Calls()); diff != "" {
		t.Errorf("requests of a check (-want +got):\n%s", diff)
	}
}

func TestAServerWithSSEIsReadHoweverItWrites(t *testing.T) {
	t.Parallel()
	open := func(text string) *mcptest.SSE {
		return &mcptest.SSE{Open: func(w http.ResponseWriter, _ *http.Request) { mcptest.Raw(w, http.StatusOK, eventType, text) }}
	}
	noisy := &mcptest.SSE{}
	noisy.Post = func(http.ResponseWriter, *http.Request) bool {
		noisy.Send(": ping\n\nevent: ping\ndata: x\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\n")
		return true
	}
	for name, handler := range map[string]*mcptest.SSE{
		"plainly":                              {},
		"with noise":                           noisy,
		"with comments before the endpoint":    open("\ufeff: hello\n\nid: 1\nretry: 5\n\nevent: endpoint\ndata: /post?session=1\n\n"),
		"with carriage returns":                open("event: endpoint\r\ndata: /post\r\n\r\n"),
		"with a relative endpoint":             {Endpoint: "post?sessionId=a%20b"},
		"with its own address as the endpoint": open("event: endpoint\ndata: http://server.example:8080/post\n\n"),
		"an old version": {Script: mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Result(w, call, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// In memory nothing is buffered: a server that writes its answer first waits until it is read. Noise is.
			server := mcptest.Pipe(t, handler)
			if handler == noisy {
				server = mcptest.Serve(t, handler)
			}
			got, err := client.Probe(t.Context(), eventTarget(server))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"echo"}, toolNames(got)); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsPostedGoesWhereTheStreamCameFrom(t *testing.T) {
	t.Parallel()
	elsewhere := mcptest.Serve(t, http.NotFoundHandler())
	other, err := url.Parse(elsewhere.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, endpoint := range map[string]string{
		"another port": "http://" + other.Host + "/post", "another host": "http://evil.example/post", "another scheme": "https://server.example:8080/post",
		"a network path": "//evil.example/post",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.Pipe(t, &mcptest.SSE{Endpoint: endpoint})
			_, err := client.Probe(t.Context(), eventTarget(server))
			if got := mcp.ReasonOf(err); got != mcp.ProtocolError || !strings.Contains(err.Error(), "never posted elsewhere") {
				t.Errorf("reason %q: %v", got, err)
			}
			if diff := cmp.Diff([]string{"GET"}, server.Calls()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
	t.Cleanup(func() {
		if calls := elsewhere.Calls(); len(calls) > 0 {
			t.Errorf("somebody else was sent %v", calls)
		}
	})
}

func TestABadServerWithSSEGetsAStableVerdict(t *testing.T) {
	t.Parallel()
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	begins := func(text string) *mcptest.SSE {
		return &mcptest.SSE{Close: true, Open: func(w http.ResponseWriter, _ *http.Request) { mcptest.Raw(w, http.StatusOK, eventType, text) }}
	}
	posts := func(code int) *mcptest.SSE {
		return &mcptest.SSE{Post: func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			return false
		}}
	}
	for name, tc := range map[string]struct {
		handler http.Handler
		limits  mcp.Limits
		reason  mcp.Reason
		says    string
	}{
		"the newer transport": {
			mcptest.Legacy(mcptest.Script{"GET": func(w http.ResponseWriter, _ mcptest.Call) { w.WriteHeader(http.StatusMethodNotAllowed) }}),
			mcp.Limits{},
			mcp.MethodNotAllowed, "set spec.transport to StreamableHTTP",
		},
		"nothing there": {status(404), mcp.Limits{}, mcp.NotFound, "There is nothing at path /mcp"},
		"a web page": {
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { mcptest.Raw(w, 200, "text/html", mcptest.Canary) }),
			mcp.Limits{},
			mcp.NotMCP, "it is not an event stream",
		},
		"forbidden":                  {status(403), mcp.Limits{}, mcp.Forbidden, "whatever the Host header says"},
		"misdirected":                {status(421), mcp.Limits{}, mcp.HostRefused, "serves no such name"},
		"posts that are misdirected": {posts(421), mcp.Limits{}, mcp.HostRefused, "serves no such name"},
		"a redirect":                 {http.RedirectHandler("http://evil.example/", http.StatusFound), mcp.Limits{}, mcp.Redirected, "never followed"},
		"no credentials":             {status(401), mcp.Limits{}, mcp.Unauthorized, "without credentials"},
		"broken":                     {status(500), mcp.Limits{}, mcp.ServerError, "HTTP 500"},
		"no endpoint":                {begins("data: " + mcptest.Canary + "\n\n"), mcp.Limits{}, mcp.NotMCP, "does not begin with an endpoint event"},
		"an empty stream":            {begins(""), mcp.Limits{}, mcp.NotMCP, "does not begin with an endpoint event"},
		"an endpoint that is no URL": {begins("event: endpoint\ndata: http://a b/\x01\n\n"), mcp.Limits{}, mcp.NotMCP, "does not begin with an endpoint event"},
		"an endpoint without end": {
			begins("event: endpoint\ndata: /" + strings.Repeat("a", 1<<16)),
			mcp.Limits{EventBytes: 1 << 10},
			mcp.TooLarge, "larger than 1024 bytes",
		},
		"a stream that ends":          {begins("event: endpoint\ndata: /post\n\n"), mcp.Limits{}, mcp.NotMCP, "ended without a response"},
		"a session that is not known": {posts(404), mcp.Limits{}, mcp.ProtocolError, "no longer knew the session"},
		"posts that are refused":      {posts(400), mcp.Limits{}, mcp.NotMCP, "HTTP 400"},
		"posts that break":            {posts(500), mcp.Limits{}, mcp.ServerError, "HTTP 500"},
		"an answer that is too long": {&mcptest.SSE{Script: mcptest.Script{"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Result(w, call, `{"x":"`+strings.Repeat("a", 1<<12)+`"}`)
		}}}, mcp.Limits{EventBytes: 1 << 10}, mcp.TooLarge, "an event larger than 1024 bytes"},
		"too many events": {
			begins("event: endpoint\ndata: /post\n\n" + strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n", 20)),
			mcp.Limits{Events: 10},
			mcp.TooLarge, "more than 10 events",
		},
		"more than may be sent in all": {
			begins("event: endpoint\ndata: /post\n\n" + strings.Repeat(": "+strings.Repeat("a", 1<<10)+"\n\n", 1<<8)),
			mcp.Limits{TotalBytes: 1 << 16},
			mcp.TooLarge, "in total",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.Serve(t, tc.handler)
			c := &mcp.Client{Limits: tc.limits}
			var messages []string
			for range 2 {
				_, err := c.Probe(t.Context(), mcp.Target{URL: server.URL, SSE: true})
				if got := mcp.ReasonOf(err); got != tc.reason || !strings.Contains(fmt.Sprint(err), tc.says) {
					t.Errorf("reason %q, want %q: %v", got, tc.reason, err)
				}
				checkMessage(t, fmt.Sprint(err))
				messages = append(messages, fmt.Sprint(err))
			}
			if messages[0] != messages[1] {
				t.Errorf("two messages for one failure:\n%s\n%s", messages[0], messages[1])
			}
		})
	}
}

func TestAServerWithSSEThatAsksForATokenIsUp(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, mcptest.Unauthorized(`Bearer resource_metadata="https://example.com/meta"`))
	got, err := client.Probe(t.Context(), mcp.Target{URL: server.URL, SSE: true})
	if err != nil {
		t.Fatal(err)
	}
	if !got.AuthRequired || got.ResourceMetadata != "https://example.com/meta" {
		t.Errorf("unexpected result: %+v", got)
	}
}

// Every wait has a limit, and no goroutine is left: the bubble would not end.
func TestAServerWithSSEThatIsSilentCostsALimitedTime(t *testing.T) {
	t.Parallel()
	mute := func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return false
	}
	swallow := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusAccepted)
		return false
	}
	for name, tc := range map[string]struct {
		handler *mcptest.SSE
		says    string
	}{
		"from the start": {&mcptest.SSE{Open: func(w http.ResponseWriter, r *http.Request) { mute(w, r) }}, "did not finish answering GET within 5s"},
		"before the endpoint": {&mcptest.SSE{Open: func(w http.ResponseWriter, _ *http.Request) {
			mcptest.Raw(w, http.StatusOK, eventType, ": wait\n\n")
		}}, "did not finish answering GET within 5s"},
		"when it is posted to":   {&mcptest.SSE{Post: mute}, "did not finish answering initialize within 5s"},
		"after it took the post": {&mcptest.SSE{Post: swallow}, "did not finish answering initialize within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := mcptest.Pipe(t, tc.handler)
				start := time.Now()
				_, err := client.Probe(t.Context(), eventTarget(server))
				if got := mcp.ReasonOf(err); got != mcp.Timeout || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("reason %q: %v", got, err)
				}
				if took := time.Since(start); took > 6*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestABridgeTellsOfItsChild(t *testing.T) {
	t.Parallel()
	answer := func(data string) func(w http.ResponseWriter, call mcptest.Call) {
		return func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Raw(w, http.StatusOK, jsonType, `{"jsonrpc":"2.0","id":`+call.ID+`,"error":{"code":-32603,"message":"the child failed","data":`+data+`}}`)
		}
	}
	everything := func(data string) http.Handler {
		return mcptest.Legacy(mcptest.Script{"server/discover": answer(data), "initialize": answer(data)})
	}
	for name, tc := range map[string]struct {
		handler http.Handler
		reason  mcp.Reason
		message string
	}{
		"it ended": {
			everything(`{"class":"ChildExited","detail":"exit status 1"}`), mcp.ChildExited,
			"The server's process ended (exit status 1) before it answered initialize. Look at the container's log, and check spec.command and spec.args.",
		},
		"it ended, and how is not known": {
			everything(`{"class":"ChildExited"}`), mcp.ChildExited,
			"The server's process ended before it answered initialize. Look at the container's log, and check spec.command and spec.args.",
		},
		"what it says is cleaned": {
			everything(`{"class":"ChildExited","detail":"\u001b[31mexit\n status 2\u202e"}`), mcp.ChildExited,
			"The server's process ended (exit status 2) before it answered initialize. Look at the container's log, and check spec.command and spec.args.",
		},
		"it is silent": {
			everything(`{"class":"ChildSilent"}`), mcp.ChildSilent,
			"The server's process runs, and did not answer initialize over its standard output. " +
				"Look at the container's log; does spec.command start a server of standard input and output?",
		},
		"it ended while tools were listed": {
			mcptest.Legacy(mcptest.Script{"tools/list": answer(`{"class":"ChildExited","detail":"signal: killed"}`)}), mcp.ChildExited,
			"The server's process ended (signal: killed) before it answered tools/list. Look at the container's log, and check spec.command and spec.args.",
		},
		"another class": {everything(`{"class":"Connect"}`), mcp.ProtocolError, "The server refuses initialize: JSON-RPC error -32603: the child failed"},
		"no class":      {everything(`null`), mcp.ProtocolError, "The server refuses initialize: JSON-RPC error -32603: the child failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client.Probe(t.Context(), target(mcptest.Serve(t, tc.handler)))
			if got := mcp.ReasonOf(err); got != tc.reason {
				t.Errorf("reason %q, want %q", got, tc.reason)
			}
			if diff := cmp.Diff(tc.message, fmt.Sprint(err)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

package toolset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// plainTool is an operation that any API has.
var plainTool = table.HTTPTool{Method: "GET", Definition: json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`)}

// rawly answers with bytes, the first part once and the second again and again, until nobody reads them.
func rawly(first, again string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, err = io.WriteString(conn, first)
		for more := []byte(again); err == nil && len(more) > 0; {
			_, err = conn.Write(more)
		}
	})
}

// TestAnAPIThatSendsWithoutEndCostsLittle: whatever part of a response it does not end, and however it is packed.
func TestAnAPIThatSendsWithoutEndCostsLittle(t *testing.T) {
	x := strings.Repeat("x", 32<<10)
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	for name, tc := range map[string]struct {
		handler http.Handler
		says    string // in a result; empty: the call fails
	}{
		"a body":                       {mcptest.Endless("text/plain", "", x), "is larger than this tool's limit of 1048576 bytes"},
		"a body of JSON":               {mcptest.Endless("application/json", `{"a":"`, x), "is larger than this tool's limit of 1048576 bytes"},
		"a picture":                    {mcptest.Endless("image/png", "", x), "is larger than this tool's limit of 1048576 bytes"},
		"a body of 10 GB":              {rawly(head+"Content-Length: 10737418240\r\n\r\n", x), "of 10737418240 bytes is larger than"},
		"a body that says it is small": {rawly(head+"Content-Length: 3\r\n\r\nyes", x), "yes"},
		"a bomb":                       {mcptest.GzipBomb(48 << 20), "a compressed body, which was not asked for"},
		"a bomb of another kind":       {rawly(head+"Content-Encoding: zstd\r\nContent-Length: 10\r\n\r\n", x), "a compressed body"},
		"a bomb in two layers":         {rawly(head+"Content-Encoding: identity, gzip\r\nContent-Length: 10\r\n\r\n", x), "a compressed body"},
		"the words of a failure":       {rawly("HTTP/1.1 500 Oh\r\nContent-Type: text/plain\r\n\r\n", x), "HTTP status 500"},
		"the status line":              {rawly("HTTP/1.1 200 ", x), ""},
		"one header":                   {rawly(head+"X-A: ", x), ""},
		"headers":                      {rawly(head, "X-A: a\r\n"), ""},
		"responses before the last":    {rawly("", "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"), ""},
		"the size of a chunk":          {rawly(head+"Transfer-Encoding: chunked\r\n\r\n", "0"), ""},
		"what is beside it":            {rawly(head+"Transfer-Encoding: chunked\r\n\r\n1;a=", x), ""},
		"chunks of one byte":           {rawly(head+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), ""},
		"trailers":                     {rawly(head+"Trailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X-A: a\r\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			t.Cleanup(server.CloseClientConnections)
			b := open(t, table.Backend{URL: server.URL, TimeoutSeconds: 20, Toolset: &table.Toolset{HTTP: []table.HTTPTool{plainTool}}}, Options{})
			if tools := count(t, b); tools != 1 {
				t.Fatalf("%d tools", tools)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			m, err := ask(t, b, "tools/call", `{"name":"do"}`)
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
				t.Errorf("%d bytes were allocated", grown)
			}
			if took := time.Since(begun); took > 25*time.Second {
				t.Errorf("it took %s", took)
			}
			failure, failed := errors.AsType[*backend.Error](err)
			switch {
			case err == nil && (tc.says == "" && !strings.Contains(string(m.Raw), `"isError":true`) || !strings.Contains(string(m.Raw), tc.says)):
				t.Errorf("answered with %.300s", m.Raw)
			case err != nil && (tc.says != "" || !failed || !failure.Sent):
				t.Errorf("failed with %v", err)
			}
		})
	}
}

// count is how many tools a backend lists.
func count(t *testing.T, b *Backend) int {
	t.Helper()
	m, err := ask(t, b, "tools/list", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(m.Result, &list); err != nil {
		t.Fatal(err)
	}
	return len(list.Tools)
}

// TestASlowAPIIsGivenUpInTime: the time of a call is that of all of it.
func TestASlowAPIIsGivenUpInTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	drip := httptest.NewServer(mcptest.Drip(20 * time.Millisecond))
	t.Cleanup(drip.CloseClientConnections)
	late := httptest.NewServer(mcptest.Silent())
	t.Cleanup(late.CloseClientConnections)
	for name, url := range map[string]string{
		"takes the connection and says nothing": "http://" + silent.Addr().String(), "takes it and speaks no TLS": "https://" + silent.Addr().String(),
		"takes the request and says nothing": late.URL, "sends a byte now and then": drip.URL,
	} {
		b := open(t, table.Backend{URL: url, TimeoutSeconds: 1, Toolset: &table.Toolset{HTTP: []table.HTTPTool{plainTool}}}, Options{})
		begun := time.Now()
		_, err := ask(t, b, "tools/call", `{"name":"do"}`)
		if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classTimeout || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(begun))
		}
	}
}

// TestJSONThatTwoReadersUnderstandDifferentlyIsNoResult of a tool that promises one of a certain form.
func TestJSONThatTwoReadersUnderstandDifferentlyIsNoResult(t *testing.T) {
	const typed = `{"name":"do","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}`
	for name, body := range map[string]string{
		"a member twice":         `{"a":1,"a":2}`,
		"a member in other case": `{"A":1}`,
		"100,000 levels":         `{"a":1,"b":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"levels without end":     strings.Repeat(`{"a":`, 100_000),
		"bytes that are no text": "{\"a\":1,\"b\":\"\xff\"}",
		"NUL":                    "{\"a\":1}\x00",
		"two values":             `{"a":1}{"a":2}`,
		"a comment":              `{"a":1/**/}`,
		"a number beyond all":    `{"a":1e400}`,
		"a number that is none":  `{"a":NaN}`,
		"a byte order mark":      "\ufeff" + `{"a":1}`,
		"white space of others":  "\u00a0" + `{"a":1}`,
		"another encoding":       "{\x00\"\x00a\x00\"\x00:\x001\x00}\x00",
	} {
		got := call(t, openAPI(t, respond(200, "application/json", body), table.HTTPTool{Method: "GET", Definition: json.RawMessage(typed)}), "do", `{}`)
		if !got.IsError || got.Structured != nil {
			t.Errorf("%s: %.200s, structured %.200s", name, got.text(), got.Structured)
		}
	}
}

// TestAnAPIIsSentOurFixedHeadersOnly: no proxy is asked, whatever the environment says, and nothing of the gateway is told.
func TestAnAPIIsSentOurFixedHeadersOnly(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a proxy was asked for %s", r.RequestURI) }))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "tracked"})
	}))
	t.Cleanup(server.Close)
	// A name, since proxies are not asked for addresses of this machine in any case.
	b := open(t, table.Backend{URL: "http://api.example.com", Toolset: &table.Toolset{HTTP: []table.HTTPTool{plainTool}}}, Options{
		Version: "1", Credential: bearer{}, Dial: leadTo(server),
	})
	for range 2 { // the second time with what the first one was told
		call(t, b, "do", `{}`)
	}
	want := http.Header{"Accept": {accept}, "User-Agent": {"mcp-gateway/1"}, "Authorization": {"Bearer " + canary}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers -want +got:\n%s", diff)
	}
}

// TestANameThatStandsForAnotherAddressNowIsNotDialled: names of metadata services, and one that stood for a good address before.
func TestANameThatStandsForAnotherAddressNowIsNotDialled(t *testing.T) {
	reached := make(chan string, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Host }))
	listener, port := mcptest.Everywhere(t)
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	stand := mcptest.Names(t)
	openWith := func(guard mcp.Guard) *Backend {
		return open(t, table.Backend{
			URL: "http://api.example.com:" + port, TimeoutSeconds: 5, Toolset: &table.Toolset{HTTP: []table.HTTPTool{plainTool}},
		}, Options{Dial: newDial(guard, nil)})
	}
	refused := func(b *Backend, address string) {
		t.Helper()
		stand(address)
		_, err := ask(t, b, "tools/call", `{"name":"do"}`)
		if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classDenied || failure.Sent {
			t.Errorf("at %s: %v", address, err)
		}
	}
	for _, allowPrivate := range []bool{false, true} {
		b := openWith(mcp.GuardFor(allowPrivate))
		for _, address := range []string{"127.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "0.0.0.0", "::", "100.100.100.200"} {
			refused(b, address)
		}
	}
	// One loopback address stands for the good one, since nothing else is reached without a network.
	b := openWith(mcp.Guard{Allow: func(address netip.Addr) bool { return address.Unmap() == netip.MustParseAddr("127.0.0.2") }})
	stand("127.0.0.2")
	call(t, b, "do", `{}`)
	server.CloseClientConnections() // so that the next call dials
	refused(b, "127.0.0.3")
	refused(b, "169.254.169.254")
	if len(reached) != 1 {
		t.Errorf("the server was reached %d times", len(reached))
	}
}

// TestDefinitionsThatCouldMisleadAreNotOffered: the file of tools is data, whoever wrote it.
func TestDefinitionsThatCouldMisleadAreNotOffered(t *testing.T) {
	of := func(definition string) table.HTTPTool {
		return table.HTTPTool{Method: "GET", Definition: json.RawMessage(definition)}
	}
	names := []string{"a\u202eb", "a\u200bb", "a\U000e0061", "p\u0430ypal", "a b", "a\u0000", "", strings.Repeat("a", 129), "../a", "a\u001b[31m"}
	for _, name := range names {
		text, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		config := table.Backend{Name: "tools", Transport: table.TransportToolset, URL: "https://api.example.com", Toolset: &table.Toolset{
			HTTP: []table.HTTPTool{of(fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, text))},
		}}
		raw, err := json.Marshal(&table.Table{Version: 1, Auth: table.Auth{Type: table.AuthNone}, Backends: []table.Backend{config}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Parse(raw); err == nil {
			t.Errorf("a table with a tool %q is taken", name)
		}
	}
	b := open(t, table.Backend{URL: "https://api.example.com", Toolset: &table.Toolset{HTTP: []table.HTTPTool{
		plainTool,
		of(`{"name":"far","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://evil.example/schema"}}}}`),
		of(`{"name":"file","inputSchema":{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}}`),
		of(`{"name":"result","inputSchema":{"type":"object"},"outputSchema":{"type":"object","$ref":"http://169.254.169.254/"}}`),
		of(`{"name":"round","inputSchema":{"type":"object","$ref":"#"}}`),
	}}}, Options{Dial: fails(errors.New("nothing must be dialled"))})
	if n := count(t, b); n != 2 {
		t.Errorf("%d tools are offered, 2 can be", n)
	}
	// A schema that leads to itself is given up, and not followed for ever.
	if got := call(t, b, "round", `{}`); !got.IsError {
		t.Errorf("arguments for it: %s", got.text())
	} else {
		t.Log(got.text())
	}
	for _, name := range []string{"far", "file", "result"} {
		if failure, ok := errors.AsType[*backend.Error](b.Check()); !ok || !strings.Contains(failure.Detail, name+" (GET )") {
			t.Errorf("that %s is not offered is not told: %v", name, failure)
		}
	}
}

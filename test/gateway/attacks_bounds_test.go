package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// sendChunks sends a request whose body goes on until nobody takes it any more, and returns the status.
func sendChunks(t *testing.T, url, contentType string) int {
	t.Helper()
	body, writer := io.Pipe()
	sent := make(chan int, 1)
	go func() {
		total := 0
		for chunk := []byte(strings.Repeat(" ", 64<<10)); ; {
			n, err := writer.Write(chunk)
			if total += n; err != nil {
				sent <- total
				return
			}
		}
	}()
	r, err := http.NewRequestWithContext(inTime(t), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	response, err := http.DefaultTransport.RoundTrip(r)
	_ = body.CloseWithError(errors.New("nobody reads"))
	if total := <-sent; total > 16<<20 {
		t.Errorf("%d bytes were taken", total)
	}
	if err != nil {
		return 0 // it hung up in the midst of it
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestABodyIsBoundedBeforeItIsUnderstood: in size, nesting, number and time.
func TestABodyIsBoundedBeforeItIsUnderstood(t *testing.T) {
	t.Parallel()
	seen := &witness{Handler: both(small("server", "who"))}
	backends := []table.Backend{{Name: "server", URL: serve(t, seen)}}
	g := launch.Serve(t, binary, backends, "--max-body-bytes", "65536")
	// A body that comes may take longer than this on a busy machine: it gets those that do not.
	brief := launch.Serve(t, binary, backends, "--max-body-bytes", "65536", "--write-timeout", "300ms")
	call, headers := modernCall("who", `{}`)
	with := func(arguments string) string { return strings.Replace(call, "{}", arguments, 1) }
	members := make([]string, 5000)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	for name, tc := range map[string]struct {
		body string
		want int
	}{
		"a body over the limit":      {with(`{"a":"` + strings.Repeat("x", 70_000) + `"}`), http.StatusRequestEntityTooLarge},
		"a batch of 10,000":          {"[" + strings.Repeat(`{"jsonrpc":"2.0"},`, 3000) + "{}]", http.StatusBadRequest},
		"10,000 levels":              {with(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), http.StatusBadRequest},
		"10,000 levels, never ended": {strings.Repeat(`{"a":`, 10_000), http.StatusBadRequest},
		"a number beyond all":        {strings.Replace(call, `"id":7`, `"id":1e400`, 1), http.StatusBadRequest},
		"a key twice":                {strings.Replace(call, `"id":7`, `"id":7,"id":8`, 1), http.StatusBadRequest},
		"a key in other letters":     {strings.Replace(call, `"method"`, `"Method"`, 1), http.StatusBadRequest},
		"NUL":                        {with("\x00"), http.StatusBadRequest},
		"as many members as fit":     {with("{" + strings.Join(members, ",") + "}"), http.StatusOK},
	} {
		if r, answer := post(t, g.URL, tc.body, headers...); r.StatusCode != tc.want {
			t.Errorf("%s: %s: %.200s", name, r.Status, answer)
		}
	}
	if status := sendChunks(t, g.URL, "application/json"); status != http.StatusRequestEntityTooLarge && status != 0 {
		t.Errorf("a body without end: %d", status)
	}
	if status := sendChunks(t, g.URL, "text/plain"); status != http.StatusUnsupportedMediaType && status != 0 {
		t.Errorf("a body of another type, without end: %d", status)
	}
	for name, sent := range map[string]string{
		"a body that does not come":                   rawRequest(brief.URL, "/mcp", call[:20], "Content-Length: 60000"),
		"a large one":                                 rawRequest(brief.URL, "/mcp", call[:20], "Content-Length: 65500"),
		"chunks that do not come":                     rawRequest(brief.URL, "/mcp", "5\r\n{", "Transfer-Encoding: chunked"),
		"one that nobody would read: of another type": strings.Replace(rawRequest(brief.URL, "/mcp", "", "Content-Length: 9"), "/json", "/xml", 1),
		"one of another path":                         rawRequest(brief.URL, "/", "", "Content-Length: 9"),
		"one of a page of another site":               rawRequest(brief.URL, "/mcp", "", "Content-Length: 9", "Origin: http://evil.example"),
		"one of a DELETE":                             strings.Replace(rawRequest(brief.URL, "/mcp", "", "Content-Length: 9"), "POST", "DELETE", 1),
	} {
		if statuses, closed := exchangeRaw(t, brief.URL, sent, toClose); !closed || len(statuses) > 1 {
			t.Errorf("%s: answered with %v, closed: %t", name, statuses, closed)
		}
	}
	if n := len(seen.with("tools/call")); n != 1 {
		t.Errorf("the server was called %d times", n)
	}
}

// TestAClientThatDoesNotReadIsCutOff: what its backend sends is not kept for it meanwhile.
func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	t.Parallel()
	written, gone := make(chan int, 1), make(chan struct{})
	handler := modernOnly(small("server", "who"))
	flood := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "tools/call" {
			handler.ServeHTTP(w, r)
			return
		}
		defer close(gone)
		w.Header().Set("Content-Type", "application/json")
		total, err := io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"`)
		for chunk := []byte(strings.Repeat("x", 64<<10)); err == nil && total < 512<<20; total += len(chunk) {
			_, err = w.Write(chunk)
		}
		written <- total
	})
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, flood)}}, "--write-timeout", "500ms", "--max-response-bytes", "1073741824")
	body, _ := modernCall("who", `{}`)
	conn, err := net.Dial("tcp", addressOf(g.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, rawRequest(g.URL, "/mcp", body, fmt.Sprintf("Content-Length: %d", len(body)), "Mcp-Protocol-Version: "+modern,
		"Mcp-Method: tools/call", "Mcp-Name: who"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the server sends on and on")
	}
	// The kernel holds all of it but 256 KiB, in the buffers of the two connections, as large as it lets them grow (net.ipv4.tcp_rmem and
	// tcp_wmem). What the gateway itself holds is measured where it can be told apart: see the tests of internal/gateway.
	if total := <-written; total > 32<<20 {
		t.Errorf("%d bytes were taken from the server for a client that reads nothing", total)
	}
}

// TestACallersQuotaIsItsOwnWhateverItSaysOfItself: a header that names another address does not make it another caller.
func TestACallersQuotaIsItsOwnWhateverItSaysOfItself(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 10), make(chan struct{})
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	addTool(server, "wait", func(context.Context, *mcp.CallToolRequest, none) (string, error) {
		begun <- struct{}{}
		<-end
		return "done", nil
	})
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, modernOnly(server))}}, "--max-calls", "2")
	body, headers := modernCall("wait", `{}`)
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK {
				t.Errorf("within the quota: %s: %s", r.Status, answer)
			}
		})
		<-begun
	}
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip"} {
		value := "192.0.2.77"
		if name == "Forwarded" {
			value = "for=192.0.2.77"
		}
		if r, answer := post(t, g.URL, body, append([]string{name, value}, headers...)...); r.StatusCode != http.StatusTooManyRequests {
			t.Errorf("with %s: %s: %s", name, r.Status, answer)
		}
	}
	close(end)
	running.Wait()
}

// TestCallersWithOneIDEachGetTheirOwnAnswer: in both generations at once, over the same connections to the server.
func TestCallersWithOneIDEachGetTheirOwnAnswer(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	addTools(server)
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, both(server))}}, "--max-calls", "1000", "--max-sessions", "1000")
	_, session := legacyCall(t, g.URL, "echo", `{}`)
	var running sync.WaitGroup
	for n := range 400 {
		running.Go(func() {
			text := fmt.Sprintf("caller-%d", n)
			body, headers := modernCall("echo", `{"text":"`+text+`"}`)
			if n%2 == 1 {
				body, headers = strings.Replace(body, ","+meta, "", 1), session
				body = strings.Replace(body, `"id":7`, fmt.Sprintf(`"id":%d`, n), 1) // a session has each id once
			}
			if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK || !strings.Contains(answer, `"`+text+`"`) {
				t.Errorf("%s: %s: %.300s", text, r.Status, answer)
			}
		})
	}
	running.Wait()
}

// TestAnArgumentThatIsSentInAHeaderCannotMakeAnother: what a header cannot hold is encoded.
func TestAnArgumentThatIsSentInAHeaderCannotMakeAnother(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "route", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"tenant":{"type":"string","x-mcp-header":"Tenant"}}}`,
	)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "routed"}}}, nil
	})
	seen := &witness{Handler: modernOnly(server)}
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, seen)}})
	connect(t, g.URL, modern).tools(t) // so that the gateway knows the schema
	for argument, want := range map[string]string{
		"a\r\nX-Api-Key: evil": "=?base64?YQ0KWC1BcGktS2V5OiBldmls?=", "ü": "=?base64?w7w=?=", " a": "=?base64?IGE=?=", "\x00": "=?base64?AA==?=",
		"=?base64?YQ==?=": "=?base64?PT9iYXNlNjQ/WVE9PT89?=", "plain": "plain",
	} {
		text, err := json.Marshal(argument)
		if err != nil {
			t.Fatal(err)
		}
		before := len(seen.with("tools/call"))
		// A client of before 2026-07-28 sends no such header: the gateway makes it.
		body, headers := legacyCall(t, g.URL, "route", `{"tenant":`+string(text)+`}`)
		if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK || !strings.Contains(answer, "routed") {
			t.Errorf("%q: %s: %s", argument, r.Status, answer)
			continue
		}
		got := seen.with("tools/call")[before]
		if got.Header.Get("Mcp-Param-Tenant") != want || got.Header.Get("X-Api-Key") != "" {
			t.Errorf("%q was sent as %v", argument, got.Header)
		}
	}
}

// TestConnectionsThatSayNothingDelayNobodyAndEnd: those that send no request, and those that send one by drops.
func TestConnectionsThatSayNothingDelayNobodyAndEnd(t *testing.T) {
	t.Parallel()
	g, _ := counted(t)
	var silent []net.Conn
	for n := range 500 {
		conn, err := net.Dial("tcp", addressOf(g.URL))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if n%2 == 0 {
			if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: "); err != nil {
				t.Fatal(err)
			}
		}
		silent = append(silent, conn)
	}
	body, headers := modernCall("who", `{}`)
	begun := time.Now()
	if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK || time.Since(begun) > 8*time.Second {
		t.Errorf("a call beside them: %s after %s: %s", r.Status, time.Since(begun), answer)
	}
	for _, conn := range silent {
		if err := conn.SetReadDeadline(begun.Add(25 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatalf("a silent connection is kept for more than %s", time.Since(begun))
			}
		}
	}
}

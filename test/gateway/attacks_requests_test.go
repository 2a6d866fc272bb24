package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// How long exchangeRaw waits for one thing more to come of a connection. A gateway that means to answer or to close may take a while on a
// busy machine; that it means to keep one is seen by its silence alone. What is closed later than this is closed for another reason: since
// no request came, or no body.
const (
	toAnswer = 20 * time.Second
	toClose  = 9 * time.Second
	toKeep   = time.Second
)

// exchangeRaw sends bytes, and returns the statuses of all responses to them, and whether the connection was closed after those.
func exchangeRaw(t *testing.T, url, sent string, patience time.Duration) (statuses []int, closed bool) {
	t.Helper()
	conn, err := net.Dial("tcp", addressOf(url))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Logf("the gateway hung up: %v", err)
	}
	in := bufio.NewReader(conn)
	for {
		// What else was answered comes with the first response, which comes or the connection is closed.
		deadline := time.Now().Add(patience)
		if len(statuses) == 0 {
			deadline = time.Now().Add(toAnswer)
		}
		if err := conn.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Peek(1); err != nil {
			return statuses, !errors.Is(err, os.ErrDeadlineExceeded)
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("no response: %v", err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return append(statuses, response.StatusCode), true
		}
		statuses = append(statuses, response.StatusCode)
	}
}

func addressOf(url string) string {
	return strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
}

// rawRequest is a POST with these header lines, and those that every one has.
func rawRequest(url, target, body string, lines ...string) string {
	all := append([]string{"POST " + target + " HTTP/1.1", "Host: " + addressOf(url), "Content-Type: application/json"}, lines...)
	return strings.Join(all, "\r\n") + "\r\n\r\n" + body
}

// counted is a server whose tool "secret" nobody may call; it tells when somebody did.
func counted(t *testing.T, flags ...string) (*launch.Gateway, *witness) {
	t.Helper()
	seen := &witness{Handler: both(small("server", "who", "secret"))}
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, seen), Tools: table.ToolPolicy{Deny: []string{"secret"}}}}, flags...)
	return g, seen
}

// TestOneRequestIsNotTakenForTwo: what a proxy in front and the gateway could read differently is refused, or at least the last thing
// that is read from that connection.
func TestOneRequestIsNotTakenForTwo(t *testing.T) {
	t.Parallel()
	g, _ := counted(t)
	address := addressOf(g.URL)
	call, _ := modernCall("who", `{}`)
	length := fmt.Sprintf("Content-Length: %d", len(call))
	proper := []string{"Mcp-Protocol-Version: " + modern, "Mcp-Method: tools/call", "Mcp-Name: who"}
	of := func(body string, lines ...string) string {
		return rawRequest(g.URL, "/mcp", body, append(append([]string{}, proper...), lines...)...)
	}
	hidden := rawRequest(g.URL, "/mcp", "", "Content-Length: 0")
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(call), call)
	cases := map[string]struct {
		sent string
		want int // the status, or its first digit
	}{
		"a length and chunks":            {of(chunked+hidden, fmt.Sprintf("Content-Length: %d", len(chunked+hidden)), "Transfer-Encoding: chunked"), 200},
		"two lengths":                    {of(call+hidden, length, "Content-Length: 3"), 400},
		"a length with a sign":           {of(call, fmt.Sprintf("Content-Length: +%d", len(call))), 400},
		"a negative length":              {of(call, "Content-Length: -1"), 400},
		"a length in two parts":          {of(call, fmt.Sprintf("Content-Length: %d, %d", len(call), len(call))), 400},
		"chunks, twice":                  {of(chunked+hidden, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), 5},
		"chunks of another coding":       {of(chunked+hidden, "Transfer-Encoding: gzip, chunked"), 5},
		"chunks, written otherwise":      {of(chunked+hidden, "Transfer-Encoding: xchunked"), 5},
		"chunks with bare line feeds":    {of(strings.ReplaceAll(chunked, "\r\n", "\n")+hidden, "Transfer-Encoding: chunked"), 400},
		"a chunk of a negative size":     {of("-1\r\n"+call+"\r\n0\r\n\r\n"+hidden, "Transfer-Encoding: chunked"), 400},
		"a space before the colon":       {of(call, length, "Transfer-Encoding : chunked"), 400},
		"NUL in a header":                {of(call, length, "X-A: a\x00b"), 400},
		"a line feed in a header's name": {of(call, length, "X-A\n: a"), 400},
		"a header without a name":        {of(call, length, ": a"), 400},
		"a folded header":                {of(call, length, "Mcp-Name: secret\r\n  x"), 400},
		"two hosts":                      {of(call, length, "Host: "+address), 400},
		"no host":                        {strings.Replace(of(call, length), "Host: "+address+"\r\n", "", 1), 400},
		"a path in the host":             {strings.Replace(of(call, length), "Host: "+address, "Host: a/?x=", 1), 400},
		"another host":                   {strings.Replace(of(call, length), "Host: "+address, "Host: evil.example", 1), 403},
		"another host in the URL":        {rawRequest(g.URL, "http://evil.example/mcp", call, append(proper, length)...), 403},
		"another site":                   {of(call, length, "Origin: http://evil.example"), 403},
		"two sites":                      {of(call, length, "Origin: http://"+address, "Origin: http://evil.example"), 403},
		"a form of another site":         {strings.Replace(of(call, length), "application/json", "text/plain", 1), 415},
		"a proxy's request":              {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", 4},
		"an echo":                        {"TRACE /mcp HTTP/1.1\r\nHost: " + address + "\r\n\r\n", 405},
		"HTTP/2 without being asked":     {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 4},
		"a header that is too large":     {of(call, length, "X-A: "+strings.Repeat("a", 80<<10)), 431},
		"headers without end":            {of(call, append([]string{length}, strings.Split(strings.Repeat("X-B: b\n", 20_000), "\n")[:20_000]...)...), 431},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patience := toKeep
			if strings.Contains(tc.sent, "Transfer-Encoding") {
				patience = toClose
			}
			statuses, closed := exchangeRaw(t, g.URL, tc.sent, patience)
			switch {
			case len(statuses) != 1:
				t.Errorf("answered with %v, want one response", statuses)
			case statuses[0] != tc.want && statuses[0]/100 != tc.want:
				t.Errorf("answered with %v, want %d", statuses, tc.want)
			case !closed && strings.Contains(tc.sent, "Transfer-Encoding"):
				t.Errorf("answered with %v, and the connection is used on", statuses)
			}
		})
	}
}

// TestAnUpgradeIsNotFollowed: neither to HTTP/2, whose floods of streams, resets and tables there are then none of, nor to anything else.
func TestAnUpgradeIsNotFollowed(t *testing.T) {
	g, _ := counted(t)
	for _, protocol := range []string{"h2c", "websocket", "TLS/1.0"} {
		statuses, _ := exchangeRaw(t, g.URL, rawRequest(g.URL, "/mcp", "{}", "Content-Length: 2", "Connection: Upgrade, HTTP2-Settings", "Upgrade: "+protocol,
			"HTTP2-Settings: AAMAAABkAAQAAP__"), toKeep)
		if len(statuses) != 1 || statuses[0] != http.StatusBadRequest {
			t.Errorf("%s: answered with %v", protocol, statuses)
		}
	}
}

// TestWhatHeadersSayTwiceOrOtherwiseIsRefusedAndTheBodyDecides has a tool that must not be called, named in every place.
func TestWhatHeadersSayTwiceOrOtherwiseIsRefusedAndTheBodyDecides(t *testing.T) {
	t.Parallel()
	g, seen := counted(t)
	who, _ := modernCall("who", `{}`)
	secret, _ := modernCall("secret", `{}`)
	old := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"secret","arguments":{}}}`
	version, method, name := "Mcp-Protocol-Version: "+modern, "Mcp-Method: tools/call", "Mcp-Name: who"
	cases := map[string]struct {
		body  string
		lines []string
		want  int
	}{
		"as it should be":                    {who, []string{version, method, name}, http.StatusOK},
		"its name, encoded":                  {who, []string{version, method, "Mcp-Name: =?base64?d2hv?="}, http.StatusOK},
		"another name, encoded":              {who, []string{version, method, "Mcp-Name: =?base64?c2VjcmV0?="}, http.StatusBadRequest},
		"a name, badly encoded":              {who, []string{version, method, "Mcp-Name: =?base64?d2hv\xff?="}, http.StatusBadRequest},
		"a name, encoded with more after it": {who, []string{version, method, "Mcp-Name: =?base64?d2hvAA==?="}, http.StatusBadRequest},
		"two names":                          {who, []string{version, method, name, "Mcp-Name: secret"}, http.StatusBadRequest},
		"one name twice":                     {who, []string{version, method, name, name}, http.StatusBadRequest},
		"a name with an underscore":          {who, []string{version, method, name, "Mcp_Name: secret"}, http.StatusBadRequest},
		"a version with an underscore":       {who, []string{version, method, name, "mcp_protocol_version: " + legacy}, http.StatusBadRequest},
		"two methods":                        {who, []string{version, method, "Mcp-Method: tools/list", name}, http.StatusBadRequest},
		"two versions":                       {who, []string{version, "Mcp-Protocol-Version: " + legacy, method, name}, http.StatusBadRequest},
		"no name":                            {who, []string{version, method}, http.StatusBadRequest},
		"an empty name":                      {who, []string{version, method, "Mcp-Name:"}, http.StatusBadRequest},
		"no method":                          {who, []string{version, name}, http.StatusBadRequest},
		"no version":                         {who, []string{method, name}, http.StatusBadRequest},
		"an unknown version":                 {who, []string{"Mcp-Protocol-Version: 1999-01-01", method, name}, http.StatusBadRequest},
		"a hidden tool by an older version":  {secret, []string{"Mcp-Protocol-Version: " + legacy, method, name}, 0},
		"a hidden tool without a version":    {old, []string{method, name}, 0},
		"a hidden tool behind a shown one":   {secret, []string{version, method, name}, http.StatusBadRequest},
		"a hidden tool by the oldest":        {old, []string{"Mcp-Protocol-Version: 2024-11-05"}, 0},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			lines := append([]string{fmt.Sprintf("Content-Length: %d", len(tc.body)), "Connection: close"}, tc.lines...)
			statuses, _ := exchangeRaw(t, g.URL, rawRequest(g.URL, "/mcp", tc.body, lines...), toClose)
			if len(statuses) != 1 || tc.want != 0 && statuses[0] != tc.want {
				t.Errorf("answered with %v, want %d", statuses, tc.want)
			}
		})
	}
	t.Cleanup(func() {
		for _, r := range seen.with("tools/call") {
			if r.Header.Get("Mcp-Name") == "secret" || len(seen.with(`"secret"`)) > 0 {
				t.Error("the tool that nobody may call was called")
			}
		}
	})
}

// TestOnlyThePathOfTheTableIsServed: not what it could be taken for.
func TestOnlyThePathOfTheTableIsServed(t *testing.T) {
	g, seen := counted(t)
	body, _ := modernCall("who", `{}`)
	before := len(seen.with("tools/call"))
	for _, target := range []string{
		"/", "//mcp", "/mcp/", "/MCP", "/mcp/../mcp", "/mcp/.", "/./mcp", "/x/../mcp", "/%6dcp", "/mcp%2f", "/mcp%00", "/mcp%20", "/mcp;x=1", "/mcp/x",
		"/mcp/..;/mcp", "/%2e%2e/mcp", "/mcp#x", "/mcp%3fx", "/.well-known/oauth-protected-resource/mcp/..", "/metrics", "/status", "/readyz", "/debug/pprof/",
		"*", "mcp",
	} {
		statuses, _ := exchangeRaw(t, g.URL, rawRequest(g.URL, target, body, fmt.Sprintf("Content-Length: %d", len(body)), "Mcp-Protocol-Version: "+modern,
			"Mcp-Method: tools/call", "Mcp-Name: who", "Connection: close"), toClose)
		if len(statuses) != 1 || statuses[0] != http.StatusNotFound && statuses[0] != http.StatusBadRequest {
			t.Errorf("%s: answered with %v", target, statuses)
		}
	}
	if n := len(seen.with("tools/call")) - before; n != 0 {
		t.Errorf("the backend was called %d times", n)
	}
}

// TestOfWhoAsksForHealthNobodyLearnsMore: metrics and health have an address of their own, where there is no more than that.
func TestOfWhoAsksForHealthNobodyLearnsMore(t *testing.T) {
	token := t.TempDir() + "/token"
	launch.Write(t, token, []byte("status-token"))
	g, _ := counted(t, "--status-token-file", token)
	for path, want := range map[string]int{
		"/debug/pprof/": 404, "/debug/vars": 404, "/": 404, "/mcp": 404, "/livez": 200, "/status": 401,
	} {
		if r, body := request(t, http.MethodGet, g.Health+path, ""); r.StatusCode != want {
			t.Errorf("%s: %s: %.100s", path, r.Status, body)
		}
	}
	for _, wrong := range []string{"status-token", "Bearer ", "Bearer status-toke", "Bearer status-tokenx", "bearer  status-token"} {
		if r, body := request(t, http.MethodGet, g.Health+"/status", "", "Authorization", wrong); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %s: %.100s", wrong, r.Status, body)
		}
	}
}

package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// post sends a body and returns what came back. Headers are given as name, value, name, value.
func post(t *testing.T, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	return request(t, http.MethodPost, url, body, headers...)
}

func request(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" { // from there the client does not take it
		r.Host = host
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(content)
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"raw","version":"1"}}}`
	list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

func TestAClientThatKeepsNoSessionIsServedWhereNoneIsNeeded(t *testing.T) {
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, modernOnly(small("server", "who")))}})
	if r, body := post(t, g.URL, initialize); r.StatusCode != http.StatusOK {
		t.Fatalf("initialize: %s: %s", r.Status, body)
	}
	if r, body := post(t, g.URL, list); r.StatusCode != http.StatusOK || !strings.Contains(body, `"who"`) {
		t.Errorf("a list without a session: %s: %s", r.Status, body)
	}
	stateful := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, streamable(nil)(small("server", "who")))}})
	post(t, stateful.URL, initialize)
	if r, body := post(t, stateful.URL, list); r.StatusCode != http.StatusBadRequest {
		t.Errorf("a list without a session at a server that keeps them: %s: %s", r.Status, body)
	}
}

// TestAClientThatKeepsNoSessionReachesWhoeverNeedsNone: each backend is judged for itself, and a list shows what can be called.
func TestAClientThatKeepsNoSessionReachesWhoeverNeedsNone(t *testing.T) {
	t.Parallel()
	const sessionMissing = "Mcp-Session-Id header is missing"
	stateless := func(s *mcp.Server) http.Handler { return streamable(&mcp.StreamableHTTPOptions{Stateless: true})(s) }
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	at := func(name, prefix string, handler func(*mcp.Server) http.Handler) table.Backend {
		return table.Backend{Name: name, Prefix: prefix, URL: serve(t, handler(small(name, "who")))}
	}
	pair := []table.Backend{at("free", "f_", stateless), at("kept", "k_", streamable(nil))}
	call := func(tool string) string {
		return `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
	}
	for name, tc := range map[string]struct {
		backends []table.Backend
		asked    string
		status   int
		want     []string // in the answer
		without  []string
	}{
		"a list of a stateless server": {[]table.Backend{at("free", "", stateless)}, list, http.StatusOK, []string{`"who"`}, nil},
		"a call to a stateless server": {[]table.Backend{at("free", "", stateless)}, call("who"), http.StatusOK, []string{`"free"`}, nil},
		"a call to a server that keeps sessions for old clients alone": {
			[]table.Backend{at("two", "", both)}, call("who"), http.StatusOK, []string{`"two"`}, nil,
		},
		"a call to a stateless server of old versions alone": {
			[]table.Backend{at("old", "", legacyStateless)}, call("who"), http.StatusOK, []string{`"old"`}, nil,
		},
		"a call beside a server that keeps sessions": {pair, call("f_who"), http.StatusOK, []string{`"free"`}, nil},
		"a call to the one that keeps sessions":      {pair, call("k_who"), http.StatusBadRequest, []string{sessionMissing}, nil},
		"a list of both":                             {pair, list, http.StatusOK, []string{"f_who"}, []string{"k_who"}},
		"a subscription, which is kept in a session": {
			[]table.Backend{at("free", "", stateless)},
			`{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"x://r"}}`,
			http.StatusBadRequest,
			[]string{sessionMissing},
			nil,
		},
		"a call beside a server that is dead": {
			[]table.Backend{at("free", "f_", stateless), {Name: "dead", Prefix: "d_", URL: dead.URL}}, call("f_who"), http.StatusOK, []string{`"free"`}, nil,
		},
		"a list of servers that keep sessions": {
			[]table.Backend{at("a", "a_", streamable(nil)), at("b", "b_", streamable(nil))}, list, http.StatusBadRequest, []string{sessionMissing}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patience := "2s"
			if tc.asked == list { // it tells what is known by then: here of all
				patience = "30s"
			}
			g := launch.Serve(t, binary, tc.backends, "--listing-timeout", patience)
			for _, when := range []string{"before", "after"} {
				r, answer := post(t, g.URL, tc.asked)
				for _, want := range tc.want {
					if r.StatusCode != tc.status || !strings.Contains(answer, want) {
						t.Errorf("%s initialize: %s: %s, want %d with %s", when, r.Status, answer, tc.status, want)
					}
				}
				for _, without := range tc.without {
					if strings.Contains(answer, without) {
						t.Errorf("%s initialize it shows %s: %s", when, without, answer)
					}
				}
				post(t, g.URL, initialize)
			}
		})
	}
}

func TestASessionThatWasEndedIsNotFound(t *testing.T) {
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, streamable(nil)(small("server", "who")))}})
	r, body := post(t, g.URL, initialize)
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no session: %s: %s", r.Status, body)
	}
	if r, body := post(t, g.URL, list, "Mcp-Session-Id", id); r.StatusCode != http.StatusOK {
		t.Errorf("list: %s: %s", r.Status, body)
	}
	if r, body := request(t, http.MethodDelete, g.URL, "", "Mcp-Session-Id", id); r.StatusCode/100 != 2 {
		t.Errorf("delete: %s: %s", r.Status, body)
	}
	for _, gone := range []string{id, "made-up", id + "A"} {
		if r, body := post(t, g.URL, list, "Mcp-Session-Id", gone); r.StatusCode != http.StatusNotFound {
			t.Errorf("after its end: %s: %s", r.Status, body)
		}
	}
}

func TestWhatIsRefusedIsRefusedAsTheProtocolSays(t *testing.T) {
	server := table.Backend{Name: "server", URL: serve(t, both(small("server", "who", "secret"))), Tools: table.ToolPolicy{Deny: []string{"secret"}}}
	g := launch.Serve(t, binary, []table.Backend{server})
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"who","arguments":{},` + meta + `}}`
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	headers := []string{versionHeader, modern, "Mcp-Method", "tools/call", "Mcp-Name", "who"}
	with := func(name, value string) []string { return append(append([]string{}, headers...), name, value) }
	cases := map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"a right call":                        {call, headers, http.StatusOK, 0},
		"another name in the header":          {call, with("Mcp-Name", "secret"), http.StatusBadRequest, -32020},
		"another method in the header":        {call, with("Mcp-Method", "tools/list"), http.StatusBadRequest, -32020},
		"another version in the header":       {call, with(versionHeader, "2027-01-01"), http.StatusBadRequest, -32020},
		"a hidden tool, right in the header":  {strings.Replace(call, `"who"`, `"secret"`, 1), with("Mcp-Name", "secret"), http.StatusBadRequest, -32602},
		"a hidden tool, behind a shown one":   {strings.Replace(call, `"who"`, `"who","name":"secret"`, 1), headers, http.StatusBadRequest, -32600},
		"a hidden tool, with an escaped name": {strings.Replace(call, `"who"`, `"\u0073ecret"`, 1), with("Mcp-Name", "secret"), http.StatusBadRequest, -32602},
		"a name in other letters":             {strings.Replace(call, `"name":"who"`, `"Name":"who"`, 1), headers, http.StatusBadRequest, -32600},
		"a batch":                             {"[" + call + "]", headers, http.StatusBadRequest, -32600},
		"no JSON":                             {"{", headers, http.StatusBadRequest, -32700},
		"JSON after the JSON":                 {call + call, headers, http.StatusBadRequest, -32700},
		"bytes that are no UTF-8":             {strings.Replace(call, "who", "wh\xff", 1), headers, http.StatusBadRequest, -32700},
		"depth":                               {strings.Replace(call, `{},`, deep+",", 1), headers, http.StatusBadRequest, -32600},
		"another media type":                  {call, with("Content-Type", "text/plain"), http.StatusUnsupportedMediaType, -32600},
		"a compressed body":                   {call, with("Content-Encoding", "gzip"), http.StatusUnsupportedMediaType, -32600},
		"an Accept of neither":                {call, with("Accept", "text/html"), http.StatusNotAcceptable, 0},
		"a page of another origin":            {call, with("Origin", "https://evil.example"), http.StatusForbidden, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, body := post(t, g.URL, tc.body, tc.headers...)
			var answer struct {
				Error struct {
					Code int `json:"code"`
				} `json:"error"`
			}
			_ = json.Unmarshal([]byte(body), &answer) // some answers are plain text
			if r.StatusCode != tc.status || answer.Error.Code != tc.code {
				t.Errorf("got %s, code %d, want %d, %d: %s", r.Status, answer.Error.Code, tc.status, tc.code, body)
			}
		})
	}
}

// TestHeadersMayBeOverlookedButTheBodyDecides is a gateway that is told to be lenient with clients that get headers wrong.
func TestHeadersMayBeOverlookedButTheBodyDecides(t *testing.T) {
	content, err := json.Marshal(table.Table{
		Version: table.Version, Auth: table.Auth{Type: table.AuthNone}, Endpoint: table.Endpoint{LenientHeaders: true},
		Backends: []table.Backend{{
			Name: "server", URL: serve(t, both(small("server", "who", "secret"))), Tools: table.ToolPolicy{Deny: []string{"secret"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "table.json")
	launch.Write(t, file, content)
	g := launch.Run(t, binary, "serve", "--table", file, "--ephemeral-session-key")
	call := func(tool string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":{},` + meta + `}}`
	}
	if r, body := post(t, g.URL, call("who"), versionHeader, modern, "Mcp-Method", "tools/list", "Mcp-Name", "secret"); r.StatusCode != http.StatusOK {
		t.Errorf("a call whose headers say something else: %s: %s", r.Status, body)
	}
	r, body := post(t, g.URL, call("secret"), versionHeader, modern, "Mcp-Method", "tools/call", "Mcp-Name", "who")
	if !strings.Contains(body, "unknown tool") {
		t.Errorf("a hidden tool behind the name of a shown one: %s: %s", r.Status, body)
	}
	if _, metrics := request(t, http.MethodGet, g.Health+"/metrics", ""); !strings.Contains(metrics, `mcp_gateway_headers_ignored_total{part="standard"} 2`) {
		t.Error("it was not counted")
	}
}

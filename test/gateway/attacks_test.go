package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// canary is in everything that must stay where it is.
const canary = "c4nary-7f3a"

// witness is a backend's handler that remembers what it was asked.
type witness struct {
	http.Handler

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.mu.Lock()
	w.requests, w.bodies = append(w.requests, r.Clone(r.Context())), append(w.bodies, string(body))
	w.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.Handler.ServeHTTP(out, r)
}

// with are the requests whose body holds a text.
func (w *witness) with(text string) (found []*http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, body := range w.bodies {
		if strings.Contains(body, text) {
			found = append(found, w.requests[i])
		}
	}
	return found
}

// serveTable starts a gateway with a whole table.
func serveTable(t *testing.T, served table.Table, flags ...string) *launch.Gateway {
	t.Helper()
	served.Version = table.Version
	content, err := json.Marshal(served)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "table.json")
	launch.Write(t, file, content)
	return launch.Run(t, binary, "serve", append([]string{"--table", file, "--ephemeral-session-key"}, flags...)...)
}

// modernCall is a call by a client of 2026-07-28: its body and its headers.
func modernCall(tool, arguments string) (body string, headers []string) {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,` + meta + `}}`,
		[]string{versionHeader, modern, "Mcp-Method", "tools/call", "Mcp-Name", tool}
}

// legacyCall is a call by a client of 2025-11-25, in a session that it opens with the same headers.
func legacyCall(t *testing.T, url, tool, arguments string, headers ...string) (body string, all []string) {
	t.Helper()
	r, answer := post(t, url, initialize, headers...)
	id := r.Header.Get("Mcp-Session-Id")
	if r.StatusCode != http.StatusOK {
		t.Fatalf("initialize: %s: %s", r.Status, answer)
	}
	all = []string{versionHeader, legacy}
	if id != "" {
		all = append(all, "Mcp-Session-Id", id)
	}
	post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, append(all, headers...)...)
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`, all
}

// ways are calls of a tool by clients of both generations.
func ways(t *testing.T, url, tool, arguments string, headers ...string) map[string]func() (*http.Response, string) {
	t.Helper()
	return map[string]func() (*http.Response, string){
		"a modern client": func() (*http.Response, string) {
			body, own := modernCall(tool, arguments)
			return post(t, url, body, append(own, headers...)...)
		},
		"a legacy client": func() (*http.Response, string) {
			body, own := legacyCall(t, url, tool, arguments, headers...)
			return post(t, url, body, append(own, headers...)...)
		},
	}
}

// whatBackendsGet are the only headers that a gateway sends to a backend. (A trace context goes on to them, as it is meant to.)
var whatBackendsGet = []string{
	"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id",
	"Traceparent", "User-Agent", "X-Api-Key",
}

// attackersHeaders try to become the backend's, to name another caller or host, or to take one of ours away. "Connection" names as
// hop-by-hop what the gateway itself sends.
func attackersHeaders() []string {
	headers := []string{"Connection", "X-Api-Key, Mcp-Session-Id, Mcp-Method, Content-Type", "Te", "trailers"}
	for _, name := range []string{
		"X-Api-Key", "X-Upstream-Authorization", "Proxy-Authorization", "Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
		"X-Forwarded-Proto", "X-Forwarded-User", "X-Real-Ip", "X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "Router-Key",
		"Mcp-Init-Host", "X-Mcp-Server", "X-Mcp-Authorized", "X-Mcp-Virtualserver", "Mcp-Param-Region", "Mcp-Param-X-Api-Key", "Last-Event-Id",
		"X-Request-Id", "Via", "Referer", "If-None-Match", "Range", "Expect-Ct", "Upgrade-Insecure-Requests", "Tracestate",
	} {
		headers = append(headers, name, canary+"-"+strings.ToLower(name))
	}
	return headers
}

// TestNothingThatAClientSaysInHeadersReachesABackend: neither its token nor what it would have others believe; and the backend's own
// credential stays the gateway's.
func TestNothingThatAClientSaysInHeadersReachesABackend(t *testing.T) {
	issuer := newIssuer(t)
	secret := filepath.Join(t.TempDir(), "key")
	launch.Write(t, secret, []byte("the-gateways-own-key\n"))
	for kind, handler := range map[string]func(*mcp.Server) http.Handler{"modern": modernOnly, "legacy": streamable(nil)} {
		seen := &witness{Handler: handler(small("server", "who"))}
		url := serve(t, seen)
		g := serveTable(t, table.Table{Auth: issuer.auth("alice"), Backends: []table.Backend{{
			Name: "server", URL: url, Credential: &table.Credential{Type: table.CredentialHeader, Header: "X-Api-Key", ValueFile: secret},
		}}}, "--log-level", "debug")
		token := issuer.token("alice", nil)
		headers := append(attackersHeaders(), "Authorization", "Bearer "+token)
		for who, call := range ways(t, g.URL+"?api_key="+canary, "who", `{}`, headers...) {
			if r, body := call(); r.StatusCode != http.StatusOK || !strings.Contains(body, `"server"`) {
				t.Errorf("%s, %s server: %s: %s", who, kind, r.Status, body)
			}
		}
		if len(seen.with("tools/call")) != 2 {
			t.Errorf("the %s server got %d calls", kind, len(seen.with("tools/call")))
		}
		for _, r := range seen.with("") {
			seen.judge(t, r, strings.TrimPrefix(url, "http://"), token)
		}
		log := string(g.Log(t))
		_, metrics := request(t, http.MethodGet, g.Health+"/metrics", "")
		for _, text := range []string{canary, token, "the-gateways-own-key"} {
			if strings.Contains(log, text) || strings.Contains(metrics, text) {
				t.Errorf("%q is in the log or the metrics of the gateway", text)
			}
		}
	}
}

func (*witness) judge(t *testing.T, r *http.Request, host, token string) {
	t.Helper()
	if r.Host != host || r.URL.RequestURI() != "/" {
		t.Errorf("asked for %s at %s", r.URL.RequestURI(), r.Host)
	}
	for name, values := range r.Header {
		value := strings.Join(values, ", ")
		if !slices.Contains(whatBackendsGet, name) || strings.Contains(value, canary) || strings.Contains(value, token) {
			t.Errorf("the backend was sent %s: %s", name, value)
		}
	}
	if got := r.Header.Values("X-Api-Key"); len(got) != 1 || got[0] != "the-gateways-own-key" {
		t.Errorf("the credential was sent as %q", got)
	}
}

// TestArgumentsAreNeitherLoggedNorCounted: the audit line of a call says who called what, and not with what.
func TestArgumentsAreNeitherLoggedNorCounted(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	addTools(server)
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, both(server))}}, "--log-level", "debug")
	for who, call := range ways(t, g.URL, "echo", `{"text":"`+canary+`"}`) {
		if r, body := call(); r.StatusCode != http.StatusOK || !strings.Contains(body, canary) {
			t.Errorf("%s: %s: %s", who, r.Status, body)
		}
	}
	for who, call := range ways(t, g.URL, "echo-"+canary, `{"text":"`+canary+`"}`) {
		if _, body := call(); !strings.Contains(body, "unknown tool") {
			t.Errorf("%s: %s", who, body)
		}
	}
	log := string(g.Log(t))
	if !strings.Contains(log, `"echo"`) {
		t.Errorf("there is no audit line: %s", log)
	}
	if strings.Contains(strings.ReplaceAll(log, "echo-"+canary, ""), canary) { // the name of a tool is a name
		t.Errorf("an argument is in the log: %s", log)
	}
	if _, metrics := request(t, http.MethodGet, g.Health+"/metrics", ""); strings.Contains(metrics, canary) {
		t.Error("what a client wrote is in the metrics")
	}
}

// TestWhatABackendSaysOfItsFailureIsNotTold: neither to clients nor to who reads the status.
func TestWhatABackendSaysOfItsFailureIsNotTold(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	launch.Write(t, token, []byte("status-token"))
	for kind, handler := range map[string]http.Handler{"modern": modernOnly(small("a", "who")), "legacy": streamable(nil)(small("a", "who"))} {
		failing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte("tools/call")) {
				w.Header().Set("X-Debug", canary)
				http.Error(w, "panic: goroutine 1 [running]: db.internal:5432 "+canary, http.StatusInternalServerError)
				return
			}
			handler.ServeHTTP(w, r)
		})
		g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, failing)}}, "--status-token-file", token)
		for who, call := range ways(t, g.URL, "who", `{}`) {
			r, body := call()
			if strings.Contains(body, canary) || r.Header.Get("X-Debug") != "" || !strings.Contains(body, `"error"`) {
				t.Errorf("%s at a %s server was answered %v: %s", who, kind, r.Header, body)
			}
		}
		r, status := request(t, http.MethodGet, g.Health+"/status", "", "Authorization", "Bearer status-token")
		if r.StatusCode != http.StatusOK || strings.Contains(status, canary) {
			t.Errorf("status %s: %s", r.Status, status)
		}
		if strings.Contains(string(g.Log(t)), canary) {
			t.Error("it is in the log")
		}
	}
}

// TestWhatABackendSendsUnaskedIsNotLogged: not in the words of net/http either, which quotes it.
func TestWhatABackendSendsUnaskedIsNotLogged(t *testing.T) {
	handler := modernOnly(small("server", "who"))
	say, noticed := make(chan struct{}), make(chan struct{}, 10)
	talking := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
			answer.Code, answer.Header().Get("Content-Type"), answer.Body.Len(), answer.Body)
		<-say
		_, _ = io.WriteString(conn, canary+"\x1b[31m\n{\"level\":\"ERROR\"}\n")
		_, _ = io.Copy(io.Discard, conn) // until the gateway hangs up
		noticed <- struct{}{}
	})
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, talking)}})
	body, headers := modernCall("who", `{}`)
	if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", r.Status, answer)
	}
	close(say)
	<-noticed
	if log := string(g.Log(t)); strings.Contains(log, canary) {
		t.Errorf("it is in the log: %s", log)
	}
}

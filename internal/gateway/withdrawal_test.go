package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/gateway/source"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// slowServer is an API server that answers once it is released, with the content of a ConfigMap.
func slowServer(t *testing.T, content string) (c *source.ConfigMap, release func()) {
	t.Helper()
	released := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"data": map[string]string{"tools.json": content}}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	c = &source.ConfigMap{
		Namespace: "team-a", Name: "gateway", Server: server.URL, TokenFile: filepath.Join(folder, "token"), CAFile: filepath.Join(folder, "ca.crt"),
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for path, text := range map[string]string{c.TokenFile: "token", c.CAFile: string(certificate)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c, func() { close(released) }
}

func toolOf(name string) table.HTTPTool {
	return table.HTTPTool{Method: "GET", Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object"}}`)}
}

// served are the backends of the status, with the tools that each serves.
func served(s *table.Status) map[string]string {
	out := map[string]string{}
	for i := range s.Backends {
		var names []string
		for _, tool := range s.Backends[i].Tools {
			if tool.Verdict == table.ToolServed {
				names = append(names, tool.Name)
			}
		}
		out[s.Backends[i].Name] = strings.Join(names, ",")
	}
	return out
}

const fetched = `{"http":[{"definition":{"name":"fetched","inputSchema":{"type":"object"}},"method":"GET"}]}`

// withdrawing is a gateway, and two tables: the second takes away a tool and a server, and adds one whose tools are to be fetched.
func withdrawing(t *testing.T, configMap *source.ConfigMap) (g *gateway, first, second *table.Table) {
	t.Helper()
	g = idle()
	g.panics = panics.New(g.logger, g.telemetry.Panicked)
	var err error
	if g.definitions, err = source.NewDefinitions(configMap, t.TempDir(), g.logger, nil); err != nil {
		t.Fatal(err)
	}
	tools := func(name string, set table.Toolset, policy table.ToolPolicy) table.Backend {
		return table.Backend{Name: name, Transport: table.TransportToolset, URL: "https://" + name + ".example", Toolset: &set, Tools: policy}
	}
	inline := table.Toolset{HTTP: []table.HTTPTool{toolOf("read"), toolOf("write")}}
	sum := sha256.Sum256([]byte(fetched))
	file := table.ToolFile{ConfigMap: "weather", Key: "tools.json", SHA256: hex.EncodeToString(sum[:])}
	gone := tools("gone", table.Toolset{HTTP: []table.HTTPTool{toolOf("old")}}, table.ToolPolicy{})
	first = tableOf("1", gone, tools("kept", inline, table.ToolPolicy{}))
	second = tableOf("2", tools("kept", inline, table.ToolPolicy{Deny: []string{"write"}}),
		tools("new", table.Toolset{Files: []table.ToolFile{file}}, table.ToolPolicy{}))
	return g, first, second
}

// until waits until the tools that are served are those.
func (g *gateway) until(ctx context.Context, t *testing.T, want map[string]string) {
	t.Helper()
	for tick := time.NewTicker(time.Millisecond); ; {
		s := g.learned()
		diff := cmp.Diff(want, served(&s))
		if diff == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("what is served, -want +got:\n%s", diff)
		}
	}
}

// TestATableTakesAwayAtOnceThoughADefinitionOfItIsNotThere: what it adds comes when it is there, and here nobody fetches it.
func TestATableTakesAwayAtOnceThoughADefinitionOfItIsNotThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		g, first, second := withdrawing(t, &source.ConfigMap{Namespace: "team-a", Name: "gateway", Server: "https://10.0.0.1"})
		defer g.tables.close(ctx)
		if err := g.use(ctx, first); err != nil {
			t.Fatal(err)
		}
		g.until(ctx, t, map[string]string{"gone": "old", "kept": "read,write"})
		begun := time.Now()
		if err := g.use(ctx, second); err != nil {
			t.Fatal(err)
		}
		s := g.learned()
		if diff := cmp.Diff(map[string]string{"kept": "read", "new": ""}, served(&s)); diff != "" || s.Revision != "2" {
			t.Errorf("revision %s serves, -want +got:\n%s", s.Revision, diff)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the table came into use after %s", took)
		}
	})
}

func TestWhoAsksForADefinitionThatIsOnItsWayIsNotToldThatItDoesNotExist(t *testing.T) {
	t.Parallel()
	configMap, release := slowServer(t, fetched)
	g, first, second := withdrawing(t, configMap)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	defer g.tables.close(ctx)
	go g.definitions.Run(ctx)
	endpoint := httptest.NewServer(g.front)
	defer endpoint.Close()
	if err := g.use(ctx, first); err != nil {
		t.Fatal(err)
	}
	g.until(ctx, t, map[string]string{"gone": "old", "kept": "read,write"})
	if err := g.use(ctx, second); err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	go func() { answer <- list(t, endpoint.URL+table.DefaultPath) }()
	release()
	if got := <-answer; !strings.Contains(got, `"fetched"`) || strings.Contains(got, `"write"`) {
		t.Errorf("listed %s", got)
	}
	g.until(ctx, t, map[string]string{"kept": "read", "new": "fetched"})
	s := g.learned()
	if digest := s.Backends[1].Tools[0].Digest; !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("its digest is %q", digest)
	}
}

// list is the answer to tools/list.
func list(t *testing.T, url string) string {
	t.Helper()
	const request = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(request))
	if err != nil {
		t.Error(err)
		return ""
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", "tools/list")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

func TestAFaultAtARequestEndsItsConnectionAndNoOther(t *testing.T) {
	t.Parallel()
	watch := telemetry.New(telemetry.Options{})
	server := httptest.NewUnstartedServer(contained(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			_, _ = io.WriteString(w, "half an answer")
			panic("nobody thought of that")
		}
	}), panics.New(slog.New(slog.DiscardHandler), watch.Panicked)))
	var log strings.Builder
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&log, nil), slog.LevelError)
	server.Start()
	get := func(path string) error {
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
		return err
	}
	if get("/bad") == nil {
		t.Error("half an answer passed for a whole one")
	}
	if err := get("/good"); err != nil {
		t.Errorf("and after that: %v", err)
	}
	server.Close()
	metrics := httptest.NewRecorder()
	watch.Handler().ServeHTTP(metrics, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if !strings.Contains(metrics.Body.String(), `mcp_gateway_panics_total{backend=""} 1`) || log.Len() > 0 {
		t.Errorf("it was logged twice, or not counted: %s", log.String())
	}
}

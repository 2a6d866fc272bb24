package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

const (
	// catalogServers servers have catalogTools tools each, of a definition of 750 bytes.
	catalogServers, catalogTools, catalogBytes = 50, 100, 750
	// maxCatalogs is what a gateway in front of them may have resident at rest, in KiB.
	maxCatalogs = 40_000_000 / 1024
)

// catalogs answers for servers of 2026-07-28 that have many tools.
func catalogs() http.Handler {
	var tools []string
	for i := range catalogTools {
		tool := fmt.Sprintf(`{"name":"tool_%d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"description":""}`, i)
		tools = append(tools, strings.Replace(tool, `"description":"`, `"description":"`+strings.Repeat("w", catalogBytes-len(tool)), 1))
	}
	list := `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[` + strings.Join(tools, ",") + `]}`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(body, &m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		result := map[string]string{
			"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`,
			"tools/list":      list,
		}[m.Method]
		if result == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	})
}

// BenchmarkCatalogs measures what a gateway holds that knows thousands of tools, when all of them are listed for the first time and
// when it has been left alone.
func BenchmarkCatalogs(b *testing.B) {
	server := httptest.NewServer(catalogs())
	defer server.Close()
	var backends []table.Backend
	for i := range catalogServers {
		name := fmt.Sprintf("s%d", i)
		backends = append(backends, table.Backend{Name: name, Prefix: name + "_", URL: fmt.Sprintf("%s/%d", server.URL, i)})
	}
	for b.Loop() {
		g := launch.Serve(b, binary, backends)
		launch.Await(b, func() error { return listsAll(b, g) })
		first := resident(b, g.Process.Process.Pid)
		const alone = 15 * time.Second
		<-time.After(alone) // what it gives back meanwhile is what is measured
		rest := resident(b, g.Process.Process.Pid)
		say("%d tools of %d servers, %d B each: %.0f MiB when they are listed first, %.0f MiB %s later (live heap %.0f MiB)",
			catalogServers*catalogTools, catalogServers, catalogBytes, first/1024, rest/1024, alone, metric(b, g, "go_memstats_heap_alloc_bytes")/(1<<20))
		if rest > maxCatalogs {
			b.Errorf("%.0f KiB are resident, at most %d are agreed on", rest, maxCatalogs)
		}
		g.Stop()
	}
	b.ReportMetric(0, "ns/op")
}

// listsAll lists the tools to the last page, and returns an error unless all are there.
func listsAll(b *testing.B, g *launch.Gateway) error {
	b.Helper()
	c, err := dial(g.URL)
	if err != nil {
		return err
	}
	defer c.Close()
	tools, cursor := 0, ""
	for {
		body := `{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{` + cursor + meta + `}}`
		if _, err := c.do(c.request(http.MethodPost, body, "MCP-Protocol-Version", modern, "Mcp-Method", "tools/list")); err != nil {
			return err
		}
		var page struct {
			Result struct {
				Tools      []json.RawMessage `json:"tools"`
				NextCursor string            `json:"nextCursor"`
			} `json:"result"`
		}
		if err := json.Unmarshal(c.body.Bytes(), &page); err != nil {
			return err
		}
		if tools += len(page.Result.Tools); page.Result.NextCursor == "" {
			break
		}
		cursor = `"cursor":"` + page.Result.NextCursor + `",`
	}
	if tools != catalogServers*catalogTools {
		return fmt.Errorf("%d tools are listed", tools)
	}
	return nil
}

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// heapPeak runs work and returns the most bytes of live and dead objects on the
// heap in the meantime, over what was there before.
func heapPeak(work func()) int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before := read()
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		var most int64
		for {
			most = max(most, read())
			select {
			case <-done:
				peak <- max(most, read())
				return
			case <-ticker.C:
			}
		}
	}()
	work()
	close(done)
	return <-peak - before
}

// worst are answers that make a careless reader use many times their size. The
// bodies are made before the measurement.
func worst() map[string]http.Handler {
	fill := func(unit string, n int) string { return strings.Repeat(unit, n/len(unit)) }
	const room = worstBytes - 4096
	tools := func(inside string) http.Handler {
		body := `{"jsonrpc":"2.0","id":2,"result":{"tools":[` + inside + `]}}`
		return mcptest.Modern(mcptest.Script{"tools/list": func(w http.ResponseWriter, _ mcptest.Call) {
			mcptest.Raw(w, http.StatusOK, jsonType, body)
		}})
	}
	schema := func(inside string) http.Handler { return tools(`{"name":"a","inputSchema":` + inside + `}`) }
	var wide strings.Builder
	for level := range 55 {
		wide.WriteString("{")
		for i := range worstBytes / 55 / 10 {
			fmt.Fprintf(&wide, `"%x":1,`, i)
		}
		fmt.Fprintf(&wide, `"d%d":`, level)
	}
	wide.WriteString("1" + strings.Repeat("}", 55))
	var prefixed strings.Builder
	for i := range 9_000 {
		fmt.Fprintf(&prefixed, `"\u0061%s%05d":1,`, strings.Repeat("a", worstBytes/9_000-32), i)
	}
	return map[string]http.Handler{
		"long keys":             schema("{" + prefixed.String() + `"b":1}`),
		"payload under objects": schema(strings.Repeat(`{"a":`, 55) + `[` + fill("0,", room-1000) + "0]" + strings.Repeat("}", 55)),
		"many small arrays":     schema("[" + fill("[],", room) + "0]"),
		"many small objects":    schema("[" + fill(`{"a":0},`, room) + "0]"),
		"deep arrays":           schema("[" + fill(strings.Repeat("[", 50)+strings.Repeat("]", 50)+",", room) + "0]"),
		"deep and wide":         schema(wide.String()),
		"one string":            schema(`"` + fill("a", room) + `"`),
		"one escaped string":    schema(`"` + fill(`\u00e4`, room) + `"`),
		"many numbers":          schema("[" + fill("1e300,", room) + "0]"),
		"tools without a name":  tools(fill("{},", 3*9_999) + "{}"),
		"endless events":        mcptest.Endless(eventType, "", strings.Repeat("data: "+strings.Repeat("a", 1000)+"\n", 30)),
		"100,000 tools":         mcptest.ManyTools(100_000, 5_000),
		"an unknown method as a page": mcptest.Modern(mcptest.Script{"tools/list": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Endless("text/html", "", strings.Repeat("a", 1<<15)).ServeHTTP(w, call.Request)
		}}),
		"endless JSON": mcptest.Endless(jsonType, `["`, strings.Repeat("a", 1<<15)),
		"gzip bomb":    mcptest.GzipBomb(16 << 20),
		"huge header":  mcptest.HugeHeader(1 << 20),
	}
}

// Not parallel: it measures what the whole process uses.
func TestAHostileServerCostsAtMost16MiB(t *testing.T) {
	for name, handler := range worst() {
		server := mcptest.Serve(t, handler)
		start := time.Now()
		var err error
		peak := heapPeak(func() {
			_, err = client.Probe(t.Context(), target(server))
		})
		t.Logf("%-28s %5.1f MiB, %v, %s", name, float64(peak)/(1<<20), time.Since(start).Round(time.Millisecond), mcp.ReasonOf(err))
		if peak > 16<<20 {
			t.Errorf("%s: the heap grew by %d bytes", name, peak)
		}
	}
}

// Not parallel: it looks at all goroutines of the process.
func TestNoGoroutineOutlivesAProbe(t *testing.T) {
	limits := mcp.Limits{Total: 2 * time.Second, Request: 20 * time.Millisecond, Connect: 20 * time.Millisecond, SessionEnd: 20 * time.Millisecond}
	c := &mcp.Client{Limits: limits}
	handlers := worst()
	for name, bad := range allVerdicts() {
		handlers["bad: "+name] = bad.handler
	}
	handlers["silent"] = mcptest.Silent()
	handlers["drip"] = mcptest.Drip(time.Millisecond)
	for name, handler := range handlers {
		server := mcptest.Serve(t, handler)
		// Only what is left behind matters here.
		_, _ = c.Probe(t.Context(), target(server))
		_ = c.Check(t.Context(), target(server), nil)
		if left := clientGoroutines(t); left != "" {
			t.Fatalf("%s leaves goroutines behind:\n%s", name, left)
		}
	}
}

// clientGoroutines returns the stacks of goroutines of an HTTP client or of a
// prober that do not end within a few seconds: those of a closed connection
// need a moment to notice.
func clientGoroutines(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		left := goroutinesWith("net/http.(*persistConn)", "net/http.(*Transport)", "mcp.(*prober)", "mcp.(*transport)")
		select {
		case <-ctx.Done():
			return left
		case <-ticker.C:
		}
		if left == "" {
			return ""
		}
	}
}

func goroutinesWith(functions ...string) string {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var found []string
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		for _, function := range functions {
			if strings.Contains(stack, function) {
				found = append(found, stack)
				break
			}
		}
	}
	return strings.Join(found, "\n\n")
}

func TestAProbeMayRunManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	server := mcptest.NewServer(t, mcptest.Stateful())
	errs := make(chan error)
	for range 16 {
		go func() {
			result, err := client.Probe(t.Context(), target(server))
			if err == nil && *result.ToolCount != 1 {
				err = errors.New("not one tool")
			}
			errs <- err
		}()
	}
	for range 16 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := server.Sessions(); n != 0 {
		t.Errorf("%d sessions were left open", n)
	}
}

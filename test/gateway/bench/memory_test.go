package bench

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// maxStream is what an open event stream may cost the gateway, in KiB.
const maxStream = 64

// serveMany starts a gateway that one caller may have as much of as all callers together.
func serveMany(b *testing.B, servers int, flags ...string) *launch.Gateway {
	b.Helper()
	var backends []table.Backend
	for i := range servers {
		server, _ := start(b, asServer)
		backends = append(backends, table.Backend{Name: fmt.Sprintf("echo-%d", i), URL: server + "/mcp", Prefix: strings.Repeat("x", i)})
	}
	flags = append([]string{"--max-calls", "1000", "--max-streams", "10000", "--max-sessions", "20000"}, flags...)
	return launch.Serve(b, binary, backends, flags...)
}

// each does something n times, sixteen at once, over a connection for each of the sixteen.
func each(b *testing.B, g *launch.Gateway, n int, do func(c *connection) error) {
	b.Helper()
	const workers = 16
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			c, err := dial(g.URL)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			for range n / workers {
				if err := do(c); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// metric is the value of one of the gateway's metrics.
func metric(b *testing.B, g *launch.Gateway, name string) float64 {
	b.Helper()
	r, err := http.Get(g.Health + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer r.Body.Close()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return number(b, strings.TrimSpace(value))
		}
	}
	b.Fatalf("the gateway has no metric %s", name)
	return 0
}

// live is what lives on the gateway's heap, in KiB: the next collection is due when the heap has grown by as much as lives and
// as the stacks take. Calls bring about two collections before, so that it is not what lived some time ago.
func live(b *testing.B, g *launch.Gateway) float64 {
	b.Helper()
	for begun := collections(b, g); collections(b, g) < begun+2; {
		calls(b, g, 800)
	}
	return (metric(b, g, "go_memstats_next_gc_bytes") - stacks(b, g)) / 2 / 1024
}

func collections(b *testing.B, g *launch.Gateway) float64 {
	b.Helper()
	return metric(b, g, "go_gc_duration_seconds_count")
}

func stacks(b *testing.B, g *launch.Gateway) float64 {
	b.Helper()
	return metric(b, g, "go_memstats_stack_inuse_bytes")
}

// calls makes calls.
func calls(b *testing.B, g *launch.Gateway, n int) {
	b.Helper()
	each(b, g, n, func(c *connection) error {
		_, err := c.do(c.call(modern, texts[0].text))
		return err
	})
}

// BenchmarkStreams measures what subscriptions cost that wait for news. The gateway itself knows what is new, whether it has one
// server or several: nothing is open for them there.
func BenchmarkStreams(b *testing.B) {
	const streams = 5000
	for b.Loop() {
		for _, servers := range []int{1, 2} {
			g := serveMany(b, servers)
			pid := g.Process.Process.Pid
			alone := newSubject(b, "", g.URL, pid, 16, modern, texts[0].text)
			measure(b, alone)
			heap, before := live(b, g), resident(b, pid)
			conns := make([]*connection, streams)
			for i := range conns {
				conns[i] = subscribe(b, g)
			}
			after := resident(b, pid)
			beside := newSubject(b, "", g.URL, pid, 16, modern, texts[0].text)
			measure(b, beside)
			if open := metric(b, g, "mcp_gateway_streams"); open != streams {
				b.Errorf("%.0f streams are open, %d were opened", open, streams)
			}
			each := (after - before) / streams
			say("%d subscriptions of %d server(s): %.0f MiB before, %.0f MiB after, %.1f KiB each (live heap %.1f, stacks %.1f)",
				streams, servers, before/1024, after/1024, each, (live(b, g)-heap)/streams, stacks(b, g)/1024/streams)
			say("  calls of 16 clients: %.0f/s before, %.0f/s beside them", alone.rate(), beside.rate())
			if each > maxStream {
				b.Errorf("a subscription of %d server(s) takes %.1f KiB, at most %d are agreed on", servers, each, maxStream)
			}
			for _, c := range conns {
				_ = c.Close()
			}
			g.Stop()
		}
	}
	b.ReportMetric(0, "ns/op")
}

// subscribe opens a subscription that stays.
func subscribe(b *testing.B, g *launch.Gateway) *connection {
	b.Helper()
	c, err := dial(g.URL)
	if err != nil {
		b.Fatal(err)
	}
	body := `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`
	request := c.request(http.MethodPost, body, "MCP-Protocol-Version", modern, "Mcp-Method", "subscriptions/listen")
	if _, err := c.Write(request); err != nil {
		b.Fatal(err)
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(line, "notifications/subscriptions/acknowledged") {
			return c
		}
	}
}

// BenchmarkSessions measures what sessions cost that were used once and are kept.
func BenchmarkSessions(b *testing.B) {
	const sessions = 10_000
	g := serveMany(b, 1)
	pid := g.Process.Process.Pid
	for b.Loop() {
		heap, before := live(b, g), resident(b, pid)
		begun := time.Now()
		each(b, g, sessions, func(c *connection) error {
			headers, err := c.open()
			if err != nil {
				return err
			}
			_, err = c.do(c.call(legacy, texts[0].text, headers...))
			return err
		})
		took := time.Since(begun)
		if kept := metric(b, g, "mcp_gateway_sessions"); kept != sessions {
			b.Errorf("%.0f sessions are kept, %d were opened", kept, sessions)
		}
		after := resident(b, pid)
		say("%d sessions of %s, one call each: %.0f MiB before, %.0f MiB after, %.1f KiB each, %.1f KiB of that live heap; opened in %.1f s",
			sessions, legacy, before/1024, after/1024, (after-before)/sessions, (live(b, g)-heap)/sessions, took.Seconds())
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkChurn measures what is left of sessions that have ended: a mark, until it has been there for as long as a session may
// be idle.
func BenchmarkChurn(b *testing.B) {
	const sessions, idle, slack = 60_000, 15 * time.Second, 4096
	g := serveMany(b, 1, "--session-idle", idle.String())
	pid := g.Process.Process.Pid
	for b.Loop() {
		heap, before := live(b, g), resident(b, pid)
		begun := time.Now()
		each(b, g, sessions, func(c *connection) error {
			headers, err := c.open()
			if err != nil {
				return err
			}
			return c.shut(headers)
		})
		took := time.Since(begun)
		if kept := metric(b, g, "mcp_gateway_sessions"); kept != 0 {
			b.Errorf("%.0f sessions are kept, all were ended", kept)
		}
		marked, left := live(b, g), 0.0
		launch.Await(b, func() error {
			if left = live(b, g); left > heap+slack {
				return fmt.Errorf("%.0f KiB live on the heap where %.0f did before", left, heap)
			}
			return nil
		})
		say("%d sessions opened and ended in %.1f s: live heap %.1f MiB before, %.1f MiB at once after, %.1f MiB after %s", sessions,
			took.Seconds(), heap/1024, marked/1024, left/1024, idle)
		say("  resident: %.0f MiB before, %.0f MiB after", before/1024, resident(b, pid)/1024)
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStart measures how soon the gateway serves after its start, and what it takes then.
func BenchmarkStart(b *testing.B) {
	server, _ := start(b, asServer)
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	file := b.TempDir() + "/table.json"
	launch.WriteTable(b, file, table.Backend{Name: "echo", URL: server + "/mcp"})
	for b.Loop() {
		var took []time.Duration
		var size []float64
		for range 10 {
			address, health := launch.FreeAddress(b), launch.FreeAddress(b)
			begun := time.Now()
			p := launch.Start(b, binary, "serve", "--table", file, "--ephemeral-session-key", "--drain-delay", "0s",
				"--listen", address, "--health-listen", health)
			for tick := time.Tick(500 * time.Microsecond); !ready(health) && time.Since(begun) < 10*time.Second; {
				<-tick // it is how exact the result is
			}
			took, size = append(took, time.Since(begun)), append(size, resident(b, p.Process.Pid)/1024)
			p.Stop()
		}
		say("Start to ready: %.0f ms (slowest of 10: %.0f ms); resident then %.1f MiB; the binary has %.1f MiB",
			float64(at(took, 0.5))/1e6, float64(slices.Max(took))/1e6, at(size, 0.5), float64(info.Size())/(1<<20))
	}
	b.ReportMetric(0, "ns/op")
}

func ready(health string) bool {
	r, err := http.Get("http://" + health + "/readyz")
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// say prints a result.
func say(format string, args ...any) { fmt.Fprintf(os.Stdout, "\n"+format+"\n", args...) }

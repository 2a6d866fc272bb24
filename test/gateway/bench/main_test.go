// Package bench measures the gateway beside a plain reverse proxy and beside nothing at all, in one and the same run. It prints
// times, and fails only for ratios and counts.
package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-operator/mcp-operator/test/launch"
)

// binary is the gateway's, built as it is shipped.
var binary string

// What this program is when it starts itself, so that the load's own work is no part of what is measured.
const (
	asServer = "serve-over-http" // and an address
	asEcho   = "echo-over-http"  // and an address
	asStdio  = "serve-on-stdio"
	asProxy  = "reverse-proxy" // and an address and a URL
)

func TestMain(m *testing.M) {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == asServer:
		err = listen(args[1], mcpgoserver.NewStreamableHTTPServer(newServer(), mcpgoserver.WithStateful(true)))
	case len(args) == 2 && args[0] == asEcho:
		err = listen(args[1], http.HandlerFunc(echo))
	case len(args) == 1 && args[0] == asStdio:
		err = mcpgoserver.ServeStdio(newServer())
	case len(args) == 3 && args[0] == asProxy:
		err = proxy(args[1], args[2])
	default:
		os.Exit(run(m))
	}
	fmt.Fprintln(os.Stderr, err)
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "mcp-gateway")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "../../../cmd/mcp-gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the gateway: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// newServer is a server as people have it.
func newServer() *mcpgoserver.MCPServer {
	s := mcpgoserver.NewMCPServer("echo", "1", mcpgoserver.WithToolCapabilities(true))
	s.AddTool(mcpgo.NewTool("echo", mcpgo.WithString("text")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText(r.GetString("text", "")), nil
	})
	return s
}

// proxy is what anybody would write first.
func proxy(address, target string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100} // with the default of 2 it would dial all the time
	forward := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	return listen(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without it the proxy now and then breaks off an answer that comes quickly after a long request.
		_ = http.NewResponseController(w).EnableFullDuplex()
		forward.ServeHTTP(w, r)
	}))
}

func listen(address string, handler http.Handler) error {
	s := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return s.ListenAndServe()
}

// start starts this program as something that listens, and returns its URL and process.
func start(b *testing.B, role string, args ...string) (u string, pid int) {
	b.Helper()
	address := launch.FreeAddress(b)
	p := launch.Start(b, os.Args[0], append([]string{role, address}, args...)...)
	await(b, address)
	return "http://" + address, p.Process.Pid
}

// await waits until somebody listens.
func await(b *testing.B, address string) {
	b.Helper()
	launch.Await(b, func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// everythingServer builds the conformance fixture of the Go SDK and starts it.
func everythingServer(t *testing.T, stateless bool) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "everything-server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the everything-server: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), program, "-http", address, "-stateless="+map[bool]string{true: "true", false: "false"}[stateless])
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	return "http://" + address
}

func TestTheConformanceServerOfTheGoSDKIsServed(t *testing.T) {
	if testing.Short() {
		t.Skip("it is built first")
	}
	for name, stateless := range map[string]bool{"stateful": false, "stateless": true} {
		t.Run(name, func(t *testing.T) {
			b := open(t, everythingServer(t, stateless))
			eventually(t, "it listens", func() bool {
				_, err := b.Describe(testContext(t))
				return err == nil
			})
			for way, channel := range channels(t, b, backend.Client{}) {
				t.Run(way, func(t *testing.T) {
					var list sink
					call := request(`"l"`, "tools/list", `{"_meta":{`+modernMeta+`}}`)
					if channel.Era() == backend.Legacy {
						call = request(`"l"`, "tools/list", `{}`)
					}
					if err := channel.Call(testContext(t), call, &list); err != nil {
						t.Fatal(err)
					}
					tools := 0
					for range wire.Elements(list.result(t).ResultField("tools")) {
						tools++
					}
					if tools < 20 {
						t.Errorf("it has %d tools", tools)
					}
					var s sink
					progress := toolCall(`2`, "test_tool_with_progress", "", channel.Era(), `"progressToken":"tok"`)
					if err := channel.Call(testContext(t), progress, &s); err != nil {
						t.Fatal(err)
					}
					if len(s.messages) != 3 || !strings.Contains(s.messages[2], `"progressToken":"tok"`) {
						t.Errorf("progress: %q", s.messages)
					}
					var unknown sink
					if err := channel.Call(testContext(t), toolCall(`3`, "no_such_tool", "", channel.Era()), &unknown); err != nil {
						t.Fatal(err)
					}
					if m := unknown.result(t); codeOf(m) != wire.CodeInvalidParams || string(m.ID) != "3" {
						t.Errorf("an unknown tool: %s", unknown.response)
					}
				})
			}
		})
	}
}

// mcpgoServer is a server of the second implementation.
func mcpgoServer() *mcpgoserver.MCPServer {
	s := mcpgoserver.NewMCPServer("second", "1", mcpgoserver.WithToolCapabilities(true), mcpgoserver.WithLogging())
	s.AddTool(mcpgo.NewTool("echo", mcpgo.WithString("text")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText(r.GetString("text", "")), nil
	})
	return s
}

func TestTheSecondImplementationIsServed(t *testing.T) {
	for name, handler := range map[string]http.Handler{
		"stateful":  mcpgoserver.NewStreamableHTTPServer(mcpgoServer(), mcpgoserver.WithEndpointPath("/mcp"), mcpgoserver.WithStateful(true)),
		"stateless": mcpgoserver.NewStreamableHTTPServer(mcpgoServer(), mcpgoserver.WithEndpointPath("/mcp"), mcpgoserver.WithStateLess(true)),
		"SSE":       mcpgoserver.NewSSEServer(mcpgoServer(), mcpgoserver.WithSSEEndpoint("/mcp"), mcpgoserver.WithUseFullURLForMessageEndpoint(false)),
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, handler).URL+"/mcp")
			d, err := b.Describe(testContext(t))
			if err != nil || !d.Legacy || d.Modern != (name != "SSE") {
				t.Fatalf("%+v, %v", d, err)
			}
			for way, channel := range channels(t, b, backend.Client{}) {
				t.Run(way, func(t *testing.T) {
					for _, text := range []string{"hello", strings.Repeat("x", 200_000)} {
						var s sink
						if err := channel.Call(testContext(t), toolCall(`"1"`, "echo", `{"text":"`+text+`"}`, channel.Era()), &s); err != nil {
							t.Fatal(err)
						}
						if got := s.text(t); got != text {
							t.Errorf("%.100s", s.response)
						}
					}
					if channel.Era() == backend.Modern {
						return
					}
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					if err := channel.Listen(ctx, nil, &sink{}); err != nil && !errors.Is(err, backend.ErrNoStream) {
						t.Errorf("Listen: %v", err)
					}
				})
			}
		})
	}
}

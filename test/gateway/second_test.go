package gateway

import (
	"context"
	"net/http"
	"testing"

	mcpgoclient "github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// The second implementation is github.com/mark3labs/mcp-go.
func TestServersOfTheSecondImplementationAreServed(t *testing.T) {
	server := func() *mcpgoserver.MCPServer {
		s := mcpgoserver.NewMCPServer("second", "1", mcpgoserver.WithToolCapabilities(true))
		s.AddTool(mcpgo.NewTool("echo", mcpgo.WithString("text")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultText(r.GetString("text", "")), nil
		})
		return s
	}
	for name, handler := range map[string]http.Handler{
		"stateful":  mcpgoserver.NewStreamableHTTPServer(server(), mcpgoserver.WithEndpointPath("/"), mcpgoserver.WithStateful(true)),
		"stateless": mcpgoserver.NewStreamableHTTPServer(server(), mcpgoserver.WithEndpointPath("/"), mcpgoserver.WithStateLess(true)),
		"SSE":       mcpgoserver.NewSSEServer(server(), mcpgoserver.WithSSEEndpoint("/"), mcpgoserver.WithUseFullURLForMessageEndpoint(false)),
	} {
		t.Run(name, func(t *testing.T) {
			g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, handler)}})
			for _, version := range versions {
				c := connect(t, g.URL, version)
				if got := c.call(t, "echo", map[string]any{"text": version}); got != version {
					t.Errorf("%s: got %q", version, got)
				}
			}
		})
	}
}

func TestClientsOfTheSecondImplementationAreServed(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			g := launch.Serve(t, binary, []table.Backend{k.start(t, "server")})
			for _, version := range []string{legacy, modern} {
				c, err := mcpgoclient.NewStreamableHttpClient(g.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				ctx := inTime(t)
				if err := c.Start(ctx); err != nil {
					t.Fatal(err)
				}
				var hello mcpgo.InitializeRequest
				hello.Params.ProtocolVersion = version
				hello.Params.ClientInfo = mcpgo.Implementation{Name: "second", Version: "1"}
				if _, err := c.Initialize(ctx, hello); err != nil {
					t.Fatalf("initialize %s: %v", version, err)
				}
				tools, err := c.ListTools(ctx, mcpgo.ListToolsRequest{})
				if err != nil || len(tools.Tools) < pages {
					t.Errorf("%s: list: %v, %v", version, tools, err)
				}
				var call mcpgo.CallToolRequest
				call.Params.Name, call.Params.Arguments = "echo", map[string]any{"text": version}
				r, err := c.CallTool(ctx, call)
				if err != nil || len(r.Content) != 1 {
					t.Fatalf("%s: call: %v, %v", version, r, err)
				}
				if text, ok := r.Content[0].(mcpgo.TextContent); !ok || text.Text != version {
					t.Errorf("%s: got %v", version, r.Content)
				}
			}
		})
	}
}

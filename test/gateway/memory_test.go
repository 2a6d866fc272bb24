package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

const (
	// manyServers servers have toolsEach tools each, of a definition of 750 bytes or so.
	manyServers, toolsEach = 50, 100
	// maxMany is what a gateway in front of them may have resident at rest, in bytes. The definitions are 4 MB of it.
	maxMany = 32_000_000
)

// described is a tool with a definition of some length.
func described(s *mcp.Server, name string) {
	const words = "what it is for and what it does, told to a model that is to know when to use it. "
	s.AddTool(&mcp.Tool{Name: name, Description: strings.Repeat(words, 4), InputSchema: map[string]any{
		"type": "object", "required": []string{"query"}, "properties": map[string]any{
			"query": map[string]any{"type": "string", "description": words}, "limit": map[string]any{"type": "integer", "description": words},
		},
	}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
}

func TestAGatewayWithThousandsOfToolsIsSmall(t *testing.T) {
	var backends []table.Backend
	for i := range manyServers {
		s := mcp.NewServer(&mcp.Implementation{Name: "many", Version: "1"}, nil)
		for j := range toolsEach {
			described(s, fmt.Sprintf("tool-%d", j))
		}
		name := fmt.Sprintf("s%d", i)
		backends = append(backends, table.Backend{Name: name, Prefix: name + "_", URL: serve(t, modernOnly(s))})
	}
	g := launch.Serve(t, binary, backends)
	c := connect(t, g.URL, modern)
	launch.Await(t, func() error {
		if n := len(c.tools(t)); n != manyServers*toolsEach {
			return fmt.Errorf("%d tools are listed", n)
		}
		return nil
	})
	// What it read and threw away is given back a moment after that, whatever clients have it do meanwhile.
	var rest int
	launch.Await(t, func() error {
		if rest = resident(t, g); rest > maxMany {
			return errors.New("it is not at rest yet")
		}
		return nil
	})
	t.Logf("%d bytes are resident", rest)
}

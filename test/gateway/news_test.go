package gateway

import (
	"fmt"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// TestNothingIsLostAroundASubscription has a client subscribe and unsubscribe, and the server tell of something at once after each of them.
func TestNothingIsLostAroundASubscription(t *testing.T) {
	const item = "test://item/%d"
	for _, k := range kinds {
		if k.handler == nil || k.terse {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			g := launch.Serve(t, binary, []table.Backend{k.start(t, "server")})
			c := connect(t, g.URL, legacy)
			c.call(t, "grow", nil)
			c.hears(t, "tools changed") // so its stream is open
			ctx := inTime(t)
			if err := c.Subscribe(ctx, &mcp.SubscribeParams{URI: greeting}); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				other := fmt.Sprintf(item, i)
				if err := c.Subscribe(ctx, &mcp.SubscribeParams{URI: other}); err != nil {
					t.Fatal(err)
				}
				c.call(t, "touch", nil)
				c.hears(t, "updated "+greeting)
				grown := c.call(t, "grow", nil)
				c.hears(t, "tools changed")
				if !slices.Contains(c.tools(t), grown) {
					t.Errorf("%s is not listed", grown)
				}
				if err := c.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: other}); err != nil {
					t.Fatal(err)
				}
				c.call(t, "touch", nil)
				c.hears(t, "updated "+greeting)
			}
		})
	}
}

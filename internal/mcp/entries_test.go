package mcp

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

func TestALongListIsLeftWhenTheTimeIsUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	target := Target{URL: mcptest.Serve(t, mcptest.ManyTools(10, 10)).URL}
	visited := 0
	_, err := (&Client{}).run(ctx, target, func(ctx context.Context, p *prober) error {
		if err := p.handshake(ctx); err != nil {
			return err
		}
		return p.eachEntry(ctx, "tools/list", "tools", func(json.RawMessage) error {
			visited++
			cancel()
			return nil
		})
	})
	if visited != 1 || ReasonOf(err) != Timeout {
		t.Errorf("%d entries visited, error %v", visited, err)
	}
}

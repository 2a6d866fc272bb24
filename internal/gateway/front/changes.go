package front

import (
	"encoding/json"
	"io"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// listenRequest is what the gateway subscribes to at a backend of 2026-07-28.
func listenRequest(channel backend.Channel) *backend.Call {
	if channel.Era() == backend.Legacy {
		return nil
	}
	filter := translate.Filter{Tools: true, Prompts: true, Resources: true}
	return &backend.Call{Message: filter.Listen(json.RawMessage(`"gateway-watch"`), backend.Client{}, wire.Version20260728)}
}

// changes is a sink that notes changes of lists.
type changes struct{ heard chan struct{} }

// Message notes a change of a list.
func (c *changes) Message(m *wire.Message) error {
	switch m.Method {
	case translate.ToolsListChanged, translate.PromptsListChanged, translate.ResourcesListChanged:
		select {
		case c.heard <- struct{}{}:
		default:
		}
	}
	return nil
}

// Response is the end of the subscription.
func (c *changes) Response(r io.Reader) error {
	_, err := io.Copy(io.Discard, io.LimitReader(r, maxCollected))
	return err
}

// tellBeyond tells of what a lone backend lists, and passes on whole, beyond what its catalog takes. Told says that the backend told of a
// change.
func (f *Front) tellBeyond(b *Backend, got *catalog.Catalog, told bool) {
	if s := f.state.Load(); told && got != nil && s != nil && f.lone(s) == b {
		if beyond := got.Beyond(); beyond != (catalog.Changes{}) {
			f.hub.publish(beyond, true)
		}
	}
}

package child

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// initialize opens the legacy conversation, in which the gateway speaks for the client, and returns the result.
func (p *process) initialize(ctx context.Context, c backend.Client) (json.RawMessage, error) {
	params := struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ClientInfo      json.RawMessage `json:"clientInfo"`
	}{c.Version, c.Capabilities, c.Info}
	if params.ProtocolVersion == "" {
		params.ProtocolVersion = wire.Version20251125
	}
	if params.Capabilities == nil {
		params.Capabilities = json.RawMessage("{}")
	}
	if params.ClientInfo == nil {
		params.ClientInfo = p.options.info()
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("child: what the client said of itself: %w", err)
	}
	m, err := p.ask(ctx, "initialize", raw)
	if err != nil {
		return nil, err
	}
	version, ok := wire.String(m.ResultField("protocolVersion"))
	if !ok || version >= wire.Version20260728 {
		return nil, errRefused
	}
	p.out.post(wire.NewNotification("notifications/initialized", nil))
	return m.Result, nil
}

// discover asks a process of 2026-07-28 what it is, and returns the result.
func (p *process) discover(ctx context.Context) (json.RawMessage, error) {
	m, err := p.ask(ctx, "server/discover", p.options.discoverParams())
	if err != nil {
		return nil, err
	}
	if !slices.Contains(versionsIn(m.Result), wire.Version20260728) {
		return nil, errRefused
	}
	return m.Result, nil
}

// versionsIn are the versions a result of server/discover names.
func versionsIn(discover json.RawMessage) []string {
	var versions []string
	for raw := range wire.Elements(wire.Field(discover, "supportedVersions")) {
		if v, ok := wire.String(raw); ok {
			versions = append(versions, v)
		}
	}
	return versions
}

// info is the gateway's name for children.
func (o *Options) info() json.RawMessage {
	return json.RawMessage(`{"name":"mcp-gateway","version":` + quote(o.Version) + `}`)
}

// quote is a text as a JSON string.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""` // which does not happen to a string
	}
	return string(raw)
}

func (o *Options) discoverParams() json.RawMessage {
	return json.RawMessage(`{"_meta":{"` + wire.MetaProtocolVersion + `":"` + wire.Version20260728 + `","` +
		wire.MetaClientCapabilities + `":{},"` + wire.MetaClientInfo + `":` + string(o.info()) + `}}`)
}

// ping asks for a sign of life. Its id is nobody's, so that the answer, of whatever kind, is dropped once it was heard.
func (p *process) ping() {
	id := json.RawMessage(`"ping"`)
	if p.era == backend.Modern {
		p.out.post(wire.NewRequest(id, "server/discover", p.options.discoverParams()))
		return
	}
	p.out.post(wire.NewRequest(id, "ping", nil))
}

package toolset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// channel answers requests of protocol version 2026-07-28.
type channel struct{ *Backend }

// Era is backend.Modern.
func (channel) Era() backend.Era { return backend.Modern }

// Call answers a request.
func (c channel) Call(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	m := request.Message
	var answer *wire.Message
	var err error
	switch m.Method {
	case "server/discover":
		answer = wire.NewResult(m.ID, c.discover())
	case "tools/list":
		answer, err = c.list(ctx, m)
	case "tools/call":
		answer, err = c.callTool(ctx, m)
	default:
		answer = wire.NewError(m.ID, wire.CodeMethodNotFound, "this backend offers tools only", nil)
	}
	if err != nil {
		return err
	}
	return sink.Response(bytes.NewReader(answer.Raw))
}

// Send fails: nothing is sent in protocol version 2026-07-28 but requests.
func (c channel) Send(context.Context, *wire.Message) error { return c.noEra() }

// Listen fails: nothing changes here, since another table makes another backend.
func (c channel) Listen(context.Context, *backend.Call, backend.Sink) error {
	return fmt.Errorf("backend %s: %w", c.config.Name, backend.ErrNoStream)
}

// Close does nothing: there is no session to end.
func (channel) Close(context.Context) error { return nil }

func (b *Backend) discover() json.RawMessage {
	out := []byte(`{"resultType":"complete","supportedVersions":["` + wire.Version20260728 + `"],"ttlMs":0,"cacheScope":"private",` +
		`"capabilities":{"tools":{}},"_meta":{"` + wire.MetaServerInfo + `":{"name":`)
	out = append(out, wire.Quote(b.config.Name)...)
	out = append(out, `,"version":`...)
	out = append(out, wire.Quote(b.version)...)
	return append(out, `}}}`...)
}

func (c channel) list(ctx context.Context, m *wire.Message) (*wire.Message, error) {
	if cursor := m.Param("cursor"); cursor != nil {
		return wire.NewError(m.ID, wire.CodeInvalidParams, "the cursor is not known: there is one page", nil), nil
	}
	tools, err := c.source.tools(ctx)
	if err != nil {
		return nil, err
	}
	out := []byte(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[`)
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.definition...)
	}
	return wire.NewResult(m.ID, append(out, `]}`...)), nil
}

func (c channel) callTool(ctx context.Context, m *wire.Message) (*wire.Message, error) {
	tools, err := c.source.tools(ctx)
	if err != nil {
		return nil, err
	}
	name, _ := m.StringParam("name")
	t := find(tools, name)
	if t == nil {
		return wire.NewError(m.ID, wire.CodeInvalidParams, "there is no tool of this name", nil), nil
	}
	raw := m.Param("arguments")
	if raw == nil {
		raw = json.RawMessage(`{}`)
	}
	if err := t.input.Validate(raw, "arguments"); err != nil {
		return wire.NewResult(m.ID, failed("the arguments do not fit the tool's inputSchema, and nothing was sent: %v", err).encode()), nil
	}
	if !wire.IsObject(raw) {
		return wire.NewError(m.ID, wire.CodeInvalidParams, "arguments must be an object", nil), nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	r, err := c.source.call(limited, t, argumentsOf(raw))
	if err != nil {
		return nil, err
	}
	return wire.NewResult(m.ID, r.encode()), nil
}

// errTimeout ends a call that takes too long.
var errTimeout = errors.New("the tool's timeout has passed")

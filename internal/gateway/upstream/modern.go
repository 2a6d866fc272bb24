package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// modern is the way to a server of protocol version 2026-07-28, which knows no sessions: closing a stream is how a request is
// cancelled.
type modern struct {
	*Backend

	to target
}

// Modern is the channel for requests of protocol version 2026-07-28.
func (b *Backend) Modern(ctx context.Context) (backend.Channel, error) {
	d, err := b.Describe(ctx)
	if err != nil {
		return nil, err
	}
	if !d.Modern {
		return nil, fmt.Errorf("backend %s: %w", b.config.Name, backend.ErrEra)
	}
	return b.modern(), nil
}

func (b *Backend) modern() *modern {
	m := &modern{Backend: b, to: b.targetAt("")}
	m.to.version = wire.Version20260728
	return m
}

// Era is backend.Modern.
func (*modern) Era() backend.Era { return backend.Modern }

// Call sends a request and gives the sink what comes back.
func (m *modern) Call(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	x := m.begin(ctx)
	defer x.finish()
	c := &call{exchange: x, to: &m.to, sink: sink, names: namesOf(request.Message)}
	err := c.run(ctx, m.request(request))
	if !c.answered {
		m.doubt(err)
	}
	return err
}

func (m *modern) request(request *backend.Call) outgoing {
	o := m.post(&m.to, request.Message.Raw, request.Headers)
	describeRequest(o.header, request.Message)
	return o
}

// Send fails: nothing is sent in protocol version 2026-07-28 but requests.
func (m *modern) Send(context.Context, *wire.Message) error {
	return fmt.Errorf("backend %s: %w: there are only requests in protocol version %s", m.config.Name, backend.ErrEra, wire.Version20260728)
}

// Listen sends subscriptions/listen and gives the sink what its stream brings.
func (m *modern) Listen(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	if m.noStream[backend.Modern].Load() {
		return fmt.Errorf("backend %s: %w", m.config.Name, backend.ErrNoStream)
	}
	x := m.begin(ctx)
	defer x.finish()
	x.patience = 0
	c := &call{exchange: x, to: &m.to, sink: sink, names: namesOf(request.Message), listening: true}
	err := c.run(ctx, m.request(request))
	switch {
	case errors.Is(err, backend.ErrNoStream):
		m.noStream[backend.Modern].Store(true)
		return err
	case ctx.Err() != nil, errors.Is(err, errNoResponse):
		return nil
	}
	return err
}

// Close does nothing: there is no session to end.
func (*modern) Close(context.Context) error { return nil }

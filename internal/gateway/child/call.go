package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const (
	progressToken   = "progressToken"
	methodCancelled = "notifications/cancelled"
	methodProgress  = "notifications/progress"
	methodLog       = "notifications/message"
)

// call is a request that waits for its response.
type call struct {
	id int64
	// message is what the client sent, token the progress token in it.
	message *wire.Message
	token   json.RawMessage
	q       *queue
	// ours says that the gateway asks, which reads nothing but the response.
	ours bool
}

func idOf(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

func newCall(m *wire.Message) *call { return &call{message: m, q: newQueue()} }

// begin registers a call under an id of ours and queues it for writing.
func (p *process) begin(ctx context.Context, c *call, edits ...wire.Edit) (*outgoing, error) {
	c.token = c.message.MetaField(progressToken) // before the process' reader, which may be told of any id, can find the call
	p.mu.Lock()
	if p.ended || p.stopping {
		p.mu.Unlock()
		return nil, errUnsent
	}
	if c.id == 0 {
		p.last++
		c.id = p.last
	}
	p.calls[c.id] = c
	if p.owing.IsZero() {
		p.owing = time.Now()
	}
	p.mu.Unlock()
	id := idOf(c.id)
	edits = append(edits, wire.SetID(id))
	if c.token != nil {
		edits = append(edits, wire.SetMeta(progressToken, id))
	}
	item, err := p.out.put(ctx, c.message.With(edits...))
	if err != nil {
		p.abandon(c, false)
	}
	return item, err
}

// reserve gives a call its id before it begins.
func (p *process) reserve(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	c.id = p.last
}

// abandon forgets a call; its late response is dropped. It reports whether the child was to answer it still.
func (p *process) abandon(c *call, sent bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waiting := p.calls[c.id]
	delete(p.calls, c.id)
	p.releaseLogs(c, !sent)
	return waiting && sent
}

// do sends a request and feeds the sink until the response, the end of ctx, or the end of the process. Whether the request was sent is
// told by the error: errUnsent, or anything else. An error of the sink's is never errUnsent, so that nothing is sent for who has left.
func (p *process) do(ctx context.Context, c *call, s backend.Sink, edits ...wire.Edit) error {
	defer c.q.close()
	item, err := p.begin(ctx, c, edits...)
	if err != nil {
		return errors.Join(errUnsent, ended(ctx))
	}
	for {
		m, err := c.q.next(ctx)
		if err == nil && m.Kind == wire.Response {
			return c.respond(m, s)
		}
		isHeard := true
		if err == nil {
			err = s.Message(m)
			isHeard = err == nil
		}
		if err == nil {
			continue
		}
		sent := !p.out.withdraw(item)
		if p.abandon(c, sent) && c.message.Method != "initialize" {
			p.cancel(c)
		}
		if !sent && isHeard {
			return errors.Join(errUnsent, ended(ctx))
		}
		return err
	}
}

// cancel tells the child that nobody waits for a call any more.
func (p *process) cancel(c *call) {
	p.out.post(wire.NewNotification(methodCancelled, json.RawMessage(`{"requestId":`+string(idOf(c.id))+`,"reason":"the caller gave up"}`)))
}

// respond hands over the response under the client's id.
func (c *call) respond(m *wire.Message, s backend.Sink) error {
	if held := c.q.held; held != nil {
		return s.Response(wire.ReplaceID(held.reader(m.Raw), c.message.ID))
	}
	return s.Response(bytes.NewReader(m.With(wire.SetID(c.message.ID)).Raw))
}

// ask sends a request of our own and returns the response.
func (p *process) ask(ctx context.Context, method string, params json.RawMessage) (*wire.Message, error) {
	var got answer
	c := newCall(wire.NewRequest(idOf(0), method, params))
	c.ours = true
	if err := p.do(ctx, c, &got); err != nil {
		return nil, err
	}
	return wire.Parse(got.raw, p.options.limits())
}

// answer is a sink that keeps the response.
type answer struct{ raw []byte }

func (a *answer) Message(*wire.Message) error { return nil }

func (a *answer) Response(r io.Reader) (err error) {
	a.raw, err = io.ReadAll(r)
	return err
}

// respond answers a call without the child.
func respond(s backend.Sink, m *wire.Message) error { return s.Response(bytes.NewReader(m.Raw)) }

// edits are what is changed in a message on its way to a process.
type edits func(p *process, c *call) []wire.Edit

// call sends a request to the process that get returns, and waits for there to be one for at most HoldTimeout. It is sent once.
func (b *Backend) call(ctx context.Context, get getter, request *backend.Call, s backend.Sink, edit edits) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.CallTimeout)
	defer cancel()
	deadline := time.Now().Add(b.options.HoldTimeout)
	for {
		p, err := get(ctx, deadline)
		if err == nil {
			err = ended(ctx) // before, or while there was none
		}
		if err != nil {
			return b.failed(err, false)
		}
		c := newCall(request.Message)
		var changes []wire.Edit
		if edit != nil {
			changes = edit(p, c)
		}
		err = p.do(ctx, c, s, changes...)
		switch {
		case !errors.Is(err, errUnsent):
			return b.failed(err, true)
		case ctx.Err() != nil:
			return b.failed(ended(ctx), false)
		}
	}
}

// getter returns a process that is ready, and waits for one until the deadline.
type getter func(ctx context.Context, deadline time.Time) (*process, error)

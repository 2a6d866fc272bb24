package upstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// pipe is a session over HTTP+SSE (protocol version 2024-11-05): one stream, which a GET opens, brings everything, and messages are
// posted to the endpoint that its first event names. It lives in this process alone.
type pipe struct {
	*Backend

	id      string
	address string
	version string    // agreed on
	life    *exchange // of the stream
	hub     hub

	mu sync.Mutex
	// endpoint is where messages are posted to.
	endpoint target
	kept     bool // it was counted for its pod
	// abandoned says that it takes no more calls, and ends with the last of those that it has.
	abandoned bool
	// own is set for a session of the gateway's own: nothing reaches a caller that does not name its call.
	own   bool
	last  int64
	calls []*pipeCall // in flight, the newest last
	used  time.Time
	ended error
}

// pipeCall is a request in flight.
type pipeCall struct {
	names names
	queue *queue
}

// pipePrefix is what the handles of such sessions begin with.
const pipePrefix = "sse:"

func isPipe(h backend.Handle) bool { return strings.HasPrefix(h.Session, pipePrefix) }

func (p *pipe) handle() backend.Handle {
	return backend.Handle{Address: p.address, Session: p.id, Version: p.version}
}

// openPipe opens a session over HTTP+SSE for a client.
func (b *Backend) openPipe(ctx context.Context, client backend.Client) (*pipe, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limits.Open+b.options.Hold)
	defer cancel()
	var p *pipe
	err := b.onPod(ctx, func(address string, hold bool) (err error) {
		p, err = b.dialPipe(ctx, address, hold)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.greet(ctx, client); err != nil {
		p.end(errEnded)
		return nil, err
	}
	b.keepPipe(p)
	return p, nil
}

// keepPipe makes the session one that can be resumed, unless it has ended already. If there are too many, the one unused for longest
// ends.
func (b *Backend) keepPipe(p *pipe) {
	var oldest *pipe
	b.mu.Lock()
	if len(b.pipes) >= b.limits.Sessions {
		for _, other := range b.pipes {
			if oldest == nil || other.lastUse().Before(oldest.lastUse()) {
				oldest = other
			}
		}
	}
	p.mu.Lock()
	if p.ended == nil {
		p.kept = true
		b.pods.opened(p.address)
		b.pipes[p.id] = p
		b.reapLater()
	} else {
		oldest = nil
	}
	p.mu.Unlock()
	b.mu.Unlock()
	if oldest != nil {
		oldest.end(errReplaced)
	}
}

var (
	errReplaced = errors.New("the session had to make room for another")
	errMoved    = errors.New("the pod of the session is gone")
)

// resumePipe finds a session over HTTP+SSE of this process.
func (b *Backend) resumePipe(h backend.Handle) (backend.Channel, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pipes[h.Session]; p != nil {
		p.touch() // it is not idle any more for whoever looks next
		return p, nil
	}
	return nil, b.lostSession(0, "the stream of the session is gone, or is at another replica")
}

// dialPipe opens the stream and waits for its endpoint.
func (b *Backend) dialPipe(ctx context.Context, address string, hold bool) (*pipe, error) {
	p := &pipe{Backend: b, id: pipePrefix + rand.Text(), address: address, used: time.Now()}
	life := b.begin(ctx)
	life.patience = 0
	if !hold {
		life.hold = 0
	}
	to := b.targetAt(address)
	o := b.get(&to, "")
	if err := life.send(&o); err != nil {
		life.end()
		return nil, err
	}
	response := life.response
	if kind, err := mediaOf(response); response.StatusCode != http.StatusOK || err != nil || kind != mediaStream {
		life.end()
		if response.StatusCode == http.StatusOK {
			return nil, b.failure(classNotMCP, true, errMediaType)
		}
		return nil, b.statusFailure(response.StatusCode)
	}
	events := wire.NewEventReader(response.Body, int(b.limits.Response))
	events.Whole = true
	first, err := events.Next()
	if err == nil && first.Type != "endpoint" {
		err = fmt.Errorf("%w: the stream does not begin with an endpoint", errNotAnswer)
	}
	if err == nil {
		err = p.setEndpoint(string(first.Data))
	}
	if err != nil {
		failure := life.broken(err, true)
		life.end()
		return nil, failure
	}
	life.detach() // from here on the stream is bound to the backend's life alone
	p.life = life
	beside := context.WithoutCancel(ctx)
	if !b.background(func() {
		defer life.end()
		p.end(p.read(beside, events))
	}) {
		life.end()
		return nil, b.failure(classConnect, false, errClosed)
	}
	return p, nil
}

// maxEndpoint is longer than any endpoint in use.
const maxEndpoint = 4 << 10

// setEndpoint takes the URL to post to, which must be of the server's own origin: by the URL it is known by, or by the Host
// header that it was given.
func (p *pipe) setEndpoint(text string) error {
	endpoint, err := p.url.Parse(text)
	if err != nil || len(text) > maxEndpoint {
		return fmt.Errorf("%w: its endpoint is no URL", errNotAnswer)
	}
	own := strings.EqualFold(endpoint.Host, p.url.Host) || strings.EqualFold(endpoint.Host, p.host)
	if endpoint.Scheme != p.url.Scheme || !own || endpoint.User != nil {
		return fmt.Errorf("%w: its endpoint is at another origin", errNotAnswer)
	}
	to := p.targetAt(p.address)
	at := url.URL{Scheme: to.url.Scheme, Host: to.url.Host, Path: endpoint.Path, RawPath: endpoint.RawPath, RawQuery: endpoint.RawQuery}
	to.url = &at
	p.endpoint = to
	return nil
}

// greet shakes hands over the stream.
func (p *pipe) greet(ctx context.Context, client backend.Client) (greeting, error) {
	m := p.initializeRequest(client, offered(client))
	into := &collector{limit: maxOwnAnswer}
	if err := p.Call(ctx, &backend.Call{Message: m}, into); err != nil {
		return greeting{}, err
	}
	answer, err := into.message()
	var g greeting
	if err == nil {
		err = g.take(answer)
	}
	if err != nil {
		return greeting{}, p.failure(classNotMCP, true, err)
	}
	p.version = g.version
	p.mu.Lock()
	p.endpoint.version = g.version
	p.mu.Unlock()
	return g, p.Send(ctx, wire.NewNotification("notifications/initialized", nil))
}

// Era is backend.Legacy.
func (*pipe) Era() backend.Era { return backend.Legacy }

// Call posts a request and gives the sink what of the stream belongs to it.
func (p *pipe) Call(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	c, m, err := p.enter(request.Message)
	if err != nil {
		return err
	}
	defer p.leave(c)
	if err := p.deliver(ctx, m, request.Headers, p.options.Hold); err != nil {
		if failure, ok := errors.AsType[*backend.Error](err); ok && failure.Sent && failure.Status == 0 {
			p.cancelled(ctx, c.names.id)
		}
		return err
	}
	for {
		m, err := c.queue.next(ctx)
		if err == nil && m.Kind == wire.Response {
			return sink.Response(bytes.NewReader(m.With(wire.SetID(c.names.outerID)).Raw))
		}
		if err == nil {
			if err = sink.Message(c.names.restored(m)); err == nil {
				continue
			}
		}
		if !errors.Is(err, errStream) {
			p.cancelled(ctx, c.names.id)
		}
		return p.unanswered(ctx, err)
	}
}

// enter registers a request under an id of its own.
func (p *pipe) enter(m *wire.Message) (*pipeCall, *wire.Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return nil, nil, p.lostSession(0, "its stream has ended: "+p.ended.Error())
	}
	if p.abandoned {
		return nil, nil, p.lostSession(0, errMoved.Error())
	}
	p.last++
	p.used = time.Now()
	m, n := renamed(m, json.RawMessage(strconv.AppendInt(nil, p.last, 10)))
	c := &pipeCall{names: n, queue: newQueue(p.limits.Queue)}
	p.calls = append(p.calls, c)
	return c, m, nil
}

func (p *pipe) leave(c *pipeCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
	p.calls = slices.DeleteFunc(p.calls, func(other *pipeCall) bool { return other == c })
	if p.abandoned && len(p.calls) == 0 {
		p.endLocked(errMoved)
	}
}

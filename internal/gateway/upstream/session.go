package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// session is a legacy session over Streamable HTTP, or the way to a server that keeps none.
type session struct {
	*Backend

	to target
	// next numbers the requests of a session that many callers share; nil where they keep their ids.
	next *atomic.Int64
	// left is done once the session is known to be over, so that its pod is counted down once.
	left sync.Once
}

// Open opens a legacy session.
func (b *Backend) Open(ctx context.Context, client backend.Client) (backend.Channel, backend.Handle, error) {
	d, err := b.describe(ctx)
	if err != nil {
		return nil, backend.Handle{}, err
	}
	if !d.Legacy {
		return nil, backend.Handle{}, fmt.Errorf("backend %s: %w", b.config.Name, backend.ErrEra)
	}
	if d.sse {
		p, err := b.openPipe(ctx, client)
		if err != nil {
			return nil, backend.Handle{}, err
		}
		return p, p.handle(), nil
	}
	s, err := b.openSession(ctx, client)
	if err != nil {
		return nil, backend.Handle{}, err
	}
	return s, s.handle(), nil
}

// openSession opens a session beside the caller: if that one leaves too early, the session is ended rather than left to the
// server for ever.
func (b *Backend) openSession(ctx context.Context, client backend.Client) (*session, error) {
	type opened struct {
		session *session
		err     error
	}
	result := make(chan opened)
	beside := context.WithoutCancel(ctx)
	if !b.background(func() {
		s, err := b.initialize(beside, client)
		select {
		case result <- opened{s, err}:
		case <-b.ctx.Done(): // the caller was told so, and there is no way to the server any more
		case <-ctx.Done():
			if err == nil {
				s.endQuietly(ctx)
			}
		}
	}) {
		return nil, b.failure(classConnect, false, errClosed)
	}
	select {
	case got := <-result:
		return got.session, got.err
	case <-ctx.Done():
		return nil, b.failure(classTimeout, false, context.Cause(ctx))
	case <-b.ctx.Done():
		return nil, b.failure(classConnect, false, errClosed)
	}
}

// initialize shakes hands with one of the pods, or with the server.
func (b *Backend) initialize(ctx context.Context, client backend.Client) (opened *session, err error) {
	defer b.options.Panics.Catch(b.config.Name, &err)
	ctx, cancel := context.WithTimeout(ctx, b.limits.Open+b.options.Hold)
	defer cancel()
	var s *session
	var g greeting
	err = b.onPod(ctx, func(address string, hold bool) (err error) {
		s = &session{Backend: b, to: b.targetAt(address)}
		g, err = b.greet(ctx, &s.to, client, hold)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.to.session, s.to.version = g.session, g.version
	if g.session == "" {
		// Nothing ties the caller to the pod.
		s.to = b.targetAt("")
		s.to.version = g.version
	}
	b.pods.opened(s.to.address)
	if err := s.Send(ctx, wire.NewNotification("notifications/initialized", nil)); err != nil {
		s.endQuietly(ctx)
		return nil, err
	}
	return s, nil
}

// onPod tries with a pod, and with another one while they accept no connection. Without pods it tries once, and what it does
// may be put on hold.
func (b *Backend) onPod(ctx context.Context, try func(address string, hold bool) error) error {
	var pause backoff
	for began := time.Now(); ; {
		address, err := b.pods.pick(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return b.failure(classTimeout, false, cause)
			}
			return b.failure(classDNS, false, err)
		}
		err = try(address, address == "")
		if err == nil || address == "" {
			return err
		}
		failure, ok := errors.AsType[*backend.Error](err)
		if !ok || failure.Sent || isOfTLS(failure) {
			return err
		}
		if ctx.Err() != nil || b.ctx.Err() != nil {
			return err // which says nothing of the pod, and no other one will be asked
		}
		b.pods.avoid(address)
		wait := pause.next()
		if time.Since(began)+wait > b.options.Hold || !backend.Pause(ctx, wait) {
			return err
		}
	}
}

// greeting is what a server answers to initialize.
type greeting struct {
	result  json.RawMessage
	version string
	session string
}

// greet sends initialize. A server that wants another version is asked again if that one is spoken here.
func (b *Backend) greet(ctx context.Context, to *target, client backend.Client, hold bool) (greeting, error) {
	version := offered(client)
	for again := true; ; again = false {
		m := b.initializeRequest(client, version)
		answer, id, err := b.ask(ctx, b.post(to, m.Raw, nil), m, hold)
		g := greeting{session: id}
		if err == nil && answer.Error != nil {
			if other := supported(answer); again && other != "" && other != version {
				version = other
				continue
			}
		}
		if err == nil {
			err = g.take(answer)
		}
		if err != nil {
			if id != "" && validSession(id) {
				refused := &session{Backend: b, to: *to}
				refused.to.session = id
				refused.endQuietly(ctx)
			}
			return greeting{}, b.greetingFailure(err)
		}
		return g, nil
	}
}

func (b *Backend) greetingFailure(err error) error {
	b.doubt(err)
	if failure, ok := errors.AsType[*backend.Error](err); ok {
		return failure
	}
	return b.failure(classNotMCP, true, err)
}

// take takes the answer to initialize.
func (g *greeting) take(answer *wire.Message) error {
	if answer.Error != nil {
		return fmt.Errorf("it refuses initialize with the JSON-RPC error %d", codeOf(answer))
	}
	version, ok := wire.String(answer.ResultField("protocolVersion"))
	switch {
	case !ok || !slices.Contains(legacyVersions, version):
		return errors.New("its answer to initialize names no protocol version that is spoken here")
	case g.session != "" && !validSession(g.session):
		return errors.New("its session id is too long, or has other than visible ASCII characters")
	}
	g.result, g.version = answer.Result, version
	return nil
}

// maxSession is longer than any session id in use. It ends up in a header of every request of the client.
const maxSession = 4 << 10

// validSession says whether an id may be sent back: visible ASCII (2025-11-25, Session Management).
func validSession(id string) bool {
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return false
		}
	}
	return len(id) <= maxSession
}

// offered is the version to ask for on behalf of a client.
func offered(client backend.Client) string {
	if slices.Contains(legacyVersions, client.Version) {
		return client.Version
	}
	return wire.Version20251125
}

// supported is the newest version that an error lists and that is spoken here; empty if there is none.
func supported(answer *wire.Message) string {
	for _, version := range legacyVersions {
		for listed := range wire.Elements(wire.Field(wire.Field(answer.Error, "data"), "supported")) {
			if wire.TextIs(listed, version) {
				return version
			}
		}
	}
	return ""
}

func (b *Backend) initializeRequest(client backend.Client, version string) *wire.Message {
	capabilities, info := client.Capabilities, client.Info
	if capabilities == nil {
		capabilities = json.RawMessage("{}")
	}
	if info == nil {
		info = b.info()
	}
	params := slices.Concat([]byte(`{"protocolVersion":"`+version+`","capabilities":`), capabilities, []byte(`,"clientInfo":`), info, []byte("}"))
	return wire.NewRequest(json.RawMessage(`"gateway-initialize"`), "initialize", params)
}

// info names the gateway to servers.
func (b *Backend) info() json.RawMessage {
	return json.RawMessage(`{"name":"mcp-gateway","version":` + strconv.QuoteToASCII(b.options.Version) + `}`)
}

// Resume is the channel of a session opened before.
func (b *Backend) Resume(h backend.Handle) (backend.Channel, error) {
	if isPipe(h) {
		return b.resumePipe(h)
	}
	if h.Server != b.place || !slices.Contains(legacyVersions, h.Version) || !validSession(h.Session) || h.Address != "" && b.pods == nil {
		return nil, b.lostSession(0, "the handle is none of this backend's")
	}
	s := &session{Backend: b, to: b.targetAt(h.Address)}
	s.to.session, s.to.version = h.Session, h.Version
	return s, nil
}

func (s *session) handle() backend.Handle {
	return backend.Handle{Address: s.to.address, Session: s.to.session, Version: s.to.version, Server: s.place}
}

// Era is backend.Legacy.
func (*session) Era() backend.Era { return backend.Legacy }

// Call sends a request and gives the sink what comes back.
func (s *session) Call(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	m, n := request.Message, namesOf(request.Message)
	if s.next != nil {
		m, n = renamed(m, strconv.AppendInt(nil, s.next.Add(1), 10))
	}
	x := s.begin(ctx)
	defer x.finish()
	c := &call{exchange: x, to: &s.to, sink: sink, names: n}
	err := c.run(ctx, s.post(&s.to, m.Raw, request.Headers))
	if err == nil || c.answered {
		return err
	}
	switch {
	case errors.Is(err, backend.ErrSession):
		s.leave()
	case c.sent && !c.refusedIt(err):
		s.cancelled(ctx, n.id)
	}
	s.doubt(err)
	return err
}

// refusedIt says whether the server has answered the request, if by an HTTP status alone.
func (c *call) refusedIt(err error) bool {
	failure, ok := errors.AsType[*backend.Error](err)
	return ok && failure.Status != 0
}

// cancelled tells the server, beside the caller, that nobody waits for a response any more. It does not need it to arrive.
func (s *session) cancelled(ctx context.Context, id json.RawMessage) {
	m := cancellation(id)
	s.beside(ctx, func(ctx context.Context) {
		if err := s.send(ctx, m, 0); err != nil {
			s.log.Debug("a request could not be cancelled", "error", err)
		}
	})
}

func cancellation(id json.RawMessage) *wire.Message {
	return wire.NewNotification("notifications/cancelled", slices.Concat([]byte(`{"requestId":`), id, []byte("}")))
}

// Send sends a notification, or a response to a request of the server's.
func (s *session) Send(ctx context.Context, m *wire.Message) error {
	if s.next != nil && m.Method == "notifications/cancelled" {
		return nil // it names a request by the id of one of many callers: they cancel by ending their context
	}
	err := s.send(ctx, m, s.options.Hold)
	if errors.Is(err, backend.ErrSession) {
		s.leave()
	}
	return err
}

// leave counts the session as gone from its pod.
func (s *session) leave() {
	if s.to.address != "" {
		s.left.Do(func() { s.pods.closed(s.to.address) })
	}
}

// Close ends the session at the server. A server that does not let clients do that (405) is no error.
func (s *session) Close(ctx context.Context) error {
	s.leave()
	if s.to.session == "" {
		return nil
	}
	x := s.begin(ctx)
	defer x.end()
	x.hold = 0
	o := outgoing{method: http.MethodDelete, to: &s.to, header: s.header(&s.to)}
	if err := x.send(&o); err != nil {
		return err
	}
	x.skim()
	if status := x.response.StatusCode; status >= 500 || status == http.StatusUnauthorized || status == http.StatusForbidden {
		return s.statusFailure(status)
	}
	return nil
}

// endQuietly ends the session beside the caller, who has no use for it.
func (s *session) endQuietly(ctx context.Context) {
	s.beside(ctx, func(ctx context.Context) {
		if err := s.Close(ctx); err != nil {
			s.log.Debug("a session could not be ended", "error", err)
		}
	})
}

// skim reads what little a response to a notification may say, so that the connection can be used again.
func (x *exchange) skim() {
	x.patience = drainTime
	_, _ = io.CopyN(io.Discard, x.watched(x.response.Body), drainBytes) // nothing in it matters
}

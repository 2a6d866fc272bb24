package child

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const (
	// maxUpstream bounds the subscriptions/listen requests that are open at one process.
	maxUpstream = 64
	// leaveTime is how long a process may take to end them.
	leaveTime = time.Second
)

// hub lets many clients listen to one process. Servers do not expect more than one subscription on a pipe: with the Go SDK and
// mcp-go a later one replaces an earlier one, and the end of any ends them all. So the process is asked for everything there is on
// behalf of all, and each client gets what it asked for. A client that wants further resources makes one more request, which
// asks for the lists again; none is ended before all are, and what comes twice is taken from the last.
type hub struct {
	s *modernServer

	mu        sync.Mutex
	listeners map[*listener]bool
	sub       *subscription // nil if nobody listens
	leaving   chan struct{} // closed once the subscription before is over; nil if there was none
}

// listener is one client's subscriptions/listen request.
type listener struct {
	request *wire.Message
	want    filter
	granted filter // empty until it was acknowledged
	q       *queue
}

// subscription is what one process was asked for.
type subscription struct {
	p      *process
	ctx    context.Context //nolint:containedctx // it is the subscription's life
	cancel context.CancelFunc
	open   map[int64]*upstream
	// last is the newest upstream that was acknowledged; lists are taken from it.
	last    int64
	asked   filter
	granted filter
	acked   bool
	leaving bool
	over    chan struct{} // closed when it is leaving and the last upstream has ended
}

// upstream is one subscriptions/listen request to a process.
type upstream struct {
	c       *call
	asks    filter
	granted *filter
	again   bool          // what may have changed is to be told
	ready   chan struct{} // closed when it was acknowledged or ended
	acked   bool
	done    bool // ready is closed
	raw     []byte
	err     error // why it ended, unless the subscription or the process had
}

func newHub(s *modernServer) *hub { return &hub{s: s, listeners: map[*listener]bool{}} }

// Listen receives what the client subscribes to.
func (s *modernServer) Listen(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	want, ok := parseFilter(request.Message)
	if !ok {
		return respond(sink, wire.NewError(request.Message.ID, wire.CodeInvalidParams, "params.notifications is missing", nil))
	}
	l := &listener{request: request.Message, want: want, q: newQueue()}
	defer s.hub.leave(l)
	refusal, err := s.hub.join(ctx, l)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return s.b.failed(err, false)
	}
	if refusal != nil {
		return sink.Response(wire.ReplaceID(refusal, request.Message.ID))
	}
	for {
		m, err := l.q.next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errStopped) {
			return respond(sink, wire.NewResult(l.request.ID, l.result()))
		}
		if err == nil {
			err = sink.Message(m)
		}
		if err != nil {
			return err
		}
	}
}

// result ends a subscription in peace.
func (l *listener) result() json.RawMessage {
	return json.RawMessage(`{"resultType":"complete","_meta":{"` + wire.MetaSubscriptionID + `":` + string(l.request.ID) + `}}`)
}

// tell hands a notification to the listener under its own id.
func (l *listener) tell(m *wire.Message) {
	if l.granted.wants(m) {
		l.q.push(m.With(wire.SetMeta(wire.MetaSubscriptionID, l.request.ID)), 0)
	}
}

// acknowledge begins the stream. One that is granted nothing is ended at once. The caller holds the hub's lock.
func (l *listener) acknowledge(granted *filter) {
	l.granted = *l.want.and(granted)
	params := `{"notifications":` + string(l.granted.params()) + `}`
	ack := wire.NewNotification(methodAcknowledged, json.RawMessage(params))
	l.q.push(ack.With(wire.SetMeta(wire.MetaSubscriptionID, l.request.ID)), 0)
	if l.granted.empty() {
		l.q.fail(errStopped)
	}
}

// take passes on what a process sends to subscribers.
func (h *hub) take(p *process, m *wire.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub := h.sub
	if sub == nil || sub.p != p {
		return
	}
	id, err := strconv.ParseInt(string(m.MetaField(wire.MetaSubscriptionID)), 10, 64)
	named := err == nil
	switch {
	case m.Method == methodAcknowledged:
		if u := sub.open[id]; u != nil && !u.done {
			h.acknowledged(sub, u, m)
		}
	case isListChanged(m) && named && id != sub.last: // from an earlier one, and so it comes again
	case isListChanged(m), m.Method == methodUpdated:
		for l := range h.listeners {
			l.tell(m)
		}
	}
}

func (h *hub) acknowledged(sub *subscription, u *upstream, m *wire.Message) {
	granted, _ := parseFilter(m)
	u.granted = granted.and(&u.asks)
	sub.granted.add(u.granted)
	sub.last, sub.acked, u.acked, u.done = u.c.id, true, true, true
	close(u.ready)
	if !u.again {
		return
	}
	for _, method := range sub.granted.lists {
		h.tellAll(wire.NewNotification(method, nil))
	}
	for _, uri := range sub.granted.uris {
		h.tellAll(wire.NewNotification(methodUpdated, uriParams(uri)))
	}
}

func (h *hub) tellAll(m *wire.Message) {
	for l := range h.listeners {
		l.tell(m)
	}
}

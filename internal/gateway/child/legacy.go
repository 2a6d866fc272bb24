package child

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const methodUpdated = "notifications/resources/updated"

// maxURIs bounds the resources that are subscribed to at one process.
const maxURIs = 1000

// legacyServer is the process that legacy sessions share, and what it said of itself. It was told of no client capability.
type legacyServer struct {
	b           *Backend
	keeper      *keeper
	initialized atomic.Pointer[json.RawMessage]

	// turn is held over a subscription, so that one session's end and another's beginning cannot overtake each other.
	turn chan struct{}
	mu   sync.Mutex
	uris map[string]map[*session]bool // who subscribed to what
}

func newLegacyServer(b *Backend) *legacyServer {
	return &legacyServer{b: b, turn: make(chan struct{}, 1), uris: map[string]map[*session]bool{}}
}

// hello begins the conversation.
func (l *legacyServer) hello(ctx context.Context, p *process) error {
	result, err := p.initialize(ctx, backend.Client{})
	if err != nil {
		return err
	}
	l.initialized.Store(&result)
	return nil
}

// again is hello for a process that follows another one: what was subscribed to is subscribed to again, and what may have changed
// unseen is said to have changed.
func (l *legacyServer) again(s *servers) hello {
	return func(ctx context.Context, p *process) error {
		if err := l.hello(ctx, p); err != nil {
			return err
		}
		s.describe()
		l.mu.Lock()
		uris := slices.Sorted(maps.Keys(l.uris))
		l.mu.Unlock()
		for _, uri := range uris {
			// One that it refuses is gone, and so are its updates.
			if _, err := p.ask(ctx, "resources/subscribe", uriParams(uri)); err != nil && (ctx.Err() != nil || p.over()) {
				return err
			}
			l.take(p, wire.NewNotification(methodUpdated, uriParams(uri)))
		}
		capabilities := wire.Field(*l.initialized.Load(), "capabilities")
		for _, list := range []string{"tools", "prompts", "resources"} {
			if string(wire.Field(wire.Field(capabilities, list), "listChanged")) == "true" {
				l.take(p, wire.NewNotification("notifications/"+list+"/list_changed", nil))
			}
		}
		return nil
	}
}

func uriParams(uri string) json.RawMessage {
	return json.RawMessage(`{"uri":` + quote(uri) + `}`)
}

// patience is none: nobody waits for somebody else's slow reader.
func (l *legacyServer) patience() time.Duration { return 0 }

// take passes on what concerns everybody, and updates to who subscribed. All else might be about one client's call, and there is no
// telling which: log messages, tasks, and requests, which a server has no business to send to a client without capabilities.
func (l *legacyServer) take(p *process, m *wire.Message) {
	switch {
	case m.Kind == wire.Request:
		p.refuse(m)
	case m.Method == methodUpdated:
		uri, _ := m.StringParam("uri")
		for _, s := range l.subscribers(uri) {
			s.tell(m)
		}
	case isListChanged(m):
		l.b.sessions.tellShared(m)
	}
}

func (l *legacyServer) subscribers(uri string) []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[*session]bool{}
	for subscribed, by := range l.uris {
		if translate.Concerns(uri, subscribed) {
			maps.Copy(found, by)
		}
	}
	return slices.Collect(maps.Keys(found))
}

// errCrowded says that no more resources can be subscribed to.
var errCrowded = errors.New("too many resources are subscribed to")

// subscribe notes a subscription. A session that has ended gets none: nobody would end it.
func (l *legacyServer) subscribe(s *session, uri string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.isEnded() {
		return backend.ErrSession
	}
	if l.uris[uri] == nil {
		if len(l.uris) >= maxURIs {
			return errCrowded
		}
		l.uris[uri] = map[*session]bool{}
	}
	l.uris[uri][s] = true
	return nil
}

// subscribedTo lists what a session has subscribed to.
func (l *legacyServer) subscribedTo(s *session) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var uris []string
	for uri, by := range l.uris {
		if by[s] {
			uris = append(uris, uri)
		}
	}
	slices.Sort(uris)
	return uris
}

// unsubscribe forgets a subscription, and reports whether it was the last one to the resource.
func (l *legacyServer) unsubscribe(s *session, uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.uris[uri][s] {
		return false
	}
	delete(l.uris[uri], s)
	if len(l.uris[uri]) > 0 {
		return false
	}
	delete(l.uris, uri)
	return true
}

// leave ends the subscriptions of a session that has ended. In its turn, or else the child is not told: that nobody subscribes any more
// must not reach it after somebody does again.
func (l *legacyServer) leave(ctx context.Context, s *session) {
	uris := l.subscribedTo(s)
	if len(uris) == 0 {
		return
	}
	inTurn := true
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		inTurn = false
	}
	for _, uri := range uris {
		if l.unsubscribe(s, uri) && inTurn {
			if p, err := l.keeper.get(ctx, time.Time{}); err == nil {
				p.out.post(wire.NewRequest(json.RawMessage(`"unsubscribe"`), "resources/unsubscribe", uriParams(uri)))
			}
		}
	}
}

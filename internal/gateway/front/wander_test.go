package front

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// wandering is a server with a pod for each session.
type wandering struct {
	silent

	streams chan told
	leaving *podChannel
}

// podChannel is a session at one pod, which serves streams on while it leaves, and no calls.
type podChannel struct{ *wandering }

func (w *wandering) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	return &podChannel{w}, backend.Handle{Session: "s", Version: "2025-11-25"}, nil
}

func (c *podChannel) Call(_ context.Context, call *backend.Call, s backend.Sink) error {
	if c == c.leaving {
		return &backend.Error{Backend: "b", Class: "NotFound", Err: backend.ErrSession}
	}
	return s.Response(strings.NewReader(string(wire.NewResult(call.Message.ID, []byte(`{"content":[]}`)).Raw)))
}

func (c *podChannel) Listen(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	c.streams <- told{request, sink, ctx.Done()}
	<-ctx.Done()
	return nil
}

func TestWhoListensFollowsItsSessionToAnotherPodAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y, server := newYoung(t, Limits{}), &wandering{streams: make(chan told, 10)}
		b := NewBackend(table.Backend{Name: "b"}, server)
		endpoint := table.Endpoint{Path: table.DefaultPath}
		y.Use(&State{Table: &table.Table{Endpoint: endpoint, Backends: []table.Backend{b.Config}}, Verifier: y.verifier, Backends: []*Backend{b}})
		session := ""
		send := func(ctx context.Context, method, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, method, table.DefaultPath, strings.NewReader(body))
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, headerSession: {session}}
			if session == "" {
				r.Header.Del(headerSession)
			}
			w := httptest.NewRecorder()
			y.ServeHTTP(w, r)
			return w
		}
		session = send(t.Context(), http.MethodPost, initializing).Header().Get(headerSession)
		listening, leave := context.WithCancel(t.Context())
		defer leave()
		heard := make(chan string, 1)
		go func() { heard <- send(listening, http.MethodGet, "").Body.String() }()
		before := <-server.streams

		s := y.sessions.byKey[keyOf(session)]
		channel, _ := s.linkTo("b").usable(b, nil)
		server.leaving, _ = channel.(*podChannel)
		begun := time.Now()
		if got := send(t.Context(), http.MethodPost, calling).Body.String(); !strings.Contains(got, `"content"`) {
			t.Errorf("the call is answered %s", got)
		}
		synctest.Wait()
		select {
		case now := <-server.streams:
			now.update(t)
		default:
			t.Error("nobody listens at the other pod")
		}
		select {
		case <-before.over:
		default:
			t.Error("the pod that leaves is still listened to")
		}
		if took := time.Since(begun); took != 0 || len(server.streams) != 0 {
			t.Errorf("after %s %d more streams were opened", took, len(server.streams))
		}
		leave()
		if got := <-heard; !strings.Contains(got, translate.ResourceUpdated) {
			t.Errorf("heard is %q", got)
		}
	})
}

// update tells that a resource has changed.
func (s told) update(t *testing.T) {
	t.Helper()
	if err := s.sink.Message(wire.NewNotification(translate.ResourceUpdated, []byte(`{"uri":"a:b"}`))); err != nil {
		t.Error(err)
	}
}

func TestWhoTakesTheChannelOfALinkLearnsThatItIsReplaced(t *testing.T) {
	t.Parallel()
	l, server := newLink(backend.Handle{}), &wandering{}
	first, second := &podChannel{server}, &podChannel{server}
	isClosed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	l.use(nil, first, backend.Handle{}, true)
	moved := l.movedFrom(first)
	l.use(nil, first, backend.Handle{}, true)
	if isClosed(moved) {
		t.Error("the same channel counts as another")
	}
	l.use(nil, second, backend.Handle{}, true)
	if !isClosed(moved) || !isClosed(l.movedFrom(first)) || isClosed(l.movedFrom(second)) {
		t.Error("who has the first channel does not know that there is a second, or who has that one believes it of a third")
	}
}

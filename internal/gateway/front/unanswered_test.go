package front

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestABackendDoesNotHangBecauseItsClientsAnswerNothing(t *testing.T) {
	t.Parallel()
	type does = func(y *young, s *session, c *askingChannel, sink backend.Sink) error
	onTheStream := func(m *wire.Message) does {
		return func(y *young, s *session, c *askingChannel, _ backend.Sink) error {
			w := httptest.NewRecorder()
			answer := &reply{acceptance: acceptance{stream: true}, w: w, rc: *http.NewResponseController(w), limits: &y.limits}
			st := newStream(&visit{Front: y.Front, state: y.state.Load()}, answer, s)
			return (&relay{stream: st, backend: st.state.Backends[0], channel: c}).ask(m)
		}
	}
	for name, tc := range map[string]struct {
		does does
		want int
	}{
		"it asks":                    {func(_ *young, _ *session, c *askingChannel, sink backend.Sink) error { return c.ask(sink) }, 0},
		"it asks on the stream":      {onTheStream(question()), 0},
		"it asks for nothing":        {func(*young, *session, *askingChannel, backend.Sink) error { return nil }, hanging},
		"it asks for a sign of life": {onTheStream(wire.NewRequest(json.RawMessage(`0`), "ping", nil)), hanging},
		"it only tells how far it came": {func(_ *young, _ *session, _ *askingChannel, sink backend.Sink) error {
			return sink.Message(wire.NewNotification("notifications/progress", nil))
		}, hanging},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				// No keep-alive comes between: it would wait for a lock, on which no bubble does.
				y, server := newYoung(t, Limits{KeepAlive: 100 * time.Hour}), &asking{}
				b := NewBackend(table.Backend{Name: "b", TimeoutSeconds: 1}, server)
				y.Use(&State{
					Table:    &table.Table{Endpoint: table.Endpoint{Path: table.DefaultPath}, Backends: []table.Backend{b.Config}},
					Verifier: y.verifier, Backends: []*Backend{b},
				})
				send := func(session, body string) *httptest.ResponseRecorder {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, table.DefaultPath, strings.NewReader(body))
					r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
					if session != "" {
						r.Header.Set(headerSession, session)
					}
					w := httptest.NewRecorder()
					y.ServeHTTP(w, r)
					return w
				}
				session := send("", initializing).Header().Get(headerSession)
				s := y.sessions.byKey[keyOf(session)]
				server.call = func(c *askingChannel, sink backend.Sink) error { return tc.does(y, s, c, sink) }
				for range hanging {
					<-time.After(time.Second) // so that no question is another call's
					if got := send(session, calling).Body.String(); !strings.Contains(got, "did not answer in time") {
						t.Fatalf("the call got %s", got)
					}
				}
				if b.gate.late != tc.want {
					t.Errorf("%d calls count as not answered, want %d", b.gate.late, tc.want)
				}
			})
		})
	}
}

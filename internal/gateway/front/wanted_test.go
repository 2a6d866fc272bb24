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
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// chooser is a server that a call is about to be sent to when something happens.
type chooser struct {
	acting

	happens func()
}

func (c *chooser) Modern(context.Context) (backend.Channel, error) {
	c.happens()
	return c.channel(), nil
}

// calls is a call of the tool "incr", in a session if there is one, that goes by the table in use.
func (y *young) calls(t *testing.T, s *session) (x *exchange, answer *httptest.ResponseRecorder) {
	t.Helper()
	request, err := wire.Parse([]byte(calling), wire.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	answer = httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	v := &visit{Front: y.Front, state: y.state.Load(), w: answer, r: r}
	to := &reply{acceptance: acceptance{json: true}, w: answer, rc: *http.NewResponseController(answer), limits: &y.limits}
	return &exchange{visit: v, reply: to, request: request, session: s, tool: "incr", original: "incr"}, answer
}

func TestNothingIsSentForACallThatIsNotWantedAnyMore(t *testing.T) {
	t.Parallel()
	withdraw := func(y *young, b *Backend, _ *session) {
		config := b.Config
		config.Tools.Deny = []string{"incr"}
		now := &State{Table: &table.Table{Backends: []table.Backend{config}}, Verifier: y.verifier, Backends: []*Backend{b.With(config)}}
		y.Use(now)
		synctest.Wait() // the calls under way are looked through beside it
	}
	over := func(_ *young, _ *Backend, s *session) { s.finishAll(errOver) }
	cancelled := func(_ *young, _ *Backend, s *session) { s.cancel("2") }
	for name, tc := range map[string]struct {
		before, meanwhile func(y *young, b *Backend, s *session)
		answer            string
	}{
		"its tool was withdrawn":                   {before: withdraw, answer: `"class":"Forbidden","sent":false`},
		"its tool is withdrawn at the last moment": {meanwhile: withdraw, answer: `"class":"Forbidden","sent":false`},
		"its session was ended":                    {before: over, answer: `"class":"NotFound","sent":false`},
		"its session is ended at the last moment":  {meanwhile: over, answer: `"class":"NotFound","sent":false`},
		"its client cancels it at the last moment": {meanwhile: cancelled, answer: "the request was cancelled"},
		"nothing of that happens":                  {answer: `"sent":true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y, sent := newYoung(t, Limits{}), 0
				server := &chooser{happens: func() {}}
				server.from = time.Now()
				server.call = func(context.Context, *backend.Call, backend.Sink) error {
					sent++
					return &backend.Error{Backend: "inc", Class: "ServerError", Sent: true, Err: http.ErrAbortHandler}
				}
				b := NewBackend(table.Backend{Name: "inc"}, server)
				y.Use(&State{Table: &table.Table{Backends: []table.Backend{b.Config}}, Verifier: y.verifier, Backends: []*Backend{b}})
				registry, _ := registryOf(Limits{})
				s := open(registry, "1", "a")
				x, answer := y.calls(t, s)
				if tc.before != nil {
					tc.before(y, b, s)
				}
				if tc.meanwhile != nil {
					server.happens = func() { tc.meanwhile(y, b, s) }
				}
				x.send(b, x.request, nil)
				if want := strings.Contains(tc.answer, `"sent":true`); (sent > 0) != want || !strings.Contains(answer.Body.String(), tc.answer) {
					t.Errorf("it was sent %d times: %s", sent, answer.Body.String())
				}
			})
		})
	}
}

func TestACancellationIsHeardBetweenThatACallIsRoutedAndThatItIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y, sent := newYoung(t, Limits{}), 0
		server := &acting{late: late{from: time.Now()}, call: func(context.Context, *backend.Call, backend.Sink) error {
			sent++
			return nil
		}}
		b := NewBackend(table.Backend{Name: "inc", Prefix: "h_"}, server)
		down := NewBackend(table.Backend{Name: "down", Prefix: "d_"}, &late{})
		routes := &table.Table{Backends: []table.Backend{b.Config, down.Config}}
		y.Use(&State{Table: routes, Verifier: y.verifier, Backends: []*Backend{b, down}})
		registry, _ := registryOf(Limits{})
		s := open(registry, "1", "a")
		x, answer := y.calls(t, s)
		looks := 0
		if !x.find(catalog.Tools, "h_incr", func() bool { looks++; return looks > 1 }) {
			t.Fatalf("it was not found: %s", answer.Body.String())
		}
		if !s.cancel("2") {
			t.Error("the cancellation finds no call, and goes to the servers")
		}
		x.send(b, x.request, nil)
		if got := y.outcome(t); got != "cancelled" || sent > 0 {
			t.Errorf("audited %q, and sent %d times: %s", got, sent, answer.Body.String())
		}
		x.unregister()
		if s.cancel("2") {
			t.Error("it is found when it has ended")
		}
	})
}

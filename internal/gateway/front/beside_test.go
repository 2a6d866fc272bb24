package front

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// lingering is a session at a server that hangs, or at one that notes what it is told while there is time.
type lingering struct {
	silent

	told  []string
	hangs bool
}

func (l *lingering) take(ctx context.Context, what string) error {
	if l.hangs {
		<-ctx.Done()
	}
	if ctx.Err() == nil {
		l.told = append(l.told, what)
	}
	return ctx.Err()
}

func (l *lingering) Call(ctx context.Context, call *backend.Call, _ backend.Sink) error {
	return l.take(ctx, call.Message.Method)
}

func (l *lingering) Send(ctx context.Context, m *wire.Message) error {
	return l.take(ctx, m.Method)
}

func (l *lingering) Close(ctx context.Context) error { return l.take(ctx, "the end") }

func TestABackendThatHangsKeepsNothingFromTheOthersOfASession(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		message, want string
		tell          func(x *exchange, channels []backend.Channel)
	}{
		"a log level": {
			`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`, "logging/setLevel",
			func(x *exchange, _ []backend.Channel) { x.setLevel() },
		},
		"a notification": {
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, "notifications/roots/list_changed",
			func(x *exchange, _ []backend.Channel) { x.passUp(x.session, x.request) },
		},
		"its end": {calling, "the end", func(x *exchange, channels []backend.Channel) { x.closeAll(channels) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYoung(t, Limits{})
				s := y.sessions.enter(keyOf("1"), "a", passport{})
				stuck, other := &lingering{hangs: true}, &lingering{}
				state := &State{Table: &table.Table{}, Verifier: y.verifier}
				channels := []backend.Channel{stuck, other}
				for i, server := range []*lingering{stuck, other} {
					b := NewBackend(table.Backend{Name: string(rune('a' + i))}, server)
					b.describe(&backend.Description{Legacy: true, Initialize: []byte(`{"capabilities":{"logging":{}}}`)})
					s.linkTo(b.Config.Name).use(b, server, backend.Handle{Version: "2025-11-25"}, true)
					state.Backends = append(state.Backends, b)
				}
				y.Use(state)
				request, err := wire.Parse([]byte(tc.message), wire.DefaultLimits)
				if err != nil {
					t.Fatal(err)
				}
				w := httptest.NewRecorder()
				v := &visit{Front: y.Front, state: state, w: w, r: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)}
				answer := &reply{acceptance: acceptance{json: true}, w: w, rc: *http.NewResponseController(w), limits: &y.limits, status: telemetry.StatusOK}
				tc.tell(&exchange{visit: v, reply: answer, request: request, session: s}, channels)
				<-time.After(time.Minute)
				synctest.Wait()
				if len(other.told) != 1 || other.told[0] != tc.want || len(stuck.told) != 0 {
					t.Errorf("told are %q, and %q by the one that hangs", other.told, stuck.told)
				}
			})
		})
	}
}

// TestASessionIsClaimedWhereItIsFreeHoweverLittleTimeIsLeft: for what is not claimed nobody ends at its backend.
func TestASessionIsClaimedWhereItIsFreeHoweverLittleTimeIsLeft(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	b := f.state.Load().Backends[0]
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s := f.sessions.enter(keyOf("1"), "a", passport{Backends: map[string]backend.Handle{"b": {Version: "2025-11-25"}}})
	for range 100 {
		if err := f.claim(over, s, b); err != nil {
			t.Fatalf("it is free, and: %v", err)
		}
	}
	s.linkTo("b").turn <- struct{}{}
	if err := f.claim(over, s, b); err == nil {
		t.Error("another has it, and it was claimed")
	}
}

// unresumed is a server at whose sessions the gateway panics.
type unresumed struct{ silent }

func (*unresumed) Resume(backend.Handle) (backend.Channel, error) { panic("nobody thought of that") }

func TestAFaultAtTheEndOfASessionLeavesNothingOfIt(t *testing.T) {
	t.Parallel()
	f, _, url := endpoint(t, &unresumed{})
	faults := counting(f)
	session, _ := ask(t, http.MethodPost, url, nil, initializing)
	await(t, func() bool { // as if another replica had opened it
		f.sessions.expire(time.Now().Add(time.Hour))
		return f.sessions.count() == 0
	})
	if _, answer := ask(t, http.MethodDelete, url, map[string]string{headerSession: session}, ""); answer != "" || faults.Load() != 1 {
		t.Errorf("after %d faults: %s", faults.Load(), answer)
	}
	if caller := theCaller(f); caller != "" {
		t.Errorf("a session of %s is kept for ever", caller)
	}
}

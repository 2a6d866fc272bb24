package front

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// unthoughtOf is a teller at whose words the gateway panics, at one of its steps.
type unthoughtOf struct {
	*teller

	at atomic.Pointer[string]
}

func newUnthoughtOf(at string) *unthoughtOf {
	b := &unthoughtOf{teller: newTeller(backend.Modern)}
	b.tools = 1
	b.fail(at)
	return b
}

func (b *unthoughtOf) fail(at string) { b.at.Store(&at) }

func (b *unthoughtOf) reach(step string) {
	if *b.at.Load() == step {
		panic("nobody thought of that")
	}
}

func (b *unthoughtOf) Describe(ctx context.Context) (*backend.Description, error) {
	b.reach("describe")
	return b.teller.Describe(ctx)
}

func (b *unthoughtOf) Modern(context.Context) (backend.Channel, error) { return b, nil }

func (b *unthoughtOf) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	return b, backend.Handle{Session: "s", Version: "2025-11-25"}, nil
}

func (b *unthoughtOf) Resume(backend.Handle) (backend.Channel, error) { return b, nil }

func (b *unthoughtOf) Call(ctx context.Context, call *backend.Call, sink backend.Sink) error {
	b.reach(call.Message.Method)
	return b.teller.Call(ctx, call, sink)
}

func (b *unthoughtOf) Listen(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	b.reach("listen")
	return b.teller.Listen(ctx, request, sink)
}

// counting has a Front count its faults.
func counting(f *Front) *atomic.Int64 {
	count := &atomic.Int64{}
	f.options.Panics = panics.New(slog.New(slog.DiscardHandler), func(string) { count.Add(1) })
	return count
}

func TestAFaultAtWhatABackendSaysIsThatBackendsFailure(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]table.BackendState{
		"describe": table.BackendFailed, "tools/list": table.BackendFailed, "listen": table.BackendReady,
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			f, _, _ := endpoint(t, &silent{})
			synctest.Test(t, func(t *testing.T) {
				faults, server := counting(f), newUnthoughtOf(step)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b := NewBackend(table.Backend{Name: "b"}, server)
				go f.Watch(ctx, b)
				<-b.asked
				synctest.Wait()
				s := b.Status()
				if s.State != want || (s.ErrorClass == "ServerError") != (want == table.BackendFailed) || faults.Load() == 0 {
					t.Errorf("after %d faults the status is %+v", faults.Load(), s)
				}
				server.fail("nothing")
				<-server.streams // it is looked at again, and heard
				synctest.Wait()
				if s := b.Status(); s.State != table.BackendReady || len(b.source().Catalog.Entries[0]) != 1 {
					t.Errorf("when it says what can be read the status is %+v", s)
				}
			})
		})
	}
}

func TestAFaultAtANewCatalogLeavesTheOneBefore(t *testing.T) {
	t.Parallel()
	server := newUnthoughtOf("nothing")
	f, _, _ := endpoint(t, server)
	faults, b := counting(f), f.state.Load().Backends[0]
	if _, err := f.look(t.Context(), b, false); err != nil {
		t.Fatal(err)
	}
	before := f.view.Load().Mark()
	server.fail("tools/list")
	if _, err := f.look(t.Context(), b, false); err == nil || faults.Load() != 1 {
		t.Errorf("%d faults: %v", faults.Load(), err)
	}
	if f.view.Load().Mark() != before || b.source().Catalog == nil || b.Status().State != table.BackendFailed {
		t.Errorf("what is served has changed: %+v", f.StatusOf(b))
	}
}

func TestAFaultAtTheAnswerToACallIsThatCallsFailure(t *testing.T) {
	t.Parallel()
	server := newUnthoughtOf("tools/call")
	f, _, url := endpoint(t, server)
	faults := counting(f)
	session, _ := ask(t, http.MethodPost, url, nil, initializing)
	for range 2 {
		_, answer := ask(t, http.MethodPost, url, map[string]string{headerSession: session}, calling)
		if !strings.Contains(answer, `"error"`) || strings.Contains(answer, "nobody thought") {
			t.Errorf("answered %q", answer)
		}
	}
	if faults.Load() != 2 {
		t.Errorf("%d faults were counted", faults.Load())
	}
}

func TestAFaultWhileABackendIsRelayedLeavesTheStream(t *testing.T) {
	t.Parallel()
	server := newUnthoughtOf("listen")
	server.turn(backend.Legacy)
	f, _, url := endpoint(t, server)
	faults := counting(f)
	methods, _ := hear(t, f, streaming(t, url))
	await(t, func() bool { return faults.Load() > 0 })
	server.fail("nothing")
	if err := (<-server.streams).sink.Message(wire.NewNotification(translate.ToolsListChanged, nil)); err != nil {
		t.Error(err)
	}
	if method := soon(methods); method != translate.ToolsListChanged {
		t.Errorf("heard %s", method)
	}
}

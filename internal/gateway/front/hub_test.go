package front

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// teller is a backend that tells of changes of its tools, and the channel of it.
type teller struct {
	silent

	streams chan told

	mu    sync.Mutex
	era   backend.Era
	tools int
	lists int

	// acknowledge is held to keep subscriptions from being acknowledged.
	acknowledge sync.Mutex
}

// told is a stream that is open at a teller.
type told struct {
	request *backend.Call
	sink    backend.Sink
	over    <-chan struct{}
}

// filter is what was subscribed to.
func (s told) filter() string {
	if s.request == nil {
		return "everything"
	}
	return string(s.request.Message.Param("notifications"))
}

// changed tells that the tools have changed.
func (s told) changed(t *testing.T) {
	t.Helper()
	if err := s.sink.Message(wire.NewNotification(translate.ToolsListChanged, nil)); err != nil {
		t.Error(err)
	}
}

func newTeller(era backend.Era) *teller { return &teller{era: era, streams: make(chan told, 10)} }

func (b *teller) Era() backend.Era {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.era
}

// turn has it speak another generation of the protocol.
func (b *teller) turn(era backend.Era) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.era = era
}

func (b *teller) Describe(context.Context) (*backend.Description, error) {
	const offer = `{"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}`
	if b.Era() == backend.Modern {
		return &backend.Description{Modern: true, Discover: json.RawMessage(offer)}, nil
	}
	return &backend.Description{Legacy: true, Initialize: json.RawMessage(offer)}, nil
}

func (b *teller) Modern(context.Context) (backend.Channel, error) { return b, nil }

func (b *teller) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	return b, backend.Handle{Session: "s", Version: "2025-11-25"}, nil
}

func (b *teller) Shared(context.Context, string) (backend.Channel, backend.Handle, error) {
	return b, backend.Handle{Session: "s", Version: "2025-11-25"}, nil
}

func (b *teller) Resume(backend.Handle) (backend.Channel, error) { return b, nil }

func (b *teller) Call(_ context.Context, call *backend.Call, sink backend.Sink) error {
	if call.Message.Method == "resources/subscribe" {
		b.gate()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	result := `{"resources":[],"resourceTemplates":[]}`
	if call.Message.Method == "tools/list" {
		b.lists++
		var tools []string
		for i := range b.tools {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
		}
		result = `{"tools":[` + strings.Join(tools, ",") + `]}`
	}
	return sink.Response(strings.NewReader(string(wire.NewResult(call.Message.ID, json.RawMessage(result)).Raw)))
}

func (b *teller) Listen(ctx context.Context, request *backend.Call, sink backend.Sink) error {
	b.streams <- told{request, sink, ctx.Done()}
	if request != nil {
		b.gate()
		if err := sink.Message(wire.NewNotification(translate.Acknowledged, nil)); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// gate waits until subscriptions are acknowledged.
func (b *teller) gate() {
	b.acknowledge.Lock()
	defer b.acknowledge.Unlock()
}

func (b *teller) grow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools++
}

func (b *teller) listed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lists
}

// hear opens an event stream and returns the methods of what comes on it, and a function that ends all streams.
func hear(t *testing.T, f *Front, request *http.Request) (methods <-chan string, end func()) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(response.Body)
		t.Fatalf("status %d: %s %v", response.StatusCode, body, err)
	}
	heard := make(chan string, 100)
	go func() {
		defer close(heard)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				method, _ := wire.String(wire.Field(json.RawMessage(data), "method"))
				heard <- method
			}
		}
	}()
	return heard, func() { f.hub.endStreams(errReplaced) }
}

// listening opens a subscription of 2026-07-28.
func listening(t *testing.T, url, notifications string) *http.Request {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":` + notifications + `,"_meta":{"` +
		wire.MetaProtocolVersion + `":"2026-07-28","` + wire.MetaClientCapabilities + `":{}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
	}
	return r
}

// subscribed is listening for one filter.
func subscribed(notifications string) func(t *testing.T, url string) *http.Request {
	return func(t *testing.T, url string) *http.Request {
		t.Helper()
		return listening(t, url, notifications)
	}
}

// streaming opens a session of 2025-11-25, and its GET stream.
func streaming(t *testing.T, url string) *http.Request {
	t.Helper()
	id, _ := ask(t, http.MethodPost, url, nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {id}, "Mcp-Protocol-Version": {"2025-11-25"}}
	return r
}

func TestAChangeOfALoneBackendIsToldOnceWhoeverListens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		era    backend.Era
		listen func(t *testing.T, url string) *http.Request
		// relay is what is subscribed to at the backend for this client alone; empty for nothing.
		relay string
		want  []string
	}{
		"a subscription at a backend without sessions opens nothing there": {
			era:    backend.Modern,
			listen: subscribed(`{"toolsListChanged":true}`),
			want:   []string{translate.Acknowledged, translate.ToolsListChanged, ""},
		},
		"a subscription to a resource too is relayed for that alone": {
			era:    backend.Modern,
			listen: subscribed(`{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}`),
			relay:  `{"resourceSubscriptions":["a:b"]}`,
			want:   []string{translate.Acknowledged, translate.ToolsListChanged, ""},
		},
		"a subscription at a backend with sessions hears that of its caller": {
			era:    backend.Legacy,
			listen: subscribed(`{"toolsListChanged":true}`),
			relay:  "everything",
			want:   []string{translate.Acknowledged, translate.ToolsListChanged, ""},
		},
		"a session at a backend of its own protocol version": {
			era: backend.Legacy, listen: streaming, relay: "everything", want: []string{translate.ToolsListChanged},
		},
		"a session at a backend without sessions": {
			era: backend.Modern, listen: streaming, want: []string{translate.ToolsListChanged},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTeller(tc.era)
			f, _, url := endpoint(t, b)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go f.Watch(ctx, f.state.Load().Backends[0])
			streams := []told{<-b.streams}
			methods, end := hear(t, f, tc.listen(t, url))
			if tc.relay != "" {
				streams = append(streams, <-b.streams)
				if got := streams[1].filter(); got != tc.relay {
					t.Errorf("subscribed to is %s, want %s", got, tc.relay)
				}
			}
			if tc.want[0] != translate.Acknowledged {
				await(t, func() bool { return hasTold(f) }) // what changes before that it may tell of too
			}
			b.grow()
			for _, s := range streams {
				if !strings.Contains(s.filter(), "resourceSubscriptions") {
					s.changed(t)
				}
			}
			var got []string
			for method := range methods {
				if got = append(got, method); method == translate.ToolsListChanged {
					// Not before the gateway knows of it too: it may have told once more.
					await(t, func() bool { return len(f.view.Load().Backends()[0].Tools) == 1 })
					f.swapping.Lock()
					end()
					f.swapping.Unlock()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("heard (-want +got):\n%s", diff)
			}
			if n := len(b.streams); n != 0 {
				t.Errorf("%d more streams were opened at the backend", n)
			}
		})
	}
}

// await waits until something holds.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			return
		}
	}
}

func TestABackendIsHeardWhileItIsLookedAt(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	synctest.Test(t, func(t *testing.T) {
		b := newTeller(backend.Modern)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		live := NewBackend(table.Backend{Name: "b"}, b)
		go f.Watch(ctx, live)
		s := <-b.streams
		<-time.After(2 * settle)
		for range 50 { // a change every 20 ms, for a second
			b.grow()
			s.changed(t)
			<-time.After(20 * time.Millisecond)
		}
		<-time.After(pollInterval)
		synctest.Wait()
		if got := len(live.source().Catalog.Entries[0]); got != 50 {
			t.Errorf("%d of 50 changes are known", got)
		}
		if n := b.listed(); n < 4 || n > 10 {
			t.Errorf("the tools were listed %d times", n)
		}
		if len(b.streams) != 0 {
			t.Error("the stream was opened anew")
		}
	})
}

func TestWhatChangesBeforeTheStreamIsOpenIsKnownAfterIt(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	synctest.Test(t, func(t *testing.T) {
		b := newTeller(backend.Legacy)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		live := NewBackend(table.Backend{Name: "b"}, b)
		go f.Watch(ctx, live)
		<-b.streams
		b.grow() // and nobody is told
		<-time.After(2 * settle)
		synctest.Wait()
		if got := len(live.source().Catalog.Entries[0]); got != 1 {
			t.Errorf("%d tools are known, want 1", got)
		}
	})
}

func TestAStreamGoesOnWhenABackendSpeaksOtherVersions(t *testing.T) {
	t.Parallel()
	b := newTeller(backend.Modern)
	f, _, url := endpoint(t, b)
	live := f.state.Load().Backends[0]
	f.learn(live, &backend.Description{Modern: true}, nil, nil, false)
	methods, _ := hear(t, f, listening(t, url, `{"toolsListChanged":true}`))
	if got := <-methods; got != translate.Acknowledged {
		t.Fatalf("heard %s", got)
	}
	f.learn(live, &backend.Description{Modern: true}, nil, nil, false)
	if len(b.streams) != 0 {
		t.Error("what is described as before is listened to")
	}
	b.turn(backend.Legacy)
	f.learn(live, &backend.Description{Legacy: true}, nil, nil, false)
	(<-b.streams).changed(t) // it may have a session for the caller alone now, and is heard in it
	if got := <-methods; got != translate.ToolsListChanged {
		t.Errorf("heard %s", got)
	}
}

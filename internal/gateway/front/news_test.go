package front

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/auth"
	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// soon is what comes next, or "nothing" if that takes too long.
func soon(methods <-chan string) string {
	select {
	case method, ok := <-methods:
		if !ok {
			return "the end"
		}
		return method
	case <-time.After(10 * time.Second):
		return "nothing"
	}
}

// opened is the next stream that is opened at a backend.
func opened(t *testing.T, b *teller) told {
	t.Helper()
	select {
	case s := <-b.streams:
		return s
	case <-time.After(10 * time.Second):
		t.Fatal("no stream is opened at the backend")
		return told{}
	}
}

// offering is a catalog of these tools.
func offering(t *testing.T, tools int) *catalog.Catalog {
	t.Helper()
	b := newTeller(backend.Modern)
	b.tools = tools
	c, err := catalog.Fetch(t.Context(), b, catalog.Options{Capabilities: json.RawMessage(`{"tools":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAStreamLivesThroughTablesAndTellsOfWhatTheyChange(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]func(t *testing.T, url string) *http.Request{
		"2025-11-25": streaming, "2026-07-28": subscribed(`{"toolsListChanged":true}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := newTeller(backend.Modern), newTeller(backend.Modern)
			f, state, url := endpoint(t, first)
			one := f.state.Load().Backends[0]
			f.learn(one, &backend.Description{Modern: true}, offering(t, 1), nil, false)
			methods, _ := hear(t, f, listen(t, url))
			if name == "2026-07-28" {
				if got := soon(methods); got != translate.Acknowledged {
					t.Fatalf("heard %s", got)
				}
			}
			await(t, func() bool { f.hub.mu.Lock(); defer f.hub.mu.Unlock(); return len(f.hub.listeners) == 1 })
			use := func(backends ...*Backend) {
				s := state(table.Backend{Name: "b"})
				s.Backends, s.Table.Backends = backends, nil
				for _, b := range backends {
					s.Table.Backends = append(s.Table.Backends, b.Config)
				}
				f.Use(s)
			}
			added := NewBackend(table.Backend{Name: "added", Prefix: "added_"}, second)
			use(one, added)
			f.learn(added, &backend.Description{Modern: true}, offering(t, 2), nil, false)
			if got := soon(methods); got != translate.ToolsListChanged {
				t.Fatalf("a backend was added: heard %s", got)
			}
			without := added.With(table.Backend{Name: "added", Prefix: "added_", Tools: table.ToolPolicy{Deny: []string{"t0"}}})
			use(one, without)
			if got := soon(methods); got != translate.ToolsListChanged {
				t.Fatalf("a tool was taken away: heard %s", got)
			}
			use(without)
			if got := soon(methods); got != translate.ToolsListChanged {
				t.Fatalf("a backend was taken away: heard %s", got)
			}
			f.learn(without, &backend.Description{Modern: true}, offering(t, 3), nil, true)
			if got := soon(methods); got != translate.ToolsListChanged {
				t.Fatalf("the backend that is left has changed: heard %s", got)
			}
		})
	}
}

func TestWhatALoneBackendListsBeyondItsCatalogIsNewsToo(t *testing.T) {
	t.Parallel()
	b := newTeller(backend.Modern)
	f, _, url := endpoint(t, b)
	live := f.state.Load().Backends[0]
	cut := offering(t, 1)
	cut.Truncated = []string{"tools/list"}
	f.learn(live, &backend.Description{Modern: true}, cut, nil, false)
	methods, _ := hear(t, f, listening(t, url, `{"toolsListChanged":true,"resourcesListChanged":true}`))
	if got := soon(methods); got != translate.Acknowledged {
		t.Fatalf("heard %s", got)
	}
	f.learn(live, &backend.Description{Modern: true}, cut, nil, false)
	if len(methods) != 0 {
		t.Errorf("the backend told of nothing, and %s is told", soon(methods))
	}
	f.learn(live, &backend.Description{Modern: true}, cut, nil, true)
	if got := soon(methods); got != translate.ToolsListChanged {
		t.Errorf("heard %s", got)
	}
}

func TestAStreamIsRelayedToByTheBackendsOfTheTableInUse(t *testing.T) {
	t.Parallel()
	first, second := newTeller(backend.Legacy), newTeller(backend.Modern)
	f, state, url := endpoint(t, first)
	live := f.state.Load().Backends[0]
	methods, _ := hear(t, f, listening(t, url, `{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}`))
	if got := soon(methods); got != translate.Acknowledged {
		t.Fatalf("heard %s", got)
	}
	before := opened(t, first)
	before.changed(t)
	if got := soon(methods); got != translate.ToolsListChanged {
		t.Fatalf("heard %s", got)
	}
	same := state(live.Config)
	same.Backends = []*Backend{live.With(table.Backend{Name: "b", Tools: table.ToolPolicy{Deny: []string{"x"}}})}
	f.Use(same)
	next := state(table.Backend{Name: "b"})
	next.Backends = []*Backend{NewBackend(table.Backend{Name: "b"}, second)}
	f.Use(next)
	after := opened(t, second)
	if len(first.streams) != 0 {
		t.Error("another policy had the stream at the backend opened again")
	}
	if got := after.filter(); got != `{"resourceSubscriptions":["a:b"]}` && got != `{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}` {
		t.Errorf("of the other server is asked for %s", got)
	}
	select {
	case <-before.over:
	case <-time.After(10 * time.Second):
		t.Error("the server that is gone is still listened to")
	}
	after.updated(t, "a:b")
	if got := soon(methods); got != translate.ResourceUpdated {
		t.Errorf("heard %s", got)
	}
}

func TestAStreamEndsWhenItsCallerWouldNotBeLetInAnyMore(t *testing.T) {
	t.Parallel()
	b := newTeller(backend.Modern)
	f, state, url := endpoint(t, b)
	methods, _ := hear(t, f, listening(t, url, `{"toolsListChanged":true}`))
	if got := soon(methods); got != translate.Acknowledged {
		t.Fatalf("heard %s", got)
	}
	other := state(table.Backend{Name: "b"})
	other.Table.Endpoint.PublicURL = "https://mcp.example.com/mcp" // a token would have to name it, and here there are none
	f.Use(other)
	for i := range 3 {
		f.learn(other.Backends[0], &backend.Description{Modern: true}, offering(t, 1+i), nil, false)
		if got := soon(methods); got != translate.ToolsListChanged {
			t.Fatalf("its caller is still let in, and it heard %s", got)
		}
	}
	closed := state(table.Backend{Name: "b"})
	closed.Table.Auth = table.Auth{
		Type: table.AuthTokens, Audiences: []string{"https://mcp.example.com/mcp"},
		OIDC: []table.OIDC{{Issuer: "https://issuer.example.com"}},
	}
	var err error
	if closed.Verifier, err = auth.New(t.Context(), closed.Table.Auth, auth.Options{Path: table.DefaultPath}, nil); err != nil {
		t.Fatal(err)
	}
	closed.Backends = other.Backends
	f.Use(closed)
	if got := soon(methods); got != "" && got != "the end" { // a subscription ends with a result, which has no method
		t.Errorf("its caller is not let in any more, and it heard %s", got)
	}
}

// hasTold says whether the stream of the one session has told of the lists as they are now, and so is done with its beginning.
func hasTold(f *Front) bool {
	f.sessions.mu.Lock()
	defer f.sessions.mu.Unlock()
	now, told := f.view.Load().Mark(), false
	for _, s := range f.sessions.byKey {
		s.mu.Lock()
		told = s.seen != nil && *s.seen == now
		s.mu.Unlock()
	}
	return told
}

func TestASessionIsToldOnItsNextStreamOfWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newTeller(backend.Modern)
	f, _, url := endpoint(t, b)
	live := f.state.Load().Backends[0]
	f.learn(live, &backend.Description{Modern: true}, offering(t, 1), nil, false)
	request := streaming(t, url)
	stream := func() (methods <-chan string, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		methods, _ = hear(t, f, request.Clone(ctx))
		return methods, func() {
			cancel()
			await(t, func() bool { f.hub.mu.Lock(); defer f.hub.mu.Unlock(); return len(f.hub.listeners) == 0 })
		}
	}
	_, leave := stream()
	leave()
	f.learn(live, &backend.Description{Modern: true}, offering(t, 2), nil, true)
	for _, where := range []string{"at the same replica", "at another one"} {
		methods, leave := stream()
		if got := soon(methods); got != translate.ToolsListChanged {
			t.Errorf("%s it heard %s", where, got)
		}
		await(t, func() bool { return hasTold(f) })
		leave()
		if methods, leave = stream(); len(methods) != 0 {
			t.Errorf("%s it is told twice", where)
		}
		leave()
		await(t, func() bool { // as if it had never been here
			f.sessions.expire(time.Now().Add(time.Hour)) // unless it is still in use
			return f.sessions.count() == 0
		})
	}
}

// subscribing subscribes the session of a stream's request to a resource, or ends that, and waits for the answer.
func subscribing(t *testing.T, stream *http.Request, method, uri string) {
	t.Helper()
	headers := map[string]string{headerSession: stream.Header.Get(headerSession)}
	_, answer := ask(t, http.MethodPost, stream.URL.String(), headers, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{"uri":%q}}`, method, uri))
	if !strings.Contains(answer, `"result":{}`) {
		t.Errorf("%s %s is answered %s", method, uri, answer)
	}
}

func TestWhoeverSubscribedIsHeardAndNothingIsLostMeanwhile(t *testing.T) {
	t.Parallel()
	b := newTeller(backend.Modern)
	f, _, url := endpoint(t, b)
	f.limits.Listing = time.Minute // how long an answer waits to be heard, at most
	f.learn(f.state.Load().Backends[0], &backend.Description{Modern: true}, offering(t, 1), nil, false)
	request := streaming(t, url)
	methods, _ := hear(t, f, request)
	begun := time.Now()
	subscribing(t, request, "resources/subscribe", "a:0")
	open := opened(t, b)
	const changes = 20
	for i := 1; i <= changes; i++ {
		b.acknowledge.Lock() // and the server takes its time
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			subscribing(t, request, "resources/subscribe", fmt.Sprintf("a:%d", i))
		}()
		next := opened(t, b)
		select {
		case <-open.over:
			t.Error("the stream before was ended, and the next is not there yet")
		case <-answered:
			t.Error("the client is told that it is subscribed, and nobody listens")
		default:
		}
		open.updated(t, "a:0")
		if got := soon(methods); got != translate.ResourceUpdated {
			t.Fatalf("heard %s", got)
		}
		b.acknowledge.Unlock()
		<-answered
		<-open.over
		open = next
		open.updated(t, fmt.Sprintf("a:%d", i))
		if got := soon(methods); got != translate.ResourceUpdated {
			t.Fatalf("heard %s", got)
		}
	}
	if took := time.Since(begun); took > f.limits.Listing {
		t.Errorf("%d changes took %s", changes, took)
	}
	subscribing(t, request, "resources/unsubscribe", "a:0")
	open = opened(t, b)
	if strings.Contains(open.filter(), `"a:0"`) {
		t.Errorf("%s is subscribed to", open.filter())
	}
	open.updated(t, "a:0") // it may have been on its way
	open.updated(t, "a:1")
	if got := soon(methods); got != translate.ResourceUpdated || len(methods) != 0 {
		t.Errorf("heard %s and %d more", got, len(methods))
	}
}

func TestASubscriptionThatNobodyAcknowledgesIsAnsweredInTime(t *testing.T) {
	t.Parallel()
	b := newTeller(backend.Modern)
	f, _, url := endpoint(t, b)
	f.limits.Listing = 200 * time.Millisecond
	f.learn(f.state.Load().Backends[0], &backend.Description{Modern: true}, offering(t, 1), nil, false)
	request := streaming(t, url)
	_, _ = hear(t, f, request)
	b.acknowledge.Lock()
	defer b.acknowledge.Unlock()
	begun := time.Now()
	for i := range 3 {
		subscribing(t, request, "resources/subscribe", fmt.Sprintf("a:%d", i))
		if got := opened(t, b).filter(); !strings.Contains(got, fmt.Sprintf("a:%d", i)) {
			t.Errorf("the backend is asked for %s", got)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestASubscriptionIsAcknowledgedWhenItIsHeard(t *testing.T) {
	t.Parallel()
	for name, era := range map[string]backend.Era{"a backend of 2025-11-25": backend.Legacy, "a backend of 2026-07-28": backend.Modern} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTeller(era)
			f, _, url := endpoint(t, b)
			f.limits.Listing = time.Minute
			b.acknowledge.Lock() // by which a backend of 2025-11-25 answers the request to subscribe
			methods, _ := hear(t, f, listening(t, url, `{"resourceSubscriptions":["a:b"]}`))
			stream, told := opened(t, b), make(chan struct{})
			go func() {
				defer close(told)
				stream.updated(t, "a:b") // at once, and before anything is acknowledged
			}()
			select {
			case got := <-methods:
				t.Errorf("heard %s before the backend acknowledged anything", got)
			case <-time.After(100 * time.Millisecond):
			}
			b.acknowledge.Unlock()
			got := []string{soon(methods), soon(methods)}
			if diff := cmp.Diff([]string{translate.Acknowledged, translate.ResourceUpdated}, got); diff != "" {
				t.Errorf("heard (-want +got):\n%s", diff)
			}
			<-told
		})
	}
}

// updated tells that a resource has changed.
func (s told) updated(t *testing.T, uri string) {
	t.Helper()
	if err := s.sink.Message(wire.NewNotification(translate.ResourceUpdated, json.RawMessage(`{"uri":`+string(wire.Quote(uri))+`}`))); err != nil {
		t.Error(err)
	}
}

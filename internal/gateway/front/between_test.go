package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// unheard is a server that asks something during each call, and takes no answer.
func unheard() *acting {
	return &acting{
		late: late{from: time.Now()},
		call: func(_ context.Context, _ *backend.Call, s backend.Sink) error {
			return s.Message(wire.NewRequest(json.RawMessage(`1`), "ping", nil))
		},
		send: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour): // by which it is found to hang
			}
			return ctx.Err()
		},
	}
}

func TestABackendThatTakesNoAnswerHoldsUpNobodyForLong(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"its caller leaves": true, "its caller waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				y, server := newYoung(t, Limits{}), unheard()
				b := NewBackend(table.Backend{Name: "inc"}, server)
				y.use(ctx, b)
				calling, leave := context.WithCancel(ctx)
				defer leave()
				want := answerTime
				if leaves {
					want = time.Second
					time.AfterFunc(want, leave)
				}
				if _, answer, took := y.asks(calling, "tools/call", "incr"); took != want {
					t.Errorf("the call took %s: %s", took, answer)
				}
				begun := time.Now()
				relaying, end := context.WithTimeout(ctx, want)
				defer end()
				r := &relay{stream: &stream{}, ctx: relaying, backend: b, channel: server.channel()}
				if err := r.ask(wire.NewRequest(json.RawMessage(`1`), "ping", nil)); err == nil || time.Since(begun) != want {
					t.Errorf("the relay took %s: %v", time.Since(begun), err)
				}
			})
		})
	}
}

func TestWhatBeginsInASessionThatHasEndedMeanwhileEndsAtOnce(t *testing.T) {
	t.Parallel()
	r, _ := registryOf(Limits{})
	s := open(r, "1", "a")
	s.finishAll(errOver)
	call, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if !s.begin(`1`, cancel) || context.Cause(call) != errOver { //nolint:errorlint // it is this very cause
		t.Errorf("the call goes on: %v", context.Cause(call))
	}
	stream, end := context.WithCancelCause(t.Context())
	defer end(nil)
	defer s.replaceStream(context.WithValue(stream, endStream{}, end))()
	if context.Cause(stream) != errOver { //nolint:errorlint // it is this very cause
		t.Errorf("the stream goes on: %v", context.Cause(stream))
	}
}

// meanwhile is an answer during whose writing something happens.
type meanwhile struct {
	http.ResponseWriter

	happens func() error
}

func (m meanwhile) Write(p []byte) (int, error) {
	if err := m.happens(); err != nil {
		return 0, err
	}
	return m.ResponseWriter.Write(p)
}

// Flush has nothing to do.
func (meanwhile) Flush() {}

func TestWhatAStreamCouldNotTellTheNextOneTells(t *testing.T) {
	t.Parallel()
	news := catalog.Changes{Tools: true}
	for name, tc := range map[string]struct {
		meanwhile func(t *testing.T, s *session) error
		want      catalog.Changes
	}{
		"it was told":              {func(*testing.T, *session) error { return nil }, catalog.Changes{}},
		"the connection is lost":   {func(*testing.T, *session) error { return io.ErrClosedPipe }, news},
		"the client has come back": {func(t *testing.T, s *session) error { t.Helper(); s.replaceStream(opening(t)); return nil }, news},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYoung(t, Limits{})
				y.use(t.Context())
				registry, _ := registryOf(Limits{})
				s := open(registry, "1", "a")
				s.seen = new(y.view.Load().Mark())
				y.view.Store(catalog.Compile([]catalog.Source{{Backend: table.Backend{Name: "b"}, Catalog: offering(t, 1), State: table.BackendReady}}, 0))
				w := meanwhile{httptest.NewRecorder(), func() error { return tc.meanwhile(t, s) }}
				answer := &reply{acceptance: acceptance{stream: true}, w: w, rc: *http.NewResponseController(w), limits: &y.limits}
				st := newStream(&visit{Front: y.Front}, answer, s)
				ctx := opening(t)
				st.news = y.hub.join(nil, nil)
				s.replaceStream(ctx)
				y.hub.publish(news, false)
				told := make(chan struct{})
				go func() {
					defer close(told)
					st.tell(ctx)
				}()
				synctest.Wait()
				if diff := cmp.Diff(tc.want, s.unseen(y.view.Load().Mark())); diff != "" {
					t.Errorf("the next stream tells (-want +got):\n%s", diff)
				}
				s.replaceStream(opening(t))
				<-told
			})
		})
	}
}

// opening is the context of a stream that is opened.
func opening(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	return context.WithValue(ctx, endStream{}, cancel)
}

func TestABackendThatHasMovedIsNotTakenToOfferNoStreamBecauseItsOldPlaceDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEars()
		relayed, stop := context.WithCancel(t.Context())
		stop() // and the relay of the old place was about to say so
		e.deafen(relayed, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if e.await(ctx, "b", "a:b"); ctx.Err() == nil {
			t.Error("nobody waits until the resource is heard at the new place")
		}
	})
}

func TestACancellationIsHeardWhileItIsFoundOutWhoServesWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYoung(t, Limits{})
		b := NewBackend(table.Backend{Name: "inc", Prefix: "h_"}, &late{})
		y.use(t.Context()) // which has none to watch
		request, err := wire.Parse([]byte(calling), wire.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		v := &visit{Front: y.Front, state: y.state.Load(), w: w, r: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)}
		answer := &reply{acceptance: acceptance{json: true}, w: w, rc: *http.NewResponseController(w), limits: &y.limits}
		x := &exchange{visit: v, reply: answer, request: request}
		ctx, cancel := context.WithCancelCause(t.Context())
		found := x.await(ctx, b, catalog.Tools, "h_incr", func() bool {
			cancel(errCancelled)
			return true
		})
		if got := y.outcome(t); found || got != "cancelled" {
			t.Errorf("it is sent: %v, audited %q: %s", found, got, w.Body.String())
		}
	})
}

// regional is a server whose tool wants an argument as a header too, and that answers with that.
type regional struct{ late }

func (r *regional) Modern(context.Context) (backend.Channel, error) {
	return regionalChannel{lateChannel{modernChannel{&r.calm}}}, nil
}

type regionalChannel struct{ lateChannel }

func (regionalChannel) Call(_ context.Context, call *backend.Call, s backend.Sink) error {
	result := `{"region":` + string(wire.Quote(call.Headers["Mcp-Param-Region"])) + `}`
	if call.Message.Method == "tools/list" {
		result = `{"tools":[{"name":"incr","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`
	}
	return s.Response(bytes.NewReader(wire.NewResult(call.Message.ID, json.RawMessage(result)).Raw))
}

// incrementing is a call of the tool by a client of 2026-07-28.
func incrementing(t *testing.T) *http.Request {
	t.Helper()
	meta := `"_meta":{"` + wire.MetaProtocolVersion + `":"2026-07-28","` + wire.MetaClientCapabilities + `":{}}`
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"incr","arguments":{"region":"eu"},` + meta + `}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, table.DefaultPath, strings.NewReader(body))
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", headerVersion: wire.Version20260728,
		"Mcp-Method": "tools/call", "Mcp-Name": "incr", "Mcp-Param-Region": "eu",
	} {
		r.Header.Set(header, value)
	}
	return r
}

// TestACallIsRoutedAndWrittenByOneCatalog: by whichever, the one that has the tool or the one that has nothing yet, the header is there.
func TestACallIsRoutedAndWrittenByOneCatalog(t *testing.T) {
	t.Parallel()
	y, server := newYoung(t, Limits{}), &regional{late{from: time.Now()}}
	b := NewBackend(table.Backend{Name: "inc"}, server)
	endpoint := table.Endpoint{Path: table.DefaultPath}
	y.Use(&State{Table: &table.Table{Endpoint: endpoint, Backends: []table.Backend{b.Config}}, Verifier: y.verifier, Backends: []*Backend{b}})
	channel, err := server.Modern(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	offers, err := catalog.Fetch(t.Context(), channel, catalog.Options{Capabilities: json.RawMessage(`{"tools":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	before := y.view.Load()
	after := catalog.Compile([]catalog.Source{{Backend: b.Config, Catalog: offers, State: table.BackendReady}}, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			y.view.Store(after)
			y.view.Store(before)
		}
	}()
	for range 2000 {
		w := httptest.NewRecorder()
		if y.ServeHTTP(w, incrementing(t)); !strings.Contains(w.Body.String(), `"region":"eu"`) {
			t.Fatalf("answered %s", w.Body.String())
		}
	}
}

// endless is read until the call is given up.
type endless struct {
	context.Context //nolint:containedctx // of the call
}

func (e endless) Read(p []byte) (int, error) {
	if e.Err() != nil {
		return 0, &backend.Error{Backend: "inc", Class: "Timeout", Sent: true, Err: context.Cause(e)}
	}
	clear(p)
	return len(p), nil
}

// stalling says nothing more, until the call is given up.
type stalling struct{ endless }

func (s stalling) Read(p []byte) (int, error) {
	<-s.Done()
	return s.endless.Read(p)
}

func TestABackendHangsIfItStallsAndNotIfItsCallerDoes(t *testing.T) {
	t.Parallel()
	type act = func(ctx context.Context, call *backend.Call, s backend.Sink) error
	says := func(beginning string) act {
		return func(ctx context.Context, _ *backend.Call, s backend.Sink) error {
			return s.Response(io.MultiReader(strings.NewReader(beginning), stalling{endless{ctx}}))
		}
	}
	slowly := func() error { <-time.After(time.Hour); return nil }
	atOnce := func() error { return nil }
	for name, tc := range map[string]struct {
		call   act
		caller func() error
		// begun says that the response was, so that it is cut.
		begun bool
		want  int
	}{
		"its caller does not read its response": {
			func(ctx context.Context, _ *backend.Call, s backend.Sink) error { return s.Response(endless{ctx}) }, slowly, true, 0,
		},
		"its caller does not read what comes before it": {func(ctx context.Context, call *backend.Call, s backend.Sink) error {
			return errors.Join(s.Message(wire.NewNotification("notifications/progress", nil)), says("")(ctx, call, s))
		}, slowly, true, 0},
		"it says nothing":                        {says(""), atOnce, true, hanging},
		"it stalls after the beginning":          {says(`{"jsonrpc":`), atOnce, true, hanging},
		"it stalls after more than is looked at": {says(strings.Repeat(" ", 2*peeked)), atOnce, true, hanging},
		"it stalls, and its caller reads slowly": {says(strings.Repeat(" ", 2*peeked)), func() error { <-time.After(time.Second); return nil }, true, hanging},
		"it stalls after what comes before the response": {func(ctx context.Context, _ *backend.Call, s backend.Sink) error {
			_ = s.Message(wire.NewNotification("notifications/progress", nil))
			_, err := stalling{endless{ctx}}.Read(nil)
			return err
		}, atOnce, false, hanging},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				// No keep-alive comes between: it would wait for a lock, on which no bubble does.
				y := newYoung(t, Limits{KeepAlive: 100 * time.Hour})
				b := NewBackend(table.Backend{Name: "inc"}, &acting{late: late{from: time.Now()}, call: tc.call})
				y.use(ctx, b)
				synctest.Wait()
				for range hanging {
					func() {
						defer func() {
							if got := recover(); (got == http.ErrAbortHandler) != tc.begun { //nolint:errorlint // it is this very value
								t.Errorf("half an answer passes for a whole one: %v", got)
							}
						}()
						request := incrementing(t)
						request.Header.Set("Accept", "application/json, text/event-stream")
						y.ServeHTTP(meanwhile{httptest.NewRecorder(), tc.caller}, request)
					}()
				}
				if b.gate.late != tc.want {
					t.Errorf("%d calls count as not answered, want %d", b.gate.late, tc.want)
				}
			})
		})
	}
}

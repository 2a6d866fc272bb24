package front

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// losing is a backend whose sessions are lost by the first call of each, and the channel of it.
type losing struct {
	silent

	// call is the first call in a session.
	call          func(backend.Sink) error
	calls, opened atomic.Int64
	closed        chan string
}

// losingChannel is a session of a losing.
type losingChannel struct {
	*losing

	id string
}

func (l *losing) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	id := "s" + string(rune('0'+l.opened.Add(1)))
	return &losingChannel{l, id}, backend.Handle{Session: id, Version: "2025-11-25"}, nil
}

func (l *losing) Resume(h backend.Handle) (backend.Channel, error) {
	return &losingChannel{l, h.Session}, nil
}

func (c *losingChannel) Call(_ context.Context, call *backend.Call, s backend.Sink) error {
	if c.calls.Add(1) == 1 && c.call != nil {
		return c.call(s)
	}
	return s.Response(strings.NewReader(string(wire.NewResult(call.Message.ID, []byte(`{"content":[]}`)).Raw)))
}

func (c *losingChannel) Send(context.Context, *wire.Message) error { return c.lostSession(false) }

func (c *losingChannel) Close(context.Context) error {
	c.closed <- c.id
	return nil
}

func (l *losing) lostSession(sent bool) error {
	return &backend.Error{Backend: "b", Class: "NotFound", Sent: sent, Err: backend.ErrSession}
}

func TestACallIsSentAgainOnlyIfItWasNotSent(t *testing.T) {
	t.Parallel()
	progress := wire.NewNotification("notifications/progress", []byte(`{"progressToken":1}`))
	for name, tc := range map[string]struct {
		call  func(*losing, backend.Sink) error
		calls int64
	}{
		"the session was lost before":              {func(l *losing, _ backend.Sink) error { return l.lostSession(false) }, 2},
		"the session was lost, says a child":       {func(*losing, backend.Sink) error { return backend.ErrSession }, 2},
		"the session was lost with the call in it": {func(l *losing, _ backend.Sink) error { return l.lostSession(true) }, 1},
		"a request about the call cannot be answered": {func(_ *losing, s backend.Sink) error {
			return s.Message(wire.NewRequest([]byte(`1`), "ping", nil))
		}, 1},
		"the call was heard of before": {func(l *losing, s backend.Sink) error {
			if err := s.Message(progress); err != nil {
				return err
			}
			return l.lostSession(false)
		}, 1},
		"the call was heard of before, says a child": {func(_ *losing, s backend.Sink) error {
			if err := s.Message(progress); err != nil {
				return err
			}
			return backend.ErrSession
		}, 1},
		"the response broke off": {func(l *losing, s backend.Sink) error {
			_ = s.Response(strings.NewReader(""))
			return l.lostSession(false)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &losing{closed: make(chan string, 10)}
			b.call = func(s backend.Sink) error { return tc.call(b, s) }
			_, _, url := endpoint(t, b)
			session, _ := ask(t, http.MethodPost, url, nil, initializing)
			_, answer := exchangeOf(t, url, session)
			if calls := b.calls.Load(); calls != tc.calls {
				t.Errorf("called %d times, want %d", calls, tc.calls)
			}
			if told := strings.Contains(answer, `"sent":true`); told != (tc.calls == 1) && answer != "" {
				t.Errorf("answered %s", answer)
			}
			if strings.Contains(answer, "safe to try again") {
				t.Errorf("answered %s", answer)
			}
		})
	}
}

// exchangeOf calls a tool, whose answer may break off.
func exchangeOf(t *testing.T, url, session string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(calling))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(headerSession, session)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	content := new(strings.Builder)
	_ = response.Write(content)
	return response.StatusCode, content.String()
}

func TestASessionThatAnotherReplicaMayUseIsEndedByItsClientAlone(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(*Front){
		"it was idle": func(f *Front) { f.sessions.expire(time.Now().Add(time.Hour)) },
		"it is here":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &losing{closed: make(chan string, 10)}
			f, _, url := endpoint(t, b)
			forgotten := func() bool {
				if forget == nil {
					return true
				}
				forget(f) // unless it is still in use
				return f.sessions.count() == 0
			}
			session, _ := ask(t, http.MethodPost, url, nil, initializing)
			await(t, forgotten)
			headers := map[string]string{headerSession: session}
			if _, answer := ask(t, http.MethodPost, url, headers, calling); !strings.Contains(answer, `"content"`) || b.opened.Load() != 1 {
				t.Errorf("in session %d of the backend's: %s", b.opened.Load(), answer)
			}
			await(t, forgotten)
			ask(t, http.MethodDelete, url, headers, "")
			if got := <-b.closed; got != "s1" || len(b.closed) > 0 || b.opened.Load() != 1 {
				t.Errorf("%s was closed, and %d more; %d were opened", got, len(b.closed), b.opened.Load())
			}
		})
	}
}

// TestASessionThatMakesRoomForAnotherEndsAtItsBackend: a caller that ends none has no more of them there than here.
func TestASessionThatMakesRoomForAnotherEndsAtItsBackend(t *testing.T) {
	t.Parallel()
	b := &losing{closed: make(chan string, 10)}
	f, _, url := endpoint(t, b)
	f.sessions.limits.Sessions = 1
	ask(t, http.MethodPost, url, nil, initializing)
	await(t, func() bool { return f.sessions.admit(theCaller(f)) }) // unless it is still in use
	if got := <-b.closed; got != "s1" || f.sessions.count() != 0 {
		t.Errorf("%s was closed, and %d sessions are kept", got, f.sessions.count())
	}
}

// theCaller is the one whose sessions are remembered.
func theCaller(f *Front) string {
	f.sessions.mu.Lock()
	defer f.sessions.mu.Unlock()
	for caller := range f.sessions.callers {
		return caller
	}
	return ""
}

func TestASessionThatNobodyElseKnowsOfEndsWhenItIsForgotten(t *testing.T) {
	t.Parallel()
	b := &losing{closed: make(chan string, 10)}
	b.call = func(backend.Sink) error { return b.lostSession(false) }
	f, _, url := endpoint(t, b)
	session, _ := ask(t, http.MethodPost, url, nil, initializing)
	if _, answer := ask(t, http.MethodPost, url, map[string]string{headerSession: session}, calling); !strings.Contains(answer, `"content"`) {
		t.Fatal(answer)
	}
	await(t, func() bool {
		f.sessions.expire(time.Now().Add(time.Hour))
		return f.sessions.count() == 0
	})
	if diff := cmp.Diff("s2", <-b.closed); diff != "" {
		t.Errorf("closed -want +got:\n%s", diff)
	}
}

package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestWhoSharesAProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sessions     Sessions
		capabilities string
		own          bool
		told         string // to the child
	}{
		{Auto, `{}`, false, `{}`},
		{Auto, ``, false, `{}`},
		{Auto, `{"experimental":{"x":{}}}`, false, `{}`},
		{Auto, `{"sampling":null}`, false, `{}`},
		{Auto, `{"sampling":{}}`, true, `{"sampling":{}}`},
		{Auto, `{"elicitation":{"url":{}}}`, true, `{"elicitation":{"url":{}}}`},
		{Auto, `{"roots":{"listChanged":true}}`, true, `{"roots":{"listChanged":true}}`},
		{Stateful, `{}`, true, `{}`},
		{Stateful, `{"sampling":{}}`, true, `{"sampling":{}}`},
		{Stateless, `{"sampling":{}}`, false, `{}`},
	} {
		t.Run(fmt.Sprintf("%s %s", c.sessions, c.capabilities), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, script{Legacy: true}, func(o *Options) { o.Sessions = c.sessions })
			one, other := r.session(c.capabilities), r.session(c.capabilities)
			if own := r.call(one, "pid", "") != r.call(other, "pid", ""); own != c.own {
				t.Errorf("processes of their own: %t", own)
			}
			if got := r.call(one, "capabilities", ""); got != c.told {
				t.Errorf("the child was told %s, want %s", got, c.told)
			}
		})
	}
}

func TestBeyondTheMostChildrenASessionSharesAndIsNotAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, func(o *Options) { o.MaxChildren = 1 })
	first := r.session(`{"sampling":{}}`)
	r.hold(first)
	second := r.session(`{"sampling":{}}`)
	if got := r.call(second, "capabilities", ""); got != `{}` {
		t.Errorf("the shared child was told %s", got)
	}
	if err := first.Close(r.context()); err != nil {
		t.Fatal(err)
	}
	if got := r.call(r.session(`{"sampling":{}}`), "capabilities", ""); got != `{"sampling":{}}` {
		t.Errorf("after the first has ended, the child was told %s", got)
	}
}

func TestAnIdleSessionMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, func(o *Options) { o.MaxChildren = 1 })
	first := r.session(`{"sampling":{}}`)
	second := r.session(`{"sampling":{}}`)
	if got := r.call(second, "capabilities", ""); got != `{"sampling":{}}` {
		t.Errorf("the child was told %s", got)
	}
	if err := first.Call(r.context(), tool("1", "echo", ""), newRecorder()); !errors.Is(err, backend.ErrSession) {
		t.Errorf("a call in the session that made room: %v", err)
	}
}

func TestBeyondTheMostChildrenAStatefulSessionIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, func(o *Options) { o.MaxChildren, o.Sessions = 1, Stateful })
	r.session(`{}`)
	_, _, err := r.Open(r.context(), backend.Client{})
	wantClass(t, err, "ServerError", false)
}

func TestASessionIsKnownUntilItEnds(t *testing.T) {
	t.Parallel()
	for _, capabilities := range []string{`{}`, `{"roots":{}}`} {
		r := newRig(t, script{Legacy: true}, nil)
		channel, handle, err := r.Open(r.context(), backend.Client{Capabilities: json.RawMessage(capabilities), Version: "2025-06-18"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Resume(handle)
		if err != nil {
			t.Fatal(err)
		}
		r.call(again, "echo", "")
		if _, err := r.Resume(backend.Handle{Session: handle.Session + "x"}); !errors.Is(err, backend.ErrSession) {
			t.Errorf("an unknown session: %v", err)
		}
		if err := channel.Close(r.context()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Resume(handle); !errors.Is(err, backend.ErrSession) {
			t.Errorf("after the end: %v", err)
		}
		if err := again.Call(r.context(), tool("1", "echo", ""), newRecorder()); !errors.Is(err, backend.ErrSession) {
			t.Errorf("a call after the end: %v", err)
		}
	}
}

func TestIdleSessionsEndAndUsedOnesDoNot(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, func(o *Options) { o.IdleTimeout = testPatience })
	_, idle, err := r.Open(r.context(), backend.Client{Capabilities: json.RawMessage(`{"roots":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	used, handle, err := r.Open(r.context(), backend.Client{Capabilities: json.RawMessage(`{"roots":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	r.hold(used)
	for _, id := range []string{idle.Session, handle.Session} {
		s := r.sessions.find(id)
		s.mu.Lock()
		s.used = s.used.Add(-2 * r.options.IdleTimeout)
		s.mu.Unlock()
	}
	eventually(t, "the idle one ends, and its process", func() bool {
		_, err := r.Resume(idle)
		return errors.Is(err, backend.ErrSession) && r.Status().Running == 2
	})
	if _, err := r.Resume(handle); err != nil {
		t.Errorf("the session in use ended: %v", err)
	}
}

func TestTheNumberOfSessionsIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, func(o *Options) { o.MaxSessions = 10 })
	var handles []backend.Handle
	for range 50 {
		_, h, err := r.Open(r.context(), backend.Client{})
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	known := 0
	for _, h := range handles {
		if _, err := r.Resume(h); err == nil {
			known++
		}
	}
	if _, err := r.Resume(handles[49]); known != 10 || err != nil {
		t.Errorf("%d of 50 sessions are known, the last one: %v", known, err)
	}
}

func TestASharedProcessTellsClientsOnlyWhatIsTheirs(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	subscriber, other := r.session(`{}`), r.session(`{}`)
	streams := map[backend.Channel]*recorder{subscriber: newRecorder(), other: newRecorder()}
	for channel, got := range streams {
		go func() { _ = channel.Listen(t.Context(), nil, got) }()
		listens(t, channel)
	}
	if err := subscriber.Call(r.context(), request("1", "resources/subscribe", `{"uri":"test://a"}`), newRecorder()); err != nil {
		t.Fatal(err)
	}
	calling := newRecorder()
	for _, name := range []string{"log", "updated", "changed"} {
		if err := other.Call(r.context(), tool("1", name, `{"text":"private","uri":"test://a/part"}`), calling); err != nil {
			t.Fatal(err)
		}
	}
	changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`
	updated := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a/part"}}`
	for channel, want := range map[backend.Channel][]string{subscriber: {updated, changed}, other: {changed}} {
		for range want {
			streams[channel].next(t)
		}
		if diff := cmp.Diff(want, streams[channel].got()); diff != "" {
			t.Error(diff)
		}
	}
	if got := calling.got(); len(got) != 0 {
		t.Errorf("on the stream of a call: %s", got)
	}
}

// listens waits for the stream of a session to be open.
func listens(t *testing.T, c backend.Channel) {
	t.Helper()
	eventually(t, "it listens", func() bool {
		s, ok := c.(*session)
		if !ok {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.streams) > 0
	})
}

func TestWhatWouldBeSetForEverybodyIsNotSet(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	for method, want := range map[string]string{
		"logging/setLevel": `{"jsonrpc":"2.0","id":5,"result":{}}`,
		"tasks/list":       `{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"tasks cannot be listed where clients share a process"}}`,
	} {
		got := newRecorder()
		if err := r.session(`{}`).Call(r.context(), request("5", method, `{"level":"debug"}`), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.response); diff != "" {
			t.Error(diff)
		}
	}
	own := r.session(`{"roots":{}}`)
	if err := own.Call(r.context(), request("5", "logging/setLevel", `{"level":"debug"}`), newRecorder()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`logging/setLevel {"level":"debug"}`}, r.notes("calls")); diff != "" {
		t.Errorf("the children were told: %s", diff)
	}
}

func TestARequestOfASharedProcessIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for name, channel := range shared(r) {
		got := newRecorder()
		if err := channel.Call(r.context(), tool("1", "ask", `{"text":"sampling/createMessage"}`), got); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.response, "-32601") || len(got.got()) != 0 {
			t.Errorf("%s: the child was answered %s, the client was told %s", name, got.response, got.got())
		}
		if err := channel.Call(r.context(), tool("1", "ask", `{"text":"ping"}`), got); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.response, `"result":{}`) {
			t.Errorf("%s: its ping was answered %s", name, got.response)
		}
	}
}

func TestAnOwnProcessAsksItsClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel := r.session(`{"sampling":{}}`)
	for _, answer := range []string{"one", "two"} {
		got := newRecorder()
		got.each = func(m *wire.Message) error {
			if m.Kind != wire.Request || m.Method != "sampling/createMessage" {
				return fmt.Errorf("got %s", m.Raw)
			}
			return channel.Send(t.Context(), wire.NewResult(m.ID, json.RawMessage(fmt.Sprintf("%q", answer))))
		}
		if err := channel.Call(r.context(), tool("1", "ask", `{"text":"sampling/createMessage"}`), got); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.response, `\"result\":\"`+answer) && !strings.Contains(got.response, `"result":"`+answer) {
			t.Errorf("the child was answered %s", got.response)
		}
	}
	// An answer to what nobody asked does not reach the child, which would take it for one to its next request.
	if err := channel.Send(r.context(), wire.NewResult(json.RawMessage("3"), json.RawMessage(`"forged"`))); err != nil {
		t.Fatal(err)
	}
	got := newRecorder()
	got.each = func(m *wire.Message) error { return channel.Send(t.Context(), wire.NewError(m.ID, -1, "no", nil)) }
	if err := channel.Call(r.context(), tool("1", "ask", `{"text":"roots/list"}`), got); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got.response, "forged") {
		t.Errorf("the child was answered %s", got.response)
	}
}

func TestWhereTheMessagesOfAnOwnProcessGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel := r.session(`{"roots":{}}`)
	calling := newRecorder()
	run := func(name string) {
		t.Helper()
		if err := channel.Call(r.context(), tool("1", name, `{"text":"x","uri":"test://a"}`), calling); err != nil {
			t.Fatal(err)
		}
	}
	run("log") // a log message goes with the call, and so does what has no stream
	run("changed")
	stream := newRecorder()
	go func() { _ = channel.Listen(t.Context(), nil, stream) }()
	listens(t, channel)
	run("log")
	run("changed")
	run("updated")
	stream.next(t)
	stream.next(t)
	methods := func(r *recorder) (all []string) {
		for _, raw := range r.got() {
			var m message
			if err := json.Unmarshal([]byte(raw), &m); err != nil {
				t.Error(err)
			}
			all = append(all, m.Method)
		}
		return all
	}
	if diff := cmp.Diff([]string{methodLog, "notifications/tools/list_changed", methodLog}, methods(calling)); diff != "" {
		t.Errorf("with calls: %s", diff)
	}
	if diff := cmp.Diff([]string{"notifications/tools/list_changed", methodUpdated}, methods(stream)); diff != "" {
		t.Errorf("on the stream: %s", diff)
	}
}

func TestTheSessionOfASubjectIsShared(t *testing.T) {
	t.Parallel()
	for _, sessions := range []Sessions{Auto, Stateful} {
		t.Run(string(sessions), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, script{Legacy: true}, func(o *Options) { o.Sessions = sessions })
			open := func(subject string) (pid string, h backend.Handle) {
				t.Helper()
				channel, h, err := r.Shared(r.context(), subject)
				if err != nil {
					t.Fatal(err)
				}
				pid = r.call(channel, "pid", "")
				if err := channel.Close(r.context()); err != nil { // which does nothing
					t.Fatal(err)
				}
				return pid, h
			}
			alice, handle := open("alice")
			if again, h := open("alice"); again != alice || h != handle {
				t.Errorf("the second caller of a subject got %s %v, want %s %v", again, h, alice, handle)
			}
			bob, other := open("bob")
			if other == handle {
				t.Error("two subjects have one session")
			}
			if (bob != alice) != (sessions == Stateful) {
				t.Errorf("%s: subjects have processes %s and %s", sessions, alice, bob)
			}
			own, _ := open("")
			if gateway, _ := open(""); own != gateway || (own == alice) != (sessions == Auto) {
				t.Errorf("the gateway's own session is at %s and %s, alice's at %s", own, gateway, alice)
			}
		})
	}
}

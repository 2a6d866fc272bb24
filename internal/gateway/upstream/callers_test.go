package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func shareOf(t *testing.T, b *Backend, subject string) (backend.Channel, backend.Handle) {
	t.Helper()
	channel, handle, err := b.Shared(testContext(t), subject)
	if err != nil {
		t.Fatal(err)
	}
	return channel, handle
}

func TestASubjectHasOneSharedSession(t *testing.T) {
	r := &recorder{Handler: newScript()}
	b := open(t, serve(t, r).URL)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			channel, handle := shareOf(t, b, []string{"alice", "bob"}[i%2])
			if err := ping(t, channel); err != nil {
				t.Error(err)
			}
			if err := channel.Close(testContext(t)); err != nil {
				t.Error(err)
			}
			if handle.Session == "" {
				t.Error("no handle")
			}
		})
	}
	wg.Wait()
	_, alice := shareOf(t, b, "alice")
	_, bob := shareOf(t, b, "bob")
	if n := len(r.with(`"method":"initialize"`)); n != 3 || alice == bob {
		t.Errorf("%d sessions were opened, one of them by Describe; alice has %v, bob %v", n, alice, bob)
	}
	seen := map[string]bool{}
	for _, q := range r.with(`"method":"ping"`) {
		id := q.header.Get("Mcp-Session-Id") + q.body
		if seen[id] {
			t.Errorf("an id was used twice in a session: %s", id)
		}
		seen[id] = true
	}
}

func TestASharedSessionThatIsLostIsOpenedAnew(t *testing.T) {
	server := newScript()
	b := open(t, serve(t, server).URL)
	channel, before := shareOf(t, b, "alice")
	server.forget()
	if err := ping(t, channel); !errors.Is(err, backend.ErrSession) {
		t.Fatalf("%v", err)
	}
	channel, after := shareOf(t, b, "alice")
	if err := ping(t, channel); err != nil || before == after {
		t.Errorf("%v, %v", after, err)
	}
}

func TestIdleSharedSessionsEnd(t *testing.T) {
	server := newScript()
	b := open(t, serve(t, server).URL, func(_ *table.Backend, o *Options) { o.Limits.SessionIdle = 200 * time.Millisecond })
	channel, _ := shareOf(t, b, "alice")
	eventually(t, "it is ended", func() bool { return server.live() == 0 })
	if err := ping(t, channel); !errors.Is(err, backend.ErrSession) {
		t.Errorf("%v", err)
	}
}

func TestTheSharedSessionUnusedForLongestMakesRoom(t *testing.T) {
	server := newScript()
	b := open(t, serve(t, server).URL, func(_ *table.Backend, o *Options) { o.Limits.Sessions = 3 })
	for i := range 10 {
		shareOf(t, b, fmt.Sprint("subject ", i))
	}
	eventually(t, "three are left", func() bool { return server.live() == 3 })
	if err := b.Close(testContext(t)); err != nil || server.live() != 0 {
		t.Errorf("after Close %d sessions are left: %v", server.live(), err)
	}
}

// TestAllWhoListenHearOneStream also checks that a request of the server's is answered, once, and told to nobody.
func TestAllWhoListenHearOneStream(t *testing.T) {
	joined := make(chan struct{})
	server := newScript()
	server.onGet = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", mediaOfStream)
		_ = http.NewResponseController(w).Flush()
		<-joined
		for _, m := range []string{`{"jsonrpc":"2.0","id":"q","method":"ping"}`, `{"jsonrpc":"2.0","id":"r","method":"roots/list"}`, notification} {
			_, _ = io.WriteString(w, event(m))
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	r := &recorder{Handler: server}
	b := open(t, serve(t, r).URL)
	channel, _ := shareOf(t, b, "alice")
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	heard := make(chan string)
	ended := make(chan error)
	for range 3 {
		go func() {
			ended <- channel.Listen(ctx, nil, &sink{on: func(m *wire.Message) error {
				heard <- m.Method
				return nil
			}})
		}()
	}
	s := channel.(*shared) //nolint:forcetypeassert // it is what Shared returns
	eventually(t, "all listen", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.feed != nil && s.feed.hub.size() == 3
	})
	close(joined)
	for range 3 {
		if got := <-heard; got != "notifications/message" {
			t.Errorf("heard %s", got)
		}
	}
	if n := len(r.with("GET")); n != 1 {
		t.Errorf("%d streams were opened", n)
	}
	eventually(t, "the requests are answered", func() bool { return len(r.with(`"id":"q"`)) == 1 && len(r.with(`"id":"r"`)) == 1 })
	if q := r.with(`"id":"q"`)[0].body; !strings.Contains(q, `"result":{}`) {
		t.Errorf("ping was answered %s", q)
	}
	if q := r.with(`"id":"r"`)[0].body; !strings.Contains(q, `-32601`) {
		t.Errorf("roots/list was answered %s", q)
	}
	cancel()
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestMessagesReachTheCallOnWhoseStreamTheyCome has two callers of one session, each with log messages on its own stream.
func TestMessagesReachTheCallOnWhoseStreamTheyCome(t *testing.T) {
	b := open(t, serve(t, sdkHandlers(sdkServer())["stateful"]).URL)
	channel, _ := shareOf(t, b, "alice")
	if err := channel.Call(testContext(t), request(`1`, "logging/setLevel", `{"level":"debug"}`), &sink{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			var s sink
			text := fmt.Sprintf("of caller %d", i)
			if err := channel.Call(testContext(t), toolCall(`1`, "log", fmt.Sprintf(`{"text":%q}`, text), backend.Legacy), &s); err != nil {
				t.Error(err)
				return
			}
			if len(s.messages) != 1 || !strings.Contains(s.messages[0], text) {
				t.Errorf("%s got %q", text, s.messages)
			}
		})
	}
	wg.Wait()
}

// TestASharedSessionOverSSETellsNobodyWhatMayBeAnothers has log messages on the one stream that all callers share.
func TestASharedSessionOverSSETellsNobodyWhatMayBeAnothers(t *testing.T) {
	b := open(t, serve(t, sdkHandlers(sdkServer())["SSE"]).URL)
	channel, _ := shareOf(t, b, "alice")
	if err := channel.Call(testContext(t), request(`1`, "logging/setLevel", `{"level":"debug"}`), &sink{}); err != nil {
		t.Fatal(err)
	}
	var s, listener sink
	ctx, stop := context.WithCancel(testContext(t))
	ended := make(chan error)
	go func() { ended <- channel.Listen(ctx, nil, &listener) }()
	p := channel.(*shared).channel.(*pipe) //nolint:forcetypeassert // it is what Shared returns here
	eventually(t, "somebody listens", func() bool { return p.hub.size() == 1 })
	if err := channel.Call(testContext(t), toolCall(`1`, "log", `{"text":"secret"}`, backend.Legacy), &s); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil || len(s.messages)+len(listener.messages) != 0 {
		t.Errorf("told %q and %q; %v", s.messages, listener.messages, err)
	}
	own, _ := openSession(t, b)
	if err := own.Call(testContext(t), request(`1`, "logging/setLevel", `{"level":"debug"}`), &sink{}); err != nil {
		t.Fatal(err)
	}
	if err := own.Call(testContext(t), toolCall(`1`, "log", `{"text":"mine"}`, backend.Legacy), &s); err != nil || len(s.messages) != 1 {
		t.Errorf("in a session of its own: %q, %v", s.messages, err)
	}
}

func TestASharedSessionDeclaresNoCapability(t *testing.T) {
	r := &recorder{Handler: newScript()}
	b := open(t, serve(t, r).URL)
	shareOf(t, b, "alice")
	for _, q := range r.with(`"method":"initialize"`) {
		m, err := wire.Parse([]byte(q.body), wire.DefaultLimits)
		if err != nil || string(m.Param("capabilities")) != "{}" {
			t.Errorf("%s, %v", q.body, err)
		}
	}
}

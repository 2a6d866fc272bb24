package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// TestASessionThatIsTakenUpIsNotIdle has each be idle for long, and looked at for that just when it is used again.
func TestASessionThatIsTakenUpIsNotIdle(t *testing.T) {
	t.Parallel()
	longAgo := func() time.Time { return time.Now().Add(-time.Hour) }
	ageShared := func(channel backend.Channel) *shared {
		s := channel.(*shared) //nolint:forcetypeassert // it is what Shared returns
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used = longAgo()
		return s
	}
	agePipe := func(channel backend.Channel) *pipe {
		p := channel.(*pipe) //nolint:forcetypeassert // it is what Open returns here
		p.mu.Lock()
		defer p.mu.Unlock()
		p.used = longAgo()
		return p
	}
	for name, takeUp := range map[string]func(t *testing.T, b *Backend) backend.Channel{
		"that callers share": func(t *testing.T, b *Backend) backend.Channel {
			t.Helper()
			channel, _ := shareOf(t, b, "alice")
			ageShared(channel)
			channel, _ = shareOf(t, b, "alice")
			b.reap()
			return channel
		},
		"over SSE": func(t *testing.T, b *Backend) backend.Channel {
			t.Helper()
			channel, handle := openSession(t, b)
			agePipe(channel)
			channel, err := b.Resume(handle)
			if err != nil {
				t.Fatal(err)
			}
			b.reap()
			return channel
		},
		"over SSE, found idle before": func(t *testing.T, b *Backend) backend.Channel {
			t.Helper()
			channel, handle := openSession(t, b)
			p := agePipe(channel)
			found := time.Now().Add(-time.Minute)
			if !p.lastUse().Before(found) {
				t.Fatal("it is not idle")
			}
			channel, err := b.Resume(handle)
			if err != nil {
				t.Fatal(err)
			}
			p.endIdle(found)
			return channel
		},
		"over SSE, listened to until now": func(t *testing.T, b *Backend) backend.Channel {
			t.Helper()
			channel, _ := openSession(t, b)
			p := agePipe(channel)
			ctx, leave := context.WithCancel(testContext(t))
			ended := make(chan error)
			go func() { ended <- channel.Listen(ctx, nil, &sink{}) }()
			eventually(t, "it is listened to", func() bool { return p.hub.size() == 1 })
			leave()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			b.reap()
			return channel
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, path := http.Handler(newScript()), "/mcp"
			if strings.Contains(name, "SSE") {
				h, path = newPiped(), "/sse"
			}
			b := open(t, serve(t, h).URL+path, func(_ *table.Backend, o *Options) { o.Limits.SessionIdle = 10 * time.Minute })
			channel := takeUp(t, b)
			b.mu.Lock()
			held := len(b.shared) + len(b.pipes)
			b.mu.Unlock()
			if err := ping(t, channel); err != nil || held != 1 {
				t.Errorf("%v; %d sessions are held", err, held)
			}
		})
	}
}

// TestASessionThatIsBeingOpenedMakesNoRoom has another subject come meanwhile: who opens it would be left with what nobody ends.
func TestASessionThatIsBeingOpenedMakesNoRoom(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	var isHeld atomic.Bool
	server := newScript()
	server.on = func(_ http.ResponseWriter, _ *http.Request, m *wire.Message) bool {
		if m.Method == "initialize" && isHeld.CompareAndSwap(true, false) {
			close(asked)
			<-answer
		}
		return false
	}
	b := open(t, serve(t, server).URL, func(_ *table.Backend, o *Options) { o.Limits.Sessions = 1 })
	if _, err := b.Describe(testContext(t)); err != nil {
		t.Fatal(err)
	}
	isHeld.Store(true)
	opened := make(chan backend.Channel, 1)
	go func() {
		channel, _, err := b.Shared(testContext(t), "alice")
		if err != nil {
			t.Error(err)
		}
		opened <- channel
	}()
	<-asked
	shareOf(t, b, "bob")
	b.mu.Lock()
	if b.shared["alice"] == nil {
		t.Error("it is to be ended before it was begun")
	}
	b.mu.Unlock()
	close(answer)
	alice := <-opened
	if err := ping(t, alice); err != nil {
		t.Error(err)
	}
	if err := b.Close(testContext(t)); err != nil || server.live() != 0 {
		t.Errorf("after Close %d sessions are left: %v", server.live(), err)
	}
}

func TestASessionOverSSEThatEndsBeforeItIsKeptLeavesNothing(t *testing.T) {
	t.Parallel()
	b := open(t, serve(t, newPiped()).URL+"/sse")
	b.pods = newPods("pods.example", "80", &b.options)
	p, err := b.dialPipe(testContext(t), "", false)
	if err != nil {
		t.Fatal(err)
	}
	p.address = "10.0.0.1:80"
	p.end(errReplaced)
	p.forget() // as end does beside
	b.keepPipe(p)
	if len(b.pipes) != 0 || len(b.pods.sessions) != 0 {
		t.Errorf("kept are %d, and pods are said to have %v", len(b.pipes), b.pods.sessions)
	}
}

func TestTheEndOfASessionWhosePodWasForgottenLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPods("pods.example", "80", &Options{})
	p.opened("10.0.0.1:80")
	p.closed("10.0.0.1:80")
	p.closed("10.0.0.2:80")
	if len(p.sessions) != 0 {
		t.Errorf("%v", p.sessions)
	}
}

// TestAServerThatAsksBeforeItsGreetingIsOverIsAnswered also lets the race detector look at what the answer is sent by.
func TestAServerThatAsksBeforeItsGreetingIsOverIsAnswered(t *testing.T) {
	t.Parallel()
	const sessions = 20
	p := newPiped()
	answered := make(chan struct{}, sessions+1)
	p.on = func(m *wire.Message) string {
		text := answer(m)
		if m.Method == "initialize" {
			text += event(`{"jsonrpc":"2.0","id":"early","method":"ping"}`)
		}
		if m.Kind == wire.Response && string(m.ID) == `"early"` {
			answered <- struct{}{}
		}
		return text
	}
	b := open(t, serve(t, p).URL+"/sse", func(c *table.Backend, _ *Options) { c.Transport = table.TransportSSE })
	for range sessions {
		if _, handle := openSession(t, b); handle.Version != "2024-11-05" {
			t.Errorf("%+v", handle)
		}
	}
	for range sessions {
		select {
		case <-answered:
		case <-testContext(t).Done():
			t.Fatal("it was not answered")
		}
	}
}

// TestWhoAsksAfterForgetIsToldOfWhatIsThereSince has a server replaced while it is asked what it speaks.
func TestWhoAsksAfterForgetIsToldOfWhatIsThereSince(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	var discovers, greetings atomic.Int64
	server := newScript()
	server.on = func(w http.ResponseWriter, r *http.Request, m *wire.Message) bool {
		switch {
		case m.Method == "server/discover" && discovers.Add(1) == 1:
			close(asked)
			<-answer
		case m.Method == "initialize" && greetings.Add(1) == 1:
			asJSON(greetsAs+`2025-03-26","capabilities":{}}}`)(w, r)
			return true
		}
		return false
	}
	b := open(t, serve(t, server).URL)
	before, after := make(chan error, 1), make(chan *backend.Description, 1)
	go func() {
		_, err := b.Describe(testContext(t))
		before <- err
	}()
	<-asked
	b.Forget()
	go func() {
		d, err := b.Describe(testContext(t))
		if err != nil {
			t.Error(err)
		}
		after <- d
	}()
	close(answer)
	if err := <-before; err != nil {
		t.Errorf("who asked before: %v", err)
	}
	if d := <-after; d == nil || d.Versions[0] != "2025-11-25" || discovers.Load() != 2 {
		t.Errorf("who asked after was told of %+v; the server was asked %d times", d, discovers.Load())
	}
}

// TestWhoWaitsWhenForgetComesIsToldOfTheServer has it come between the end of an attempt and who waited for that.
func TestWhoWaitsWhenForgetComesIsToldOfTheServer(t *testing.T) {
	t.Parallel()
	inBubble(t, newScript(), func(t *testing.T, b *Backend, _ *inMemory) {
		t.Helper()
		running := make(chan struct{})
		b.discovery.running = running
		told := make(chan error)
		go func() {
			_, err := b.Describe(testContext(t))
			told <- err
		}()
		backend.Pause(testContext(t), time.Second) // so that it waits
		b.discovery.mu.Lock()
		b.discovery.running, b.discovery.err = nil, errors.New("refused")
		close(running)
		b.discovery.err = nil // as Forget does
		b.discovery.forgotten++
		b.discovery.mu.Unlock()
		if err := <-told; err != nil {
			t.Error(err)
		}
	})
}

package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// bare is a backend that starts nothing.
func bare(t *testing.T) *Backend {
	t.Helper()
	o := Options{Name: "bare", Command: []string{"/does/not/exist"}, IdleTimeout: time.Minute, StopGrace: time.Hour}
	if err := o.withDefaults(); err != nil {
		t.Fatal(err)
	}
	b := &Backend{
		environment: &environment{options: &o, counts: &counts{logger: o.Logger}, ledger: &ledger{limit: 1 << 20}},
		changed:     make(chan struct{}),
	}
	b.ctx, b.cancel = context.WithCancel(t.Context())
	t.Cleanup(b.cancel)
	b.sessions = newSessions(b)
	return b
}

// process is one that was never started: nobody reads what is written to it.
func (b *Backend) process() *process {
	return &process{
		environment: b.environment, owner: unthoughtOf{}, out: newOutbox(), calls: map[int64]*call{},
		waited: make(chan struct{}), exited: make(chan struct{}),
	}
}

// serve has the backend know a legacy server whose process is yet to come.
func (b *Backend) serve() *legacyServer {
	l := newLegacyServer(b)
	l.keeper = &keeper{environment: b.environment, changed: make(chan struct{}), done: make(chan struct{})}
	said := json.RawMessage(`{"protocolVersion":"2025-11-25"}`)
	l.initialized.Store(&said)
	b.servers.Store(&servers{legacy: l})
	return l
}

// fails is a sink that takes nothing.
type fails struct {
	answer

	err error
}

func (f *fails) Message(*wire.Message) error { return f.err }

func TestNothingIsSentForAReaderWhoHasLeftBefore(t *testing.T) {
	t.Parallel()
	b, left := bare(t), errors.New("the reader has left")
	p, asked := b.process(), 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := func(context.Context, time.Time) (*process, error) {
		if asked++; asked > 1 {
			cancel()
		}
		return p, nil
	}
	mail := func(_ *process, c *call) []wire.Edit {
		c.q.push(wire.NewNotification("notifications/message", nil), 0)
		return nil
	}
	err := b.call(ctx, get, tool("1", "echo", ""), &fails{err: left}, mail)
	if !errors.Is(err, left) || asked != 1 || len(p.out.items) > 0 || len(p.calls) > 0 {
		t.Errorf("after %d attempts: %v", asked, err)
	}
}

// TestProgressForACallThatJustBeginsIsHeard is one for the race detector: a child may tell of any id, at any time.
func TestProgressForACallThatJustBeginsIsHeard(t *testing.T) {
	t.Parallel()
	p := bare(t).process()
	c := newCall(toolWith("1", "echo", "{}", `{"progressToken":"t"}`).Message)
	var reader sync.WaitGroup
	reader.Go(func() {
		for len(c.q.wake) == 0 {
			p.progress(wire.NewNotification(methodProgress, json.RawMessage(`{"progressToken":1}`)))
		}
	})
	if _, err := p.begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	reader.Wait()
	if m, err := c.q.next(t.Context()); err != nil || string(m.Param(progressToken)) != `"t"` {
		t.Errorf("heard %v, %v", m, err)
	}
}

func TestOnlyAProcessThatHadItsTimeToStartIsSilent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		start, caller time.Duration
		class         string
	}{
		"its time is over":          {start: 50 * time.Millisecond, caller: testPatience, class: "ChildSilent"},
		"its caller's time is over": {start: testPatience, caller: 50 * time.Millisecond, class: "Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, script{Legacy: true}, nil)
			r.session(`{}`)
			r.options.Command, r.options.StartTimeout = []string{"/bin/sh", "-c", "exec sleep 60"}, tc.start // read at the next start
			ctx, cancel := context.WithTimeout(r.context(), tc.caller)
			defer cancel()
			_, _, err := r.Open(ctx, backend.Client{Capabilities: []byte(`{"elicitation":{}}`)})
			wantClass(t, err, tc.class, false)
		})
	}
}

func TestAProcessIsNotTakenForOneThatHangsByWhatIsNotItsFault(t *testing.T) {
	t.Parallel()
	p := bare(t).process()
	long := time.Now().Add(-2 * p.options.HangTimeout)
	p.owing = long
	p.busy.Store(true)
	if ping, hangs := p.silent(); ping || hangs {
		t.Error("while it is listened to")
	}
	p.busy.Store(false)
	if ping, hangs := p.silent(); ping || hangs {
		t.Error("just after that")
	}
	p.owing = long
	if ping, _ := p.silent(); !ping {
		t.Error("when nobody looked for long, it was not pinged")
	}
	if ping, hangs := p.silent(); ping || !hangs {
		t.Error("it does not hang though it did not answer the ping")
	}
}

func listenerFor(uris ...string) *listener {
	return &listener{
		request: request(`"l"`, methodListen, `{}`).Message, want: filter{lists: []string{listFields[0].method}, uris: uris}, q: newQueue(),
	}
}

func TestAListenerWhoComesLateDoesNotTakeTheOthersBackToAProcessThatDied(t *testing.T) {
	t.Parallel()
	b := bare(t)
	h := newModernServer(b).hub
	died, now := b.process(), b.process()
	close(died.waited)
	h.listeners[listenerFor("test://a")] = true
	h.move(now)
	if _, wait := h.ask(died, listenerFor("test://b")); !done(wait) || h.sub.p != now {
		t.Error("all listen to the process that died")
	}
}

func TestWhatWasAskedOfAProcessThatDiedIsLetGo(t *testing.T) {
	t.Parallel()
	b := bare(t)
	h := newModernServer(b).hub
	before := h.subscription(b.process())
	h.sub = before
	if h.ask(b.process(), listenerFor()); before.ctx.Err() == nil {
		t.Error("it is held until the end")
	}
}

func TestNobodyIsLetInAfterTheEndOfAllListeners(t *testing.T) {
	t.Parallel()
	b := bare(t)
	h := newModernServer(b).hub
	p := b.process()
	b.cancel()
	h.end()
	h.sub = h.subscription(p) // by who looked the process up before
	h.sub.acked = true
	joined, refusal, err := h.admit(p, listenerFor(), nil)
	if joined || refusal != nil || !errors.Is(err, errStopped) || len(h.listeners) > 0 {
		t.Errorf("joined %t, %v", joined, err)
	}
}

func TestListenersAreToldOfAnEndThatIsNoMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bare(t)
		h := newModernServer(b).hub
		p, l := b.process(), listenerFor()
		u, _ := h.ask(p, l)
		synctest.Wait()
		p.out.batch(nil)
		h.take(p, wire.NewNotification(methodAcknowledged, json.RawMessage(
			fmt.Sprintf(`{"notifications":{"toolsListChanged":true},"_meta":{%q:%d}}`, wire.MetaSubscriptionID, u.c.id))))
		if joined, _, err := h.admit(p, l, u); !joined {
			t.Fatalf("it was not acknowledged: %v", err)
		}
		p.fail(&head{id: idOf(u.c.id)}, errNotMCP)
		synctest.Wait()
		for range l.q.items {
			_, _ = l.q.next(t.Context())
		}
		if err := l.q.err; !errors.Is(err, errStopped) {
			t.Errorf("it listens to nobody: %v", err)
		}
		b.cancel()
		synctest.Wait()
	})
}

func TestWhatAProcessAskedThatNeverAnsweredIsForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	r.session(`{}`)
	const first = `mkdir "$0" && echo '{"jsonrpc":"2.0","id":1,"method":"roots/list"}' && exit 1; exec "$1"`
	r.options.Command = []string{"/bin/sh", "-c", first, filepath.Join(t.TempDir(), "started"), os.Args[0]} // read at the next start
	s := asSession(t, r.session(`{"roots":{}}`))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != 1 || len(s.asked) > 0 || len(s.mailed) > 0 {
		t.Errorf("of %d requests %d are open, and %d wait", s.last, len(s.asked), len(s.mailed))
	}
}

// TestADescriptionHoldsWhatBothProcessesSaidLast: they may be started again at the same time.
func TestADescriptionHoldsWhatBothProcessesSaidLast(t *testing.T) {
	t.Parallel()
	b := bare(t)
	s := &servers{legacy: newLegacyServer(b), modern: newModernServer(b)}
	said := func(round int) *json.RawMessage {
		raw := json.RawMessage(fmt.Sprintf(`{"round":%d}`, round))
		return &raw
	}
	s.legacy.initialized.Store(said(0))
	s.modern.discovered.Store(said(0))
	for round := range 50_000 {
		var both sync.WaitGroup
		both.Go(func() {
			s.legacy.initialized.Store(said(round))
			s.describe()
		})
		both.Go(func() {
			s.modern.discovered.Store(said(round))
			s.describe()
		})
		both.Wait()
		d := s.description.Load()
		if string(d.Initialize) != string(*said(round)) || string(d.Discover) != string(d.Initialize) {
			t.Fatalf("in round %d: %s and %s", round, d.Initialize, d.Discover)
		}
	}
}

func TestServersThatWereLostBeforeAnybodyUsedThemAreNotTakenIntoUse(t *testing.T) {
	t.Parallel()
	b, s := bare(t), &servers{}
	b.lost(s)
	if err := b.settle(s, nil); !errors.Is(err, errRefused) || b.servers.Load() != nil {
		t.Errorf("they are in use: %v", err)
	}
	if err := b.settle(&servers{}, nil); err != nil || b.servers.Load() == nil {
		t.Errorf("the next are not: %v", err)
	}
}

func TestWhoIsSentAwayAsItAnswersHasAReason(t *testing.T) {
	t.Parallel()
	c := &candidate{cancel: func() {}, answered: closed}
	c.end()
	if err := both(c.why(), nil); !errors.Is(err, errSilent) {
		t.Errorf("it was sent away for %v", err)
	}
}

func TestASessionIsOpenedAtTheServerThatWasWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bare(t)
		l := b.serve()
		var s *session
		var err error
		opened := make(chan struct{})
		go func() {
			defer close(opened)
			s, err = b.sessions.openShared(b.ctx)
		}()
		synctest.Wait()
		b.servers.Store(nil) // it is being found out anew
		l.keeper.set(b.process(), nil)
		if <-opened; err != nil || s.version != wire.Version20251125 {
			t.Errorf("opened %v", err)
		}
	})
}

func TestASubscriptionIsSentToTheServerThatHasNotedIt(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
		synctest.Test(t, func(t *testing.T) {
			b := bare(t)
			l := b.serve()
			l.keeper.set(b.process(), nil)
			s, err := b.sessions.openShared(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.subscribe(s, "test://a"); err != nil {
				t.Fatal(err)
			}
			l.turn <- struct{}{}
			go func() { _ = s.Call(b.ctx, request("1", method, `{"uri":"test://a"}`), &fails{}) }() // nobody answers it
			synctest.Wait()
			next := b.serve()
			next.keeper.set(b.process(), nil)
			<-l.turn
			synctest.Wait()
			if len(next.keeper.ready.out.items) > 0 || len(l.keeper.ready.out.items) != 1 {
				t.Errorf("%s was sent to a server that has not noted it", method)
			}
			b.cancel()
			synctest.Wait()
		})
	}
}

// own adds a session with a process of its own, whose end takes until the channels are closed.
func (b *Backend) own() *session {
	s := b.newSession()
	s.own = b.process()
	b.sessions.add(s)
	close(s.own.waited) // nothing is to be signalled
	return s
}

func TestASessionThatIsUsedMeanwhileDoesNotEndForHavingBeenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bare(t)
		idle, used := b.own(), b.own()
		go b.sessions.expire()
		<-time.After(2 * b.options.IdleTimeout)
		synctest.Wait()
		if used.isEnded() { // in no order, and one after the other
			idle, used = used, idle
		}
		if !idle.isEnded() || !used.enter() {
			t.Fatal("not one of them, and only one, is being ended")
		}
		close(idle.own.exited)
		close(idle.released)
		synctest.Wait()
		if used.isEnded() || b.sessions.find(used.id) == nil {
			t.Error("a session ended that is in use")
		}
		b.cancel()
		synctest.Wait()
	})
}

func TestASessionThatIsUsedMeanwhileMakesNoRoom(t *testing.T) {
	t.Parallel()
	b := bare(t)
	s := b.own()
	b.sessions.mu.Lock()
	defer b.sessions.mu.Unlock()
	chosen := b.sessions.retire(func(s *session, _ time.Duration) bool { return s.enter() })
	if chosen != nil || s.isEnded() {
		t.Error("a session ended that is in use")
	}
	s.leave()
	if b.sessions.retire(func(*session, time.Duration) bool { return true }) != s || s.enter() {
		t.Error("a session that is idle makes no room, or is used then")
	}
}

func TestASessionThatHasEndedBeforeItsSubjectHadItIsNotKept(t *testing.T) {
	t.Parallel()
	b := bare(t)
	b.serve().keeper.set(b.process(), nil)
	b.cancel() // and all sessions that there were have ended
	s, err := b.sessions.pooled(t.Context(), "subject")
	if err != nil {
		t.Fatal(err)
	}
	if !s.isEnded() || len(b.sessions.byID) > 0 || len(b.sessions.pool) > 0 {
		t.Errorf("ended %t, and %d are known, %d by their subject", s.isEnded(), len(b.sessions.byID), len(b.sessions.pool))
	}
}

package child

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

func TestASubscriptionLastsAsLongAsItsLastSubscriber(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	one, two, three := r.session(`{}`), r.session(`{}`), r.session(`{}`)
	do := func(c backend.Channel, method string) {
		t.Helper()
		got := newRecorder()
		if err := c.Call(r.context(), request(`"s"`, method, `{"uri":"test://a"}`), got); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.response, `"id":"s"`) || !strings.Contains(got.response, `"result"`) {
			t.Errorf("%s was answered %s", method, got.response)
		}
	}
	do(one, "resources/subscribe")
	do(two, "resources/subscribe")
	do(one, "resources/unsubscribe")
	do(three, "resources/unsubscribe") // which it never subscribed to
	if calls := r.notes("calls"); slices.Contains(calls, `resources/unsubscribe {"uri":"test://a"}`) {
		t.Fatalf("the child was told to unsubscribe while somebody subscribes: %s", calls)
	}
	if err := two.Close(r.context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child is told", func() bool { return slices.Contains(r.notes("calls"), `resources/unsubscribe {"uri":"test://a"}`) })
}

func TestTheEndOfASubscriptionDoesNotOvertakeTheBeginningOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	subscribe := func(c backend.Channel) error {
		return c.Call(r.context(), request(`"s"`, "resources/subscribe", `{"uri":"test://a"}`), newRecorder())
	}
	first, second := r.session(`{}`), r.session(`{}`)
	if err := subscribe(first); err != nil {
		t.Fatal(err)
	}
	legacy := r.servers.Load().legacy
	legacy.turn <- struct{}{} // another subscription is on its way
	ctx, cancel := context.WithCancel(r.context())
	cancel()
	if err := first.Close(ctx); err != nil {
		t.Fatal(err)
	}
	<-legacy.turn
	if err := subscribe(second); err != nil {
		t.Fatal(err)
	}
	const subscribing = `resources/subscribe {"uri":"test://a"}`
	if diff := cmp.Diff([]string{subscribing, subscribing}, r.notes("calls")); diff != "" {
		t.Errorf("the child was told -want +got:\n%s", diff)
	}
	if err := legacy.subscribe(asSession(t, first), "test://a"); !errors.Is(err, backend.ErrSession) {
		t.Errorf("a session that has ended subscribes: %v", err)
	}
}

func asSession(t *testing.T, c backend.Channel) *session {
	t.Helper()
	s, ok := c.(*session)
	if !ok {
		t.Fatalf("%T is no session", c)
	}
	return s
}

func TestASubscriptionWhoseServerIsGivenUpGoesToTheNext(t *testing.T) {
	t.Parallel()
	for name, inTurn := range map[string]bool{"while it waits for its turn": false, "while it waits for a process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := bare(t)
				before := b.serve()
				s := b.newSession()
				b.sessions.add(s)
				if !inTurn {
					before.turn <- struct{}{}
				}
				ended := make(chan error, 1)
				go func() {
					ended <- s.Call(b.ctx, request("1", "resources/subscribe", `{"uri":"test://a"}`), newRecorder())
				}()
				synctest.Wait()
				next := b.serve()
				next.keeper.set(b.process(), nil)
				close(before.keeper.done)
				if !inTurn {
					<-before.turn
				}
				synctest.Wait()
				if len(next.keeper.ready.out.items) != 1 || len(next.subscribedTo(s)) != 1 || len(ended) > 0 {
					t.Errorf("the next was sent %d messages, and it has noted %q", len(next.keeper.ready.out.items), next.subscribedTo(s))
				}
				b.cancel()
				synctest.Wait()
			})
		})
	}
}

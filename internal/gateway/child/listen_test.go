package child

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// subscriber is a client's subscription in a test.
type subscriber struct {
	*recorder

	cancel context.CancelFunc
	ended  chan error
}

// subscribe listens under an id and waits until that is acknowledged.
func (r *rig) subscribe(c backend.Channel, id, filter string) *subscriber {
	r.t.Helper()
	s := r.subscribing(c, id, filter)
	want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{%q:%s}}}`,
		filter, wire.MetaSubscriptionID, id)
	if diff := cmp.Diff(want, s.next(r.t)); diff != "" {
		r.t.Fatalf("acknowledged: %s", diff)
	}
	return s
}

func (r *rig) subscribing(c backend.Channel, id, filter string) *subscriber {
	ctx, cancel := context.WithCancel(r.context())
	s := &subscriber{newRecorder(), cancel, make(chan error, 1)}
	go func() { s.ended <- c.Listen(ctx, request(id, methodListen, `{"notifications":`+filter+`}`), s) }()
	return s
}

const (
	toolsOnly   = `{"toolsListChanged":true}`
	promptsOnly = `{"promptsListChanged":true}`
)

func changedFor(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{%q:%s}}}`, wire.MetaSubscriptionID, id)
}

func updatedFor(id, uri string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{%q:%s},"uri":%q}}`,
		wire.MetaSubscriptionID, id, uri)
}

func TestManyListenToOneProcessAndEachGetsWhatItAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true}, nil)
	channel := r.modern()
	tools, prompts := r.subscribe(channel, "1", toolsOnly), r.subscribe(channel, "1", promptsOnly)
	a := r.subscribe(channel, `"a"`, `{"resourceSubscriptions":["test://a"]}`)
	both := r.subscribe(channel, "7", `{"toolsListChanged":true,"resourceSubscriptions":["test://a","test://b/"]}`)
	// The end of one must not end the others, though that is what it does at the Go SDK's server.
	gone := r.subscribe(channel, "8", `{"toolsListChanged":true,"resourceSubscriptions":["test://c"]}`)
	gone.cancel()
	if err := <-gone.ended; err != nil {
		t.Errorf("a listener that left: %v", err)
	}
	for _, uri := range []string{"test://a", "test://b/c", "test://c"} {
		r.call(channel, "updated", fmt.Sprintf(`{"uri":%q}`, uri))
	}
	r.call(channel, "changed", "")
	for _, c := range []struct {
		name string
		s    *subscriber
		want []string
	}{
		{"tools", tools, []string{changedFor("1")}},
		{"prompts", prompts, nil},
		{"a", a, []string{updatedFor(`"a"`, "test://a")}},
		{"both", both, []string{updatedFor("7", "test://a"), updatedFor("7", "test://b/c"), changedFor("7")}},
	} {
		for range c.want {
			c.s.next(t)
		}
		if diff := cmp.Diff(c.want, c.s.got()[1:], cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestTheLastListenerEndsTheSubscriptionAndTheNextBeginsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true}, nil)
	channel := r.modern()
	for round := range 3 {
		first, second := r.subscribe(channel, "1", toolsOnly), r.subscribe(channel, "2", `{"resourceSubscriptions":["test://a"]}`)
		r.call(channel, "changed", "")
		first.next(t)
		first.cancel()
		second.cancel()
		for _, s := range []*subscriber{first, second} {
			if err := <-s.ended; err != nil {
				t.Error(err)
			}
		}
		if n := len(r.notes("listens")); n != 2*(round+1) {
			t.Errorf("the child got %d requests to listen in %d rounds, want two for each", n, round+1)
		}
	}
}

func TestListenersOutliveTheProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true}, nil)
	channel := r.modern()
	s := r.subscribe(channel, "1", `{"toolsListChanged":true,"resourceSubscriptions":["test://a"]}`)
	_, _ = callTool(r.context(), channel, "1", "die", "")
	// What may have changed meanwhile is said to have changed.
	s.next(t)
	s.next(t)
	want := []string{changedFor("1"), strings.ReplaceAll(updatedFor("1", "test://a"), `"_meta":{"`+wire.MetaSubscriptionID+`":1},"uri":"test://a"`,
		`"uri":"test://a","_meta":{"`+wire.MetaSubscriptionID+`":1}`)}
	if diff := cmp.Diff(want, s.got()[1:]); diff != "" {
		t.Error(diff)
	}
	r.call(channel, "changed", "")
	s.next(t)
}

func TestTooManyResourcesEndListenersInPeace(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true}, nil)
	channel := r.modern()
	first := r.subscribe(channel, `"first"`, toolsOnly)
	var last *subscriber
	for i := range maxUpstream {
		last = r.subscribe(channel, fmt.Sprint(i), fmt.Sprintf(`{"resourceSubscriptions":["test://%d"]}`, i))
	}
	if err := <-first.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"first","result":{"resultType":"complete","_meta":{%q:"first"}}}`, wire.MetaSubscriptionID)
	if diff := cmp.Diff(want, first.response); diff != "" {
		t.Error(diff)
	}
	r.call(channel, "updated", fmt.Sprintf(`{"uri":"test://%d"}`, maxUpstream-1))
	last.next(t)
}

func TestListeningThatCannotBeIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true}, nil)
	channel := r.modern()
	missing := newRecorder()
	if err := channel.Listen(r.context(), request("1", methodListen, `{}`), missing); err != nil || !strings.Contains(missing.response, "-32602") {
		t.Errorf("without a filter: %s, %v", missing.response, err)
	}
	// A filter that the gateway does not know is not passed on, and so not granted.
	s := r.subscribing(channel, "5", `{"taskIds":["x"]}`)
	if err := <-s.ended; err != nil || !strings.Contains(s.response, `"id":5,"result"`) {
		t.Errorf("an unknown filter: %s, %v", s.response, err)
	}
	if got := s.got(); len(got) != 1 || !strings.Contains(got[0], `"notifications":{}`) {
		t.Errorf("an unknown filter was acknowledged as %s", got)
	}
	if slices.ContainsFunc(r.notes("listens"), func(l string) bool { return strings.Contains(l, "taskIds") }) {
		t.Errorf("the child got %s", r.notes("listens"))
	}
}

func TestARefusalToListenIsPassedOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true, Listens: "never"}, nil)
	channel := r.modern()
	for _, id := range []string{"1", `"two"`} {
		s := r.subscribing(channel, id, toolsOnly)
		if err := <-s.ended; err != nil || s.response != `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32601,"message":"no such method"}}` {
			t.Errorf("%s, %v", s.response, err)
		}
	}
}

func TestAnAnswerToListeningThatIsNoMessageIsAFailureAndNoReasonToAskAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true, Listens: "malformed"}, nil)
	s := r.subscribing(r.modern(), "1", toolsOnly)
	wantClass(t, <-s.ended, "NotMCP", false)
	if n := len(r.notes("listens")); n != 1 {
		t.Errorf("the child was asked %d times", n)
	}
}

func TestAListenerOfASessionThatLeavesIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel := r.session(`{}`)
	ctx, cancel := context.WithCancel(r.context())
	ended := make(chan error, 1)
	go func() { ended <- channel.Listen(ctx, nil, newRecorder()) }()
	listens(t, channel)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCloseEndsListenersInPeace(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	modern, legacy := r.modern(), r.session(`{}`)
	s := r.subscribe(modern, "1", toolsOnly)
	ended := make(chan error, 1)
	go func() { ended <- legacy.Listen(t.Context(), nil, newRecorder()) }()
	listens(t, legacy)
	if err := r.Close(r.context()); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; err != nil || s.response == "" {
		t.Errorf("%q, %v", s.response, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_, err := callTool(r.context(), modern, "1", "echo", "")
	wantClass(t, err, "ChildExited", false)
	if _, err := r.Describe(r.context()); err != nil {
		wantClass(t, err, "ChildExited", false)
	}
}

func TestLogMessagesGoToTheOneCallThatAsksForThem(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true}, nil)
	channel := r.modern()
	level := fmt.Sprintf(`{%q:"info"}`, wire.MetaLogLevel)
	ctx, cancel := context.WithCancel(r.context())
	asking := newRecorder()
	ended := make(chan error, 1)
	go func() { ended <- channel.Call(ctx, toolWith("1", "wait", `{"text":"x"}`, level), asking) }()
	eventually(t, "the tool runs", func() bool { return len(r.notes("waiting")) > 0 })

	other := newRecorder()
	if err := channel.Call(r.context(), toolWith("2", "meta", `{}`, level), other); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(other.response, "logLevel") {
		t.Errorf("while one asks for log messages, another's request for them was passed on: %s", other.response)
	}
	if err := channel.Call(r.context(), tool("3", "log", `{"text":"secret"}`), other); err != nil {
		t.Fatal(err)
	}
	if got := asking.next(t); !strings.Contains(got, "secret") || len(other.got()) != 0 {
		t.Errorf("%s, and to others %s", got, other.got())
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Log messages of a call that was given up may still come: they must not pass for another's.
	late := newRecorder()
	if err := channel.Call(r.context(), toolWith("4", "log", `{"text":"late"}`, level), late); err != nil {
		t.Fatal(err)
	}
	if got := late.got(); len(got) != 0 {
		t.Errorf("after the end of the call another got %s", got)
	}
}

func TestACallsClaimToLogMessagesEndsWithItsAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Modern: true}, nil)
	channel := r.modern()
	level := fmt.Sprintf(`{%q:"info"}`, wire.MetaLogLevel)
	for range 3 {
		got := newRecorder()
		if err := channel.Call(r.context(), toolWith("1", "log", `{"text":"mine"}`, level), got); err != nil {
			t.Fatal(err)
		}
		if len(got.got()) != 1 {
			t.Errorf("got %s", got.got())
		}
	}
}

func TestAListenerWhoComesLateIsNotLeftAtAProcessThatDied(t *testing.T) {
	t.Parallel()
	b := bare(t)
	h := newModernServer(b).hub
	died := b.process()
	h.sub = h.subscription(died)
	h.sub.acked = true
	close(died.waited)
	h.move(b.process()) // which moves nobody: there is nobody yet
	joined, refusal, err := h.admit(died, listenerFor(), nil)
	if joined || refusal != nil || err != nil || len(h.listeners) > 0 {
		t.Errorf("joined %t, %v", joined, err)
	}
}

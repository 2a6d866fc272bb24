package child

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func methodsOf(messages []*wire.Message) (methods []string) {
	for _, m := range messages {
		methods = append(methods, m.Method)
	}
	return methods
}

func TestWhatAStreamThatEndsDidNotPassOnWaitsForTheNext(t *testing.T) {
	t.Parallel()
	b := bare(t)
	s := b.own()
	notify := func(method string) { s.take(s.own, wire.NewNotification(method, nil)) }
	waiting := func() []string { return methodsOf(s.mailed) }
	notify(translate.ToolsListChanged)
	notify(translate.PromptsListChanged)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := s.Listen(gone, nil, newRecorder()); err != nil {
		t.Fatal(err)
	}
	want := []string{translate.ToolsListChanged, translate.PromptsListChanged}
	if diff := cmp.Diff(want, waiting()); diff != "" {
		t.Errorf("what it had, -want +got:\n%s", diff)
	}
	ended := newQueue()
	ended.stop()
	s.streams = append(s.streams, ended) // by who looked before
	notify(translate.ResourcesListChanged)
	notify(methodLog)
	if diff := cmp.Diff(append(want, translate.ResourcesListChanged), waiting()); diff != "" {
		t.Errorf("and what came then, -want +got:\n%s", diff)
	}
}

// busySink is a sink that takes what it is given only when it is told with what result.
type busySink struct {
	recorder

	result chan error
}

func newBusySink() *busySink {
	s := &busySink{result: make(chan error)}
	s.arrived = make(chan struct{}, 10)
	s.each = func(*wire.Message) error { return <-s.result }
	return s
}

func TestWhatAStreamThatEndsDidNotPassOnGoesToOneThatListens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result error
		want   int
	}{
		"what comes after what it passed on": {result: nil, want: 1},
		"and what it failed to pass on":      {result: errors.New("the client has left"), want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := bare(t).own()
				old, next := newBusySink(), newRecorder()
				gone, leave := context.WithCancel(t.Context())
				go func() { _ = s.Listen(gone, nil, old) }() // ends with what the sink ends it with
				synctest.Wait()
				all := []string{translate.ToolsListChanged, translate.PromptsListChanged}
				for _, method := range all {
					s.take(s.own, wire.NewNotification(method, nil))
				}
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = s.Listen(ctx, nil, next) }()
				synctest.Wait()
				leave()
				old.result <- tc.result
				synctest.Wait()
				want := all[len(all)-tc.want:]
				if got := next.got(); len(got) != len(want) || len(s.mailed) > 0 {
					t.Errorf("it heard %q, want %q, and %d messages wait", got, want, len(s.mailed))
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestAMessageWhoseReaderLeavesGoesToAnotherWhoIsThere(t *testing.T) {
	t.Parallel()
	s := bare(t).own()
	open, left := newQueue(), newQueue()
	left.stop()
	s.streams = []*queue{open, left} // the newest is about to be taken out
	s.take(s.own, wire.NewNotification(translate.ToolsListChanged, nil))
	if len(open.items) != 1 || len(s.mailed) > 0 {
		t.Errorf("it got %d, and %d wait", len(open.items), len(s.mailed))
	}
}

// TestWhatACallWhoseCallerLeavesDidNotPassOnWaitsForAReader: a child that asks waits for an answer.
func TestWhatACallWhoseCallerLeavesDidNotPassOnWaitsForAReader(t *testing.T) {
	t.Parallel()
	progress := func(size int) *wire.Message {
		return wire.NewNotification(methodProgress, json.RawMessage(`{"progressToken":1,"message":"`+strings.Repeat("x", size)+`"}`))
	}
	for name, before := range map[string][]int{"at its hand": nil, "behind another": {1}, "for want of room": {1, queueBytes - 1000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := bare(t)
				s := b.newSession()
				s.own, s.asks = b.process(), true
				sink, left := newBusySink(), errors.New("the caller has left")
				ended := make(chan error, 1)
				go func() { ended <- s.Call(t.Context(), toolWith("1", "echo", "{}", `{"progressToken":"t"}`), sink) }()
				synctest.Wait()
				for _, size := range before {
					s.own.progress(progress(size))
					synctest.Wait()
				}
				params := json.RawMessage(`{"text":"` + strings.Repeat("x", 2000) + `"}`)
				go s.take(s.own, wire.NewRequest(json.RawMessage(`"a"`), "elicitation/create", params))
				synctest.Wait()
				sink.result <- left
				synctest.Wait()
				if err := <-ended; !errors.Is(err, left) {
					t.Error(err)
				}
				if diff := cmp.Diff([]string{"elicitation/create"}, methodsOf(s.mailed)); diff != "" || len(s.asked) != 1 {
					t.Errorf("of %d requests there wait, -want +got:\n%s", len(s.asked), diff)
				}
			})
		})
	}
}

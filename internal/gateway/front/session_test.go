package front

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// registryOf is a registry whose dropped sessions are noted by caller.
func registryOf(limits Limits) (*registry, *[]string) {
	limits = limits.withDefaults()
	dropped := new([]string)
	return newRegistry(&limits, func(s *session) { *dropped = append(*dropped, s.caller) }, func(int) {}), dropped
}

func open(r *registry, id, caller string) *session {
	s := r.enter(keyOf(id), caller, passport{})
	r.leave(s)
	return s
}

func TestASessionIsOneAsLongAsItIsRemembered(t *testing.T) {
	t.Parallel()
	r, _ := registryOf(Limits{})
	if first, again := open(r, "1", "a"), open(r, "1", "a"); first != again {
		t.Error("the same id, and another session")
	}
}

func TestAnEndedSessionIsNotEnteredAgain(t *testing.T) {
	t.Parallel()
	r, dropped := registryOf(Limits{})
	r.end(open(r, "1", "a"))
	if s := r.enter(keyOf("1"), "a", passport{}); s != nil {
		t.Error("it was entered")
	}
	if diff := cmp.Diff([]string{"a"}, *dropped); diff != "" {
		t.Errorf("dropped -want +got:\n%s", diff)
	}
}

func TestASessionIsCountedUntilItEnds(t *testing.T) {
	t.Parallel()
	limits, count := Limits{}.withDefaults(), 0
	r := newRegistry(&limits, func(*session) {}, func(delta int) { count += delta })
	ended := open(r, "1", "a")
	open(r, "2", "a")
	r.end(ended)
	if count != 1 {
		t.Errorf("one of two has ended, and %d are counted", count)
	}
	r.expire(time.Now().Add(time.Hour))
	if count != 0 {
		t.Errorf("all are forgotten, and %d are counted", count)
	}
}

func TestACallersLongestIdleSessionMakesRoomForItsNext(t *testing.T) {
	t.Parallel()
	r, dropped := registryOf(Limits{Sessions: 2})
	busy := r.enter(keyOf("busy"), "a", passport{})
	open(r, "idle", "a")
	open(r, "other", "b")
	if !r.admit("a") {
		t.Fatal("an idle session was not given up")
	}
	if diff := cmp.Diff([]string{"a"}, *dropped); diff != "" {
		t.Errorf("dropped -want +got:\n%s", diff)
	}
	r.enter(keyOf("busy too"), "a", passport{})
	if r.admit("a") {
		t.Error("all its sessions are in use, and another was let in")
	}
	r.leave(busy)
	if !r.admit("a") {
		t.Error("one is idle again, and no other was let in")
	}
}

func TestTheMemoryOfSessionsIsBounded(t *testing.T) {
	t.Parallel()
	r, _ := registryOf(Limits{TotalSessions: 10})
	for i := range 1000 {
		open(r, fmt.Sprint(i), fmt.Sprint(i))
	}
	if got := r.count(); got != 10 || len(r.callers) != 10 || r.order.Len() != 10 {
		t.Errorf("%d sessions of %d callers are remembered", got, len(r.callers))
	}
	if s := r.byKey[keyOf("999")]; s == nil {
		t.Error("the newest is not among them")
	}
}

func TestOfAnEndedSessionAMarkIsLeftForAWhile(t *testing.T) {
	t.Parallel()
	r, dropped := registryOf(Limits{TotalSessions: 3})
	for i := range 3 {
		r.end(open(r, fmt.Sprint(i), "a"))
	}
	if len(r.byKey) != 0 || r.order.Len() != 0 || len(r.callers) != 0 || r.count() != 3 || len(*dropped) != 3 {
		t.Errorf("kept are %d sessions of %d callers, and %d in all", len(r.byKey), len(r.callers), r.count())
	}
	open(r, "new", "a")
	open(r, "newer", "a")
	if canEnter(r, "2") {
		t.Error("the newest mark went first")
	}
	if entered := canEnter(r, "0"); !entered || r.count() != 3 {
		t.Errorf("the oldest mark made no room: %v, %d", entered, r.count())
	}
	r.expire(time.Now().Add(time.Hour))
	if r.count() != 0 || r.ends.Len() != 0 {
		t.Errorf("%d are remembered for ever", r.count())
	}
}

// canEnter says whether a session can be entered, and leaves it.
func canEnter(r *registry, id string) bool {
	s := r.enter(keyOf(id), "a", passport{})
	if s != nil {
		r.leave(s)
	}
	return s != nil
}

func TestASessionThatFellOutAndWasEnteredAgainEndsToo(t *testing.T) {
	t.Parallel()
	r, dropped := registryOf(Limits{TotalSessions: 1})
	old := open(r, "1", "a")
	open(r, "2", "b")
	open(r, "1", "a")
	*dropped = nil
	r.end(old)
	if diff := cmp.Diff([]string{"a", "a"}, *dropped); diff != "" || len(r.byKey) != 0 || canEnter(r, "1") {
		t.Errorf("%d are left, dropped -want +got:\n%s", len(r.byKey), diff)
	}
}

func TestIdleSessionsExpireAndBusyOnesDoNot(t *testing.T) {
	t.Parallel()
	r, dropped := registryOf(Limits{})
	open(r, "idle", "a")
	r.enter(keyOf("busy"), "b", passport{})
	r.expire(time.Now().Add(time.Hour))
	if diff := cmp.Diff([]string{"a"}, *dropped); diff != "" {
		t.Errorf("dropped -want +got:\n%s", diff)
	}
}

func TestACancellationFindsItsRequestByTheRawID(t *testing.T) {
	t.Parallel()
	r, _ := registryOf(Limits{})
	s := open(r, "1", "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if !s.begin(`1`, cancel) {
		t.Fatal("not begun")
	}
	if s.begin(`1`, cancel) {
		t.Error("a second request of the same id was begun")
	}
	if s.cancel(`"1"`) || ctx.Err() != nil {
		t.Error("the string 1 is not the number 1")
	}
	if !s.cancel(`1`) || context.Cause(ctx) != errCancelled { //nolint:errorlint // it is this very cause
		t.Error("not cancelled")
	}
	s.finish(`1`)
	if s.cancel(`1`) {
		t.Error("cancelled after its end")
	}
}

func TestANewStreamOfASessionEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	r, _ := registryOf(Limits{})
	s := open(r, "1", "a")
	stream := func() context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		return context.WithValue(ctx, endStream{}, cancel)
	}
	first, second := stream(), stream()
	leaveFirst := s.replaceStream(first)
	s.replaceStream(second)
	if first.Err() == nil || second.Err() != nil {
		t.Errorf("first %v, second %v", first.Err(), second.Err())
	}
	leaveFirst()
	s.replaceStream(stream())
	if second.Err() == nil {
		t.Error("the end of the first made the second forgotten")
	}
}

func TestASessionsSubscriptionsAreBoundedInNumberAndBytes(t *testing.T) {
	t.Parallel()
	r, _ := registryOf(Limits{})
	s := open(r, "1", "a")
	long := string(make([]byte, maxSubscriptionBytes))
	for i, step := range []struct {
		uri          string
		wanted, want bool
	}{
		{"a", true, true},
		{"a", true, true}, // it counts once
		{long, true, false},
		{"a", false, true},
		{"a", false, true}, // it makes room once
		{long, true, true},
		{"b", true, false},
	} {
		if got := s.subscribe(step.uri, step.wanted); got != step.want {
			t.Errorf("step %d, %.10q, wanted %t: %t", i, step.uri, step.wanted, got)
		}
	}
}

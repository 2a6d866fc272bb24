package front

import (
	"testing"
	"time"
)

func TestAGateLetsEachCallerHaveItsShareUnderWay(t *testing.T) {
	t.Parallel()
	g, now := newGate(), time.Now()
	for i, step := range []struct {
		caller string
		leave  bool
		want   gateVerdict
	}{
		{caller: "a", want: gateOpen},
		{caller: "a", want: gateOpen},
		{caller: "a", want: gateCallerFull},
		{caller: "b", want: gateOpen},
		{caller: "a", leave: true},
		{caller: "a", want: gateOpen},
	} {
		if step.leave {
			g.leave(step.caller)
			continue
		}
		if got := g.enter(step.caller, 2, now); got != step.want {
			t.Fatalf("step %d, caller %s: got %d, want %d", i, step.caller, got, step.want)
		}
	}
	for _, caller := range []string{"a", "a", "b"} {
		g.leave(caller)
	}
	if len(g.held) != 0 {
		t.Errorf("all have left, and %v are held", g.held)
	}
}

func TestABackendThatAnswersNobodyIsTriedOnceASecondUntilItAnswers(t *testing.T) {
	t.Parallel()
	g, begin := newGate(), time.Now()
	enter := func(at time.Duration) gateVerdict {
		verdict := g.enter("a", 100, begin.Add(at))
		if verdict == gateOpen {
			g.leave("a")
		}
		return verdict
	}
	for range hanging - 1 {
		g.note(false, begin)
	}
	g.note(true, begin) // one that was answered: they are not in a row
	for n := range hanging {
		if enter(0) != gateOpen {
			t.Fatalf("after %d in a row it is taken to hang", n)
		}
		if hangs := g.note(false, begin); hangs != (n == hanging-1) {
			t.Errorf("after %d in a row, hangs: %t", n+1, hangs)
		}
	}
	for _, step := range []struct {
		at   time.Duration
		want gateVerdict
	}{{0, gateHangs}, {trial - 1, gateHangs}, {trial, gateOpen}, {trial + 1, gateHangs}, {2 * trial, gateOpen}} {
		if got := enter(step.at); got != step.want {
			t.Errorf("at %s: got %d, want %d", step.at, got, step.want)
		}
	}
	if g.note(false, begin.Add(3*trial)) {
		t.Error("it is told twice that it hangs")
	}
	if !g.hangs(begin.Add(3*trial)) || g.hangs(begin.Add(2*trial+knownHanging)) {
		t.Errorf("it is said to hang: %t; long after the last call: %t", g.hangs(begin.Add(3*trial)), g.hangs(begin.Add(2*trial+knownHanging)))
	}
	g.note(true, begin.Add(3*trial))
	if got := enter(3 * trial); got != gateOpen || g.hangs(begin.Add(3*trial)) {
		t.Errorf("it has answered, and: %d", got)
	}
}

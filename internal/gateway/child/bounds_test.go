package child

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// sized is a notification of about n bytes.
func sized(n int) *wire.Message {
	return wire.NewNotification("n", json.RawMessage(`{"t":"`+strings.Repeat("x", n)+`"}`))
}

func TestAMessageIsTakenBackOnlyBeforeItIsWritten(t *testing.T) {
	o := newOutbox()
	first, err := o.put(t.Context(), sized(1))
	if err != nil {
		t.Fatal(err)
	}
	second, err := o.put(t.Context(), sized(2))
	if err != nil {
		t.Fatal(err)
	}
	if !o.withdraw(first) {
		t.Error("a message that waits could not be taken back")
	}
	if got := o.batch(nil); string(got) != string(sized(2).Raw)+"\n" {
		t.Errorf("written: %s", got)
	}
	if o.withdraw(second) {
		t.Error("a message that was written was taken back")
	}
	if o.bytes != 0 {
		t.Errorf("%d bytes wait", o.bytes)
	}
	third, err := o.put(t.Context(), sized(3))
	if err != nil {
		t.Fatal(err)
	}
	o.close()
	if got := o.batch(nil); got != nil {
		t.Errorf("written after the end: %s", got)
	}
	if !o.withdraw(third) {
		t.Error("a message that was not written before the end counts as written")
	}
	if _, err := o.put(t.Context(), sized(4)); !errors.Is(err, errUnsent) {
		t.Errorf("after the end: %v", err)
	}
}

func TestWhatWaitsForAChildThatDoesNotReadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		for o.bytes <= outboxBytes {
			if _, err := o.put(t.Context(), sized(100_000)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				_, err := o.put(ctx, sized(1))
				results <- err
			}()
		}
		synctest.Wait()
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who gave up got %v", err)
		}
		o.batch(nil)
		if err := <-results; err != nil {
			t.Errorf("once there is room: %v", err)
		}
		for range 100_000 {
			o.post(sized(100))
		}
		if o.bytes > 3*outboxBytes {
			t.Errorf("%d bytes of our own wait", o.bytes)
		}
	})
}

func TestWhatIsTakenBackMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		large, err := o.put(t.Context(), sized(2*outboxBytes))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result := make(chan error, 1)
		go func() {
			_, err := o.put(ctx, sized(1))
			result <- err
		}()
		synctest.Wait()
		if !o.withdraw(large) {
			t.Error("it was written")
		}
		if err := <-result; err != nil {
			t.Errorf("nobody told the next: %v", err)
		}
	})
}

func TestSmallMessagesAreWrittenTogetherAndLargeOnesAlone(t *testing.T) {
	o := newOutbox()
	var want []int
	for _, size := range []int{10, 10, lineBuffer, 10} {
		m := sized(size)
		want = append(want, len(m.Raw)+1)
		if _, err := o.put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	for len(o.items) > 0 {
		got = append(got, len(o.batch(nil)))
	}
	if diff := cmp.Diff([]int{want[0] + want[1], want[2], want[3]}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAQueueIsBoundedButForOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		if !q.push(sized(2*queueBytes), 0) {
			t.Fatal("the first message was not taken, for its size")
		}
		began := time.Now()
		go func() {
			<-time.After(3 * time.Second)
			if _, err := q.next(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		if !q.push(sized(queueBytes-100), 30*time.Second) || time.Since(began) != 3*time.Second {
			t.Errorf("it did not wait for room, but %s", time.Since(began))
		}
		if q.push(sized(1000), 30*time.Second) || time.Since(began) != 33*time.Second {
			t.Errorf("a reader that is too slow was waited for: %s", time.Since(began))
		}
		if _, err := q.next(t.Context()); !errors.Is(err, errSlowReader) {
			t.Errorf("the slow reader got %v", err)
		}
		if q.push(sized(1), 30*time.Second) {
			t.Error("more was taken after the end")
		}
	})
}

func TestWhatCameBeforeTheEndIsDelivered(t *testing.T) {
	q := newQueue()
	q.push(sized(1), 0)
	q.fail(&diedError{"exit status 1"})
	if m, err := q.next(t.Context()); err != nil || m == nil {
		t.Errorf("%v, %v", m, err)
	}
	var died *diedError
	if _, err := q.next(t.Context()); !errors.As(err, &died) {
		t.Errorf("then %v", err)
	}
}

func TestOfLargeResponsesTheOldestIsCut(t *testing.T) {
	l := &ledger{limit: 4 * heldMin}
	if l.hold(heldMin-1) != nil {
		t.Error("a small response counts")
	}
	held := map[string]*holding{}
	for _, step := range []struct {
		hold    string
		size    int
		release string
		cut     []string
	}{
		{hold: "a", size: 1},
		{hold: "b", size: 1},
		{hold: "c", size: 1, release: "b"},
		{hold: "d", size: 2},
		{hold: "e", size: 1, cut: []string{"a"}},
		{hold: "f", size: 3, cut: []string{"a", "c", "d"}, release: "a"},
	} {
		held[step.hold] = l.hold(step.size * heldMin)
		held[step.release].release()
		var cut []string
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			if h := held[name]; h != nil {
				if _, err := io.ReadAll(h.reader([]byte("text"))); errors.Is(err, errSlowReader) {
					cut = append(cut, name)
				}
			}
		}
		if diff := cmp.Diff(step.cut, cut); diff != "" {
			t.Errorf("after %s: %s", step.hold, diff)
		}
	}
	for _, h := range held {
		h.release()
	}
	if l.total != 0 || len(l.held) != 0 {
		t.Errorf("%d bytes of %d responses are held in the end", l.total, len(l.held))
	}
}

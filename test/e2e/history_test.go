package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// slack is how many times a promised interval is waited for.
	slack = 5
	// leastPatience is how long anything is waited for at least: where a second is promised, five are no more than one pause
	// of a busy machine. What was promised and what it took are in the log.
	leastPatience = 30 * time.Second
)

// patience is how long something is waited for that is promised within an interval.
func patience(promised time.Duration) time.Duration { return max(slack*promised, leastPatience) }

// state is what the API server told of an object at one time.
type state struct {
	at      time.Time
	object  client.Object
	deleted bool
}

// history is every state of some objects that the API server told since it was begun, in order: what is not in it did
// not happen.
type history struct {
	mu      sync.Mutex
	states  []state
	changed chan struct{} // closed at the next state
	broken  error         // set if the watch ended and cannot go on where it did: then there are gaps
}

// record begins a history of the objects that list and options select. An API server may end a watch, as of a client that it finds slow: it is
// begun again where it ended, and nothing is missed.
func record(t *testing.T, list client.ObjectList, options ...client.ListOption) *history {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	h := &history{changed: make(chan struct{})}
	if err := cluster.client.List(ctx, list, options...); err != nil {
		t.Fatalf("list %T: %v", list, err)
	}
	err := apimeta.EachListItem(list, func(object apiruntime.Object) error {
		h.add(watch.Event{Type: watch.Added, Object: object.DeepCopyObject()})
		return nil
	})
	if err != nil {
		t.Fatalf("list %T: %v", list, err)
	}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return cluster.client.Watch(ctx, list, append(slices.Clip(options), &client.ListOptions{Raw: &raw})...)
		},
	})
	if err != nil {
		t.Fatalf("watch %T: %v", list, err)
	}
	go func() {
		for event := range events.ResultChan() {
			h.add(event)
		}
		if ctx.Err() == nil {
			h.add(watch.Event{Type: watch.Error})
		}
	}()
	t.Cleanup(func() {
		if _, err := h.snapshot(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *history) add(event watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	object, ok := event.Object.(client.Object)
	switch {
	case ok && event.Type != watch.Bookmark:
		h.states = append(h.states, state{at: time.Now(), object: object, deleted: event.Type == watch.Deleted})
	case !ok:
		h.broken = fmt.Errorf("the watch ended by itself, states are missing: %v", event.Object)
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// snapshot returns the states so far.
func (h *history) snapshot() ([]state, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clip(h.states), h.broken
}

// next returns a channel that is closed when there is one more state.
func (h *history) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// choice says which of the states so far count.
type choice func([]state) []state

// newest is for what stays, and for what is compared with the cluster as it is now.
func newest(states []state) []state { return states[max(len(states)-1, 0):] }

// since is the state that was the newest at a time, and all after it: one that was left again before anybody looked counts.
func since(begin time.Time) choice {
	return func(states []state) []state {
		first := slices.IndexFunc(states, func(s state) bool { return s.at.After(begin) })
		if first < 0 {
			return newest(states)
		}
		return states[max(first-1, 0):]
	}
}

// await looks at the states so far, again with each new one, until look returns nothing: that is, until what was waited
// for is so. look returns what is the case instead. promised is when it should be so at the latest, counted from begin.
// It looks each second, too: look may ask of pods as well, which may be as they should a moment after the last state was told.
func (h *history) await(t *testing.T, what string, begin time.Time, promised time.Duration, look func([]state) string) {
	t.Helper()
	timeout := time.NewTimer(time.Until(begin.Add(patience(promised))))
	defer timeout.Stop()
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		next := h.next()
		states, err := h.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		instead := look(states)
		if instead == "" {
			t.Logf("%s: after %.1fs, promised within %s", what, time.Since(begin).Seconds(), promised)
			return
		}
		select {
		case <-next:
		case <-ticks.C:
		case <-timeout.C:
			t.Fatalf("%s: not after %s, promised within %s: %s", what, patience(promised), promised, instead)
		}
	}
}

// await asks until look returns nothing: that is, until what was waited for is so. look returns what is the case instead.
// It is for what cannot be watched. promised is when it should be so at the latest.
func await(t *testing.T, what string, promised time.Duration, look func() string) {
	t.Helper()
	begin := time.Now()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		instead := look()
		took := time.Since(begin)
		if instead == "" {
			t.Logf("%s: after %.1fs, promised within %s", what, took.Seconds(), promised)
			return
		}
		if took > patience(promised) {
			t.Fatalf("%s: not after %s, promised within %s: %s", what, patience(promised), promised, instead)
		}
		<-ticks.C
	}
}

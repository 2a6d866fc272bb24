package fair

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// crew is a Lane with workers, each of which takes a second for what it does.
type crew struct {
	*Lane[string]

	workers sync.WaitGroup

	mu   sync.Mutex // of all
	done []string
}

func work(workers int) *crew {
	c := &crew{}
	c.Lane = NewLane[string](&c.mu, workers, OldestFirst)
	for range workers {
		c.workers.Go(func() {
			c.Work(func(item string) {
				<-time.After(time.Second)
				c.mu.Lock()
				defer c.mu.Unlock()
				c.done = append(c.done, item)
			})
		})
	}
	return c
}

// push adds items of a namespace.
func (c *crew) push(namespace string, items ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, item := range items {
		c.Push(namespace, item)
	}
}

// pass lets time pass, and returns what was done by then, sorted.
func (c *crew) pass(d time.Duration) []string {
	<-time.After(d)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.done))
}

func TestWorkersOfALaneLeaveHalfOfThemToOtherNamespaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := work(4)
		synctest.Wait() // all of them wait
		c.push("a", "a/1", "a/2", "a/3", "a/4", "a/5")
		c.pass(500 * time.Millisecond)
		c.push("b", "b/1")
		for _, step := range []struct {
			after time.Duration
			want  []string
		}{
			{500 * time.Millisecond, []string{"a/1", "a/2"}},
			{500 * time.Millisecond, []string{"a/1", "a/2", "b/1"}}, // though three of the other wait before it
			{500 * time.Millisecond, []string{"a/1", "a/2", "a/3", "a/4", "b/1"}},
			{time.Second, []string{"a/1", "a/2", "a/3", "a/4", "a/5", "b/1"}},
		} {
			if diff := cmp.Diff(step.want, c.pass(step.after)); diff != "" {
				t.Errorf("done (-want +got)\n%s", diff)
			}
		}
		c.Stop()
		c.workers.Wait()
	})
}

func TestALaneThatIsStoppedEndsItsWorkersAndDoesNothingMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := work(2)
		c.push("a", "a/1", "a/2")
		synctest.Wait()
		c.Stop()
		c.push("b", "b/1")
		c.workers.Wait()
		if diff := cmp.Diff([]string{"a/1"}, c.pass(time.Minute)); diff != "" {
			t.Errorf("done (-want +got)\n%s", diff)
		}
	})
}

package schema

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
)

func TestNeverIsMoreHeldThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	const schemas, users = 20, 8
	made := make([]*Schema, schemas)
	largest := 0
	for i := range made {
		var err error
		if made[i], err = Compile(json.RawMessage(fmt.Sprintf(`{"pattern":"^a{%d}$"}`, i+1))); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, made[i].bytes)
	}
	c := newCache(2*largest + 1)
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			for range 50 {
				for _, s := range made {
					root, release, err := c.use(s)
					if err != nil || root == nil {
						t.Errorf("not compiled: %v", err)
						return
					}
					c.mu.Lock()
					if c.taken > c.limit {
						t.Errorf("%d bytes are taken of %d", c.taken, c.limit)
					}
					c.mu.Unlock()
					release()
				}
			}
		})
	}
	all.Wait()
	if c.taken == 0 || c.byUse.Len() != len(c.bySum) {
		t.Errorf("%d bytes are taken by %d schemas of %d", c.taken, c.byUse.Len(), len(c.bySum))
	}
}

func TestWhatIsUsedAgainIsCompiledOnce(t *testing.T) {
	t.Parallel()
	c := newCache(cacheBytes)
	text := json.RawMessage(`{"minLength":3}`)
	first, err := Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Compile(json.RawMessage(string(text))) // of another table, say
	if err != nil {
		t.Fatal(err)
	}
	a, releaseA, errA := c.use(first)
	b, releaseB, errB := c.use(second)
	if errA != nil || errB != nil || a != b {
		t.Errorf("%p and %p, %v, %v", a, b, errA, errB)
	}
	releaseA()
	if !c.evict(cacheBytes-1) && c.byUse.Len() != 1 {
		t.Error("what is in use was dropped")
	}
	releaseB()
	if !c.evict(cacheBytes) || c.taken != 0 {
		t.Error("what is not in use any longer stays for ever")
	}
}

package toolset

import (
	"sync"
	"testing"
)

func TestCallersThatCompeteForAToolsConnectionsAreAllAnswered(t *testing.T) {
	const callers, calls = 4 * maxConnections, 50
	b, d := (&impostor{}).database(t)
	ctx := testContext(t)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				if _, err := ask(t, b, "tools/call", `{"name":"ask","arguments":{}}`); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("somebody waits for ever")
	}
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	if held, idle := len(d.pool.slots), len(d.pool.idle); held != 0 || idle == 0 || idle > maxConnections {
		t.Errorf("at rest %d slots are held, and %d connections are kept", held, idle)
	}
}

// TestAConnectionThatWasGivenBackIsTheNextOnes: who had it before cannot close it, nor give its slot away.
func TestAConnectionThatWasGivenBackIsTheNextOnes(t *testing.T) {
	_, d := (&impostor{}).database(t)
	ctx := testContext(t)
	first, _, err := d.pool.get(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	had := first.connection
	d.pool.put(ctx, first)
	next, reused, err := d.pool.get(ctx, false)
	if err != nil || !reused || next.connection != had {
		t.Fatalf("the next has another connection: %v", err)
	}
	d.pool.reclaim(ctx, first)
	if first.connection != nil || len(d.pool.slots) != 1 {
		t.Errorf("the first has %v still, and %d slots are held", first.connection, len(d.pool.slots))
	}
	if err := simple(ctx, next.connection, "ROLLBACK"); err != nil {
		t.Errorf("the next cannot use it: %v", err)
	}
	d.pool.drop(ctx, next)
	if len(d.pool.slots) != 0 {
		t.Errorf("at rest %d slots are held", len(d.pool.slots))
	}
}

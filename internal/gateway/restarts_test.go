package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// restless is a server whose child was started once more whenever it is asked.
type restless struct {
	backend.Backend

	starts atomic.Int64
}

func (r *restless) Status() table.ChildStatus {
	return table.ChildStatus{Restarts: int(r.starts.Add(1))}
}

func TestARestartIsCountedOnceWhoeverAsksAtTheSameTime(t *testing.T) {
	t.Parallel()
	server, counts := &restless{}, &tables{}
	b := front.NewBackend(table.Backend{Name: "child"}, server)
	counts.countFor(map[backend.Backend]bool{server: true})
	var counted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5000 {
				counted.Add(int64(counts.newRestarts(b)))
			}
		})
	}
	all.Wait()
	if got, want := counted.Load(), server.starts.Load(); got != want {
		t.Errorf("of %d restarts %d were counted", want, got)
	}
}

// restarted is a server whose child was started again so often.
type restarted struct {
	backend.Backend

	times int
}

func (r *restarted) Status() table.ChildStatus { return table.ChildStatus{Restarts: r.times} }

func (*restarted) Describe(context.Context) (*backend.Description, error) {
	return nil, errors.New("it starts")
}

func (*restarted) Close(context.Context) error { return nil }

func TestRestartsAreThoseOfTheServerWhateverTheTableCallsByItsName(t *testing.T) {
	t.Parallel()
	g := idle()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer g.tables.close(ctx)
	config := table.Backend{Name: "child"}
	first := front.NewBackend(config, &restarted{times: 5})
	otherwise := first.With(table.Backend{Name: "child", Prefix: "p_"})
	second := front.NewBackend(config, &restarted{times: 1})
	var before *front.State
	use := func(b *front.Backend) {
		next := &front.State{Table: tableOf("1", b.Config), Backends: []*front.Backend{b}}
		g.watch(ctx, next, before)
		before = next
	}
	var got []int
	for _, b := range []*front.Backend{first, otherwise, second} {
		use(b)
		// The first is asked for too, by who has the table before.
		got = append(got, g.tables.newRestarts(b), g.tables.newRestarts(first), g.tables.newRestarts(b))
	}
	if diff := cmp.Diff([]int{5, 0, 0, 0, 0, 0, 1, 0, 0}, got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	if n := len(g.tables.restarts); n != 1 {
		t.Errorf("the restarts of %d servers are remembered", n)
	}
}

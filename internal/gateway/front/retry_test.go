package front

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// refusing is a backend that fails whenever it is asked.
func refusing() *renewable {
	server := &renewable{described: make(chan time.Time, 1000)}
	server.describe = &backend.Error{Class: "Connect", Err: errors.New("refused")}
	return server
}

func TestABackendThatFailsIsLookedAtOftenForAMinuteAndThenSeldom(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server, begun := refusing(), time.Now()
		go f.Watch(ctx, NewBackend(table.Backend{Name: "a"}, server))
		last := <-server.described
		var looks int
		for time.Since(begun) < time.Hour {
			now := <-server.described
			pause := now.Sub(last)
			most, least := 2*time.Second, time.Duration(0)
			switch {
			case looks == 0:
				most = 500 * time.Millisecond
			case last.Sub(begun) > 2*time.Minute:
				most, least = 15*time.Second, 15*time.Second
			case last.Sub(begun) > time.Minute:
				most = 15 * time.Second
			}
			if pause > most || pause < least {
				t.Errorf("%s after it failed it was looked at after a pause of %s", last.Sub(begun), pause)
			}
			last = now
			looks++
		}
		if looks > 300 {
			t.Errorf("it was looked at %d times in an hour", looks)
		}
	})
}

func TestABackendThatIsAskedForIsLookedAtSoonHoweverLongItHasFailed(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server, begun := refusing(), time.Now()
		b := NewBackend(table.Backend{Name: "a"}, server)
		go f.Watch(ctx, b)
		for time.Since(begun) < time.Hour {
			<-server.described
		}
		synctest.Wait()
		for range 10 { // many who ask cost no more than one
			asked := time.Now()
			for range 100 {
				b.kick()
			}
			if late := (<-server.described).Sub(asked); late > time.Second || late < firstLook {
				t.Errorf("it was looked at %s after that", late)
			}
			synctest.Wait()
		}
	})
}

func TestAGatewayThatHasJustStartedIsSettledOnceItsBackendsWereAsked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server      func() backend.Backend
		least, most time.Duration
	}{
		"one that answers":          {func() backend.Backend { return &late{from: time.Now()} }, 0, 0},
		"one that refuses at first": {func() backend.Backend { return &late{from: time.Now().Add(grace / 2)} }, grace / 2, grace},
		"one that refuses":          {func() backend.Backend { return &late{} }, grace, settling},
		"one that answers nothing":  {func() backend.Backend { return &mute{} }, settling, settling},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				y := newYoung(t, Limits{})
				if y.IsSettled() {
					t.Error("it is without a table")
				}
				begun := time.Now()
				y.use(ctx, NewBackend(table.Backend{Name: "a"}, tc.server()))
				synctest.Wait()
				for !y.IsSettled() {
					backend.Pause(ctx, 10*time.Millisecond)
					synctest.Wait()
				}
				if took := time.Since(begun); took < tc.least || took > tc.most {
					t.Errorf("after %s", took)
				}
			})
		})
	}
}

// mute is a backend that takes questions and answers none.
type mute struct{ silent }

func (*mute) Describe(ctx context.Context) (*backend.Description, error) {
	<-ctx.Done()
	return nil, &backend.Error{Class: "Timeout", Sent: true, Err: context.Cause(ctx)}
}

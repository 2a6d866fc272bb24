package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// TestAListenerMayLeaveWhileTheServerSaysThatItListensAlready has it leave in the pause before it is asked again.
func TestAListenerMayLeaveWhileTheServerSaysThatItListensAlready(t *testing.T) {
	t.Parallel()
	server := newScript()
	server.onGet = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) }
	for name, end := range map[string]func(b *Backend, leave func()){
		"it leaves":             func(_ *Backend, leave func()) { leave() },
		"the backend is closed": func(b *Backend, _ func()) { b.cancel(errClosed) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, server, func(t *testing.T, b *Backend, _ *inMemory) {
				t.Helper()
				channel, _ := openSession(t, b)
				ctx, leave := context.WithCancel(testContext(t))
				defer leave()
				ended := make(chan error, 1)
				go func() {
					var err error
					defer func() { ended <- err }()
					defer b.options.Panics.Catch("", &err)
					err = channel.Listen(ctx, nil, &sink{})
				}()
				backend.Pause(ctx, 20*time.Millisecond) // the pause is 37 ms at least
				end(b, leave)
				if err := <-ended; ctx.Err() != nil && err != nil || ctx.Err() == nil && !errors.Is(err, errClosed) {
					t.Error(err)
				}
			})
		})
	}
}

// TestAServerWhoDidNotSayWhatItMeantIsAskedForAStreamAgain has it refuse the stream, and not answer whether that is for the session.
func TestAServerWhoDidNotSayWhatItMeantIsAskedForAStreamAgain(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"not found": http.StatusNotFound, "a bad request": http.StatusBadRequest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(testContext(t))
			var tells atomic.Bool
			server := newScript()
			server.onGet = asStatus(status, "")
			server.on = func(_ http.ResponseWriter, r *http.Request, m *wire.Message) bool {
				if m.Method != "ping" || tells.Load() {
					return false
				}
				leave()
				<-r.Context().Done()
				return true
			}
			r := &recorder{Handler: server}
			b := open(t, serve(t, r).URL)
			channel, _ := openSession(t, b)
			if err := channel.Listen(ctx, nil, &sink{}); err != nil {
				t.Errorf("who left: %v", err)
			}
			tells.Store(true)
			for range 2 {
				if err := channel.Listen(testContext(t), nil, &sink{}); !errors.Is(err, backend.ErrNoStream) {
					t.Errorf("who came after: %v", err)
				}
			}
			if n := len(r.with("GET")); n != 2 {
				t.Errorf("it was asked %d times, want until it answered for good", n)
			}
		})
	}
}

// lookup is a Resolver.
type lookup func(ctx context.Context) ([]netip.Addr, error)

func (l lookup) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) { return l(ctx) }

// TestWhoLeavesWhileAPodIsChosenSaysNothingOfThePods has a caller, or the gateway, give up while a pod is asked.
func TestWhoLeavesWhileAPodIsChosenSaysNothingOfThePods(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *Backend, leave context.CancelCauseFunc){
		"the caller leaves":     func(_ *Backend, leave context.CancelCauseFunc) { leave(errIdle) },
		"the backend is closed": func(b *Backend, _ context.CancelCauseFunc) { b.cancel(errClosed) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFleet(t, "10.0.0.1", "10.0.0.2").open(t)
			ctx, leave := context.WithCancelCause(testContext(t))
			tries := 0
			err := b.onPod(ctx, func(string, bool) error {
				tries++
				end(b, leave)
				x := b.begin(ctx)
				defer x.end()
				<-x.ctx.Done()
				return x.over()
			})
			if tries != 1 || err == nil || len(b.pods.avoided) != 0 {
				t.Errorf("%v after %d tries; avoided: %v", err, tries, b.pods.avoided)
			}
		})
	}
}

// TestWhoLeavesWhilePodsAreLookedUpHasLeft has the look-up last longer than the caller stays.
func TestWhoLeavesWhilePodsAreLookedUpHasLeft(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(ctx context.Context, b *Backend) error{
		"a new session": func(ctx context.Context, b *Backend) error {
			return b.onPod(ctx, func(string, bool) error { return io.EOF })
		},
		"a session of before": func(ctx context.Context, b *Backend) error {
			channel, err := b.Resume(backend.Handle{Address: "10.0.0.1:8080", Session: "s", Version: "2025-11-25", Server: b.place})
			if err != nil {
				return err
			}
			return channel.Call(ctx, request(`1`, "ping", `{}`), &sink{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancelCause(testContext(t))
			b := open(t, "http://web.example:8080/mcp", func(c *table.Backend, o *Options) {
				c.PodsHost = "web-pods.example"
				o.Resolver = lookup(func(ctx context.Context) ([]netip.Addr, error) {
					leave(errIdle)
					<-ctx.Done()
					return nil, context.Cause(ctx)
				})
			})
			err := ask(ctx, b)
			if failure := classOf(t, err); failure.Class != "Timeout" || failure.Sent || !errors.Is(err, errIdle) {
				t.Errorf("%v (%+v)", err, failure)
			}
		})
	}
}

func TestACallOverSSEWhoseCallerLeftSaysSoWhateverElseFailed(t *testing.T) {
	t.Parallel()
	p := &pipe{Backend: &Backend{config: table.Backend{Name: "b"}}}
	ctx, leave := context.WithCancelCause(t.Context())
	leave(errIdle)
	for _, err := range []error{errIdle, io.ErrClosedPipe, errSlow, errStream} {
		got := p.unanswered(ctx, err)
		if failure := classOf(t, got); failure.Class != "Timeout" || !failure.Sent || !errors.Is(got, errIdle) {
			t.Errorf("%v: %v (%+v)", err, got, failure)
		}
	}
}

package child

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// shared are the channels to processes that others share.
func shared(r *rig) map[string]backend.Channel {
	all := channels(r)
	delete(all, "2025-11-25, own process")
	return all
}

func TestAChildThatDiesIsStartedAgainAndTheNextCallSucceeds(t *testing.T) {
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for name, channel := range shared(r) {
		t.Run(name, func(t *testing.T) {
			before := r.Status().Restarts
			_, err := callTool(r.context(), channel, "1", "die", "")
			wantClass(t, err, "ChildExited", true)
			var e *backend.Error
			if errors.As(err, &e); e.Detail != "signal: killed" {
				t.Errorf("detail %q", e.Detail)
			}
			began := time.Now()
			if got := r.call(channel, "echo", `{"text":"hello"}`); got != "hello" {
				t.Errorf("got %q", got)
			}
			if took := time.Since(began); took > testPatience/2 {
				t.Errorf("the next call took %s", took)
			}
			if s := r.Status(); s.Restarts != before+1 || s.LastExit != "signal: killed" || r.Failure() != nil {
				t.Errorf("status %+v, %v", s, r.Failure())
			}
		})
	}
}

func TestACallIsNeverSentTwice(t *testing.T) {
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for name, channel := range shared(r) {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			answered, unsure := map[string]bool{}, map[string]bool{}
			var all sync.WaitGroup
			for worker := range 8 {
				all.Go(func() {
					for n := range 40 {
						text := fmt.Sprintf("%s-%d-%d", name, worker, n)
						_, err := callTool(r.context(), channel, "1", "once", fmt.Sprintf(`{"text":%q}`, text))
						var e *backend.Error
						mu.Lock()
						switch {
						case err == nil:
							answered[text] = true
						case errors.As(err, &e) && e.Class == "ChildExited" && e.Sent:
							unsure[text] = true
						default:
							t.Errorf("call %s: %v", text, err)
						}
						mu.Unlock()
					}
				})
			}
			all.Go(func() {
				for kills := 0; kills < 3; {
					pid, err := callTool(r.context(), channel, "1", "pid", "")
					if err != nil {
						continue // it was at the process that was killed just before
					}
					n, err := strconv.Atoi(pid)
					if err != nil {
						t.Errorf("pid %q", pid)
						return
					}
					if err := syscall.Kill(n, syscall.SIGKILL); err == nil {
						kills++
					}
				}
			})
			all.Wait()
			ran := map[string]int{}
			for _, text := range r.notes("once") {
				ran[text]++
			}
			for text, times := range ran {
				if times > 1 {
					t.Errorf("%s ran %d times", text, times)
				}
			}
			for text := range answered {
				if ran[text] != 1 {
					t.Errorf("%s was answered and ran %d times", text, ran[text])
				}
			}
			t.Logf("%d answered, %d in flight when the child was killed", len(answered), len(unsure))
		})
	}
}

func TestCallsWaitForAChildThatRestarts(t *testing.T) {
	r := newRig(t, script{Legacy: true, Modern: true, Delay: 1500 * time.Millisecond}, nil)
	for name, channel := range shared(r) {
		t.Run(name, func(t *testing.T) {
			_, _ = callTool(r.context(), channel, "1", "die", "")
			eventually(t, "the failure is told", func() bool { return r.Failure() != nil })
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if got, err := callTool(t.Context(), channel, "1", "echo", `{"text":"hello"}`); err != nil || got != "hello" {
						t.Errorf("got %q, %v", got, err)
					}
				})
			}
			all.Wait()
			if err := r.Failure(); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestCallsWaitForNoLongerThanTheHold(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, func(o *Options) { o.HoldTimeout = 300 * time.Millisecond })
	channel := r.session(`{}`)
	r.options.Command = []string{"/does/not/exist"} // read at the next start
	_, _ = callTool(r.context(), channel, "1", "exit", `{"n":3}`)
	_, err := callTool(r.context(), channel, "1", "echo", "")
	wantClass(t, err, "ChildExited", false)
	wantClass(t, r.Failure(), "ChildExited", false)
}

// TestACallThatIsGivenUpUnsentTellsWhy: who ended it tells by that what to say of it.
func TestACallThatIsGivenUpUnsentTellsWhy(t *testing.T) {
	t.Parallel()
	why := errors.New("the session was ended")
	givenUp := func(r *rig) context.Context {
		ctx, cancel := context.WithCancelCause(r.context())
		cancel(why)
		return ctx
	}
	for name, call := range map[string]func() error{
		"before it is known what the program speaks": func() error {
			r := newRig(t, script{Unknown: "silent"}, nil)
			_, err := r.Describe(givenUp(r))
			return err
		},
		"while its process is started again": func() error {
			r := newRig(t, script{Legacy: true}, nil)
			channel := r.session(`{}`)
			r.options.Command = []string{"/does/not/exist"} // read at the next start
			_, _ = callTool(r.context(), channel, "1", "exit", `{"n":3}`)
			_, err := callTool(givenUp(r), channel, "1", "echo", "")
			return err
		},
		"while another one subscribes": func() error {
			r := newRig(t, script{Legacy: true}, nil)
			channel := r.session(`{}`)
			r.servers.Load().legacy.turn <- struct{}{}
			request := wire.NewRequest([]byte(`1`), "resources/subscribe", uriParams("file:///a"))
			return channel.Call(givenUp(r), &backend.Call{Message: request}, newRecorder())
		},
		"while its own process is greeted": func() error {
			r := newRig(t, script{Legacy: true}, nil)
			r.session(`{}`)
			_, _, err := r.Open(givenUp(r), backend.Client{Capabilities: []byte(`{"elicitation":{}}`)})
			return err
		},
	} {
		err := call()
		failure, ok := errors.AsType[*backend.Error](err)
		if !ok || failure.Class != "Timeout" || failure.Sent || !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASessionWithItsOwnProcessEndsWithIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel, handle, err := r.Open(r.context(), backend.Client{Capabilities: []byte(`{"elicitation":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	listening := make(chan error, 1)
	go func() { listening <- channel.Listen(t.Context(), nil, newRecorder()) }()
	_, err = callTool(r.context(), channel, "1", "die", "")
	wantClass(t, err, "ChildExited", true)
	if err := <-listening; err != nil && !errors.Is(err, backend.ErrSession) {
		t.Errorf("its stream ended with %v", err)
	}
	if _, err := callTool(r.context(), channel, "1", "echo", ""); !errors.Is(err, backend.ErrSession) {
		t.Errorf("its next call: %v", err)
	}
	eventually(t, "the session is forgotten", func() bool {
		_, err := r.Resume(handle)
		return errors.Is(err, backend.ErrSession)
	})
	if got := r.call(r.session(`{"elicitation":{}}`), "echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("a new session got %q", got)
	}
}

func TestAChildThatHangsIsStartedAgain(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stop", "deaf"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, script{Legacy: true, Modern: true}, func(o *Options) { o.HangTimeout = 5 * time.Second })
			for name, channel := range shared(r) {
				_, err := callTool(r.context(), channel, "1", how, "")
				wantClass(t, err, "ChildSilent", true)
				if got := r.call(channel, "echo", `{"text":"hello"}`); got != "hello" {
					t.Errorf("%s: got %q", name, got)
				}
			}
			if s := r.Status(); s.LastExit != "signal: killed (it hung)" {
				t.Errorf("status %+v", s)
			}
		})
	}
}

func TestAChildThatIsBusyIsNotTakenForOneThatHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, Modern: true}, func(o *Options) { o.HangTimeout = 4 * time.Second })
	var all sync.WaitGroup
	for name, channel := range channels(r) {
		all.Go(func() {
			if got, err := callTool(r.context(), channel, "1", "slow", `{"n":9000}`); got != "at last" {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		})
	}
	all.Wait()
	if s := r.Status(); s.Restarts != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestAChildThatClosesAPipeIsStartedAgain(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"closeStdout", "closeStdin"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, script{Legacy: true}, func(o *Options) { o.ProtocolVersion = wire.Version20251125 })
			channel := r.session(`{}`)
			_, _ = callTool(r.context(), channel, "1", how, "")
			eventually(t, "a call succeeds", func() bool {
				got, err := callTool(r.context(), channel, "1", "pid", "")
				return err == nil && got != "" && len(r.notes("starts")) == 2
			})
		})
	}
}

func TestSubscriptionsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel, got := r.session(`{}`), newRecorder()
	go func() { _ = channel.Listen(t.Context(), nil, got) }()
	if err := channel.Call(r.context(), request("1", "resources/subscribe", `{"uri":"test://a"}`), newRecorder()); err != nil {
		t.Fatal(err)
	}
	_, _ = callTool(r.context(), channel, "1", "die", "")
	r.call(channel, "echo", "")
	// What may have changed meanwhile is said to have changed.
	for _, want := range []string{
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
	} {
		eventually(t, want, func() bool { return slices.Contains(got.got(), want) })
	}
	before := len(got.got())
	r.call(channel, "updated", `{"uri":"test://a"}`)
	eventually(t, "the new process tells of updates", func() bool { return len(got.got()) > before })
}

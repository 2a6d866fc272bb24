package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// channels are a way to call in each version, and on a process of the session's own.
func channels(r *rig) map[string]backend.Channel {
	return map[string]backend.Channel{
		"2025-11-25": r.session(`{}`), "2025-11-25, own process": r.session(`{"roots":{}}`), "2026-07-28": r.modern(),
	}
}

func TestAThousandCallersWithOneIDEachGetTheirOwnAnswer(t *testing.T) {
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for name, channel := range channels(r) {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for i := range 1000 {
				all.Go(func() {
					want := fmt.Sprintf("secret of %d", i)
					got, err := callTool(t.Context(), channel, "1", "echo", fmt.Sprintf(`{"text":%q}`, want))
					if err != nil || got != want {
						t.Errorf("caller %d got %q, %v", i, got, err)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestAMessageArrivesAsItWasSent(t *testing.T) {
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for name, channel := range channels(r) {
		t.Run(name, func(t *testing.T) {
			got := newRecorder()
			// Line feeds between tokens must not cut the message in two, and ids may be any string.
			raw := `{"jsonrpc":"2.0",~ "id":"\u0061-1","method":"tools/call",~"params":{"name":"meta","_meta":{"x":[1,{}],~"y":"\u00e4"}}}`
			raw = strings.ReplaceAll(raw, "~", "\r\n")
			m, err := wire.Parse([]byte(raw), wire.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			if err := channel.Call(r.context(), &backend.Call{Message: m}, got); err != nil {
				t.Fatal(err)
			}
			want := `{"jsonrpc":"2.0","id":"\u0061-1","result":{"content":[{"text":"{\"x\":[1,{}],  \"y\":\"\\u00e4\"}","type":"text"}]}}`
			if diff := cmp.Diff(want, got.response); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProgressGoesToTheCallThatAskedForIt(t *testing.T) {
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for name, channel := range channels(r) {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					got := newRecorder()
					text := fmt.Sprintf("of %d", i)
					c := toolWith("1", "progress", fmt.Sprintf(`{"n":3,"text":%q}`, text), `{"progressToken":"same"}`)
					if err := channel.Call(t.Context(), c, got); err != nil {
						t.Error(err)
						return
					}
					var want []string
					for n := range 3 {
						params := fmt.Sprintf(`{"message":%q,"progress":%d,"progressToken":"same"}`, text, n)
						want = append(want, `{"jsonrpc":"2.0","method":"notifications/progress","params":`+params+`}`)
					}
					if diff := cmp.Diff(want, got.got()); diff != "" || got.response == "" {
						t.Error(diff)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestACallThatIsGivenUpIsCancelledAtTheChild(t *testing.T) {
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for name, channel := range channels(r) {
		t.Run(name, func(t *testing.T) {
			waiting := len(r.notes("waiting"))
			cancelled := len(r.notes("cancelled"))
			ctx, cancel := context.WithCancel(r.context())
			go func() {
				eventually(t, "the tool runs", func() bool { return len(r.notes("waiting")) > waiting })
				cancel()
			}()
			if _, err := callTool(ctx, channel, "1", "wait", `{"text":"x"}`); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			eventually(t, "the child is told", func() bool { return len(r.notes("cancelled")) > cancelled })
			if got := r.call(channel, "echo", `{"text":"still there"}`); got != "still there" {
				t.Errorf("after the late answer: %q", got)
			}
		})
	}
}

func TestACallThatTakesTooLongFailsAsSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, func(o *Options) { o.CallTimeout, o.HangTimeout = 2*time.Second, testPatience })
	_, err := callTool(r.context(), r.session(`{}`), "1", "wait", `{"text":"x"}`)
	wantClass(t, err, "Timeout", true)
	eventually(t, "the child is told", func() bool { return len(r.notes("cancelled")) > 0 })
}

func TestASinkThatFailsEndsItsCallOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel := r.session(`{}`)
	broken := errors.New("the client is gone")
	got := newRecorder()
	got.each = func(*wire.Message) error { return broken }
	err := channel.Call(r.context(), toolWith("1", "progress", `{"n":2}`, `{"progressToken":1}`), got)
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if got := r.call(channel, "echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestASlowReaderIsCutAndDelaysNobody(t *testing.T) {
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for _, name := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(name, func(t *testing.T) {
			channel, before := channels(r)[name], len(r.notes("progressed"))
			slow, blocked, release := newRecorder(), make(chan struct{}), make(chan struct{})
			slow.each = func(*wire.Message) error {
				if len(slow.got()) == 1 {
					close(blocked)
					<-release
				}
				return nil
			}
			ended := make(chan error, 1)
			go func() {
				args := fmt.Sprintf(`{"n":1000,"text":%q}`, strings.Repeat("x", 1000))
				ended <- channel.Call(t.Context(), toolWith("1", "progress", args, `{"progressToken":1}`), slow)
			}()
			<-blocked
			if got := r.call(channel, "echo", `{"text":"hello"}`); got != "hello" {
				t.Errorf("another caller got %q", got)
			}
			eventually(t, "the child has written it all", func() bool { return len(r.notes("progressed")) > before })
			close(release)
			if err := <-ended; !errors.Is(err, errSlowReader) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestAReaderOfAnOwnProcessIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	slow := newRecorder()
	slow.each = func(*wire.Message) error {
		if len(slow.got()) == 1 {
			<-time.After(200 * time.Millisecond)
		}
		return nil
	}
	args := fmt.Sprintf(`{"n":1000,"text":%q}`, strings.Repeat("x", 1000))
	if err := r.session(`{"roots":{}}`).Call(r.context(), toolWith("1", "progress", args, `{"progressToken":1}`), slow); err != nil {
		t.Error(err)
	}
	if n := len(slow.got()); n != 1000 {
		t.Errorf("%d of 1000 messages came", n)
	}
}

func TestErrorsPassThrough(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for name, channel := range channels(r) {
		got := newRecorder()
		if err := channel.Call(r.context(), request(`"a"`, "no/such", `{}`), got); err != nil {
			t.Fatal(err)
		}
		want := `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no such method"}}`
		if diff := cmp.Diff(want, got.response); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNothingOfACallIsLogged(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	for _, channel := range channels(r) {
		r.call(channel, "echo", `{"text":"canary"}`)
		_ = channel.Call(r.context(), tool("1", "malformed", `{"text":"canary"}`), newRecorder())
		_, _ = callTool(r.context(), channel, "1", "die", `{"text":"canary"}`)
	}
	if logs := r.logs.String(); strings.Contains(logs, "canary") {
		t.Error(logs)
	}
}

func TestAHundredClientsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			open := func() (channel backend.Channel, err error) {
				switch i % 3 {
				case 0:
					channel, err = r.Modern(t.Context())
				case 1:
					channel, _, err = r.Open(t.Context(), backend.Client{})
				default:
					channel, _, err = r.Open(t.Context(), backend.Client{Capabilities: json.RawMessage(`{"sampling":{}}`)})
				}
				return channel, err
			}
			channel, err := open()
			for n := range 10 {
				want, got := fmt.Sprint(i, n), ""
				for err == nil {
					got, err = callTool(t.Context(), channel, "7", "echo", fmt.Sprintf(`{"text":%q}`, want))
					if !errors.Is(err, backend.ErrSession) {
						break
					}
					channel, err = open() // between two calls it may have made room for another
				}
				if err != nil || got != want {
					t.Errorf("client %d got %q, %v", i, got, err)
					return
				}
			}
			if err := channel.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := r.Status().Running; n != 2 {
		t.Errorf("%d processes run after all sessions ended, want the two shared ones", n)
	}
}

func TestNothingIsSentForACallThatIsOver(t *testing.T) {
	t.Parallel()
	for name, isOverBefore := range map[string]bool{"before it comes": true, "while it waits for a process": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bare(t)
			p := b.process()
			ctx, cancel := context.WithCancel(t.Context())
			if isOverBefore {
				cancel()
			}
			get := func(context.Context, time.Time) (*process, error) {
				cancel()
				return p, nil
			}
			err := b.call(ctx, get, tool("1", "echo", ""), newRecorder(), nil)
			wantClass(t, err, "Timeout", false)
			if p.last != 0 {
				t.Error("the process was about to be sent it")
			}
		})
	}
}

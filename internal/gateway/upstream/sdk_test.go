package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestWhatAServerSpeaksIsFoundOut(t *testing.T) {
	want := map[string]struct {
		legacy, modern bool
		newest         string
	}{
		"stateful":       {true, false, "2025-11-25"},
		"stateful JSON":  {true, false, "2025-11-25"},
		"stateless":      {true, true, "2026-07-28"},
		"stateless JSON": {true, true, "2026-07-28"},
		"both by header": {true, true, "2026-07-28"},
		"SSE":            {true, false, "2025-11-25"},
	}
	for name, handler := range sdkHandlers(sdkServer()) {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, handler).URL)
			d, err := b.Describe(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			if d.Legacy != want[name].legacy || d.Modern != want[name].modern || d.Versions[0] != want[name].newest {
				t.Errorf("described as %+v, want %+v", d, want[name])
			}
			if d.Legacy != wire.IsObject(d.Initialize) || d.Modern != wire.IsObject(d.Discover) {
				t.Errorf("initialize %s, discover %s do not fit %+v", d.Initialize, d.Discover, d)
			}
		})
	}
}

func TestDescribingLeavesNoSession(t *testing.T) {
	for name, handler := range sdkHandlers(sdkServer()) {
		t.Run(name, func(t *testing.T) {
			r := &recorder{Handler: handler}
			b := open(t, serve(t, r).URL)
			if _, err := b.Describe(testContext(t)); err != nil {
				t.Fatal(err)
			}
			if name == "stateful" {
				eventually(t, "the session is deleted", func() bool { return len(r.with("DELETE")) == 1 })
			}
			if n := len(r.with(`"method":"initialize"`)); n < 1 {
				t.Errorf("initialize was sent %d times", n)
			}
		})
	}
}

// channels are all ways to talk to a server.
func channels(t *testing.T, b *Backend, client backend.Client) map[string]backend.Channel {
	t.Helper()
	ctx := testContext(t)
	found := map[string]backend.Channel{}
	d, err := b.Describe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d.Modern {
		if found["modern"], err = b.Modern(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if d.Legacy {
		own, handle, err := b.Open(ctx, client)
		if err != nil {
			t.Fatal(err)
		}
		found["legacy"] = own
		if found["resumed"], err = b.Resume(handle); err != nil {
			t.Fatal(err)
		}
		if found["shared"], _, err = b.Shared(ctx, "alice"); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestACallIsAnsweredByEveryKindOfServer(t *testing.T) {
	for name, handler := range sdkHandlers(sdkServer()) {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, handler).URL)
			for way, channel := range channels(t, b, backend.Client{}) {
				t.Run(way, func(t *testing.T) {
					for _, id := range []string{`7`, `"seven"`} {
						var s sink
						if err := channel.Call(testContext(t), toolCall(id, "echo", `{"text":"hello"}`, channel.Era()), &s); err != nil {
							t.Fatal(err)
						}
						if got := s.text(t); got != "hello" || string(s.result(t).ID) != id || !s.inMemory {
							t.Errorf("answered %s to %s (in memory: %t)", s.response, id, s.inMemory)
						}
					}
					var s sink
					if err := channel.Call(testContext(t), toolCall(`1`, "big", `{"size":300000}`, channel.Era()), &s); err != nil {
						t.Fatal(err)
					}
					if got := s.text(t); len(got) != 300_000 || string(s.result(t).ID) != "1" {
						t.Errorf("a long response came as %d bytes to %s", len(got), s.result(t).ID)
					}
				})
			}
		})
	}
}

func TestProgressReachesItsCall(t *testing.T) {
	for name, handler := range sdkHandlers(sdkServer()) {
		if strings.Contains(name, "JSON") {
			continue // it has no stream to send progress on
		}
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, handler).URL)
			for way, channel := range channels(t, b, backend.Client{}) {
				t.Run(way, func(t *testing.T) {
					var s sink
					if err := channel.Call(testContext(t), toolCall(`1`, "progress", "", channel.Era(), `"progressToken":"mine"`), &s); err != nil {
						t.Fatal(err)
					}
					if len(s.messages) != 3 {
						t.Fatalf("got the messages %q", s.messages)
					}
					for _, m := range s.messages {
						if !strings.Contains(m, `"progressToken":"mine"`) {
							t.Errorf("the token is not the caller's: %s", m)
						}
					}
				})
			}
		})
	}
}

// TestEachOfManyCallersGetsItsOwnReply has them all use the same id and progress token (C15).
func TestEachOfManyCallersGetsItsOwnReply(t *testing.T) {
	for name, handler := range sdkHandlers(sdkServer()) {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, handler).URL)
			for way, channel := range channels(t, b, backend.Client{}) {
				if way == "legacy" || way == "resumed" {
					continue // of one client, who uses an id once
				}
				t.Run(way, func(t *testing.T) {
					var wg sync.WaitGroup
					for i := range 100 {
						wg.Go(func() {
							var s sink
							text := fmt.Sprintf("caller %d", i)
							call := toolCall(`1`, "echo", fmt.Sprintf(`{"text":%q}`, text), channel.Era(), `"progressToken":1`)
							if err := channel.Call(testContext(t), call, &s); err != nil {
								t.Error(err)
								return
							}
							if got := s.text(t); got != text {
								t.Errorf("%s got the reply of %s", text, got)
							}
						})
					}
					wg.Wait()
				})
			}
		})
	}
}

func TestAServerAsksItsClientAndGetsTheAnswer(t *testing.T) {
	for _, name := range []string{"stateful", "both by header", "SSE"} {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, sdkHandlers(sdkServer())[name]).URL)
			client := backend.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`), Info: json.RawMessage(`{"name":"c","version":"1"}`)}
			channel := channels(t, b, client)["legacy"]
			var s sink
			s.on = func(m *wire.Message) error {
				if m.Kind != wire.Request {
					return nil
				}
				return channel.Send(testContext(t), wire.NewResult(m.ID, json.RawMessage(`{"action":"decline"}`)))
			}
			if err := channel.Call(testContext(t), toolCall(`1`, "ask", `{"text":"well?"}`, backend.Legacy), &s); err != nil {
				t.Fatal(err)
			}
			if got := s.text(t); got != "decline" {
				t.Errorf("the tool got the answer %q", got)
			}
		})
	}
}

func TestAStreamThatAServerClosesIsGoneOnWith(t *testing.T) {
	b := open(t, serve(t, sdkHandlers(sdkServer())["stateful"]).URL)
	for way, channel := range channels(t, b, backend.Client{}) {
		t.Run(way, func(t *testing.T) {
			var s sink
			if err := channel.Call(testContext(t), toolCall(`"p"`, "poll", "", backend.Legacy), &s); err != nil {
				t.Fatal(err)
			}
			if got := s.text(t); got != "polled" || string(s.result(t).ID) != `"p"` {
				t.Errorf("got %s", s.response)
			}
		})
	}
}

func TestListChangesReachWhoListens(t *testing.T) {
	for name := range sdkHandlers(sdkServer()) {
		t.Run(name, func(t *testing.T) {
			server := sdkServer()
			b := open(t, serve(t, sdkHandlers(server)[name]).URL)
			for way, channel := range channels(t, b, backend.Client{}) {
				t.Run(way, func(t *testing.T) {
					heard := make(chan string, 10)
					s := sink{on: func(m *wire.Message) error {
						heard <- m.Method
						return nil
					}}
					var call *backend.Call
					if channel.Era() == backend.Modern {
						call = request(`9`, "subscriptions/listen", `{"notifications":{"toolsListChanged":true},"_meta":{`+modernMeta+`}}`)
					}
					ctx := testContext(t)
					ended := make(chan error, 1)
					go func() { ended <- channel.Listen(ctx, call, &s) }()
					if name == "stateless" || name == "stateless JSON" {
						if channel.Era() == backend.Legacy {
							if err := <-ended; !errors.Is(err, backend.ErrNoStream) {
								t.Fatalf("ended by %v", err)
							}
							return
						}
					}
					changes := 0
					var methods []string
					eventually(t, "a change of tools is heard", func() bool {
						// The SDK puts off the notification with every further change.
						if changes++; changes%40 == 1 {
							server.AddTool(newTool(fmt.Sprintf("%s-%d", way, changes)))
						}
						select {
						case err := <-ended:
							t.Fatalf("ended by %v", err)
						default:
						}
						for len(heard) > 0 {
							methods = append(methods, <-heard)
						}
						return slices.Contains(methods, "notifications/tools/list_changed")
					})
					if channel.Era() == backend.Modern && methods[0] != "notifications/subscriptions/acknowledged" {
						t.Errorf("heard %q", methods)
					}
				})
			}
		})
	}
}

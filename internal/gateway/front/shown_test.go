package front

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// shelf is a server of 2026-07-28 with the tools it is given. It keeps its stream open, and tells nothing on it.
type shelf struct {
	silent

	mu           sync.Mutex
	capabilities string
	tools        []string
	looked       []time.Time // at its tools
	carriedOut   []string
}

func (s *shelf) Describe(context.Context) (*backend.Description, error) {
	return &backend.Description{Modern: true, Discover: json.RawMessage(`{"capabilities":` + s.capabilities + `}`)}, nil
}

func (s *shelf) Modern(context.Context) (backend.Channel, error) { return &shelfChannel{s}, nil }

func (s *shelf) put(tools ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
}

type shelfChannel struct{ *shelf }

func (*shelfChannel) Era() backend.Era { return backend.Modern }

func (*shelfChannel) Listen(ctx context.Context, _ *backend.Call, _ backend.Sink) error {
	<-ctx.Done()
	return ctx.Err()
}

func (c *shelfChannel) Call(_ context.Context, call *backend.Call, sink backend.Sink) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	result := `{}`
	switch call.Message.Method {
	case "tools/list":
		c.looked = append(c.looked, time.Now())
		result = `{"tools":[` + strings.Join(c.tools, ",") + `]}`
	case "tools/call":
		name, _ := call.Message.StringParam("name")
		c.carriedOut = append(c.carriedOut, name)
	}
	return sink.Response(bytes.NewReader(wire.NewResult(call.Message.ID, json.RawMessage(result)).Raw))
}

const (
	tellingTools = `{"tools":{"listChanged":true}}`
	silentTools  = `{"tools":{}}`
)

func plain(name string) string { return `{"name":"` + name + `","inputSchema":{"type":"object"}}` }

func verbose(name string) string {
	return `{"name":"` + name + `","description":"` + strings.Repeat("y", 33<<10) + `","inputSchema":{"type":"object"}}`
}

func reading(name string) string {
	return `{"name":"` + name + `","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
}

var listedName = regexp.MustCompile(`"name":"([^"]*)"`)

// lists are the names of tools that a client is shown.
func (y *young) lists(ctx context.Context) []string {
	_, answer, _ := y.asks(ctx, "tools/list", "")
	names := []string{}
	for _, match := range listedName.FindAllStringSubmatch(answer, -1) {
		names = append(names, match[1])
	}
	return names
}

func TestWhatIsNotShownOfALoneBackendCannotBeCalledAndWhatIsShownCan(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	for name, tc := range map[string]struct {
		config table.Backend
		limits Limits
		tools  []string
		shown  []string
		// called are names that clients try, carriedOut what reaches the server by them.
		called, carriedOut []string
	}{
		"a tool that breaks a rule, under a prefix": {
			config: table.Backend{Prefix: "p_"}, tools: []string{plain("good"), verbose("bad")},
			shown: []string{"p_good"}, called: []string{"bad", "p_bad", "p_good"}, carriedOut: []string{"good"},
		},
		"a tool that breaks a rule, renamed": {
			config: table.Backend{Tools: table.ToolPolicy{Rename: map[string]string{"bad": "fine"}}}, tools: []string{verbose("bad")},
			shown: []string{}, called: []string{"bad", "fine"},
		},
		"one that is renamed to the name of one that breaks a rule": {
			config: table.Backend{Prefix: "p_", Tools: table.ToolPolicy{Rename: map[string]string{"good": "bad"}}},
			tools:  []string{plain("good"), verbose("bad")},
			shown:  []string{"bad"}, called: []string{"bad", "p_bad"}, carriedOut: []string{"good"},
		},
		"a name that is not valid": {
			tools: []string{plain("repo/list"), plain(long)}, shown: []string{}, called: []string{"repo/list", long, "repo list"},
		},
		"a name that is not valid, renamed": {
			config: table.Backend{Prefix: "p_", Tools: table.ToolPolicy{Rename: map[string]string{"repo/list": "repo_list", "été": "summer"}}},
			tools:  []string{plain("repo/list"), plain("été")},
			shown:  []string{"repo_list", "summer"}, called: []string{"repo/list", "p_repo/list", "repo_list", "summer"},
			carriedOut: []string{"repo/list", "été"},
		},
		"a name that is not valid, of a tool that breaks a rule, renamed": {
			config: table.Backend{Tools: table.ToolPolicy{Rename: map[string]string{strings.Repeat("é", 128): "e"}}},
			tools:  []string{verbose(strings.Repeat("é", 128))}, shown: []string{}, called: []string{"e"},
		},
		"more tools than are known, of a server that policy believes": {
			config: table.Backend{Trusted: true, Tools: table.ToolPolicy{ReadOnly: true}}, limits: Limits{Tools: 2},
			tools: []string{reading("a"), plain("writes"), reading("beyond")},
			shown: []string{"a"}, called: []string{"a", "writes", "beyond"}, carriedOut: []string{"a"},
		},
		"more tools than are known, under no such policy": {
			limits: Limits{Tools: 1}, tools: []string{plain("a"), plain("beyond")},
			shown: []string{"a", "beyond"}, called: []string{"a", "beyond"}, carriedOut: []string{"a", "beyond"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				server := &shelf{capabilities: tellingTools, tools: tc.tools}
				y := newYoung(t, tc.limits)
				tc.config.Name = "b"
				y.use(ctx, NewBackend(tc.config, server))
				synctest.Wait() // until its catalog is known
				if diff := cmp.Diff(tc.shown, y.lists(ctx)); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
				for _, name := range tc.called {
					y.asks(ctx, "tools/call", name)
				}
				if diff := cmp.Diff(tc.carriedOut, server.carriedOut); diff != "" {
					t.Errorf("carried out (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAToolThatSaysNoLongerThatItOnlyReadsIsNotCalledOnceAListHasShownThat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server := &shelf{capabilities: tellingTools, tools: []string{reading("a")}}
		y := newYoung(t, Limits{})
		y.use(ctx, NewBackend(table.Backend{Name: "b", Trusted: true, Tools: table.ToolPolicy{ReadOnly: true}}, server))
		<-time.After(time.Second) // it is looked at once more when its stream is open
		y.asks(ctx, "tools/call", "a")
		if len(server.carriedOut) != 1 {
			t.Fatalf("a call before anything changed: %v was carried out", server.carriedOut)
		}
		server.put(plain("a")) // and tells nobody
		if diff := cmp.Diff([]string{}, y.lists(ctx)); diff != "" {
			t.Errorf("shown (-want +got):\n%s", diff)
		}
		<-time.After(2 * firstLook)
		y.asks(ctx, "tools/call", "a")
		if diff := cmp.Diff([]string{"a"}, server.carriedOut); diff != "" {
			t.Errorf("carried out, before and after (-want +got):\n%s", diff)
		}
	})
}

func TestABackendThatKeepsAStreamAndPromisesNoNewsIsAskedForThem(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		capabilities string
		want         []string
	}{
		"it promises none":              {silentTools, []string{"new"}},
		"it promises none of its tools": {`{"tools":{"listChanged":false},"prompts":{"listChanged":true}}`, []string{"new"}},
		"it promises news":              {tellingTools, []string{"old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				server := &shelf{capabilities: tc.capabilities, tools: []string{plain("old")}}
				y := newYoung(t, Limits{})
				y.use(ctx, NewBackend(table.Backend{Name: "a"}, server), NewBackend(table.Backend{Name: "b"}, &shelf{capabilities: tellingTools}))
				<-time.After(time.Second)
				server.put(plain("new"))
				<-time.After(pollInterval + time.Second)
				if diff := cmp.Diff(tc.want, y.lists(ctx)); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestABackendThatPromisesNoNewsIsAskedNoMoreOftenThanOneWithoutAStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server := &shelf{capabilities: silentTools}
		newYoung(t, Limits{}).use(ctx, NewBackend(table.Backend{Name: "a"}, server))
		<-time.After(10*pollInterval + time.Second)
		server.mu.Lock()
		defer server.mu.Unlock()
		if looks := len(server.looked); looks != 12 { // one at first, one when the stream was there
			t.Error(looks)
		}
	})
}

// hears subscribes, and returns what comes on the stream until ctx ends.
func (y *young) hears(ctx context.Context, t *testing.T, notifications string) <-chan string {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		_, answer := y.subscribes(ctx, notifications)
		got <- answer
	}()
	return got
}

func TestWhoSubscribesBeforeThereAreToolsIsToldWhenTheyCome(t *testing.T) {
	t.Parallel()
	for name, lone := range map[string]string{
		"to an endpoint without backends":         "",
		"to a lone backend without tools":         `{}`,
		"to a lone backend that promises no news": silentTools,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				y := newYoung(t, Limits{})
				var before []*Backend
				if lone != "" {
					before = append(before, NewBackend(table.Backend{Name: "a"}, &shelf{capabilities: lone}))
				}
				y.use(ctx, before...)
				<-time.After(time.Second)
				subscribed, end := context.WithTimeout(ctx, time.Minute)
				defer end()
				heard := y.hears(subscribed, t, `{"toolsListChanged":true}`)
				<-time.After(time.Second)
				added := NewBackend(table.Backend{Name: "b"}, &shelf{capabilities: tellingTools, tools: []string{plain("new")}})
				y.use(ctx, append(before, added)...)
				if answer := <-heard; !strings.Contains(answer, `"method":"notifications/tools/list_changed"`) {
					t.Error(answer)
				}
			})
		})
	}
}

func TestAnEndpointWithoutBackendsOffersListsThatMayBeFilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYoung(t, Limits{})
		y.use(t.Context())
		_, answer, _ := y.asks(t.Context(), "server/discover", "")
		want := `"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`
		if !strings.Contains(answer, want) {
			t.Error(answer)
		}
		for _, list := range []string{"tools", "prompts", "resources"} {
			if _, answer, _ := y.asks(t.Context(), list+"/list", ""); !strings.Contains(answer, fmt.Sprintf(`%q:[]`, list)) {
				t.Error(answer)
			}
			// And a client of an older version that keeps no session: nobody is there who wants one.
			body := `{"jsonrpc":"2.0","id":1,"method":"` + list + `/list"}`
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, table.DefaultPath, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if y.ServeHTTP(w, r); !strings.Contains(w.Body.String(), fmt.Sprintf(`%q:[]`, list)) {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		}
	})
}

func TestALoneBackendWhoseAnnotationsCountTellsOfWhatCanBeCalledFromNowOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server := &shelf{capabilities: tellingTools, tools: []string{reading("a")}}
		y := newYoung(t, Limits{})
		b := NewBackend(table.Backend{Name: "b", Trusted: true, Tools: table.ToolPolicy{ReadOnly: true}}, server)
		y.use(ctx, b)
		<-time.After(time.Second)
		l := y.hub.join(nil, nil)
		defer l.leave()
		l.hear(ctx, true) // as one whose client has heard the backend itself, and has asked for the list
		server.put(reading("a"), reading("new"))
		if diff := cmp.Diff([]string{"a"}, y.lists(ctx)); diff != "" {
			t.Errorf("shown before it is known (-want +got):\n%s", diff)
		}
		if _, err := y.look(ctx, b, true); err != nil {
			t.Fatal(err)
		}
		if changed, _, _ := l.take(); !changed.Tools {
			t.Error("who was told too early is not told again")
		}
		if diff := cmp.Diff([]string{"a", "new"}, y.lists(ctx)); diff != "" {
			t.Errorf("shown (-want +got):\n%s", diff)
		}
	})
}

// subscribes opens a subscription and returns its status, and all that came on it.
func (y *young) subscribes(ctx context.Context, notifications string) (status int, answer string) {
	meta := `"_meta":{"` + wire.MetaProtocolVersion + `":"2026-07-28","` + wire.MetaClientCapabilities + `":{}}`
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":` + notifications + `,` + meta + `}}`
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, table.DefaultPath, strings.NewReader(body))
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		headerVersion: wire.Version20260728, "Mcp-Method": "subscriptions/listen",
	} {
		r.Header.Set(header, value)
	}
	w := httptest.NewRecorder()
	y.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

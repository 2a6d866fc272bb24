package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/auth"
	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// late is a server that takes no connection before a time, and the channel of it; zero takes none at all.
type late struct {
	calm

	from time.Time
}

func (l *late) Describe(context.Context) (*backend.Description, error) {
	if l.from.IsZero() || time.Now().Before(l.from) {
		return nil, &backend.Error{Backend: "b", Class: "Connect", Err: errors.New("connection refused")}
	}
	const offers = `{"capabilities":{"tools":{},"prompts":{},"resources":{}}}`
	return &backend.Description{Modern: true, Discover: json.RawMessage(offers)}, nil
}

func (l *late) Modern(context.Context) (backend.Channel, error) {
	return lateChannel{modernChannel{&l.calm}}, nil
}

type lateChannel struct{ modernChannel }

func (lateChannel) Call(_ context.Context, call *backend.Call, s backend.Sink) error {
	result := map[string]string{
		"tools/list":     `{"tools":[{"name":"incr","inputSchema":{"type":"object"}}]}`,
		"prompts/list":   `{"prompts":[{"name":"incr"}]}`,
		"resources/list": `{"resources":[{"uri":"h_incr","name":"r"}]}`,
	}[call.Message.Method]
	if result == "" {
		result = `{"answered":true}`
	}
	return s.Response(bytes.NewReader(wire.NewResult(call.Message.ID, json.RawMessage(result)).Raw))
}

// acting is a server that does with the call of a tool, and with what it is sent, as it is told. What else it is asked it answers as late.
type acting struct {
	late

	call func(ctx context.Context, call *backend.Call, s backend.Sink) error
	send func(ctx context.Context) error
}

type actingChannel struct {
	lateChannel

	of *acting
}

func (a *acting) channel() backend.Channel {
	return actingChannel{lateChannel{modernChannel{&a.calm}}, a}
}

func (a *acting) Modern(context.Context) (backend.Channel, error) { return a.channel(), nil }

func (c actingChannel) Call(ctx context.Context, call *backend.Call, s backend.Sink) error {
	if call.Message.Method != "tools/call" {
		return c.lateChannel.Call(ctx, call, s)
	}
	return c.of.call(ctx, call, s)
}

func (c actingChannel) Send(ctx context.Context, _ *wire.Message) error { return c.of.send(ctx) }

// young is a gateway that has just started, inside of a bubble.
type young struct {
	*Front

	verifier *auth.Verifier
	audit    bytes.Buffer
}

func newYoung(t *testing.T, limits Limits) *young {
	t.Helper()
	verifier, err := auth.New(t.Context(), table.Auth{Type: table.AuthNone}, auth.Options{Path: table.DefaultPath}, nil)
	if err != nil {
		t.Fatal(err)
	}
	y := &young{verifier: verifier}
	watch := telemetry.New(telemetry.Options{Audit: &y.audit})
	y.Front = New(Options{Logger: slog.New(slog.DiscardHandler), Telemetry: watch, Sealer: seal.Ephemeral(), Limits: limits})
	return y
}

// use serves backends, and watches those.
func (y *young) use(ctx context.Context, backends ...*Backend) {
	routes := &table.Table{Endpoint: table.Endpoint{Path: table.DefaultPath}}
	for _, b := range backends {
		routes.Backends = append(routes.Backends, b.Config)
	}
	y.Use(&State{Table: routes, Verifier: y.verifier, Backends: backends})
	for _, b := range backends {
		go y.Watch(ctx, b)
	}
}

// outcome is the one of the last call that was audited.
func (y *young) outcome(t *testing.T) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(y.audit.String()), "\n")
	var line struct {
		Outcome string `json:"outcome"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		t.Fatalf("%v: %q", err, y.audit.String())
	}
	return line.Outcome
}

// asks sends a request of 2026-07-28 about a name, and returns the status, the answer and how long it took.
func (y *young) asks(ctx context.Context, method, name string) (status int, answer string, took time.Duration) {
	key := "name"
	if method == "resources/read" {
		key = "uri"
	}
	meta := `"_meta":{"` + wire.MetaProtocolVersion + `":"2026-07-28","` + wire.MetaClientCapabilities + `":{}}`
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"` + key + `":"` + name + `","arguments":{},` + meta + `}}`
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, table.DefaultPath, strings.NewReader(body))
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		headerVersion: wire.Version20260728, "Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	w, begun := httptest.NewRecorder(), time.Now()
	y.ServeHTTP(w, r)
	return w.Code, w.Body.String(), time.Since(begun)
}

func TestAToolIsUnknownOnlyOnceNobodyIsLeftWhoMayHaveIt(t *testing.T) {
	t.Parallel()
	const never, soon, later = -time.Second, 3 * time.Second, 5 * time.Second
	type told struct{ Answer, Outcome string }
	found, missing := told{`"answered":true`, "ok"}, told{`it refuses connections; the request was not sent, it is safe to try again`, "unavailable"}
	for name, tc := range map[string]struct {
		// comes is when the server with the prefix h_ takes connections.
		comes          time.Duration
		method, asked  string
		policy         table.ToolPolicy
		want           told
		least, longest time.Duration
	}{
		"it comes":                            {comes: soon, want: found, least: soon, longest: later},
		"it comes, says a prompt":             {comes: soon, method: "prompts/get", want: found, least: soon, longest: later},
		"it comes, says a resource":           {comes: soon, method: "resources/read", want: found, least: soon, longest: later},
		"it does not come":                    {comes: never, want: missing, least: defaultHold, longest: defaultHold},
		"it does not come, says a prompt":     {comes: never, method: "prompts/get", want: missing, least: defaultHold, longest: defaultHold},
		"it does not come, says a resource":   {comes: never, method: "resources/read", want: missing, least: defaultHold, longest: defaultHold},
		"it came, and has no such tool":       {comes: time.Second, asked: "h_other", want: told{`unknown tool`, "denied"}, longest: soon},
		"nobody has the prefix":               {comes: never, asked: "x_incr", want: told{`unknown tool`, "denied"}},
		"nobody has the prefix of the prompt": {comes: never, method: "prompts/get", asked: "x", want: told{Answer: `unknown prompt`}},
		"policy holds it back":                {comes: never, policy: table.ToolPolicy{Deny: []string{"incr"}}, want: told{`unknown tool`, "denied"}},
		"it is called otherwise": {
			comes: never, policy: table.ToolPolicy{Rename: map[string]string{"incr": "plus"}}, want: told{`unknown tool`, "denied"},
		},
		"nobody's word counts that it only reads": {comes: never, policy: table.ToolPolicy{ReadOnly: true}, want: told{`unknown tool`, "denied"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				y := newYoung(t, Limits{})
				inc := &late{from: time.Now().Add(tc.comes)}
				if tc.comes == never {
					inc.from = time.Time{}
				}
				y.use(ctx, NewBackend(table.Backend{Name: "inc", Prefix: "h_", Tools: tc.policy}, inc),
					NewBackend(table.Backend{Name: "down", Prefix: "d_"}, &late{}))
				method, asked := "tools/call", "h_incr"
				if tc.method != "" {
					method = tc.method
				}
				if tc.asked != "" {
					asked = tc.asked
				}
				_, answer, took := y.asks(ctx, method, asked)
				if !strings.Contains(answer, tc.want.Answer) || took < tc.least || took > tc.longest {
					t.Errorf("answered after %s: %s", took, answer)
				}
				if tc.want.Outcome != "" {
					if diff := cmp.Diff(tc.want.Outcome, y.outcome(t)); diff != "" {
						t.Errorf("audited -want +got:\n%s", diff)
					}
				}
				if told := strings.Contains(answer, `"class":"Connect","sent":false`); told != (tc.want.Outcome == "unavailable") {
					t.Errorf("answered %s", answer)
				}
			})
		})
	}
}

func TestACallThatWaitsForItsServerEndsWhenItIsNotWantedAnyMore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end     func(ctx context.Context, y *young, leave func())
		outcome string
	}{
		"its client leaves": {func(_ context.Context, _ *young, leave func()) { leave() }, "cancelled"},
		"its server is taken away": {func(ctx context.Context, y *young, _ func()) {
			y.use(ctx, NewBackend(table.Backend{Name: "down", Prefix: "d_"}, &late{}), NewBackend(table.Backend{Name: "other", Prefix: "o_"}, &late{}))
		}, "denied"},
		"its tool is taken away": {func(ctx context.Context, y *young, _ func()) {
			config := table.Backend{Name: "inc", Prefix: "h_", Tools: table.ToolPolicy{Deny: []string{"incr"}}}
			y.use(ctx, NewBackend(config, &late{}), NewBackend(table.Backend{Name: "down", Prefix: "d_"}, &late{}))
		}, "denied"},
		"its server moves to where it is": {func(ctx context.Context, y *young, _ func()) {
			y.use(ctx, NewBackend(table.Backend{Name: "inc", Prefix: "h_"}, &late{from: time.Now()}), NewBackend(table.Backend{Name: "down"}, &late{}))
		}, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				y := newYoung(t, Limits{})
				y.use(ctx, NewBackend(table.Backend{Name: "inc", Prefix: "h_"}, &late{}), NewBackend(table.Backend{Name: "down", Prefix: "d_"}, &late{}))
				calling, leave := context.WithCancel(ctx)
				time.AfterFunc(2*time.Second, func() { tc.end(ctx, y, leave) })
				_, answer, took := y.asks(calling, "tools/call", "h_incr")
				if got := y.outcome(t); got != tc.outcome || took != 2*time.Second {
					t.Errorf("audited %q after %s: %s", got, took, answer)
				}
			})
		})
	}
}

func TestACallThatWaitsForItsServerCountsInItsCallersQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		y := newYoung(t, Limits{Calls: 2}) // one at each backend
		y.use(ctx, NewBackend(table.Backend{Name: "inc", Prefix: "h_"}, &late{}),
			NewBackend(table.Backend{Name: "up", Prefix: "u_"}, &late{from: time.Now()}))
		ended := make(chan string)
		go func() {
			_, answer, _ := y.asks(ctx, "tools/call", "h_incr")
			ended <- answer
		}()
		synctest.Wait()
		if status, answer, took := y.asks(ctx, "tools/call", "h_incr"); status != http.StatusTooManyRequests || took != 0 {
			t.Errorf("status %d after %s: %s", status, took, answer)
		}
		if got := y.outcome(t); got != "rejected" {
			t.Errorf("audited %q", got)
		}
		if status, answer, took := y.asks(ctx, "tools/call", "u_incr"); !strings.Contains(answer, `"answered"`) || took != 0 {
			t.Errorf("another server: status %d after %s: %s", status, took, answer)
		}
		if answer := <-ended; !strings.Contains(answer, "safe to try again") {
			t.Errorf("the one that waited: %s", answer)
		}
	})
}

func TestAWaitingCallIsCancelledByItsSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		y := newYoung(t, Limits{})
		y.use(ctx, NewBackend(table.Backend{Name: "inc", Prefix: "h_"}, &late{}), NewBackend(table.Backend{Name: "down", Prefix: "d_"}, &late{}))
		session := ""
		post := func(body string) (id, answer string) {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, table.DefaultPath, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if session != "" {
				r.Header.Set(headerSession, session)
			}
			w := httptest.NewRecorder()
			y.ServeHTTP(w, r)
			return w.Header().Get(headerSession), w.Body.String()
		}
		session, _ = post(initializing)
		time.AfterFunc(time.Second, func() { post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`) })
		begun := time.Now()
		_, answer := post(strings.Replace(calling, `"t"`, `"h_incr"`, 1))
		if took := time.Since(begun); took != time.Second || y.outcome(t) != "cancelled" {
			t.Errorf("audited %q after %s: %s", y.outcome(t), took, answer)
		}
		if n := len(y.sessions.byKey[keyOf(session)].calls); n != 0 {
			t.Errorf("%d calls that have ended are remembered", n)
		}
	})
}

func TestALoneServerThatWasNeverReachedIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		comes   bool
		method  string
		answer  string
		longest time.Duration
	}{
		"a call":                        {true, "tools/call", `"answered":true`, 5 * time.Second},
		"what it offers":                {true, "server/discover", `"capabilities"`, 5 * time.Second},
		"a call that waits in vain":     {false, "tools/call", "safe to try again", defaultHold},
		"what it offers, asked in vain": {false, "server/discover", "safe to try again", defaultHold + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				y, server := newYoung(t, Limits{}), &late{}
				if tc.comes {
					server.from = time.Now().Add(3 * time.Second)
				}
				y.use(ctx, NewBackend(table.Backend{Name: "inc"}, server))
				_, answer, took := y.asks(ctx, tc.method, "incr")
				if !strings.Contains(answer, tc.answer) || took < 3*time.Second || took > tc.longest {
					t.Errorf("answered after %s: %s", took, answer)
				}
			})
		})
	}
}

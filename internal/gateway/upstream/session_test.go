package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestALostSessionIsTold(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			server := newScript()
			server.lost = status
			b := open(t, serve(t, server).URL)
			channel, handle := openSession(t, b)
			if err := ping(t, channel); err != nil {
				t.Fatal(err)
			}
			server.forget()
			resumed, err := b.Resume(handle)
			if err != nil {
				t.Fatal(err)
			}
			for what, do := range map[string]func() error{
				"Call":   func() error { return ping(t, channel) },
				"Resume": func() error { return ping(t, resumed) },
				"Send":   func() error { return channel.Send(testContext(t), wire.NewNotification("notifications/x", nil)) },
				"Listen": func() error { return channel.Listen(testContext(t), nil, &sink{}) },
			} {
				err := do()
				if !errors.Is(err, backend.ErrSession) || classOf(t, err).Sent {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

func TestABadRequestInALiveSessionIsNoLostSession(t *testing.T) {
	server := newScript()
	server.on = func(w http.ResponseWriter, r *http.Request, m *wire.Message) bool {
		if m.Method == "tools/call" {
			asStatus(http.StatusBadRequest, string(wire.NewError(nil, -32602, "no such tool", nil).Raw))(w, r)
		}
		return m.Method == "tools/call"
	}
	b := open(t, serve(t, server).URL)
	channel, _ := openSession(t, b)
	var s sink
	if err := channel.Call(testContext(t), toolCall(`5`, "echo", "", backend.Legacy), &s); err != nil {
		t.Fatal(err)
	}
	if m := s.result(t); string(m.ID) != "5" || codeOf(m) != -32602 {
		t.Errorf("answered %s", s.response)
	}
}

func TestACallerWhoLeavesCancelsAtALegacyServer(t *testing.T) {
	started := make(chan struct{})
	server := newScript()
	server.on = func(_ http.ResponseWriter, r *http.Request, m *wire.Message) bool {
		if m.Method == "tools/call" {
			close(started)
			<-r.Context().Done()
		}
		return m.Method == "tools/call"
	}
	r := &recorder{Handler: server}
	b := open(t, serve(t, r).URL)
	channel, _ := openSession(t, b)
	ctx, cancel := context.WithCancel(testContext(t))
	go func() { <-started; cancel() }()
	err := channel.Call(ctx, toolCall(`"mine"`, "slow", "", backend.Legacy), &sink{})
	if failure := classOf(t, err); failure.Class != "Timeout" || !failure.Sent {
		t.Errorf("%v", err)
	}
	eventually(t, "the server is told", func() bool { return len(r.with("notifications/cancelled")) == 1 })
	if got := r.with("notifications/cancelled")[0]; !strings.Contains(got.body, `"requestId":"mine"`) || got.header.Get("Mcp-Session-Id") != "session-2" {
		t.Errorf("it was told %+v", got)
	}
}

func TestACallerWhoLeavesClosesTheStreamOfAModernServer(t *testing.T) {
	ended := make(chan struct{})
	started := make(chan struct{})
	r := &recorder{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(started)
		silent(mediaOfStream, event(notification))(w, r)
		close(ended)
	})}
	b := open(t, serve(t, r).URL)
	ctx, cancel := context.WithCancel(testContext(t))
	go func() { <-started; cancel() }()
	if err := b.modern().Call(ctx, toolCall(`1`, "slow", "", backend.Modern), &sink{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	select {
	case <-ended:
	case <-testContext(t).Done():
		t.Fatal("the server was not told")
	}
	if n := len(r.with("")); n != 1 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestASinkThatFailsEndsTheCall(t *testing.T) {
	server := newScript()
	server.on = func(w http.ResponseWriter, r *http.Request, m *wire.Message) bool {
		if m.Method == "tools/call" {
			silent(mediaOfStream, event(notification))(w, r)
		}
		return m.Method == "tools/call"
	}
	r := &recorder{Handler: server}
	b := open(t, serve(t, r).URL)
	channel, _ := openSession(t, b)
	gone := errors.New("the client is gone")
	err := channel.Call(testContext(t), toolCall(`1`, "slow", "", backend.Legacy), &sink{on: func(*wire.Message) error { return gone }})
	if !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	eventually(t, "the server is told", func() bool { return len(r.with("notifications/cancelled")) == 1 })
}

// TestAnAbandonedOpenLeavesNoSession has the client leave while the server takes its time over initialize.
func TestAnAbandonedOpenLeavesNoSession(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	server := newScript()
	b := open(t, serve(t, server).URL)
	if _, err := b.Describe(testContext(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session of Describe is deleted", func() bool { return server.live() == 0 })
	server.on = func(_ http.ResponseWriter, _ *http.Request, m *wire.Message) bool {
		if m.Method == "initialize" {
			close(asked)
			<-answer
		}
		return false
	}
	ctx, cancel := context.WithCancel(testContext(t))
	go func() { <-asked; cancel() }()
	if _, _, err := b.Open(ctx, backend.Client{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(answer)
	eventually(t, "the session was opened and deleted", func() bool {
		server.mu.Lock()
		defer server.mu.Unlock()
		return server.last == 2 && len(server.sessions) == 0
	})
}

func TestCloseEndsTheSessionAtTheServer(t *testing.T) {
	server := newScript()
	b := open(t, serve(t, server).URL)
	channel, _ := openSession(t, b)
	eventually(t, "one session is left", func() bool { return server.live() == 1 })
	if err := channel.Close(testContext(t)); err != nil || server.live() != 0 {
		t.Errorf("%v, %d sessions live", err, server.live())
	}
}

func TestAServerWithoutStreamIsNotAskedForItAgain(t *testing.T) {
	r := &recorder{Handler: newScript()}
	b := open(t, serve(t, r).URL)
	channel, _ := openSession(t, b)
	for range 3 {
		if err := channel.Listen(testContext(t), nil, &sink{}); !errors.Is(err, backend.ErrNoStream) {
			t.Fatalf("%v", err)
		}
	}
	if n := len(r.with("GET")); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestAStreamThatAlwaysEndsIsNoLoop has a server that offers a stream and ends it at once, with an event id or without.
func TestAStreamThatAlwaysEndsIsNoLoop(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		times int
	}{
		"without an id": {": hello\n\n", 1},
		"with an id":    {"id: 1\nretry: 1\ndata:\n\n", 4},
	} {
		t.Run(name, func(t *testing.T) {
			server := newScript()
			server.onGet = asStream(c.body)
			r := &recorder{Handler: server}
			b := open(t, serve(t, r).URL, func(_ *table.Backend, o *Options) { o.Limits.Resumes = 3 })
			channel, _ := openSession(t, b)
			if err := channel.Listen(testContext(t), nil, &sink{}); err != nil {
				t.Fatal(err)
			}
			if n := len(r.with("GET")); n != c.times {
				t.Errorf("it was asked %d times, want %d", n, c.times)
			}
		})
	}
}

func TestHeadersSayWhatTheProtocolWants(t *testing.T) {
	server := newScript()
	r := &recorder{Handler: server}
	b := open(t, serve(t, r).URL+"/mcp", func(c *table.Backend, o *Options) {
		c.HostHeader, o.Credential = "localhost:8080", fixedCredential{}
	})
	channel, _ := openSession(t, b)
	further := map[string]string{
		"Mcp-Param-Region": "eu", "traceparent": "00-1-2-01", "Authorization": "stolen", "Cookie": "stolen",
		"Connection": "Mcp-Session-Id", "X-Forwarded-For": "1.2.3.4", "mcp-session-id": "stolen", "Host": "stolen",
	}
	call := toolCall(`1`, "größe", "", backend.Legacy)
	call.Headers = further
	if err := channel.Call(testContext(t), call, &sink{}); err != nil {
		t.Fatal(err)
	}
	common := http.Header{
		"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "User-Agent": {"mcp-gateway"},
		"Authorization": {"Bearer token"}, "Mcp-Param-Region": {"eu"}, "Traceparent": {"00-1-2-01"},
	}
	want := common.Clone()
	want["Mcp-Session-Id"], want["Mcp-Protocol-Version"] = []string{"session-2"}, []string{"2025-11-25"}
	check := func(want http.Header) {
		t.Helper()
		calls := r.with("tools/call")
		got := calls[len(calls)-1]
		got.header.Del("Content-Length")
		if diff := cmp.Diff(want, got.header); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
		if got.host != "localhost:8080" {
			t.Errorf("Host: %s", got.host)
		}
	}
	check(want)
	call = toolCall(`1`, "größe", "", backend.Modern)
	call.Headers = further
	_ = b.modern().Call(testContext(t), call, &sink{}) // the script does not know it
	want = common.Clone()
	want["Mcp-Protocol-Version"], want["Mcp-Method"] = []string{"2026-07-28"}, []string{"tools/call"}
	want["Mcp-Name"] = []string{wire.EncodeHeader("größe")}
	check(want)
}

func TestTheVersionHeaderIsForVersionsThatKnowIt(t *testing.T) {
	for version, want := range map[string]string{"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "", "2024-11-05": ""} {
		server := newScript()
		server.version = version
		r := &recorder{Handler: server}
		b := open(t, serve(t, r).URL)
		channel, handle := openSession(t, b)
		if err := ping(t, channel); err != nil {
			t.Fatal(err)
		}
		if got := r.with("ping")[0].header.Get("Mcp-Protocol-Version"); got != want || handle.Version != version {
			t.Errorf("%s: header %q, want %q; handle %+v", version, got, want, handle)
		}
	}
}

func TestTheClientIsIntroducedToTheServer(t *testing.T) {
	server := newScript()
	r := &recorder{Handler: server}
	b := open(t, serve(t, r).URL)
	client := backend.Client{
		Capabilities: json.RawMessage(`{"roots":{"listChanged":true}}`), Info: json.RawMessage(`{"name":"agent","version":"9"}`), Version: "2025-06-18",
	}
	if _, _, err := b.Open(testContext(t), client); err != nil {
		t.Fatal(err)
	}
	greetings := r.with(`"method":"initialize"`)
	want := `"params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"agent","version":"9"}}`
	if !strings.Contains(greetings[len(greetings)-1].body, want) {
		t.Errorf("it was told %s", greetings[len(greetings)-1].body)
	}
	if !strings.Contains(greetings[0].body, `"capabilities":{},"clientInfo":{"name":"mcp-gateway","version":"1.2.3"}`) {
		t.Errorf("Describe told %s", greetings[0].body)
	}
}

func TestAHandleThatIsForeignIsRefused(t *testing.T) {
	b := open(t, serve(t, newScript()).URL)
	for name, h := range map[string]backend.Handle{
		"no version":     {Session: "s", Server: b.place},
		"unknown":        {Session: "s", Version: "1999-01-01", Server: b.place},
		"modern":         {Session: "s", Version: "2026-07-28", Server: b.place},
		"an address":     {Session: "s", Version: "2025-11-25", Address: "10.0.0.1:80", Server: b.place},
		"a line feed":    {Session: "s\r\nX: y", Version: "2025-11-25", Server: b.place},
		"of elsewhere":   {Session: "s", Version: "2025-11-25", Server: "elsewher"},
		"of nowhere":     {Session: "s", Version: "2025-11-25"},
		"another's pipe": {Session: "sse:ABC", Version: "2024-11-05"},
	} {
		if _, err := b.Resume(h); !errors.Is(err, backend.ErrSession) {
			t.Errorf("%s: %v", name, err)
		}
	}
	right := backend.Handle{Session: "s", Version: "2025-11-25", Server: b.place}
	if _, err := b.Resume(right); err != nil {
		t.Errorf("its own: %v", err)
	}
}

// TestASessionIsNotShownToAnotherServer has a table give the backend another address.
func TestASessionIsNotShownToAnotherServer(t *testing.T) {
	first := serve(t, newScript())
	_, handle := openSession(t, open(t, first.URL))
	if _, err := open(t, first.URL).Resume(handle); err != nil {
		t.Errorf("after a restart of the gateway: %v", err)
	}
	if _, err := open(t, serve(t, newScript()).URL).Resume(handle); !errors.Is(err, backend.ErrSession) {
		t.Errorf("at another URL: %v", err)
	}
	hosted := open(t, first.URL, func(c *table.Backend, _ *Options) { c.HostHeader = "another.example" })
	if _, err := hosted.Resume(handle); !errors.Is(err, backend.ErrSession) {
		t.Errorf("at another virtual host: %v", err)
	}
}

func TestCloseEndsWhatIsInFlight(t *testing.T) {
	started := make(chan struct{})
	b := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(started)
		silent(mediaOfStream, "")(w, r)
	})).URL)
	ended := make(chan error, 1)
	go func() { ended <- b.modern().Call(testContext(t), toolCall(`1`, "slow", "", backend.Modern), &sink{}) }()
	<-started
	if err := b.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if failure := classOf(t, <-ended); failure.Class != "Connect" || !failure.Sent {
		t.Errorf("%+v", failure)
	}
	if _, _, err := b.Shared(testContext(t), "x"); err == nil {
		t.Error("a closed backend opens sessions")
	}
}

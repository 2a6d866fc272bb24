package front

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// asking is a server that asks the client of each call something, under the same id in each of its sessions, and answers with the answer.
type asking struct {
	silent

	mu sync.Mutex
	// sessions are those that have not ended.
	sessions map[string]*askingChannel
	opened   int
	// taken is how many answers came to sessions of the server.
	taken int
	// call, if not nil, is what a call does instead.
	call func(c *askingChannel, s backend.Sink) error
}

// askingChannel is a session of an asking.
type askingChannel struct {
	*asking

	id      string
	answers chan string
}

// away is an asking whose sessions live in the replica that opened them.
type away struct{ *asking }

func (a away) Resume(backend.Handle) (backend.Channel, error) { return nil, backend.ErrSession }

func (a *asking) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened++
	c := &askingChannel{a, fmt.Sprintf("s%d", a.opened), make(chan string, 10)}
	if a.sessions == nil {
		a.sessions = map[string]*askingChannel{}
	}
	a.sessions[c.id] = c
	return c, backend.Handle{Session: c.id, Version: "2025-11-25"}, nil
}

func (a *asking) Resume(h backend.Handle) (backend.Channel, error) {
	return &askingChannel{asking: a, id: h.Session}, nil
}

// replace ends all sessions, as another pod in place of the server's does.
func (a *asking) replace() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.sessions)
}

// known is the session, if it has not ended.
func (c *askingChannel) known() (*askingChannel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.sessions[c.id]; known != nil {
		return known, nil
	}
	return nil, &backend.Error{Backend: "b", Class: "NotFound", Err: backend.ErrSession}
}

func (c *askingChannel) Call(ctx context.Context, call *backend.Call, s backend.Sink) error {
	c, err := c.known()
	if err != nil {
		return err
	}
	ask := c.call
	if ask == nil {
		ask = (*askingChannel).ask
	}
	if err := ask(c, s); err != nil {
		return err
	}
	select {
	case answer := <-c.answers:
		return s.Response(strings.NewReader(string(wire.NewResult(call.Message.ID, wire.Quote(c.id+" was answered "+answer)).Raw)))
	case <-ctx.Done():
		return &backend.Error{Backend: "b", Class: "Timeout", Sent: true, Err: context.Cause(ctx)}
	}
}

func (*askingChannel) ask(s backend.Sink) error { return s.Message(question()) }

func question() *wire.Message {
	return wire.NewRequest(json.RawMessage(`0`), "elicitation/create", nil)
}

func (c *askingChannel) Send(_ context.Context, m *wire.Message) error {
	c, err := c.known()
	if err == nil && m.Kind == wire.Response {
		c.mu.Lock()
		c.taken++
		c.mu.Unlock()
		c.answers <- string(m.ID) + " with " + string(m.Result)
	}
	return err
}

// replicasOf are two gateways with the same keys in front of servers of the same name.
func replicasOf(t *testing.T, servers ...backend.Backend) (urls []string) {
	t.Helper()
	sealer := seal.Ephemeral()
	for _, server := range servers {
		f, _, url := endpoint(t, server)
		f.options.Sealer = sealer
		urls = append(urls, url)
	}
	return urls
}

// post sends a message in a session.
func post(t *testing.T, url, session, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(headerSession, session)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// events are what comes to a call.
type events struct{ *bufio.Scanner }

// asked calls a tool, and returns what comes.
func asked(t *testing.T, url, session string) events {
	t.Helper()
	return events{bufio.NewScanner(post(t, url, session, calling).Body)}
}

// next is the next message, and its id; empty at the end.
func (e events) next() (id, message string) {
	for e.Scan() {
		if data, ok := strings.CutPrefix(e.Text(), "data: "); ok {
			return string(wire.Field([]byte(data), "id")), data
		}
	}
	return "", ""
}

// answering answers a question, and returns what the gateway says to it.
func answering(t *testing.T, url, session, id, answer string) (status int) {
	t.Helper()
	return post(t, url, session, `{"jsonrpc":"2.0","id":`+id+`,"result":`+wireText(answer)+`}`).StatusCode
}

func wireText(s string) string { return string(wire.Quote(s)) }

func TestAnAnswerGoesToTheSessionThatAskedWhateverReplicaTakesIt(t *testing.T) {
	t.Parallel()
	server := &asking{}
	urls := replicasOf(t, server, server)
	session, _ := ask(t, http.MethodPost, urls[0], nil, initializing)
	server.replace() // so that each replica opens a session of its own
	var calls []events
	var ids []string
	for _, url := range urls {
		call := asked(t, url, session)
		id, _ := call.next()
		calls, ids = append(calls, call), append(ids, id)
	}
	if ids[0] == ids[1] {
		t.Fatalf("two questions bear the id %s", ids[0])
	}
	for i, id := range ids {
		if status := answering(t, urls[1-i], session, id, "yes"); status != http.StatusAccepted {
			t.Fatalf("the answer to question %d is told %d", i, status)
		}
		_, got := calls[i].next()
		if want := fmt.Sprintf(`"s%d was answered 0 with \"yes\""`, 2+i); string(wire.Field([]byte(got), "result")) != want {
			t.Errorf("call %d got %s, want %s", i, got, want)
		}
	}
}

// TestAnAnswerIsDeliveredToTheSessionThatAskedOrDropped, and accepted either way.
func TestAnAnswerIsDeliveredToTheSessionThatAskedOrDropped(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// reopened says that the session that asks is not the one of the client's session id.
		reopened bool
		// away says that sessions of the server live in the replica that opened them.
		away bool
		// by makes the id that is answered from that of the question.
		by func(id string) string
		// gone says that the session that asked has ended by then.
		gone bool
		// taken is how many answers come to the server.
		taken int
	}{
		"it arrives": {taken: 1},
		"it arrives in a session that was opened anew": {reopened: true, taken: 1},
		"the session has ended":                        {gone: true},
		"the session that was opened anew has ended":   {reopened: true, gone: true},
		"the session is at the other replica":          {away: true},
		"the session is at the other replica, anew":    {away: true, reopened: true},
		"the server's own id":                          {by: func(string) string { return `0` }},
		"an id of another server":                      {by: func(string) string { return `"c:0"` }},
		"an id of nothing":                             {by: func(string) string { return `"b:"` }},
		"an id that cannot be opened":                  {by: func(string) string { return `"@1.ephemeral.AAAA:0"` }},
		"an id of the first session, which has ended":  {reopened: true, by: func(string) string { return `"b:0"` }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &asking{}
			other := backend.Backend(server)
			if tc.away {
				other = away{server}
			}
			urls := replicasOf(t, server, other)
			session, _ := ask(t, http.MethodPost, urls[0], nil, initializing)
			if tc.reopened {
				server.replace()
			}
			id, _ := asked(t, urls[0], session).next()
			if tc.by != nil {
				id = tc.by(id)
			}
			if tc.gone {
				server.replace()
			}
			response := post(t, urls[1], session, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
			server.mu.Lock()
			defer server.mu.Unlock()
			if response.StatusCode != http.StatusAccepted || server.taken != tc.taken {
				t.Errorf("told %d, want 202; the server took %d answers, want %d", response.StatusCode, server.taken, tc.taken)
			}
		})
	}
}

func TestAnAnswerThatComesAfterItsSessionWasOpenedAnewAnswersNoOther(t *testing.T) {
	t.Parallel()
	server := &asking{}
	urls := replicasOf(t, server)
	session, _ := ask(t, http.MethodPost, urls[0], nil, initializing)
	var before []string
	for n := range 3 {
		call := asked(t, urls[0], session)
		id, _ := call.next()
		for _, old := range before {
			if status := answering(t, urls[0], session, old, "old"); status != http.StatusAccepted {
				t.Errorf("in session %d the answer to %s is told %d", n+1, old, status)
			}
		}
		if status := answering(t, urls[0], session, id, "new"); status != http.StatusAccepted {
			t.Fatalf("in session %d the answer is told %d", n+1, status)
		}
		if _, got := call.next(); !strings.Contains(got, `with \"new\"`) {
			t.Errorf("in session %d the call got %s", n+1, got)
		}
		call.next() // its end: only then its id can be used again
		before = append(before, id)
		server.replace()
	}
}

func TestAQuestionIsAnsweredInTheSessionOfItsClientAlone(t *testing.T) {
	t.Parallel()
	server := &asking{}
	urls := replicasOf(t, server)
	session, _ := ask(t, http.MethodPost, urls[0], nil, initializing)
	another, _ := ask(t, http.MethodPost, urls[0], nil, initializing)
	server.replace()
	call := asked(t, urls[0], session)
	id, _ := call.next()
	if status := answering(t, urls[0], another, id, "no"); status != http.StatusAccepted {
		t.Errorf("the answer of another session is told %d", status)
	}
	if status := answering(t, urls[0], session, id, "yes"); status != http.StatusAccepted {
		t.Errorf("the answer is told %d", status)
	}
	if _, got := call.next(); !strings.Contains(got, `with \"yes\"`) {
		t.Errorf("the call got %s", got)
	}
}

func TestAQuestionThatIsGivenUpIsNamedAsItsClientKnowsIt(t *testing.T) {
	t.Parallel()
	for name, reopened := range map[string]bool{"in the first session": false, "in a session that was opened anew": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &asking{call: func(c *askingChannel, s backend.Sink) error {
				if err := c.ask(s); err != nil {
					return err
				}
				return s.Message(wire.NewNotification("notifications/cancelled", json.RawMessage(`{"requestId":0,"reason":"late"}`)))
			}}
			urls := replicasOf(t, server)
			session, _ := ask(t, http.MethodPost, urls[0], nil, initializing)
			if reopened {
				server.replace()
			}
			call := asked(t, urls[0], session)
			id, _ := call.next()
			_, cancelled := call.next()
			want := `{"requestId":` + id + `,"reason":"late"}`
			if diff := cmp.Diff(want, string(wire.Field([]byte(cancelled), "params"))); diff != "" {
				t.Errorf("cancelled -want +got:\n%s", diff)
			}
		})
	}
}

// TestAServerThatKnowsNoQuestionsAsksNobody: its channel takes no answer, so that the client would give one in vain.
func TestAServerThatKnowsNoQuestionsAsksNobody(t *testing.T) {
	t.Parallel()
	server := &acting{
		late: late{from: time.Now()},
		call: func(_ context.Context, _ *backend.Call, s backend.Sink) error { return s.Message(question()) },
		send: func(context.Context) error { return backend.ErrEra },
	}
	urls := replicasOf(t, server)
	session, _ := ask(t, http.MethodPost, urls[0], nil, initializing)
	if _, got := asked(t, urls[0], session).next(); got != "" {
		t.Errorf("the client is asked %s", got)
	}
	body := new(strings.Builder)
	_ = post(t, urls[0], session, calling).Write(body)
	if !strings.Contains(body.String(), "could not be passed on") {
		t.Errorf("the call got %s", body.String())
	}
}

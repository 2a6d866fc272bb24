package upstream

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// isSent fails the test unless an error says that the call may have been carried out, and nothing that makes anybody send it again.
func isSent(t *testing.T, err error) {
	t.Helper()
	if failure := classOf(t, err); failure.Class != "ServerError" || !failure.Sent || errors.Is(err, backend.ErrSession) {
		t.Errorf("%v (%+v)", err, failure)
	}
}

const progressing = "id: e1\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n\n"

// TestACallThatAServerTookIsNeverSaidToBeUnsent has the session end, in one of many ways, while the call is carried out.
func TestACallThatAServerTookIsNeverSaidToBeUnsent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// goes is what happens once the server has the call: to its pod, and to its sessions.
		goes func(f *fleet, pod string, server *script)
		// asks has the server ask the client, whose answer then finds no session.
		asks bool
	}{
		"its pod is gone from the network":    {goes: func(f *fleet, pod string, _ *script) { f.remove(pod, false) }},
		"its pod is gone from DNS too":        {goes: func(f *fleet, pod string, _ *script) { f.remove(pod, true) }},
		"its pod has forgotten the session":   {goes: func(_ *fleet, _ string, s *script) { s.forget() }},
		"an answer to the pod is not wanted":  {goes: func(_ *fleet, _ string, s *script) { s.forget() }, asks: true},
		"an answer to the pod cannot be sent": {goes: func(f *fleet, pod string, _ *script) { f.remove(pod, true) }, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, "10.0.0.1", "10.0.0.2")
			b := f.open(t)
			channel, handle := openSession(t, b)
			pod, _, _ := strings.Cut(handle.Address, ":")
			server := f.pods[pod].Handler.(*script) //nolint:forcetypeassert // newFleet made it
			server.on = func(w http.ResponseWriter, r *http.Request, m *wire.Message) bool {
				if m.Method != "tools/call" {
					return false
				}
				w.Header().Set("Content-Type", mediaOfStream)
				text := progressing
				if tc.asks {
					text = event(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`)
				}
				tc.goes(f, pod, server)
				b.pods.mu.Lock()
				clear(b.pods.seen) // as if the last look at DNS were long ago
				b.pods.mu.Unlock()
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
				if tc.asks {
					<-r.Context().Done()
				}
				panic(http.ErrAbortHandler)
			}
			err := channel.Call(testContext(t), toolCall(`1`, "pay", "", backend.Legacy), &sink{on: func(m *wire.Message) error {
				if m.Kind != wire.Request {
					return nil
				}
				return channel.Send(testContext(t), wire.NewResult(m.ID, nil))
			}})
			isSent(t, err)
			if n := len(f.pods["10.0.0.1"].with("tools/call")) + len(f.pods["10.0.0.2"].with("tools/call")); n != 1 {
				t.Errorf("the call was received %d times", n)
			}
		})
	}
}

// TestACallInFlightOverSSEIsNeverSaidToBeUnsent has the server answer another request of the session that it does not know it.
func TestACallInFlightOverSSEIsNeverSaidToBeUnsent(t *testing.T) {
	p := newPiped()
	b := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(body), `"ping"`) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		p.ServeHTTP(w, r)
	})).URL+"/sse")
	channel, _ := openSession(t, b)
	asked := make(chan struct{})
	p.on = func(*wire.Message) string {
		close(asked)
		return ""
	}
	ended := make(chan error, 1)
	go func() { ended <- channel.Call(testContext(t), toolCall(`1`, "pay", "", backend.Legacy), &sink{}) }()
	<-asked
	if err := ping(t, channel); !errors.Is(err, backend.ErrSession) || classOf(t, err).Sent {
		t.Errorf("the request that was not taken: %v", err)
	}
	isSent(t, <-ended)
}

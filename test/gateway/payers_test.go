package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/test/launch"
)

// payment is a call, and what became of it.
type payment struct {
	id           string
	gateway      *launch.Gateway
	begun, ended time.Time
	// failure is empty if it succeeded.
	failure string
}

// death is the end of a pod or of a gateway: from when on it was killed, and when nobody can believe any more that it lives.
type death struct {
	pod     string
	gateway *launch.Gateway
	at, by  time.Time
}

// unseen is how long a connection may seem to be alive when its other end is not.
const unseen = 500 * time.Millisecond

// excuses says whether a call failed because it was in flight where somebody died. Where it was carried out is a pod's address; empty
// if nowhere.
func (d *death) excuses(p *payment, carriedOut string) bool {
	switch {
	case p.begun.After(d.by.Add(unseen)) || p.ended.Before(d.at):
		return false
	case d.gateway != nil:
		return p.gateway == d.gateway
	}
	return cmp.Or(carriedOut, d.pod) == d.pod
}

// payer is a client that makes one call after the other, and keeps book. It does nothing by itself: what fails, fails.
type payer struct {
	service    *service
	name, tool string
	// headers are those of every call, meta is what it says of itself.
	headers map[string]string
	meta    string

	mu       sync.Mutex
	payments []payment
	told     chan struct{} // of each call that has ended
}

// newPayer makes a client of a protocol version, with a session if that has sessions.
func newPayer(t *testing.T, s *service, name, tool, version string) *payer {
	t.Helper()
	p := &payer{service: s, name: name, tool: tool, meta: `"_meta":{"progressToken":1}`, told: make(chan struct{}, 1)}
	if version == modern {
		p.meta = meta
		p.headers = map[string]string{versionHeader: modern, "Mcp-Method": "tools/call", "Mcp-Name": tool}
		return p
	}
	r, body := post(t, s.next().URL, initialize)
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no session: %s: %s", r.Status, body)
	}
	p.headers = map[string]string{versionHeader: version, "Mcp-Session-Id": id}
	return p
}

// run calls until it is stopped.
func (p *payer) run(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		made := payment{id: fmt.Sprintf("%s-%d", p.name, i), gateway: p.service.next(), begun: time.Now()}
		made.failure = p.pay(i, &made)
		made.ended = time.Now()
		p.mu.Lock()
		p.payments = append(p.payments, made)
		p.mu.Unlock()
		select {
		case p.told <- struct{}{}:
		default:
		}
	}
}

// pay makes a call, and returns how it failed.
func (p *payer) pay(id int, made *payment) (failure string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q},%s}}`, id, p.tool, made.id, p.meta)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, made.gateway.URL, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.GetBody = nil // it is sent once
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range p.headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err.Error()
	case !strings.Contains(string(content), fmt.Sprintf(`"text":%q`, made.id)):
		return response.Status + ": " + string(content)
	}
	return ""
}

// awaitPaid waits for calls to succeed that begin from now on.
func (p *payer) awaitPaid(t *testing.T, calls int) {
	t.Helper()
	begun, deadline := time.Now(), time.After(time.Minute)
	for {
		paid := 0
		p.mu.Lock()
		for i := len(p.payments) - 1; i >= 0 && p.payments[i].begun.After(begun); i-- {
			if p.payments[i].failure == "" {
				paid++
			}
		}
		p.mu.Unlock()
		if paid >= calls {
			return
		}
		select {
		case <-p.told:
		case <-deadline:
			t.Fatalf("client %s of %s: only %d calls succeeded", p.name, p.tool, paid)
		}
	}
}

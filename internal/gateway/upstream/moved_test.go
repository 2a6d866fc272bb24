package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// depart has a pod leave DNS, as if that were so long ago that its sessions move on. It serves on.
func (f *fleet) depart(b *Backend, address string) {
	host, _, _ := strings.Cut(address, ":")
	f.mu.Lock()
	kept := f.dns[:0]
	for _, a := range f.dns {
		if a.String() != host {
			kept = append(kept, a)
		}
	}
	f.dns = kept
	f.mu.Unlock()
	b.pods.mu.Lock()
	defer b.pods.mu.Unlock()
	b.pods.asked, b.pods.seen[address] = time.Time{}, time.Now().Add(-podAway)
}

// TestAStreamThatWasRefusedByAPodThatIsGoneMayBeOfferedByTheNext has the pod go between the refusal and the ping that asks what it meant.
func TestAStreamThatWasRefusedByAPodThatIsGoneMayBeOfferedByTheNext(t *testing.T) {
	f := newFleet(t, "10.0.0.1", "10.0.0.2")
	b := f.open(t)
	channel, handle := openSession(t, b)
	for _, pod := range f.pods {
		pod.Handler.(*script).onGet = func(w http.ResponseWriter, _ *http.Request) { //nolint:forcetypeassert // newFleet made it
			f.depart(b, handle.Address)
			w.WriteHeader(http.StatusNotFound)
		}
	}
	if err := channel.Listen(testContext(t), nil, &sink{}); !errors.Is(err, backend.ErrSession) || b.noStream[backend.Legacy].Load() {
		t.Errorf("%v; the server is taken for one without streams: %t", err, b.noStream[backend.Legacy].Load())
	}
}

func TestWhoListensInASharedSessionHearsThatItMoved(t *testing.T) {
	f := newFleet(t, "10.0.0.1", "10.0.0.2")
	listening := make(chan struct{}, 1)
	for _, pod := range f.pods {
		pod.Handler.(*script).onGet = func(w http.ResponseWriter, r *http.Request) { //nolint:forcetypeassert // newFleet made it
			w.Header().Set("Content-Type", mediaOfStream)
			_ = http.NewResponseController(w).Flush()
			listening <- struct{}{}
			<-r.Context().Done()
		}
	}
	b := f.open(t)
	channel, handle := shareOf(t, b, "alice")
	ctx := testContext(t)
	ended := make(chan error, 1)
	go func() { ended <- channel.Listen(ctx, nil, &sink{}) }()
	select {
	case <-listening:
	case err := <-ended:
		t.Fatal(err)
	}
	f.depart(b, handle.Address)
	if err := ping(t, channel); !errors.Is(err, backend.ErrSession) {
		t.Error(err)
	}
	if err := <-ended; err != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

// TestASessionOverSSEThatMovedIsNotLeftBehind, but ends with the last call that its pod has still to answer.
func TestASessionOverSSEThatMovedIsNotLeftBehind(t *testing.T) {
	f := newFleet(t, "10.0.0.1", "10.0.0.2")
	asked, answers := make(chan struct{}), make(chan struct{})
	for _, pod := range f.pods {
		server := newPiped()
		server.on = func(m *wire.Message) string {
			if m.Method == "tools/call" {
				close(asked)
				<-answers
			}
			return answer(m)
		}
		pod.Handler = server
	}
	b := f.openAt(t, "/sse")
	channel, handle := openSession(t, b)
	called := make(chan error, 1)
	go func() {
		called <- channel.Call(testContext(t), toolCall(`1`, "echo", "", backend.Legacy), &sink{})
	}()
	select {
	case <-asked:
	case err := <-called:
		t.Fatal(err)
	}
	f.depart(b, handle.Address)
	if err := ping(t, channel); !errors.Is(err, backend.ErrSession) || classOf(t, err).Sent {
		t.Error(err)
	}
	close(answers)
	if err := <-called; err != nil {
		t.Errorf("the call that was under way: %v", err)
	}
	eventually(t, "nothing of the session is held", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.pods.mu.Lock()
		defer b.pods.mu.Unlock()
		return len(b.pipes) == 0 && len(b.pods.sessions) == 0
	})
}

// TestASessionOverSSEIsInUseUntilItsResponseIsRead: a long call began long ago.
func TestASessionOverSSEIsInUseUntilItsResponseIsRead(t *testing.T) {
	b := open(t, serve(t, newPiped()).URL+"/sse")
	channel, _ := openSession(t, b)
	p := channel.(*pipe) //nolint:forcetypeassert // it is what Open returns here
	c, m, err := p.enter(wire.NewRequest([]byte(`"a"`), "ping", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer p.leave(c)
	p.mu.Lock()
	p.used = time.Now().Add(-time.Hour)
	p.mu.Unlock()
	p.give(wire.NewResult(m.ID, nil))
	p.endIdle(time.Now().Add(-time.Minute))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		t.Error(p.ended)
	}
}

// TestWhoLeavesWhileOtherPodsAreLookedUpLosesNoSession has the session's pod take no connection, and its caller leave when the gateway
// looks whether there is another.
func TestWhoLeavesWhileOtherPodsAreLookedUpLosesNoSession(t *testing.T) {
	f := newFleet(t, "10.0.0.1", "10.0.0.2")
	b := f.open(t)
	channel, handle := openSession(t, b)
	host, _, _ := strings.Cut(handle.Address, ":")
	f.remove(host, false)
	b.transport.CloseIdleConnections()
	ctx, leave := context.WithCancelCause(testContext(t))
	b.pods.mu.Lock()
	b.pods.resolver = lookup(func(ctx context.Context) ([]netip.Addr, error) {
		leave(errIdle)
		<-ctx.Done() // it takes its time, which is bounded
		return f.LookupNetIP(ctx, "", "")
	})
	b.pods.mu.Unlock()
	dial := b.dials.options.Dial
	b.dials.options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		b.pods.mu.Lock()
		b.pods.asked = time.Time{} // as if the answer were old
		b.pods.mu.Unlock()
		return dial(ctx, network, address)
	}
	err := channel.Call(ctx, request(`"p"`, "ping", `{}`), &sink{})
	if failure := classOf(t, err); failure.Class != classTimeout || failure.Sent || !errors.Is(err, errIdle) {
		t.Errorf("%v (%+v)", err, failure)
	}
}

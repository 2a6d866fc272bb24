package upstream

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// isClosed fails the test unless an error says that the gateway gave the backend up.
func isClosed(t *testing.T, err error) {
	t.Helper()
	if failure := classOf(t, err); failure.Class != "Connect" || !errors.Is(err, errClosed) {
		t.Errorf("%v (%+v)", err, failure)
	}
}

// TestCloseMeetsASessionThatIsBeingOpened has it come before initialize, for which there is no time any more.
func TestCloseMeetsASessionThatIsBeingOpened(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	server := newScript()
	server.on = func(_ http.ResponseWriter, _ *http.Request, m *wire.Message) bool {
		if m.Method == "server/discover" {
			close(asked)
			<-answer
		}
		return false
	}
	b := open(t, serve(t, server).URL)
	opened, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := b.Shared(testContext(t), "alice")
		opened <- err
	}()
	select {
	case <-asked:
	case err := <-opened:
		t.Fatal(err)
	}
	go func() { closed <- b.Close(testContext(t)) }()
	eventually(t, "it is being closed", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.closed
	})
	close(answer)
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	isClosed(t, <-opened)
}

func TestACloseThatIsCutShortLeavesNothingRunning(t *testing.T) {
	asked := make(chan struct{})
	server := newScript()
	b := open(t, serve(t, server).URL)
	if _, err := b.Describe(testContext(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session of Describe is deleted", func() bool { return server.live() == 0 })
	server.on = func(_ http.ResponseWriter, r *http.Request, m *wire.Message) bool {
		if m.Method == "initialize" {
			close(asked)
			<-r.Context().Done()
		}
		return m.Method == "initialize"
	}
	opened := make(chan error, 1)
	go func() {
		_, _, err := b.Shared(testContext(t), "alice")
		opened <- err
	}()
	select {
	case <-asked:
	case err := <-opened:
		t.Fatal(err)
	}
	short, cut := context.WithCancel(testContext(t))
	cut()
	_ = b.Close(short) // it may be in time even so
	isClosed(t, <-opened)
	ended := make(chan struct{})
	go func() {
		b.tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-testContext(t).Done():
		t.Fatal("a task is left for ever")
	}
}

func TestWhoListensAtAClosedBackendIsTold(t *testing.T) {
	b := open(t, serve(t, newScript()).URL)
	channel, _ := shareOf(t, b, "alice")
	if err := b.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	isClosed(t, channel.Listen(testContext(t), nil, &sink{}))
}

// TestNothingIsLeftOfWhatNoTaskCanEnd has the tasks refused while Close still ends sessions, and requests go through.
func TestNothingIsLeftOfWhatNoTaskCanEnd(t *testing.T) {
	p := newPiped()
	b := open(t, serve(t, p).URL+"/sse")
	setClosed := func(closed bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.closed = closed
	}
	setClosed(true)
	defer setClosed(false)
	_, err := b.dialPipe(testContext(t), "", false)
	isClosed(t, err)
	eventually(t, "the stream that nobody would read is closed", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.closed == 1
	})
	x := b.begin(testContext(t))
	x.tail = true
	x.finish()
	if x.ctx.Err() == nil {
		t.Error("an exchange whose end nobody would read goes on")
	}
}

// TestACloseIsTheReasonWhateverBecameOfTheStreamByIt has the transport tell of a context alone, as that of HTTP/2 does.
func TestACloseIsTheReasonWhateverBecameOfTheStreamByIt(t *testing.T) {
	b := open(t, "http://127.0.0.1:9")
	p := &pipe{Backend: b, life: b.begin(testContext(t))}
	defer p.life.end()
	p.life.cancel(errClosed)
	p.end(endOf(context.Canceled))
	isClosed(t, p.unanswered(testContext(t), p.ended))
}

func TestACallOverSSEThatACloseEndsSaysSo(t *testing.T) {
	p := newPiped()
	b := open(t, serve(t, p).URL+"/sse")
	channel, _ := openSession(t, b)
	p.on = func(*wire.Message) string { return event(notification) }
	heard, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- channel.Call(testContext(t), toolCall(`1`, "pay", "", backend.Legacy), &sink{on: func(*wire.Message) error {
			close(heard)
			return nil
		}})
	}()
	<-heard // so that the request is delivered, and its response is waited for
	if err := b.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	if isClosed(t, err); !classOf(t, err).Sent {
		t.Errorf("%v is said not to have been sent", err)
	}
}

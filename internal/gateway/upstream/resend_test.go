package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// TestACallIsNeverSentTwice has a server that answers the first request of a connection, reads the second, and hangs up: what
// net/http would repeat if it could.
func TestACallIsNeverSentTwice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var received atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for range 2 {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
					if received.Add(1)%2 == 0 {
						return
					}
					_, _ = conn.Write(cannedResponse(false, 10))
				}
			}()
		}
	}()
	b := open(t, "http://"+l.Addr().String())
	channel := ways(b)["modern"]
	for i := range 20 {
		err := channel.Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
		if i%2 == 0 && err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if i%2 == 1 && !classOf(t, err).Sent {
			t.Fatalf("call %d: %v is said not to have been sent", i, err)
		}
	}
	if n := received.Load(); n != 20 {
		t.Errorf("20 calls were received %d times", n)
	}
}

// TestACallIsNeverSentTwiceByHTTP2 has a server that resets the stream after it read the request.
func TestACallIsNeverSentTwiceByHTTP2(t *testing.T) {
	var received atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("it came by %s", r.Proto)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if received.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		asJSON(result1)(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	b := open(t, s.URL, trusting(s))
	channel := ways(b)["modern"]
	if err := channel.Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{}); err != nil {
		t.Fatal(err)
	}
	err := channel.Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
	if failure := classOf(t, err); failure.Class != "ServerError" || !failure.Sent || received.Load() != 2 {
		t.Errorf("%v (%+v), received %d times", err, failure, received.Load())
	}
}

func trusting(s *httptest.Server) func(*table.Backend, *Options) {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return func(_ *table.Backend, o *Options) {
		o.TLS = func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, nil }
	}
}

// TestCallsAreHeldWhileTheServerRestarts has a thousand callers find nobody listening for a while.
func TestCallsAreHeldWhileTheServerRestarts(t *testing.T) {
	s := serve(t, asJSON(result1))
	var dials, down atomic.Int64
	down.Store(1)
	b := open(t, s.URL, func(_ *table.Backend, o *Options) {
		o.Hold = deadline // so many callers may take long to begin
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			if down.Load() == 1 {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	})
	const callers = 1000
	channel := ways(b)["modern"]
	answers := make(chan error, callers)
	for range callers {
		go func() { answers <- channel.Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{}) }()
	}
	eventually(t, "it was dialled a few times", func() bool { return dials.Load() > 5 })
	if n := dials.Load(); n > callers/2 {
		t.Errorf("%d callers on hold dialled %d times", callers, n)
	}
	down.Store(0)
	for range callers {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHoldEndsInTheClassOfTheDial(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for class, dialled := range map[string]error{
		"Connect": refused,
		"DNS":     &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}},
	} {
		t.Run(class, func(t *testing.T) {
			b := open(t, "http://nowhere.invalid/mcp", func(_ *table.Backend, o *Options) {
				o.Hold = 200 * time.Millisecond
				o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, dialled }
			})
			began := time.Now()
			err := ways(b)["legacy"].Call(testContext(t), toolCall(`1`, "echo", "", backend.Legacy), &sink{})
			if failure := classOf(t, err); failure.Class != class || failure.Sent || errors.Is(err, backend.ErrSession) {
				t.Errorf("%v (%+v)", err, failure)
			}
			if took := time.Since(began); took < 50*time.Millisecond || took > 8*time.Second { // by default it would be ten seconds
				t.Errorf("it was held for %s", took)
			}
		})
	}
}

func TestAServerThatTakesNoConnectionIsGivenUpInTime(t *testing.T) {
	b := open(t, "http://192.0.2.1/mcp", func(_ *table.Backend, o *Options) {
		o.Hold, o.Limits.Connect = time.Millisecond, 50*time.Millisecond
		o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: context.Cause(ctx)}
		}
	})
	err := ways(b)["modern"].Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
	if failure := classOf(t, err); failure.Class != "Connect" || failure.Sent {
		t.Errorf("%v (%+v)", err, failure)
	}
}

// TestACallerWhoLeavesWhileOnHoldSentNothing also counts what is sent: no cancellation of what was never asked.
func TestACallerWhoLeavesWhileOnHoldSentNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		ctx, cancel := context.WithCancel(testContext(t))
		b := open(t, "http://192.0.2.1/mcp", func(_ *table.Backend, o *Options) {
			o.Dial = func(dialling context.Context, _, _ string) (net.Conn, error) {
				if dials.Add(1) == 3 {
					cancel()
					<-dialling.Done() // in a bubble that is once the call has heard of it
				}
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
		})
		err := ways(b)["legacy"].Call(ctx, toolCall(`1`, "echo", "", backend.Legacy), &sink{})
		if failure := classOf(t, err); failure.Class != "Timeout" || failure.Sent || !errors.Is(err, context.Canceled) {
			t.Errorf("%v (%+v)", err, failure)
		}
		b.tasks.Wait()
		if n := dials.Load(); n != 3 {
			t.Errorf("it was dialled %d times", n)
		}
	})
}

// endsWhenLookedAt is a context that ends while it is looked at for the n-th time.
type endsWhenLookedAt struct {
	context.Context //nolint:containedctx // it is one

	end   context.CancelCauseFunc
	looks *int
}

// Err counts down.
func (e endsWhenLookedAt) Err() error {
	if *e.looks--; *e.looks == 0 {
		defer e.end(errIdle)
	}
	return e.Context.Err()
}

func TestAFailureHasACauseWheneverItsContextEnds(t *testing.T) {
	refused := &dialError{class: classConnect, err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	for looks := range 6 {
		ctx, end := context.WithCancelCause(t.Context())
		x := &exchange{Backend: &Backend{config: table.Backend{Name: "b"}}, ctx: endsWhenLookedAt{ctx, end, &looks}}
		for _, broken := range []error{refused, io.EOF} {
			failure := x.broken(broken, false)
			isOver := failure.Class == classTimeout && errors.Is(failure, errIdle)
			if !isOver && !errors.Is(failure, broken) {
				t.Errorf("%+v", failure)
			}
		}
		end(nil)
	}
}

package probe

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// Tests run in a bubble of testing/synctest: its clock moves only while everybody waits, so an hour takes no time and every
// moment is exact.

// call is one thing that was asked.
type call struct {
	At      time.Duration // since the start of the test
	Kind    string        // probe (in full) or check (cheap)
	Address string
	Path    string
	Host    string
}

// script is a Client that records who is asked when, and answers as it is told by address.
type script struct {
	start time.Time

	mu      sync.Mutex
	calls   []call
	answers map[string]reply
}

// reply is what an address says, to Check and to Probe.
type reply struct {
	takes  time.Duration
	err    error // of both
	stale  bool  // Check returns mcp.ErrStale
	result *mcp.Result
}

func (s *script) ask(ctx context.Context, kind string, target mcp.Target) (reply, error) {
	u, err := url.Parse(target.URL)
	if err != nil {
		return reply{}, err
	}
	s.mu.Lock()
	s.calls = append(s.calls, call{time.Since(s.start), kind, u.Host, u.Path, target.Host})
	answer := s.answers[u.Host]
	s.mu.Unlock()
	select {
	case <-time.After(answer.takes):
		return answer, answer.err
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

func (s *script) Probe(ctx context.Context, target mcp.Target) (*mcp.Result, error) {
	answer, err := s.ask(ctx, "probe", target)
	if err != nil {
		return nil, err
	}
	if answer.result == nil {
		return &mcp.Result{ProtocolVersion: "2025-11-25"}, nil
	}
	return answer.result, nil
}

func (s *script) Check(ctx context.Context, target mcp.Target, _ *mcp.Result) error {
	answer, err := s.ask(ctx, "check", target)
	if err == nil && answer.stale {
		return mcp.ErrStale
	}
	return err
}

// answer sets what an address says from now on.
func (s *script) answer(address string, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[address] = r
}

// asked returns the calls to an address.
func (s *script) asked(address string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []call
	for _, c := range s.calls {
		if c.Address == address {
			list = append(list, c)
		}
	}
	return list
}

// play is a running Scheduler and the script that it asks.
type play struct {
	*Scheduler
	*script

	t    *testing.T
	stop func() // ends the Scheduler and waits until it has returned

	mu       sync.Mutex
	notified map[string][]time.Duration
}

// start starts a Scheduler; it is stopped at the end of the test. The bubble fails if a goroutine is left then.
func start(t *testing.T, opts Options) *play {
	t.Helper()
	p := &play{t: t, script: &script{start: time.Now(), answers: map[string]reply{}}, notified: map[string][]time.Duration{}}
	if opts.Client == nil {
		opts.Client = p.script
	}
	if opts.Transport == nil {
		opts.Transport = func(Server, *Pod) *http.Transport { return nil }
	}
	if opts.Notify == nil {
		opts.Notify = func(_ context.Context, key types.NamespacedName) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.notified[key.Name] = append(p.notified[key.Name], time.Since(p.start))
		}
	}
	p.Scheduler = New(opts)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.Start(ctx); err != nil {
			t.Errorf("Start: %v", err)
		}
	}()
	p.stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(p.stop)
	return p
}

// pass lets time pass, and everything happen that is due by then.
func (p *play) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// notifications returns when the verdict of a server was said to have changed.
func (p *play) notifications(server string) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.notified[server]
}

func pod(name string) Pod {
	return Pod{UID: types.UID("uid-" + name), Name: name, Namespace: "test", Address: name + ":8080"}
}

// server is a settled server at generation 1 with pods of these names.
func server(name string, pods ...string) Server {
	s := Server{
		UID: types.UID("uid-" + name), Key: types.NamespacedName{Namespace: "test", Name: name},
		Generation: 1, Settled: true, Host: name + "-svc:8080", Path: "/mcp",
	}
	for _, name := range pods {
		s.Pods = append(s.Pods, pod(name))
	}
	return s
}

var (
	errRefused = &mcp.Error{Reason: mcp.ConnectionFailed, Message: "Nothing listens on port 8080.", Unreached: true}
	errClosed  = &mcp.Error{Reason: mcp.ConnectionFailed, Message: "The server closed the connection without answering."}
	errNotMCP  = &mcp.Error{Reason: mcp.NotMCP, Message: "The answer is not MCP."}
)

// gaps returns the times between calls.
func gaps(calls []call) []time.Duration {
	var list []time.Duration
	for i := 1; i < len(calls); i++ {
		list = append(list, calls[i].At-calls[i-1].At)
	}
	return list
}

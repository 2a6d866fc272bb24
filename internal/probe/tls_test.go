package probe

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// seen is a Client that answers everybody and notes how it was told to ask.
type seen struct {
	mu  sync.Mutex
	how []string
}

func (s *seen) Probe(_ context.Context, target mcp.Target) (*mcp.Result, error) {
	s.note("probe", target)
	return &mcp.Result{ProtocolVersion: "2025-11-25"}, nil
}

func (s *seen) Check(_ context.Context, target mcp.Target, _ *mcp.Result) error {
	s.note("check", target)
	return nil
}

func (s *seen) note(kind string, target mcp.Target) {
	line := kind + " " + target.URL
	if config := target.Transport.TLSClientConfig; config != nil {
		line += " as " + config.ServerName
	}
	if target.SSE {
		line += " by SSE"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.how = append(s.how, line)
}

// take returns what was noted since the last call.
func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := slices.Clone(s.how)
	s.how = nil
	return taken
}

func freshTransport(Server, *Pod) *http.Transport { return &http.Transport{} }

func TestOtherTrustVerifiesTheSameGenerationAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := &seen{}
		p := start(t, Options{Client: asked, Transport: freshTransport})
		s := server("a", "pod-1")
		s.TLS, s.Trust = &tls.Config{ServerName: "a-svc"}, "one"
		p.Observe(s)
		p.pass(time.Second)
		if diff := cmp.Diff([]string{"probe https://pod-1:8080/mcp as a-svc"}, asked.take()); diff != "" {
			t.Errorf("at first (-want +got)\n%s", diff)
		}
		s.TLS = s.TLS.Clone() // the same trust in other memory
		p.Observe(s)
		p.pass(time.Second)
		if got := asked.take(); got != nil {
			t.Errorf("asked again for nothing: %v", got)
		}
		s.Trust = "two"
		p.Observe(s)
		p.pass(time.Second)
		if diff := cmp.Diff([]string{"probe https://pod-1:8080/mcp as a-svc"}, asked.take()); diff != "" {
			t.Errorf("after a rotation (-want +got)\n%s", diff)
		}
		if v := p.Verdict("uid-a"); !v.Serving || v.Generation != 1 {
			t.Errorf("verdict: %+v", v)
		}
	})
}

func TestPodsOfTheOldGenerationAreAskedAsTheyWereUntilTheRolloutIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := &seen{}
		p := start(t, Options{Client: asked, Transport: freshTransport})
		s := server("a", "old")
		s.TLS, s.Trust = &tls.Config{ServerName: "a-svc"}, "one"
		p.Observe(s)
		p.pass(time.Second)
		asked.take()
		s.Generation, s.Settled, s.TLS, s.Trust, s.SSE, s.Path = 2, false, nil, "", true, "/sse"
		p.Observe(s)
		p.pass(time.Minute)
		if diff := cmp.Diff([]string{"check https://old:8080/mcp as a-svc"}, asked.take()); diff != "" {
			t.Errorf("during the rollout (-want +got)\n%s", diff)
		}
		s.Settled, s.Pods = true, []Pod{pod("new")}
		p.Observe(s)
		p.pass(time.Second)
		if diff := cmp.Diff([]string{"probe http://new:8080/sse by SSE"}, asked.take()); diff != "" {
			t.Errorf("after it (-want +got)\n%s", diff)
		}
	})
}

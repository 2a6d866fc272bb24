package engine

import (
	"cmp"
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// verifyInline does the handshake here and now, for a Reconciler without a prober.
func (s *scope) verifyInline(ctx context.Context) reconcile.Outcome {
	trusted, err := s.trust(ctx, s.server)
	if err != nil {
		return untrusted(err)
	}
	stored, key := s.stored(mcpv1alpha1.ConditionVerified), client.ObjectKeyFromObject(s.server)
	last, _ := s.trusted.Load(key)
	rotated := trusted.config != nil && trusted.config.RootCAs != nil && last != trusted.id
	switch {
	case stored.Status == metav1.ConditionTrue && (stored.ObservedGeneration == s.server.Generation && !rotated || !s.isSettled()):
		return reconcile.Keep(0)
	case s.server.Generation > 1 && !s.isSettled():
		return reconcile.Wait(mcpv1alpha1.ReasonProbing, "Waiting for the rollout: what answers now may be of an older generation", 0)
	}
	ctx, cancel := context.WithTimeout(ctx, inlineTimeout)
	defer cancel()
	target := mcp.Target{
		URL: s.address(), Host: s.server.Spec.HostHeader,
		SSE: s.server.Spec.Transport == mcpv1alpha1.TransportSSE, Transport: s.directTransport(),
	}
	if trusted.config != nil {
		target.Transport.TLSClientConfig = trusted.config
	}
	handshake, began := probe.Attempt{Server: s.probed(nil, trusted), URL: target.URL}, time.Now()
	s.kind().Starting(handshake)
	result, err := s.handshaker().Probe(ctx, target)
	s.ended(handshake, time.Since(began), result, err)
	if err != nil {
		s.verdict.Attempts = handshake.Server.Attempts + 1
		reason := cmp.Or(string(mcp.ReasonOf(err)), string(mcp.ProtocolError))
		return reconcile.Unsettled(reason, err.Error(), min(inlineRetry<<min(handshake.Server.Attempts, 4), inlineRetryLimit))
	}
	s.trusted.Store(key, trusted.id)
	s.learn(result)
	return s.warned(answered(result))
}

// dialed is a replaced dialer as a client of the prober.
type dialed struct {
	dial func(ctx context.Context, url string, transport *http.Transport) (*mcpv1alpha1.MCPServerInfo, error)
}

// Probe calls the dialer, and bounds it, whoever asks.
func (d dialed) Probe(ctx context.Context, target mcp.Target) (*mcp.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, inlineTimeout)
	defer cancel()
	info, err := d.dial(ctx, target.URL, target.Transport)
	if err != nil {
		return nil, err
	}
	if info == nil {
		info = &mcpv1alpha1.MCPServerInfo{}
	}
	result := &mcp.Result{
		Server:          mcp.ServerInfo{Name: info.Name, Version: info.Version},
		ProtocolVersion: info.ProtocolVersion, ProtocolVersions: info.ProtocolVersions, Instructions: info.Instructions,
	}
	if c := info.Capabilities; c != nil {
		result.Capabilities = mcp.Capabilities{Tools: c.Tools, Resources: c.Resources, Prompts: c.Prompts, Logging: c.Logging, Completions: c.Completions}
	}
	return result, nil
}

// Check calls the dialer too: it knows nothing cheaper.
func (d dialed) Check(ctx context.Context, target mcp.Target, _ *mcp.Result) error {
	_, err := d.Probe(ctx, target)
	return err
}

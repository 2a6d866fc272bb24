package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// knock sends a message to an address with a token, or without if that is empty, and returns status, challenge and body.
func knock(ctx context.Context, address, token string) (status int, challenge, body string, err error) {
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"e2e","version":"1"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(initialize))
	if err != nil {
		return 0, "", "", err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("WWW-Authenticate"), string(b), err
}

func TestOnlyTheTokensOfGrantedAccountsForThisEndpointAreLetIn(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, account := range []string{"friend", "stranger"} {
		f.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}})
	}
	f.tool("find-pet", findPet(f.petstore("api"), nil))
	a := f.agent("team", func(spec *mcpv1alpha1.MCPAgentSpec) {
		spec.Auth.ServiceAccounts, spec.Auth.Audiences = []mcpv1alpha1.ObjectName{named("friend")}, []string{"team-of-friends"}
	}, "find-pet")
	endpoint := a.awaitReady("find-pet").Status.Endpoint
	elsewhere := &fixture{t: t, namespace: newNamespace(t)}
	elsewhere.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "friend"}})
	address := "http://" + f.forward(a.gatewayPod(), 8080) + "/mcp"
	genuine := f.token("friend", endpoint)
	forged := genuine[:strings.LastIndex(genuine, ".")+1] + strings.Repeat("A", 342)
	for what, tt := range map[string]struct {
		token string
		want  int
	}{
		"a granted account":                       {genuine, http.StatusOK},
		"another audience that the agent accepts": {f.token("friend", "team-of-friends"), http.StatusOK},
		"the account of the agent's workload":     {f.token("team", endpoint), http.StatusOK},
		"no token":                                {"", http.StatusUnauthorized},
		"a foreign audience":                      {f.token("friend", "https://example.com/mcp"), http.StatusUnauthorized},
		"the API server's audience":               {f.token("friend"), http.StatusUnauthorized},
		"an account that is not granted":          {f.token("stranger", endpoint), http.StatusForbidden},
		"an account of that name elsewhere":       {elsewhere.token("friend", endpoint), http.StatusForbidden},
		"a signature that is not the cluster's":   {forged, http.StatusUnauthorized},
	} {
		status, challenge, body, err := knock(t.Context(), address, tt.token)
		if err != nil || status != tt.want || (status == http.StatusUnauthorized) != strings.Contains(challenge, "Bearer") {
			t.Errorf("%s: status %d (%v), want %d; challenge %q: %s", what, status, err, tt.want, challenge, body)
		}
	}
}

func TestEndpointWithACertificateSpeaksTLSAlone(t *testing.T) {
	t.Parallel()
	f := start(t)
	authority := mcptest.NewAuthority(t, "ours")
	f.create(certificate("tls", authority, fmt.Sprintf("team-gateway.%s.svc.cluster.local", f.namespace)))
	f.tool("find-pet", findPet(f.petstore("api"), nil))
	a := f.agent("team", func(spec *mcpv1alpha1.MCPAgentSpec) {
		spec.Gateway = &mcpv1alpha1.AgentGateway{Replicas: 1, TLS: &mcpv1alpha1.GatewayTLS{SecretName: "tls"}}
		spec.Auth, spec.Runtime = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthNone}, nil
	}, "find-pet")
	endpoint := a.awaitReady("find-pet").Status.Endpoint
	if !strings.HasPrefix(endpoint, "https://") {
		t.Errorf("the endpoint is %s", endpoint)
	}
	client := echoPod("client", "sleep")
	mountSecret(client, "tls", "/tls")
	caller := f.echo(client)
	await(t, "a client that trusts the authority is answered", policySoon, func() string {
		out, err := execute(t.Context(), caller, "/echo", "call", "-url", endpoint, "-ca", "/tls/ca.crt", "find-pet", `{"petId": 1}`)
		if err != nil || !strings.Contains(out, "Rex") {
			return fmt.Sprintf("%s %v", out, err)
		}
		return ""
	})
	for what, url := range map[string]string{"without its authority": endpoint, "without TLS": strings.Replace(endpoint, "https:", "http:", 1)} {
		if out, err := execute(t.Context(), caller, "/echo", "call", "-url", url, "find-pet", `{"petId": 1}`); err == nil {
			t.Errorf("a client %s is answered: %s", what, out)
		}
	}
}

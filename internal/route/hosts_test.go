package route

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestAnAgentIsServedByItsOwnNamesAlone(t *testing.T) {
	t.Parallel()
	own := []string{
		"research-gateway", "research-gateway.team", "research-gateway.team.svc", "research-gateway.team.svc.cluster.local", "localhost",
	}
	for name, tc := range map[string]struct {
		gateway *mcpv1alpha1.AgentGateway
		more    []string
	}{
		"nothing is said":            {nil, nil},
		"a public URL":               {&mcpv1alpha1.AgentGateway{PublicURL: "https://MCP.example.com.:8443/team"}, []string{"mcp.example.com"}},
		"a public URL of an address": {&mcpv1alpha1.AgentGateway{PublicURL: "https://[2001:db8::1]:8443"}, []string{"2001:db8::1"}},
		"a public URL of this host":  {&mcpv1alpha1.AgentGateway{PublicURL: "http://localhost:8081/mcp"}, nil},
		"more hosts, and some that are there already": {
			&mcpv1alpha1.AgentGateway{PublicURL: "https://a.example", AllowedHosts: []string{"*.b.example", "a.example", "localhost"}},
			[]string{"a.example", "*.b.example"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := servedInput(t)
			in.Agent.Spec.Gateway = tc.gateway
			out, err := Compile(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append(slices.Clip(own), tc.more...), out.Table.Endpoint.AllowedHosts); diff != "" {
				t.Errorf("hosts (-want +got)\n%s", diff)
			}
		})
	}
}

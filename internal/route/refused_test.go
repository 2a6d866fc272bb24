package route

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestAnAgentsOwnEndpointIsToldByEveryWayToWriteIt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		endpoint, publicURL string
		want                bool
	}{
		"the name":                           {"http://research-gateway:8080/mcp", "", true},
		"with its namespace":                 {"http://research-gateway.team:8080/mcp", "", true},
		"as a Service":                       {"https://research-gateway.team.svc/mcp", "", true},
		"in full":                            {"http://research-gateway.team.svc.cluster.local:8080/mcp", "", true},
		"in full, with the dot of the root":  {"http://research-gateway.team.svc.cluster.local.:8080/mcp", "", true},
		"in other letters":                   {"http://RESEARCH-gateway.Team.SVC:8080/mcp", "", true},
		"another agent's":                    {"http://support-gateway.team.svc:8080/mcp", "", false},
		"that of another namespace":          {"http://research-gateway.other.svc:8080/mcp", "", false},
		"a name that begins so":              {"http://research-gateway.team.svc.example.com/mcp", "", false},
		"the public address":                 {"https://mcp.example.com/research", "https://mcp.example.com/research", true},
		"the public address, in other words": {"https://MCP.example.com.:443/x/../research/", "https://mcp.example.com/research", true},
		"below the public address":           {"https://mcp.example.com/research/mcp", "https://mcp.example.com/research", true},
		"anything at a host of its own":      {"https://mcp.example.com/any", "https://mcp.example.com", true},
		"another path of the public host":    {"https://mcp.example.com/research-b", "https://mcp.example.com/research", false},
		"another port of the public host":    {"https://mcp.example.com:8443/research", "https://mcp.example.com/research", false},
		"another host":                       {"https://mcp.example.org/research", "https://mcp.example.com/research", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := goldenInputs(t)["an-agent-is-not-granted-its-own-endpoint"]
			in.Agent.Spec.Gateway = &mcpv1alpha1.AgentGateway{PublicURL: tt.publicURL}
			c := compiler{Input: in}
			if got := c.isOwnEndpoint(tt.endpoint); got != tt.want {
				t.Errorf("%s is its own: %t, want %t", tt.endpoint, got, tt.want)
			}
		})
	}
}

func TestAudiencesOfTheKubernetesAPIAreRefused(t *testing.T) {
	t.Parallel()
	public := func(url string) func(*mcpv1alpha1.MCPAgentSpec) {
		return func(spec *mcpv1alpha1.MCPAgentSpec) {
			spec.Auth.Audiences, spec.Gateway = nil, &mcpv1alpha1.AgentGateway{PublicURL: url}
		}
	}
	of := func(audiences, oidc []string) func(*mcpv1alpha1.MCPAgentSpec) {
		return func(spec *mcpv1alpha1.MCPAgentSpec) {
			spec.Auth.Audiences = audiences
			spec.Auth.OIDC = []mcpv1alpha1.OIDCIssuer{{Issuer: "https://login.example.com", Audiences: oidc}}
		}
	}
	tests := map[string]struct {
		change func(*mcpv1alpha1.MCPAgentSpec)
		want   string // is named by the error; empty: there is none
	}{
		"the issuer of the cluster":           {of([]string{"a", "https://issuer.example.com"}, nil), "auth.audiences[1]: 'https://issuer.example.com'"},
		"the API server":                      {of([]string{"https://kubernetes.default.svc"}, nil), "auth.audiences[0]"},
		"the API server in the usual domain":  {of([]string{"https://kubernetes.default.svc.cluster.local"}, nil), "auth.audiences[0]"},
		"the API server, of tokens of others": {of(nil, []string{"b", "https://kubernetes.default.svc"}), "auth.oidc[0].audiences[1]"},
		"the public address is one":           {public("https://kubernetes.default.svc.cluster.local"), "gateway.publicURL: 'https://kubernetes"},
		"the public address is the issuer":    {public("https://issuer.example.com"), "gateway.publicURL: 'https://issuer.example.com'"},
		"the public address is another":       {public("https://mcp.example.com"), ""},
		"names of something else":             {of([]string{"research"}, []string{"https://kubernetes.default.svcs"}), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := goldenInputs(t)["tokens-for-the-kubernetes-api-let-nobody-in"]
			in.Issuer = "https://issuer.example.com"
			tt.change(&in.Agent.Spec)
			_, err := Compile(in)
			refused, ok := errors.AsType[*InvalidError](err)
			if tt.want == "" && err != nil || tt.want != "" && (!ok || !strings.HasPrefix(refused.Message, tt.want)) {
				t.Errorf("error %v, want one about %q", err, tt.want)
			}
		})
	}
}

func TestNothingIsMountedAnewWhenAToolIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	const name = "credentials-are-files-and-one-secret-is-mounted-once"
	in := goldenInputs(t)[name]
	before, err := Compile(in)
	if err != nil || len(before.Mounts) == 0 {
		t.Fatalf("%d mounts, error %v", len(before.Mounts), err)
	}
	for _, tool := range in.Tools {
		for i := range tool.Status.Conditions {
			if c := &tool.Status.Conditions[i]; c.Type == mcpv1alpha1.ConditionAccepted {
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, mcpv1alpha1.ReasonInvalid, "its Secret is gone"
			}
		}
	}
	in.Mounted = before.Mounts
	after, err := Compile(in)
	if err != nil || len(after.Verdicts) <= len(before.Verdicts) {
		t.Fatalf("verdicts %v, error %v", after.Verdicts, err)
	}
	if diff := cmp.Diff(before.Mounts, after.Mounts); diff != "" {
		t.Errorf("mounts (-accepted +refused)\n%s", diff)
	}
}

func TestPodsAreReplacedOnceForAToolThatGetsAnotherSecret(t *testing.T) {
	t.Parallel()
	in := servedInput(t)
	mounts := func() (names []string) {
		t.Helper()
		out, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		in.Mounted = out.Mounts
		for _, m := range out.Mounts {
			names = append(names, m.Name)
		}
		return names
	}
	orders := in.Tools["orders"]
	orders.Generation, orders.Spec.Auth.SecretRef.Name = 2, "renewed"
	if diff := cmp.Diff([]string{"orders", "stock"}, mounts()); diff != "" {
		t.Errorf("before the edit is judged (-want +got)\n%s", diff)
	}
	orders.Status.Conditions[0].ObservedGeneration = 2
	if diff := cmp.Diff([]string{"renewed", "stock"}, mounts()); diff != "" {
		t.Errorf("after the edit was judged (-want +got)\n%s", diff)
	}
	orders.Generation, in.Tools["stock"].Status.Conditions[0].Reason = 3, mcpv1alpha1.ReasonSecretNotAllowed
	in.Tools["stock"].Status.Conditions[0].Status = metav1.ConditionFalse
	if diff := cmp.Diff([]string{"renewed"}, mounts()); diff != "" {
		t.Errorf("while another must not be sent (-want +got)\n%s", diff)
	}
}

// TestWhatIsGivenUpIsNotMountedWhileAnEditIsJudged: a Secret of something that is not granted any more has no reason to be there.
func TestWhatIsGivenUpIsNotMountedWhileAnEditIsJudged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Input)
		shared string // what the tool stock sends; empty: a Secret of its own
		want   []string
	}{
		"nothing is given up": {change: func(*Input) {}, want: []string{"authorities", "orders", "stock"}},
		"a tool":              {change: func(in *Input) { in.Agent.Spec.Tools = in.Agent.Spec.Tools[:1] }, want: []string{"authorities", "orders"}},
		"a tool is deleted":   {change: func(in *Input) { delete(in.Tools, "stock") }, want: []string{"authorities", "orders"}},
		"a tool is being deleted": {
			change: func(in *Input) { in.Tools["stock"].DeletionTimestamp = new(metav1.Now()) }, want: []string{"authorities", "orders"},
		},
		"a server":            {change: func(in *Input) { in.Agent.Spec.Servers = nil }, want: []string{"orders", "stock"}},
		"a server is deleted": {change: func(in *Input) { delete(in.Servers, "web") }, want: []string{"orders", "stock"}},
		"a tool that sends the same as the edited one": {
			change: func(in *Input) { in.Agent.Spec.Tools = in.Agent.Spec.Tools[:1] }, shared: "orders", want: []string{"authorities", "orders"},
		},
		"all but the edited one, and the agent is refused": {change: func(in *Input) {
			in.Agent.Spec.Servers, in.Agent.Spec.Tools = nil, in.Agent.Spec.Tools[:1]
			in.Agent.Spec.Auth.Audiences = []string{"https://kubernetes.default.svc"}
		}, want: []string{"orders"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := servedInput(t)
			in.Servers["web"].Spec.TLS = &mcpv1alpha1.ServerTLS{CASecretRef: &mcpv1alpha1.SecretKey{ObjectName: mcpv1alpha1.ObjectName{Name: "authorities"}}}
			if tc.shared != "" {
				in.Tools["stock"].Spec.Auth.SecretRef.Name = tc.shared
			}
			before, err := Compile(in)
			if err != nil {
				t.Fatal(err)
			}
			in.Written, in.Mounted = before.Table, before.Mounts
			in.Tools["orders"].Generation, in.Tools["orders"].Spec.Auth.SecretRef.Name = 2, "renewed"
			tc.change(&in)
			if !NeedsWritten(in) {
				t.Error("what was written is not asked for")
			}
			out, err := Compile(in)
			if err != nil {
				out, err = Withdraw(in)
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range out.Mounts {
				got = append(got, m.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("mounted (-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatNobodyAcceptedIsNotMounted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*mcpv1alpha1.MCPTool){
		"not judged yet":     func(tool *mcpv1alpha1.MCPTool) { tool.Status.Conditions = nil },
		"accepted as it was": func(tool *mcpv1alpha1.MCPTool) { tool.Generation++ },
		"refused for another fault": func(tool *mcpv1alpha1.MCPTool) {
			tool.Status.Conditions = []metav1.Condition{{
				Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: mcpv1alpha1.ReasonInvalid, ObservedGeneration: tool.Generation,
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := goldenInputs(t)["credentials-are-files-and-one-secret-is-mounted-once"]
			for _, tool := range in.Tools {
				change(tool)
			}
			out, err := Compile(in)
			if err != nil || len(out.Mounts) > 0 {
				t.Errorf("mounts %v, error %v", out.Mounts, err)
			}
		})
	}
}

func TestASecretThatMustNotBeSentIsNotMounted(t *testing.T) {
	t.Parallel()
	in := goldenInputs(t)["credentials-are-files-and-one-secret-is-mounted-once"]
	accepted, err := Compile(in)
	if err != nil || len(accepted.Mounts) == 0 {
		t.Fatalf("mounts %v, error %v", accepted.Mounts, err)
	}
	in.Mounted = accepted.Mounts
	for _, tool := range in.Tools {
		for i := range tool.Status.Conditions {
			if c := &tool.Status.Conditions[i]; c.Type == mcpv1alpha1.ConditionAccepted {
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, mcpv1alpha1.ReasonSecretNotAllowed, "another host"
			}
		}
	}
	out, err := Compile(in)
	if err != nil || len(out.Mounts) > 0 {
		t.Errorf("mounts %v, error %v", out.Mounts, err)
	}
}

func TestWhatGatewaysSayOfADefinitionIsToldInTheAuthorsWords(t *testing.T) {
	t.Parallel()
	got := Plain("the table is refused: http[0].path: must begin with '/'; http[0].header[1]: must not be Cookie; http[0].definition.name: is empty")
	if want := "http.path: must begin with '/'; http.headers[1]: must not be Cookie; name: is empty"; got != want {
		t.Errorf("%s\nwant: %s", got, want)
	}
}

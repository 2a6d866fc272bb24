package mcptool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reach"
)

func TestTheEndpointIsWhatAGatewayWouldConnectTo(t *testing.T) {
	t.Parallel()
	who := reach.Subject{UID: "uid-weather", Key: demo}
	at := func(url string) func(*mcpv1alpha1.MCPTool) {
		return func(tool *mcpv1alpha1.MCPTool) { tool.Spec.Endpoint = url }
	}
	postgres := func(tls string) func(*mcpv1alpha1.MCPTool) {
		return func(tool *mcpv1alpha1.MCPTool) {
			tool.Spec.Type, tool.Spec.Endpoint = mcpv1alpha1.ToolPostgres, "postgres://db.example.com/shop"
			tool.Spec.Postgres = &mcpv1alpha1.PostgresTool{TLS: tls}
		}
	}
	mutual := func(tool *mcpv1alpha1.MCPTool) {
		bearer(tool)
		tool.Spec.Auth.Type = mcpv1alpha1.AuthClientCertificate
	}
	secretCA := func(tool *mcpv1alpha1.MCPTool) {
		tool.Spec.CABundle = &mcpv1alpha1.CABundleSource{SecretRef: keyOf("ca", "ca.crt")}
	}
	system := reach.Trust{Identity: "system"}
	tests := map[string]struct {
		changes []func(*mcpv1alpha1.MCPTool)
		want    reach.Endpoint
		missing string
	}{
		"https": {want: reach.Endpoint{Subject: who, Host: "api.example.com", Port: "443", Security: reach.TLS, Trust: system}},
		"http": {
			changes: []func(*mcpv1alpha1.MCPTool){at("http://api.example.com")},
			want:    reach.Endpoint{Subject: who, Host: "api.example.com", Port: "80", Security: reach.Plain, Trust: system},
		},
		"a port": {
			changes: []func(*mcpv1alpha1.MCPTool){at("https://[2001:db8::1]:8443/mcp")},
			want:    reach.Endpoint{Subject: who, Host: "2001:db8::1", Port: "8443", Security: reach.TLS, Trust: system},
		},
		"a client certificate": {
			changes: []func(*mcpv1alpha1.MCPTool){mutual},
			want:    reach.Endpoint{Subject: who, Host: "api.example.com", Port: "443", Security: reach.TLS, Trust: system, ClientCertificate: true},
		},
		"an authority in a Secret": {
			changes: []func(*mcpv1alpha1.MCPTool){secretCA},
			want: reach.Endpoint{
				Subject: who, Host: "api.example.com", Port: "443", Security: reach.TLS, Trust: reach.Trust{Identity: "secret", Blind: true},
			},
		},
		"a database": {
			changes: []func(*mcpv1alpha1.MCPTool){postgres("VerifyFull")},
			want:    reach.Endpoint{Subject: who, Host: "db.example.com", Port: "5432", Security: reach.PostgresTLS, Trust: system},
		},
		"a database by any name": {
			changes: []func(*mcpv1alpha1.MCPTool){postgres("VerifyCA")},
			want: reach.Endpoint{
				Subject: who, Host: "db.example.com", Port: "5432", Security: reach.PostgresTLS, Trust: reach.Trust{Identity: "system", AnyHost: true},
			},
		},
		"a database without TLS": {
			changes: []func(*mcpv1alpha1.MCPTool){postgres("Disable")},
			want:    reach.Endpoint{Subject: who, Host: "db.example.com", Port: "5432", Security: reach.Plain, Trust: system},
		},
		"what a document said before the operator started": {
			changes: []func(*mcpv1alpha1.MCPTool){fetching, served},
			want:    reach.Endpoint{Subject: who, Host: "pets.example.com", Port: "443", Security: reach.TLS, Trust: system},
		},
		"what no document said yet": {changes: []func(*mcpv1alpha1.MCPTool){fetching}, missing: "the endpoint is not known yet"},
		"no URL":                    {changes: []func(*mcpv1alpha1.MCPTool){at("ftp://a")}, missing: "endpoint: is no URL with a host"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, makeSecret("ca"))
			got, err := newScope(w.Reconciler, makeTool(tt.changes...)).endpoint(t.Context())
			if tt.missing != "" {
				if err == nil || err.Error() != tt.missing {
					t.Errorf("error: %v, want %s", err, tt.missing)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v, endpoint (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestReachableTellsWhatIsKnownOfTheEndpoint(t *testing.T) {
	t.Parallel()
	stored := func(tool *mcpv1alpha1.MCPTool) {
		tool.Status.Conditions = []metav1.Condition{{Type: "Reachable", Status: metav1.ConditionTrue, Reason: "Reachable", ObservedGeneration: 2}}
	}
	older := func(tool *mcpv1alpha1.MCPTool) {
		stored(tool)
		tool.Status.Conditions[0].ObservedGeneration = 1
	}
	secretCA := func(tool *mcpv1alpha1.MCPTool) {
		tool.Spec.CABundle = &mcpv1alpha1.CABundleSource{SecretRef: keyOf("ca", "ca.crt")}
	}
	configMapCA := func(tool *mcpv1alpha1.MCPTool) {
		tool.Spec.CABundle = &mcpv1alpha1.CABundleSource{ConfigMapRef: keyOf("none", "ca.crt")}
	}
	reached := reach.Verdict{Known: true, Reason: "Reachable", Message: "it accepts connections"}
	tests := map[string]struct {
		change  func(*mcpv1alpha1.MCPTool)
		verdict reach.Verdict
		want    string // empty keeps the condition
		forgot  int
	}{
		"reached": {verdict: reached, want: "True/Reachable: it accepts connections"},
		"not reached": {
			verdict: reach.Verdict{Known: true, Reason: "DNSFailed", Message: "no address"},
			want:    "False/DNSFailed: no address",
		},
		"not tried":                            {want: "Unknown/Connecting: The first attempt to connect is under way"},
		"not tried since the operator started": {change: stored},
		"not tried since an edit":              {change: older, want: "Unknown/Connecting: The first attempt to connect is under way"},
		"reached, with a certificate that only gateways verify": {
			change: secretCA, verdict: reached,
			want: "True/Reachable: it accepts connections; only gateways verify its certificate, since caBundle is in a Secret",
		},
		"not to be tried": {
			change: configMapCA, forgot: 1,
			want: "Unknown/Connecting: Not tried: ConfigMap 'none' (caBundle.configMapRef) not found in namespace 'team': " +
				"create it, and the tool goes on by itself",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, makeSecret("ca"))
			w.checker.verdict = tt.verdict
			tool := makeTool()
			if tt.change != nil {
				tt.change(tool)
			}
			c, recorded := newScope(w.Reconciler, tool).reach(t.Context()).Condition("Reachable", 2)
			if got := string(c.Status) + "/" + c.Reason + ": " + c.Message; recorded != (tt.want != "") || recorded && got != tt.want {
				t.Errorf("recorded: %t, %s\nwant: %s", recorded, got, tt.want)
			}
			if w.checker.forgot != tt.forgot {
				t.Errorf("forgot %d times", w.checker.forgot)
			}
		})
	}
}

func TestVerifiedTellsWhatGatewaysFound(t *testing.T) {
	t.Parallel()
	of := func(verdict mcpv1alpha1.ToolVerdict, reason string) mcpv1alpha1.EffectiveTool {
		return mcpv1alpha1.EffectiveTool{Name: "weather", Verdict: verdict, Reason: reason}
	}
	going := makeAgent("going", of("Served", ""))
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"example.com/wait"}
	stranger := makeAgent("stranger", of("Served", ""))
	stranger.Spec.Tools = []mcpv1alpha1.ObjectName{{Name: "other"}}
	elsewhere := makeAgent("elsewhere", of("Served", ""))
	elsewhere.Namespace = "other"
	refused := makeAgent("refused", of("Pending", "its newest edit is not accepted"))
	refused.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "Invalid"}}
	tests := map[string]struct {
		agents   []client.Object
		accepted metav1.ConditionStatus
		want     string
		count    int32
	}{
		"no agent": {want: "Unknown/NoAgent: No MCPAgent is granted the tool: nobody has tried it yet"},
		"agents of something else, and one that goes": {
			agents: []client.Object{stranger, elsewhere, going},
			want:   "Unknown/NoAgent: No MCPAgent is granted the tool: nobody has tried it yet",
		},
		"an agent that tells nothing": {
			agents: []client.Object{makeAgent("a")}, want: "Unknown/Pending: No gateway has told yet", count: 1,
		},
		"an agent that waits": {
			agents: []client.Object{makeAgent("a", of("Pending", ""))}, want: "Unknown/Pending: No gateway has told yet", count: 1,
		},
		"an agent that is refused": {
			agents: []client.Object{makeAgent("a"), refused},
			want:   "Unknown/Pending: MCPAgent 'refused' does not serve it: its newest edit is not accepted", count: 2,
		},
		"an agent that is refused, and one that serves it": {
			agents: []client.Object{refused, makeAgent("z", of("Served", ""))}, want: "True/Verified: A gateway serves it", count: 2,
		},
		"an agent that is refused, and neither is the tool accepted": {
			agents: []client.Object{refused}, accepted: metav1.ConditionFalse, want: "Unknown/Pending: No gateway has told yet", count: 1,
		},
		"an agent that tells of a server of the name": {
			agents: []client.Object{makeAgent("a", mcpv1alpha1.EffectiveTool{Source: "server/weather", Verdict: "Served"})},
			want:   "Unknown/Pending: No gateway has told yet", count: 1,
		},
		"served": {agents: []client.Object{makeAgent("a", of("Served", ""))}, want: "True/Verified: A gateway serves it", count: 1},
		"served by one, not by others": {
			agents: []client.Object{makeAgent("a", of("Unavailable", "it is down")), makeAgent("b", of("Served", ""))},
			want:   "True/Verified: A gateway serves it", count: 2,
		},
		"not served": {
			agents: []client.Object{makeAgent("b", of("Invalid", "no")), makeAgent("a", of("Unavailable", "the database refuses the statement"))},
			want:   "False/CheckFailed: The gateway of MCPAgent 'a' cannot serve it: the database refuses the statement", count: 2,
		},
		"served as it was before an edit": {
			agents: []client.Object{makeAgent("a", mcpv1alpha1.EffectiveTool{Name: "weather", SourceGeneration: 1, Verdict: "Served"})},
			want:   "Unknown/Pending: No gateway has told yet", count: 1,
		},
		"not served, since it is not accepted": {
			agents: []client.Object{makeAgent("a", of("Invalid", "not accepted"))}, accepted: metav1.ConditionFalse,
			want: "Unknown/Pending: No gateway has told yet", count: 1,
		},
		"a name that another one has too": {
			agents: []client.Object{makeAgent("a", of("Conflict", "also offered by server-web")), makeAgent("b", of("Denied", "by a rule"))},
			want:   "False/CheckFailed: It has a name in MCPAgent 'a' that another one has too ('weather'): also offered by server-web", count: 2,
		},
		"a name that another one has too, in one agent only": {
			agents: []client.Object{makeAgent("a", of("Conflict", "also offered by server-web")), makeAgent("b", of("Served", ""))},
			want:   "True/Verified: A gateway serves it", count: 2,
		},
		"a name that another one had too, before an edit": {
			agents: []client.Object{makeAgent("a", mcpv1alpha1.EffectiveTool{Name: "weather", SourceGeneration: 1, Verdict: "Conflict"})},
			want:   "Unknown/Pending: No gateway has told yet", count: 1,
		},
		"all of it is held back by rules": {
			agents: []client.Object{makeAgent("a", of("Denied", `deny "w*"`))}, count: 1,
			want: `False/CheckFailed: Its own rules hold back every tool that the server offers ('weather': deny "w*")`,
		},
		"one is held back, and one that is named is not offered": {
			agents: []client.Object{makeAgent("a", of("Denied", "no pattern of allow matches"), of("Missing", `allow names "x"`))}, count: 1,
			want: `False/CheckFailed: The gateway of MCPAgent 'a' cannot serve it: allow names "x"`,
		},
		"one is held back, and one is served": {
			agents: []client.Object{makeAgent("a", of("Denied", `deny "w*"`), of("Served", ""))}, want: "True/Verified: A gateway serves it", count: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScope(makeWorld(t, tt.agents...).Reconciler, makeTool())
			if tt.accepted != "" {
				s.set(metav1.Condition{Type: "Accepted", Status: tt.accepted, Reason: "Invalid"})
			}
			c, _ := s.verify(t.Context()).Condition("Verified", 2)
			if got := string(c.Status) + "/" + c.Reason + ": " + c.Message; got != tt.want {
				t.Errorf("%s\nwant: %s", got, tt.want)
			}
			if s.tool.Status.Agents != tt.count {
				t.Errorf("%d agents, want %d", s.tool.Status.Agents, tt.count)
			}
		})
	}
}

func TestTheToolsOfARemoteServerAreWhatGatewaysTell(t *testing.T) {
	t.Parallel()
	remote := func(tool *mcpv1alpha1.MCPTool) { tool.Spec.Type = mcpv1alpha1.ToolMCP }
	digested := func(name, digest string) mcpv1alpha1.EffectiveTool {
		return mcpv1alpha1.EffectiveTool{Name: name, Verdict: "Served", Digest: digest}
	}
	known := func(tool *mcpv1alpha1.MCPTool) {
		remote(tool)
		tool.Status.Tools, tool.Status.ToolCount = []mcpv1alpha1.ToolStatus{{Name: "before"}}, new(int32(1))
	}
	named := func(name string, verdict mcpv1alpha1.ToolVerdict) mcpv1alpha1.EffectiveTool {
		return mcpv1alpha1.EffectiveTool{Name: name, Verdict: verdict}
	}
	tests := map[string]struct {
		change func(*mcpv1alpha1.MCPTool)
		agents []client.Object
		want   []string
	}{
		"nobody is granted it": {change: known},
		"nobody tells":         {change: known, agents: []client.Object{makeAgent("a")}, want: []string{"before"}},
		"a gateway tells": {
			change: known,
			agents: []client.Object{makeAgent("a", named("z", "Served"), named("b", "Conflict"), named("d", "Unavailable"))},
			want:   []string{"b", "d", "z"},
		},
		"what is held back, or of no use, is none of them": {
			change: known,
			agents: []client.Object{makeAgent("a", named("z", "Served"), named("b", "Denied"), named("c", "Invalid"), named("d", "Pending"))},
			want:   []string{"z"},
		},
		"all is held back":       {change: known, agents: []client.Object{makeAgent("a", named("b", "Denied"))}},
		"nothing is told so far": {change: known, agents: []client.Object{makeAgent("a", named("b", "Pending"))}, want: []string{"before"}},
		"with digests": {
			change: remote,
			agents: []client.Object{
				makeAgent("a", digested("z", "sha256:1"), digested("y", "sha256:2"), named("x", "Served")),
				makeAgent("b", digested("z", "sha256:1"), digested("y", "sha256:3"), digested("x", "sha256:4")),
				makeAgent("c", digested("y", "sha256:2")),
			},
			want: []string{"x sha256:4", "y", "z sha256:1"},
		},
		"gateways tell the same": {
			change: remote,
			agents: []client.Object{makeAgent("a", named("z", "Served")), makeAgent("b", named("z", "Denied"))},
			want:   []string{"z"},
		},
		"of one that tells of no names": {change: remote, agents: []client.Object{makeAgent("a", named("", "Unavailable"))}},
		"of an HTTP tool it says nothing": {
			change: func(*mcpv1alpha1.MCPTool) {}, agents: []client.Object{makeAgent("a", named("z", "Served"))},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScope(makeWorld(t, tt.agents...).Reconciler, makeTool(tt.change))
			s.verify(t.Context())
			var got []string
			for _, tool := range s.tool.Status.Tools {
				got = append(got, strings.TrimSpace(tool.Name+" "+tool.Digest))
			}
			if count := s.tool.Status.ToolCount; len(tt.agents) > 0 && s.tool.Spec.Type == mcpv1alpha1.ToolMCP && count != nil && int(*count) != len(got) {
				t.Errorf("%d are counted", *count)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("tools (-want +got)\n%s", diff)
			}
		})
	}
}

package route

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// acceptedTool is one that sends a credential.
func acceptedTool(name string) *mcpv1alpha1.MCPTool {
	return &mcpv1alpha1.MCPTool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", Generation: 1},
		Spec: mcpv1alpha1.MCPToolSpec{
			Type: mcpv1alpha1.ToolHTTP, Endpoint: "https://" + name + ".example.com",
			Auth: &mcpv1alpha1.ToolAuth{Type: mcpv1alpha1.AuthBearer, SecretRef: mcpv1alpha1.ToolSecret{ObjectName: mcpv1alpha1.ObjectName{Name: name}}},
		},
		Status: mcpv1alpha1.MCPToolStatus{Conditions: []metav1.Condition{
			{Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, ObservedGeneration: 1},
		}},
	}
}

// servedInput is that of an agent with the MCPServer web and the MCPTools orders and stock, whose table was written.
func servedInput(t *testing.T) Input {
	t.Helper()
	agent := agentOf([]string{"web"}, "orders", "stock")
	agent.Spec.Servers[0].Prefix = "web_"
	agent.Spec.Auth = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, ServiceAccounts: []mcpv1alpha1.ObjectName{{Name: "caller"}}}
	in := Input{
		Agent: agent, ClusterDomain: "cluster.local", Issuer: "https://kubernetes.default.svc",
		Keys: json.RawMessage(`{"keys": [{"kty":"RSA","kid":"a","alg":"RS256","n":"AQAB","e":"AQAB"}]}`),
		Servers: map[string]*mcpv1alpha1.MCPServer{"web": {
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team", Generation: 1},
			Spec:       mcpv1alpha1.MCPServerSpec{Port: 8080, Path: "/mcp", HostHeader: "web.example.com"},
		}},
		Tools: map[string]*mcpv1alpha1.MCPTool{"orders": acceptedTool("orders"), "stock": acceptedTool("stock")},
	}
	out, err := Compile(in)
	if err != nil || len(out.Table.Backends) != 3 {
		t.Fatalf("verdicts %v, error %v", out.Verdicts, err)
	}
	in.Written, in.Mounted = Read(out.JSON, out.Table.Revision), out.Mounts
	if diff := cmp.Diff(out.Table, in.Written); diff != "" {
		t.Fatalf("what was written is read as another table (-want +got)\n%s", diff)
	}
	return in
}

func backendNames(t *table.Table) []string {
	var names []string
	for _, b := range t.Backends {
		names = append(names, b.Name)
	}
	return names
}

func TestARefusedAgentLosesWhatIsWithdrawnAndGetsNothing(t *testing.T) {
	t.Parallel()
	all := []string{"server-web", "tool-orders", "tool-stock"}
	notAllowed := func(tool *mcpv1alpha1.MCPTool) {
		tool.Status.Conditions[0].Status, tool.Status.Conditions[0].Reason = metav1.ConditionFalse, mcpv1alpha1.ReasonSecretNotAllowed
	}
	for name, tc := range map[string]struct {
		change func(*Input)
		want   []string
	}{
		"nothing":                    {func(*Input) {}, all},
		"a tool is deleted":          {func(in *Input) { delete(in.Tools, "stock") }, all[:2]},
		"a server is deleted":        {func(in *Input) { delete(in.Servers, "web") }, all[1:]},
		"a Secret is restricted":     {func(in *Input) { notAllowed(in.Tools["orders"]) }, []string{"server-web", "tool-stock"}},
		"a tool is edited":           {func(in *Input) { in.Tools["orders"].Generation++ }, []string{"server-web", "tool-stock"}},
		"a grant is gone":            {func(in *Input) { in.Agent.Spec.Tools = in.Agent.Spec.Tools[:1] }, all[:2]},
		"a grant is there, and more": {func(in *Input) { grantNew(in) }, all},
		"another order":              {func(in *Input) { slices.Reverse(in.Agent.Spec.Tools) }, all},
		"a server's grant is wider":  {func(in *Input) { in.Agent.Spec.Servers[0].Prefix, in.Agent.Spec.Servers[0].Trusted = "", true }, all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := servedInput(t)
			tc.change(&in)
			in.Agent.Spec.Auth.Audiences = []string{"https://kubernetes.default.svc"}
			if _, err := Compile(in); err == nil {
				t.Fatal("the agent is not refused")
			}
			before := encode(in.Written)
			out, err := Withdraw(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, backendNames(out.Table)); diff != "" {
				t.Errorf("backends (-want +got)\n%s", diff)
			}
			if same := out.Table.Revision == in.Written.Revision; same != (len(tc.want) == len(all)) {
				t.Errorf("another revision: %t", !same)
			}
			if diff := cmp.Diff(in.Written.Auth, out.Table.Auth); diff != "" {
				t.Errorf("who may call (-before +after)\n%s", diff)
			}
			if !bytes.Equal(before, encode(in.Written)) {
				t.Error("what was written was changed in memory")
			}
		})
	}
}

// TestARefusedAgentTellsTheTruthOfWhatItDoesNotServe: also once the table has no trace of it.
func TestARefusedAgentTellsTheTruthOfWhatItDoesNotServe(t *testing.T) {
	t.Parallel()
	const beingChecked = "the MCPTool has not been checked yet"
	for name, tc := range map[string]struct {
		change, settle func(*Input)
		source         string
		first, later   mcpv1alpha1.EffectiveTool
	}{
		"a tool is deleted": {
			change: func(in *Input) { delete(in.Tools, "stock") }, source: "tool/stock",
			first: mcpv1alpha1.EffectiveTool{Verdict: mcpv1alpha1.VerdictMissing, Reason: "there is no MCPTool 'stock' in the namespace team"},
			later: mcpv1alpha1.EffectiveTool{Verdict: mcpv1alpha1.VerdictMissing, Reason: "there is no MCPTool 'stock' in the namespace team"},
		},
		"a server is deleted": {
			change: func(in *Input) { delete(in.Servers, "web") }, source: "server/web",
			first: mcpv1alpha1.EffectiveTool{Verdict: mcpv1alpha1.VerdictMissing, Reason: "there is no MCPServer 'web' in the namespace team"},
			later: mcpv1alpha1.EffectiveTool{Verdict: mcpv1alpha1.VerdictMissing, Reason: "there is no MCPServer 'web' in the namespace team"},
		},
		"a Secret is restricted": {
			change: func(in *Input) {
				in.Tools["stock"].Status.Conditions[0] = metav1.Condition{
					Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: mcpv1alpha1.ReasonSecretNotAllowed,
					Message: "not for this host", ObservedGeneration: 1,
				}
			}, source: "tool/stock",
			first: mcpv1alpha1.EffectiveTool{Name: "stock", SourceGeneration: 1, Verdict: mcpv1alpha1.VerdictInvalid, Reason: "not for this host"},
			later: mcpv1alpha1.EffectiveTool{Name: "stock", SourceGeneration: 1, Verdict: mcpv1alpha1.VerdictInvalid, Reason: "not for this host"},
		},
		"a tool is edited, and then accepted": {
			change: func(in *Input) { in.Tools["stock"].Generation = 2 },
			settle: func(in *Input) { in.Tools["stock"].Status.Conditions[0].ObservedGeneration = 2 }, source: "tool/stock",
			first: mcpv1alpha1.EffectiveTool{Name: "stock", SourceGeneration: 2, Verdict: mcpv1alpha1.VerdictPending, Reason: beingChecked},
			later: mcpv1alpha1.EffectiveTool{Name: "stock", SourceGeneration: 2, Verdict: mcpv1alpha1.VerdictPending, Reason: heldUp},
		},
		"something is granted by the edit that is refused": {
			change: grantNew, source: "tool/new",
			first: mcpv1alpha1.EffectiveTool{Name: "new", SourceGeneration: 1, Verdict: mcpv1alpha1.VerdictPending, Reason: heldUp},
			later: mcpv1alpha1.EffectiveTool{Name: "new", SourceGeneration: 1, Verdict: mcpv1alpha1.VerdictPending, Reason: heldUp},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := servedInput(t)
			in.Agent.Spec.Auth.Audiences = []string{"https://kubernetes.default.svc"}
			tc.change(&in)
			tell := func() mcpv1alpha1.EffectiveTool {
				t.Helper()
				out, err := Withdraw(in)
				if err != nil {
					t.Fatal(err)
				}
				in.Written = Read(out.JSON, out.Table.Revision)
				tools, _, _ := Effective(in.Agent, out, nil)
				i := slices.IndexFunc(tools, func(tool mcpv1alpha1.EffectiveTool) bool { return tool.Source == tc.source })
				if i < 0 {
					t.Fatalf("nothing is told of it: %+v", tools)
				}
				return tools[i]
			}
			tc.first.Source, tc.later.Source = tc.source, tc.source
			if diff := cmp.Diff(tc.first, tell()); diff != "" {
				t.Errorf("at first (-want +got)\n%s", diff)
			}
			if tc.settle != nil {
				tc.settle(&in)
			}
			if diff := cmp.Diff(tc.later, tell()); diff != "" {
				t.Errorf("later (-want +got)\n%s", diff)
			}
		})
	}
}

// grantNew grants a tool that the table does not have.
func grantNew(in *Input) {
	in.Tools["new"] = acceptedTool("new")
	in.Agent.Spec.Tools = append(in.Agent.Spec.Tools, mcpv1alpha1.ObjectName{Name: "new"})
}

func TestKeysThatAreNotKnownAreThoseThatWereWritten(t *testing.T) {
	t.Parallel()
	in := servedInput(t)
	in.Issuer, in.Keys = "", nil
	if !NeedsWritten(in) {
		t.Error("what was written is not asked for")
	}
	delete(in.Tools, "stock")
	out, err := Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in.Written.Auth, out.Table.Auth); diff != "" || len(out.Table.Backends) != 2 {
		t.Errorf("%d backends; who may call (-before +after)\n%s", len(out.Table.Backends), diff)
	}
	in.Agent.Spec.Auth.Audiences = []string{in.Written.Auth.ServiceAccounts.Issuer}
	if _, err := Compile(in); err == nil {
		t.Error("the issuer that was written is taken as an audience")
	}
}

func TestATableThatSomebodyChangedIsNotRead(t *testing.T) {
	t.Parallel()
	in := servedInput(t)
	revision := in.Written.Revision
	in.Written.Auth.ServiceAccounts.Issuer = "https://attacker.example.com"
	if Read(encode(in.Written), revision) != nil {
		t.Error("a changed table is read")
	}
	content := *in.Written
	content.Revision = ""
	if Read(encode(content), revision) != nil || Read(encode(content), digestOf(encode(content))) != nil {
		t.Error("a table without its revision is read")
	}
	in.Written.Revision = revisionOf(&content)
	if Read(encode(in.Written), revision) != nil {
		t.Error("a changed table with a revision of its own is read")
	}
	if Read([]byte("{}"), digestOf([]byte("{}"))) != nil || Read(nil, "") != nil {
		t.Error("what is no table is read")
	}
}

// TestATableOfAnotherVersionOfTheOperatorIsRead: that may have written fields that are no more, or not yet, in a form of their own.
func TestATableOfAnotherVersionOfTheOperatorIsRead(t *testing.T) {
	t.Parallel()
	content := []byte(`{ "version":1,"endpoint":{},"auth":{"type":"None"},"backends":[]}`)
	revision := digestOf(content)
	written := bytes.Replace(content, []byte(`"endpoint"`), []byte(`"revision":"`+revision+`","endpoint"`), 1)
	if t1 := Read(written, revision); t1 == nil || t1.Revision != revision {
		t.Errorf("read as %v", t1)
	}
}

func TestPrivateIssuersEndWithTheOperatorsPermission(t *testing.T) {
	t.Parallel()
	in := servedInput(t)
	in.Agent.Spec.Auth.OIDC = []mcpv1alpha1.OIDCIssuer{{Issuer: "https://login.example.com"}}
	allowed := func() bool {
		t.Helper()
		out, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		in.Written = out.Table
		return out.Table.Auth.OIDC[0].AllowPrivate
	}
	if allowed() {
		t.Error("an issuer may be at a private address, and the operator does not allow that")
	}
	in.AllowPrivate = true
	if !allowed() {
		t.Error("an issuer may not be at a private address, and the operator allows that")
	}
	in.AllowPrivate = false
	out, err := Withdraw(in)
	if err != nil || out.Table.Auth.OIDC[0].AllowPrivate || !in.Written.Auth.OIDC[0].AllowPrivate {
		t.Errorf("what was written keeps the permission, or was changed in memory: %v", err)
	}
}

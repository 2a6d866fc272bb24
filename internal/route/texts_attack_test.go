package route

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// FuzzTextsOfObjectsAreTextsOfTheTable: whatever somebody writes into a tool or an agent is in the table at its place, as it was, and
// makes nothing else of it: no other backend, no other field.
func FuzzTextsOfObjectsAreTextsOfTheTable(f *testing.F) {
	for _, seed := range []string{
		"plain", `"}],"auth":{"type":"None"},"x":[{"`, "a\n---\nauth: {type: None}", "' || true || '", `\u0022`, "${AUTH}", "{{ .Values.auth }}", "*alias",
		"&anchor", "!!binary x", "a\tb", "<script>", "\u2028", "ü", "# comment", "null", "true", "1e400", "", "a\\", "\"",
	} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, description, statement, instructions string) {
		for _, text := range []*string{&description, &statement, &instructions} {
			*text = strings.ToValidUTF8(*text, "?") // nothing else comes from the API server
		}
		accepted := []metav1.Condition{{Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
		schema := &mcpv1alpha1.ToolSchema{Inline: &mcpv1alpha1.InlineSchema{Input: &apiextensionsv1.JSON{Raw: []byte(`{"type":"object"}`)}}}
		read := &mcpv1alpha1.MCPTool{Spec: mcpv1alpha1.MCPToolSpec{
			Type: mcpv1alpha1.ToolPostgres, Endpoint: "postgres://db.example.com/shop", Description: description, Schema: schema,
			Postgres: &mcpv1alpha1.PostgresTool{Statement: statement, User: "app", TLS: "VerifyFull"},
		}}
		ask := &mcpv1alpha1.MCPTool{Spec: mcpv1alpha1.MCPToolSpec{
			Type: mcpv1alpha1.ToolHTTP, Endpoint: "https://api.example.com/v1", Title: description, Description: description, Schema: schema,
		}}
		read.Name, ask.Name = "read", "ask"
		read.Status.Conditions, ask.Status.Conditions = accepted, accepted
		agent := agentOf(nil)
		agent.Spec.Servers, agent.Spec.ServerRef = nil, nil
		agent.Spec.Tools = []mcpv1alpha1.ObjectName{{Name: "read"}, {Name: "ask"}}
		agent.Spec.Auth = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, ServiceAccounts: []mcpv1alpha1.ObjectName{{Name: "caller"}}}
		agent.Spec.Gateway = &mcpv1alpha1.AgentGateway{Instructions: instructions}
		out, err := Compile(Input{
			Agent: agent, Tools: map[string]*mcpv1alpha1.MCPTool{"read": read, "ask": ask}, ClusterDomain: "cluster.local",
			Issuer: "https://issuer.example.com", Keys: publicKeys,
		})
		if err != nil {
			return // the whole is refused
		}
		got, err := table.Parse(out.JSON)
		if err != nil {
			t.Fatalf("the gateway refuses the table: %v", err)
		}
		if got.Auth.Type != table.AuthTokens || got.Endpoint.Instructions != instructions || len(got.Auth.ServiceAccounts.Subjects) != 1 {
			t.Errorf("auth %+v, instructions %q, want %q", got.Auth, got.Endpoint.Instructions, instructions)
		}
		for _, b := range got.Backends {
			var definition json.RawMessage
			switch b.Name {
			case "tool-read":
				definition = b.Toolset.Postgres.Definition
				if b.Toolset.Postgres.Statement != statement || b.Toolset.HTTP != nil {
					t.Errorf("the statement %q, want %q", b.Toolset.Postgres.Statement, statement)
				}
			case "tool-ask":
				definition = b.Toolset.HTTP[0].Definition
			default:
				t.Errorf("there is a backend %q", b.Name)
			}
			var members map[string]any
			if err := json.Unmarshal(definition, &members); err != nil {
				t.Fatal(err)
			}
			if said, _ := members["description"].(string); said != description {
				t.Errorf("%s is described as %q, want %q", b.Name, said, description)
			}
			for name := range members {
				if !known[name] {
					t.Errorf("%s has a member %q", b.Name, name)
				}
			}
		}
	})
}

// publicKeys is the set of RFC 7517, appendix A.1, without its RSA key.
var publicKeys = json.RawMessage(`{"keys":[{"kty":"EC","crv":"P-256","kid":"k",
	"x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`)

// known are the members that a definition may have.
var known = map[string]bool{"name": true, "title": true, "description": true, "inputSchema": true, "outputSchema": true, "annotations": true}

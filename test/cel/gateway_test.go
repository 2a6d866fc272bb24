package cel

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/route"
)

// TestWhatIsAcceptedTheGatewayTakes holds the rules of tools to those of the routing table: who is told at once that a value is fine
// must not be told later that the gateway refuses it. That an argument is one of the schema's is beyond such rules, so each is.
func TestWhatIsAcceptedTheGatewayTakes(t *testing.T) {
	t.Parallel()
	for _, c := range acceptedTools() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var tool mcpv1alpha1.MCPTool
			convert(t, changedFrom(t, minimalTool, c.change), &tool)
			tool.Status = mcpv1alpha1.MCPToolStatus{Conditions: []metav1.Condition{
				{Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: mcpv1alpha1.ReasonValid},
				{Type: mcpv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: mcpv1alpha1.ReasonApplied},
			}}
			if tool.Spec.Type == mcpv1alpha1.ToolOpenAPI {
				tool.Status.Definitions = &mcpv1alpha1.ToolDefinitions{
					ObjectName: mcpv1alpha1.ObjectName{Name: "a"}, Key: "tools.json", SHA256: digest, Endpoint: "https://api.example.com",
				}
			}
			if kind := tool.Spec.Type; kind == mcpv1alpha1.ToolHTTP || kind == mcpv1alpha1.ToolPostgres {
				tool.Spec.Schema = &mcpv1alpha1.ToolSchema{Inline: &mcpv1alpha1.InlineSchema{Input: takes(t, argumentsOf(&tool.Spec))}}
			}
			var agent mcpv1alpha1.MCPAgent
			convert(t, changedFrom(t, minimalAgent, "{}"), &agent)
			agent.Spec.Tools = []mcpv1alpha1.ObjectName{{Name: tool.Name}}
			in := route.Input{Agent: &agent, Tools: map[string]*mcpv1alpha1.MCPTool{tool.Name: &tool}, ClusterDomain: "cluster.local", AllowPrivate: true}
			out, err := route.Compile(in)
			if err != nil || len(out.Verdicts) > 0 {
				t.Errorf("%.1000s\nis refused by the gateway: %+v %v", c.change, out.Verdicts, err)
			}
		})
	}
}

// TestAgentsThatAreAcceptedHaveATable does that for what is wrong with an agent as a whole.
func TestAgentsThatAreAcceptedHaveATable(t *testing.T) {
	t.Parallel()
	for _, c := range acceptedAgents() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var agent mcpv1alpha1.MCPAgent
			convert(t, changedFrom(t, minimalAgent, c.change), &agent)
			in := route.Input{
				Agent: &agent, ClusterDomain: "cluster.local", Issuer: "https://kubernetes.default.svc.cluster.local",
				Keys: []byte(`{"keys":[{"kty":"EC","kid":"a"}]}`), Servers: map[string]*mcpv1alpha1.MCPServer{},
			}
			for _, granted := range agent.Spec.Servers {
				var server mcpv1alpha1.MCPServer
				convert(t, changedFrom(t, minimal, "{}"), &server)
				server.Name = granted.Name
				if len(server.Name) > 54 {
					continue // there is no such server
				}
				server.Status.Conditions = []metav1.Condition{{Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
				in.Servers[granted.Name] = &server
			}
			out, err := route.Compile(in)
			if err != nil {
				t.Errorf("%.1000s\nhas no table: %v", c.change, err)
			}
			for _, verdict := range out.Verdicts {
				if verdict.Verdict == mcpv1alpha1.VerdictInvalid {
					t.Errorf("%.1000s\nis refused by the gateway: %+v", c.change, verdict)
				}
			}
		})
	}
}

var placeholder = regexp.MustCompile(`\{([^}]*)\}`)

// argumentsOf are the arguments that a tool sends.
func argumentsOf(spec *mcpv1alpha1.MCPToolSpec) (names []string) {
	var params []mcpv1alpha1.HTTPParam
	if operation := spec.HTTP; operation != nil {
		for _, variable := range placeholder.FindAllStringSubmatch(operation.Path, -1) {
			names = append(names, variable[1])
		}
		params = slices.Concat(operation.Query, operation.Headers)
		if operation.Body != nil {
			params = append(params, operation.Body.Members...)
			names = append(names, operation.Body.Argument)
		}
	}
	for _, param := range params {
		names = append(names, cmp.Or(param.Argument, param.Name))
	}
	if spec.Postgres != nil {
		for _, parameter := range spec.Postgres.Parameters {
			names = append(names, parameter.Argument)
		}
	}
	return names
}

// takes is a schema that demands arguments.
func takes(t *testing.T, names []string) *apiextensionsv1.JSON {
	t.Helper()
	properties := map[string]any{}
	required := []string{}
	for _, name := range names {
		if _, ok := properties[name]; !ok && name != "" {
			properties[name] = map[string]any{}
			required = append(required, name)
		}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		t.Fatal(err)
	}
	return &apiextensionsv1.JSON{Raw: raw}
}

// convert reads an object as its type.
func convert(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		t.Fatal(err)
	}
}

package cel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDefaultsOfToolsAndAgents(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		minimal, change string
		want            map[string]any // spec
	}{
		"the smallest tool gets nothing": {minimalTool, "{}", map[string]any{"type": "http", "endpoint": "https://api.example.com/v1"}},
		"an operation is a POST, and a body is JSON": {minimalTool, "spec: {http: {body: {}}}", map[string]any{
			"type": "http", "endpoint": "https://api.example.com/v1", "http": map[string]any{"method": "POST", "body": map[string]any{"type": "JSON"}},
		}},
		"a database is verified in full": {minimalTool, statement(""), map[string]any{
			"type": "postgres", "endpoint": "postgres://db.example.com/shop",
			"postgres": map[string]any{"statement": "SELECT 1", "user": "app", "tls": "VerifyFull"},
		}},
		"a remote server speaks Streamable HTTP": {minimalTool, remote(""), map[string]any{
			"type": "mcp", "endpoint": "https://api.example.com/v1", "mcp": map[string]any{"transport": "StreamableHTTP"},
		}},
		"the smallest agent gets nothing": {minimalAgent, "{}", map[string]any{
			"auth": map[string]any{"type": "None"}, "tools": []any{map[string]any{"name": "demo"}},
		}},
		"scaling begins with two pods, rollouts are gentle and the own namespace may connect": {
			minimalAgent, "spec: {scaling: {maxReplicas: 3}, rollout: {}, network: {}}", map[string]any{
				"auth": map[string]any{"type": "None"}, "tools": []any{map[string]any{"name": "demo"}},
				"scaling": map[string]any{"minReplicas": int64(2), "maxReplicas": int64(3), "targetCPUUtilizationPercentage": int64(70)},
				"rollout": map[string]any{"type": "RollingUpdate"}, "network": map[string]any{"ingress": "Namespace"},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, err := submitTo(t, c.minimal, c.change)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, object.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownFieldsOfToolsAndAgentsAreRefused(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]struct{ minimal, change string }{
		"spec.grpc":                            {minimalTool, "spec: {grpc: {}}"},
		"spec.auth.token":                      {minimalTool, "spec: {auth: {type: Bearer, token: secret, secretRef: {name: a}}}"},
		"spec.auth.secretRef.namespace":        {minimalTool, "spec: {auth: {type: Bearer, secretRef: {name: a, namespace: b}}}"},
		"spec.insecureSkipVerify":              {minimalTool, "spec: {insecureSkipVerify: true}"},
		"spec.tools[0].namespace":              {minimalAgent, "spec: {tools: [{name: a, namespace: b}]}"},
		"spec.runtime.envFrom":                 {minimalAgent, "spec: {runtime: {image: a, envFrom: [{secretRef: {name: a}}]}}"},
		"spec.auth.serviceAccounts[0].subject": {minimalAgent, "spec: {auth: {type: Tokens, serviceAccounts: [{name: a, subject: b}]}}"},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			_, err := submitTo(t, c.minimal, c.change)
			if want := `unknown field "` + field + `"`; !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want a bad request that says %s", err, want)
			}
		})
	}
}

func TestKindsAreShownAsDocumented(t *testing.T) {
	t.Parallel()
	const ready = `Ready string .status.conditions[?(@.type=="Ready")].status`
	want := map[string][]string{
		ownKind: {ready, "Phase string .status.phase", "Image string .spec.image", "Endpoint string .status.endpoint"},
		toolKind: {
			ready, "Phase string .status.phase", "Type string .spec.type", "Tools integer .status.toolCount", "Agents integer .status.agents",
		},
		agentKind: {ready, "Phase string .status.phase", "Tools integer .status.toolCount", "Endpoint string .status.endpoint"},
	}
	for kind, crd := range readCRDs(t) {
		if kind == sigKind {
			continue
		}
		var columns []string
		for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, c.Name+" "+c.Type+" "+c.JSONPath)
		}
		if diff := cmp.Diff(append(want[kind], "Age date .metadata.creationTimestamp"), columns); diff != "" {
			t.Errorf("columns of %s (-want +got):\n%s", kind, diff)
		}
		if diff := cmp.Diff([]string{"mcp-operator"}, crd.Spec.Names.Categories); diff != "" || len(crd.Spec.Names.ShortNames) > 0 {
			t.Errorf("categories of %s (-want +got), and short names %v, want none:\n%s", kind, crd.Spec.Names.ShortNames, diff)
		}
		if crd.Spec.Scope != "Namespaced" {
			t.Errorf("%s is %s, want it namespaced", kind, crd.Spec.Scope)
		}
	}
}

// TestSchemasAreReplacedAsAWhole keeps a member that another field manager wrote out of a schema that is given anew.
func TestSchemasAreReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	apply := func(change, manager string, options ...client.ApplyOption) (*unstructured.Unstructured, error) {
		object := changedFrom(t, minimalTool, "metadata: {name: atomic}\n"+change)
		return object, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), append(options, client.FieldOwner(manager))...)
	}
	deleteLater(t, changedFrom(t, minimalTool, "metadata: {name: atomic}"))
	if _, err := apply("spec: {schema: {inline: {input: {required: [a], properties: {a: {}}}}}}", "first"); err != nil {
		t.Fatal(err)
	}
	const second = "spec: {schema: {inline: {input: {properties: {b: {}}}, output: {}}}}"
	if _, err := apply(second, "second"); !apierrors.IsConflict(err) {
		t.Errorf("a second manager is answered with %v, want a conflict: both cannot own a schema", err)
	}
	object, err := apply(second, "second", client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := unstructured.NestedMap(object.Object, "spec", "schema", "inline")
	want := map[string]any{"input": map[string]any{"properties": map[string]any{"b": map[string]any{}}}, "output": map[string]any{}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("schema.inline (%v, -want +got):\n%s", err, diff)
	}
}

// TestWhatIsMuchTooLargeIsRefusedInOneWord gives lists of ten thousand and texts of a mebibyte: the limit is said, and no rule is
// evaluated on them.
func TestWhatIsMuchTooLargeIsRefusedInOneWord(t *testing.T) {
	t.Parallel()
	mebibyte := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct{ minimal, change, says string }{
		"servers":      {minimalAgent, list{"spec: {servers: [%s]}", "", "{name: s%d}", 0}.of(10_000), "must have at most 64 items"},
		"tools":        {minimalAgent, list{"spec: {tools: [%s]}", "", "{name: s%d}", 0}.of(10_000), "must have at most 128 items"},
		"patterns":     {minimalAgent, list{server("tools: {deny: [%s]}"), "", "p%d", 0}.of(10_000), "must have at most 256 items"},
		"subjects":     {minimalAgent, list{issuer("subjects: [%s]"), "", "s%d", 0}.of(10_000), "must have at most 256 items"},
		"instructions": {minimalAgent, gateway("instructions: " + mebibyte), "may not be more than 8192"},
		"parameters":   {minimalTool, list{"spec: {http: {query: [%s]}}", "", "{name: q%d}", 0}.of(10_000), "must have at most 64 items"},
		"a statement":  {minimalTool, postgres("user: a, statement: " + mebibyte), "may not be more than 16384"},
		"an endpoint":  {minimalTool, at("https://a/" + mebibyte), "may not be more than 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submitTo(t, c.minimal, c.change)
			if causes := causesOf(err); len(causes) != 1 || !strings.Contains(causes[0].Message, c.says) {
				t.Errorf("refused because of %v, want one cause that says %q", causes, c.says)
			}
		})
	}
}

// TestAnAgentOfAMebibyteIsJudged is about the cost of rules when an object is evaluated: what is within the limits of the schema
// must not exceed that of the API server.
func TestAnAgentOfAMebibyteIsJudged(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 120)
	servers := make([]string, 64)
	for i := range servers {
		patterns := list{"[%s]", "", long + "%d", 0}.of(100)
		renamed := list{"{%s}", "", long + "%[1]d: b" + long + "%[1]d", 0}.of(20)
		servers[i] = fmt.Sprintf("{name: s%d, tools: {deny: %s, rename: %s}}", i, patterns, renamed)
	}
	change := "spec: {servers: [" + strings.Join(servers, ", ") + "]}"
	if len(change) < 1<<20 {
		t.Fatalf("the agent has %d bytes only", len(change))
	}
	if _, err := submitTo(t, minimalAgent, change); err != nil {
		t.Errorf("an agent of %d bytes is refused: %.500v", len(change), err)
	}
}

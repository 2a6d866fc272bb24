package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// jsonOf is JSON as the API holds it.
func jsonOf(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// takes is the schema of an object with these properties, all of them required, as name and JSON Schema.
func takes(properties ...string) *mcpv1alpha1.ToolSchema {
	var names, schemas []string
	for i := 0; i+1 < len(properties); i += 2 {
		names = append(names, fmt.Sprintf("%q", properties[i]))
		schemas = append(schemas, fmt.Sprintf("%q: %s", properties[i], properties[i+1]))
	}
	return &mcpv1alpha1.ToolSchema{Inline: &mcpv1alpha1.InlineSchema{Input: jsonOf(fmt.Sprintf(
		`{"type": "object", "properties": {%s}, "required": [%s]}`, strings.Join(schemas, ", "), strings.Join(names, ", ")))}}
}

// bearer sends the key token of the Secret key.
func bearer() *mcpv1alpha1.ToolAuth {
	return &mcpv1alpha1.ToolAuth{Type: mcpv1alpha1.AuthBearer, SecretRef: mcpv1alpha1.ToolSecret{ObjectName: named("key")}}
}

// secret is a Secret of one key, with the key and value.
func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: value}}
}

// digestOf is what the API tells of a credential.
func digestOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// findPet is the operation of the petstore that is used where any will do.
func findPet(api *petstore, auth *mcpv1alpha1.ToolAuth) mcpv1alpha1.MCPToolSpec {
	return mcpv1alpha1.MCPToolSpec{
		Type: mcpv1alpha1.ToolHTTP, Endpoint: api.endpoint() + "/v2", Auth: auth, Schema: takes("petId", `{"type": "integer"}`),
		HTTP: &mcpv1alpha1.HTTPTool{Method: "GET", Path: "/pet/{petId}"},
	}
}

// echoTool is a POST to /echo, with a query that waits before the answer.
func echoTool(api *petstore) mcpv1alpha1.MCPToolSpec {
	return mcpv1alpha1.MCPToolSpec{
		Type: mcpv1alpha1.ToolHTTP, Endpoint: api.endpoint(), Schema: takes("delay", `{"type": "string"}`),
		HTTP: &mcpv1alpha1.HTTPTool{Method: "GET", Path: "/echo", Query: []mcpv1alpha1.HTTPParam{{Name: "delay"}}},
	}
}

func TestHTTPToolSendsEachArgumentToItsPlaceAndItsCredentialAndNothingOfTheCaller(t *testing.T) {
	t.Parallel()
	f := start(t)
	api := f.petstore("api", "top-secret")
	f.create(secret("key", "token", "top-secret"))
	f.tool("add-pet", mcpv1alpha1.MCPToolSpec{
		Type: mcpv1alpha1.ToolHTTP, Endpoint: api.endpoint() + "/echo", Auth: bearer(),
		Schema: takes("name", `{"type": "string"}`, "tags", `{"type": "array", "items": {"type": "string"}}`,
			"trace", `{"type": "string"}`, "age", `{"type": "integer"}`),
		HTTP: &mcpv1alpha1.HTTPTool{
			Query:   []mcpv1alpha1.HTTPParam{{Name: "tag", Argument: "tags", Style: "Comma"}, {Name: "fixed", Value: jsonOf(`7`)}},
			Headers: []mcpv1alpha1.HTTPParam{{Name: "X-Trace", Argument: "trace"}},
		},
	})
	found := f.tool("find-pet", findPet(api, bearer()))
	a := f.agent("team", nil, "add-pet", "find-pet")
	a.awaitReady("add-pet", "find-pet")
	found.await("is verified by the gateway", agentSoon, says[*tool]("Verified", metav1.ConditionTrue, ""), says[*tool]("Ready", metav1.ConditionTrue, ""))

	a.answers("find-pet", `{"petId": 1}`, "Rex")
	a.fails("find-pet", `{"petId": 99}`, "the tool says", "404")
	a.fails("find-pet", `{"petId": "../user"}`, "petId")
	calls := a.answers("add-pet", `{"name": "A & B/../ü", "tags": ["x", "y z"], "trace": "t-1", "age": 3}`, "t-1")

	sent := api.requests("/echo")
	if len(sent) == 0 || len(sent) > calls { // of a call that failed nobody knows whether it came there
		t.Fatalf("the API was asked %d times in %d calls, wanted is once in each: %+v", len(sent), calls, sent)
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(sent[0].Body), &body); err != nil {
		t.Errorf("the body is %q: %v", sent[0].Body, err)
	}
	got := map[string]any{
		"method": sent[0].Method, "body": body, "query": sent[0].Query.Encode(), "trace": sent[0].Headers.Get("X-Trace"),
		"credential": sent[0].Headers.Get("Authorization"), "session": sent[0].Headers.Get("Mcp-Session-Id") + sent[0].Headers.Get("Mcp-Method"),
	}
	want := map[string]any{
		"method": "POST", "body": map[string]any{"name": "A & B/../ü", "age": 3.0}, "query": "fixed=7&tag=x%2Cy+z", "trace": "t-1",
		"credential": digestOf("Bearer top-secret"), "session": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the API was sent (-want +got):\n%s", diff)
	}
	for _, request := range api.requests("/v2/") {
		if strings.Contains(request.Path, "99") || strings.HasSuffix(request.Path, "/1") {
			continue
		}
		t.Errorf("arguments that the schema refuses reached the API: %s", request.Path)
	}
}

func TestOpenAPIDocumentBecomesItsOperationsAndFollowsIt(t *testing.T) {
	t.Parallel()
	f := start(t)
	api := f.petstore("api")
	f.tool("by-url", mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolOpenAPI, OpenAPI: &mcpv1alpha1.OpenAPITool{
		Document: mcpv1alpha1.OpenAPIDocument{URL: api.endpoint() + "/openapi.json"}, Prefix: "shop_",
		Include: []mcpv1alpha1.OperationMatch{{Tag: "pet"}}, Exclude: []mcpv1alpha1.OperationMatch{{Method: "DELETE"}},
	}})
	document := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "document"}, Data: map[string]string{"openapi.json": api.get("/openapi.json")}}
	f.create(document)
	byFile := f.tool("by-file", mcpv1alpha1.MCPToolSpec{
		Type: mcpv1alpha1.ToolOpenAPI, Endpoint: api.endpoint() + "/v2", OpenAPI: &mcpv1alpha1.OpenAPITool{
			Document: mcpv1alpha1.OpenAPIDocument{ConfigMapRef: &mcpv1alpha1.KeyRef{ObjectName: named("document"), Key: "openapi.json"}},
			Include:  []mcpv1alpha1.OperationMatch{{Operation: "*Inventory"}, {Operation: "stock"}},
		},
	})
	a := f.agent("team", nil, "by-url", "by-file")
	a.awaitReady("shop_getPetById", "shop_findPetsByStatus", "shop_addPet", "getInventory")
	a.answers("shop_findPetsByStatus", `{"status": ["sold", "pending"]}`, "Tom")
	a.answers("shop_addPet", `{"name": "Ida", "photoUrls": []}`, "Ida")
	a.answers("shop_getPetById", `{"petId": 3}`, "Ida")
	a.answers("getInventory", `{}`, "sold")
	a.fails("shop_deletePet", `{"petId": 3}`, "error -32602")
	if q := api.requests("/v2/pet/findByStatus")[0].Query.Encode(); q != "status=sold&status=pending" {
		t.Errorf("the list of a query parameter was sent as %s", q)
	}

	before, pods := byFile.now().Status.Definitions, a.podsOf("gateway")
	f.patch("document", document, func() {
		document.Data["openapi.json"] = strings.ReplaceAll(document.Data["openapi.json"], `"getInventory"`, `"stock"`)
	})
	a.await("serves the operation by its new name", agentSoon, serves("stock", "shop_getPetById"))
	a.answers("stock", `{}`, "sold")
	a.fails("getInventory", `{}`, "error -32602")
	if after := byFile.now().Status.Definitions; before == nil || after == nil || before.Name == after.Name {
		t.Errorf("the definitions were in %v and are in %v: wanted are two immutable ConfigMaps", before, after)
	}
	if diff := cmp.Diff(namesOf(pods), namesOf(a.podsOf("gateway"))); diff != "" {
		t.Errorf("another document replaced pods of the gateway:\n%s", diff)
	}

	f.patch("document", document, func() { document.Data["openapi.json"] = `{"openapi": "3.0.0", "paths": ` })
	byFile.await("says what is wrong with a document", agentSoon, says[*tool]("Accepted", metav1.ConditionFalse, "Invalid", "document"))
	a.answers("shop_getPetById", `{"petId": 1}`, "Rex")
}

// namesOf are the names of pods, as a set.
func namesOf(pods []corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, pod := range pods {
		names[pod.Name] = true
	}
	return names
}

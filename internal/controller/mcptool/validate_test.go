package mcptool

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/reach"
)

func TestAcceptedSaysWhatTheAuthorHasToMend(t *testing.T) {
	t.Parallel()
	schemaFrom := func(tool *mcpv1alpha1.MCPTool) {
		tool.Spec.Schema = &mcpv1alpha1.ToolSchema{ConfigMapRef: keyOf("schemas", "weather")}
	}
	documentFrom := func(tool *mcpv1alpha1.MCPTool) {
		openAPI("")(tool)
		tool.Spec.OpenAPI.Document = mcpv1alpha1.OpenAPIDocument{ConfigMapRef: keyOf("documents", "pets")}
	}
	caFrom := func(configMap, secret *mcpv1alpha1.KeyRef) func(*mcpv1alpha1.MCPTool) {
		return func(tool *mcpv1alpha1.MCPTool) {
			tool.Spec.CABundle = &mcpv1alpha1.CABundleSource{ConfigMapRef: configMap, SecretRef: secret}
		}
	}
	postgres := func(tls string) func(*mcpv1alpha1.MCPTool) {
		return func(tool *mcpv1alpha1.MCPTool) {
			tool.Spec = mcpv1alpha1.MCPToolSpec{
				Type: mcpv1alpha1.ToolPostgres, Endpoint: "postgres://db.example.com/shop",
				Postgres: &mcpv1alpha1.PostgresTool{Statement: "SELECT 1", User: "reader", TLS: tls},
			}
		}
	}
	fromServer := func(url string) func(*mcpv1alpha1.MCPTool) {
		return openAPI(strings.Replace(document, "https://pets.example.com/v1", url, 1))
	}
	fromDocs := func(problem string, found *definitions) reach.Fetched[*definitions] {
		return reach.Fetched[*definitions]{Known: true, Problem: problem, Found: found != nil, Value: found}
	}
	secretQuery := func(tool *mcpv1alpha1.MCPTool) { tool.Spec.OpenAPI.Document.URL += "?token=hunter2" }
	pets := &definitions{key: keyPlain, baseURL: "https://pets.example.com/v1", sha256: strings.Repeat("a", 64)}
	notAllowed := func(host string) string {
		return "False/SecretNotAllowed: Secret 'keys' (auth.secretRef) must not be sent to " + host + ":443: " +
			"its annotation mcp.operator/allowed-hosts does not list that host"
	}
	type changes = []func(*mcpv1alpha1.MCPTool)
	tests := map[string]struct {
		changes changes
		objects []client.Object
		fetched reach.Fetched[*definitions]
		want    string // status/reason: message
	}{
		"all is well": {want: "True/Valid: Configuration is valid"},
		"the operator's namespace": {
			changes: changes{func(tool *mcpv1alpha1.MCPTool) { tool.Namespace = "mcp-operator-system" }},
			want:    `False/Invalid: MCPTools are not accepted in the operator's own namespace "mcp-operator-system": use another namespace`,
		},
		"what a gateway would refuse": {
			changes: changes{func(tool *mcpv1alpha1.MCPTool) {
				tool.Spec.Schema = &mcpv1alpha1.ToolSchema{Inline: &mcpv1alpha1.InlineSchema{Input: inline(`{"type": "array"}`)}}
			}},
			want: `False/Invalid: schema.input: must have the type "object"`,
		},
		"a pattern that gateways cannot check": {
			changes: changes{func(tool *mcpv1alpha1.MCPTool) {
				tool.Spec.Schema = &mcpv1alpha1.ToolSchema{Inline: &mcpv1alpha1.InlineSchema{
					Input: inline(`{"properties": {"a": {"type": "string", "pattern": "^(?!evil)"}}}`),
				}}
			}},
			want: "False/Invalid: schema.input: at #/properties/a/pattern: it must be a regular expression of RE2, else it cannot be checked: " +
				"no look-around, no back-references, no repetition above 1000",
		},
		"a schema that is not there": {
			changes: changes{schemaFrom},
			want:    "False/Invalid: ConfigMap 'schemas' (schema.configMapRef) not found in namespace 'team': create it, and the tool goes on by itself",
		},
		"a schema whose key is not there": {
			changes: changes{schemaFrom}, objects: []client.Object{makeConfigMap("schemas", "other", "{}")},
			want: "False/Invalid: ConfigMap 'schemas' (schema.configMapRef) in namespace 'team' has no key 'weather': add it, and the tool goes on by itself",
		},
		"a schema that is there": {
			changes: changes{schemaFrom}, objects: []client.Object{makeConfigMap("schemas", "weather", "input: {properties: {city: {type: string}}}")},
			want: "True/Valid: Configuration is valid",
		},
		"a schema that is too large": {
			changes: changes{schemaFrom}, objects: []client.Object{makeConfigMap("schemas", "weather", strings.Repeat("x", 256<<10+1))},
			want: "False/Invalid: ConfigMap 'schemas' (schema.configMapRef): the key 'weather' has 262145 bytes, the limit is 262144",
		},
		"an authority that is too large": {
			changes: changes{caFrom(keyOf("ca", "ca.crt"), nil)}, objects: []client.Object{makeConfigMap("ca", "ca.crt", strings.Repeat("x", 1000<<10))},
			want: "False/Invalid: ConfigMap 'ca' (caBundle.configMapRef): the key 'ca.crt' has 1024000 bytes, the limit is 262144",
		},
		"a credential for other hosts, of a tool whose schema is not there": {
			changes: changes{schemaFrom, bearer}, objects: []client.Object{makeSecret("keys", "api.example.org")}, want: notAllowed("api.example.com"),
		},
		"a credential for other hosts, of a tool whose authority is not there": {
			changes: changes{caFrom(keyOf("ca", "ca.crt"), nil), bearer}, objects: []client.Object{makeSecret("keys", "api.example.org")},
			want: notAllowed("api.example.com"),
		},
		"a credential for other hosts, of a document that could not be fetched": {
			changes: changes{fetching, bearer, func(tool *mcpv1alpha1.MCPTool) { tool.Spec.Endpoint = "https://api.example.com" }},
			objects: []client.Object{makeSecret("keys", "api.example.org")}, fetched: fromDocs("no answer", nil), want: notAllowed("api.example.com"),
		},
		"a credential for other hosts than the document of before named, of one that cannot be used": {
			changes: changes{openAPI(`{"swagger": "2.0"}`), served, bearer}, objects: []client.Object{makeSecret("keys", "api.example.org")},
			want: notAllowed("pets.example.com"),
		},
		"a credential for the host that a document names now, not for that of before": {
			changes: changes{fromServer("https://api.example.org"), served, bearer}, objects: []client.Object{makeSecret("keys", "api.example.org")},
			want: "True/Valid: Configuration is valid",
		},
		"a credential that is not there": {
			changes: changes{bearer},
			want:    "False/Invalid: Secret 'keys' (auth.secretRef) not found in namespace 'team': create it, and the tool goes on by itself",
		},
		"a credential for any host": {changes: changes{bearer}, objects: []client.Object{makeSecret("keys")}, want: "True/Valid: Configuration is valid"},
		"a credential for this host": {
			changes: changes{bearer},
			objects: []client.Object{makeSecret("keys", "*.example.com")},
			want:    "True/Valid: Configuration is valid",
		},
		"a credential for other hosts": {
			changes: changes{bearer}, objects: []client.Object{makeSecret("keys", "api.example.org")},
			want: "False/SecretNotAllowed: Secret 'keys' (auth.secretRef) must not be sent to api.example.com:443: " +
				"its annotation mcp.operator/allowed-hosts does not list that host",
		},
		"a credential for no host": {
			changes: changes{bearer}, objects: []client.Object{makeSecret("keys", "")},
			want: "False/SecretNotAllowed: Secret 'keys' (auth.secretRef) must not be sent to api.example.com:443: " +
				"its annotation mcp.operator/allowed-hosts does not list that host",
		},
		"an authority that is no certificate": {
			changes: changes{caFrom(keyOf("ca", "ca.crt"), nil)}, objects: []client.Object{makeConfigMap("ca", "ca.crt", "hello")},
			want: "False/Invalid: ConfigMap 'ca' (caBundle.configMapRef): the key 'ca.crt' holds no PEM certificate",
		},
		"an authority in a Secret that is not there": {
			changes: changes{caFrom(nil, keyOf("ca", "ca.crt"))},
			want:    "False/Invalid: Secret 'ca' (caBundle.secretRef) not found in namespace 'team': create it, and the tool goes on by itself",
		},
		"a database without TLS at a public address": {
			changes: changes{postgres("Disable")},
			want: "False/Invalid: postgres.tls: Disable is for databases at private addresses, which the operator admits when it is started " +
				"with --allow-private-endpoints",
		},
		"a database": {changes: changes{postgres("VerifyFull")}, want: "True/Valid: Configuration is valid"},
		"a document": {changes: changes{openAPI(document)}, want: "True/Valid: Configuration is valid"},
		"a document that is none": {
			changes: changes{openAPI(`{"swagger": "2.0"}`)},
			want: "False/Invalid: The OpenAPI document (openapi.document.inline) cannot be used: " +
				"it is of OpenAPI 2.0 (Swagger): 3.0 and 3.1 are read; convert it",
		},
		"a document of which not all can be expressed": {
			changes: changes{openAPI(strings.Replace(document, `"/pets": {`, `"/pets": {"trace": {}, `, 1))},
			want: "True/Valid: Configuration is valid; of its OpenAPI document: " +
				"TRACE /pets: no tool can be made of the method TRACE",
		},
		"a document in a ConfigMap that is not there": {
			changes: changes{documentFrom},
			want: "False/Invalid: ConfigMap 'documents' (openapi.document.configMapRef) not found in namespace 'team': " +
				"create it, and the tool goes on by itself",
		},
		"a document in a ConfigMap": {
			changes: changes{documentFrom}, objects: []client.Object{makeConfigMap("documents", "pets", document)}, want: "True/Valid: Configuration is valid",
		},
		"a document that leads a credential to where it may not be sent": {
			changes: changes{openAPI(document), bearer}, objects: []client.Object{makeSecret("keys", "api.example.com")},
			want: "False/SecretNotAllowed: Secret 'keys' (auth.secretRef) must not be sent to pets.example.com:443: " +
				"its annotation mcp.operator/allowed-hosts does not list that host",
		},
		"a document that leads a credential through the clear": {
			changes: changes{fromServer("http://pets.example.com"), bearer}, objects: []client.Object{makeSecret("keys")},
			want: "False/Invalid: auth: the OpenAPI document says that its server is http://pets.example.com, and a credential is sent by https alone: " +
				"give the address in endpoint",
		},
		"a document that leads a credential to a Service": {
			changes: changes{fromServer("http://pets.team.svc:8080"), bearer}, objects: []client.Object{makeSecret("keys")},
			want: "True/Valid: Configuration is valid",
		},
		"a document whose server a gateway would refuse": {
			changes: changes{fromServer("https://127.1/")},
			want: "False/Invalid: The OpenAPI document says that its server is https://127.1: endpoint: " +
				"must have a DNS name or an IP address, in the form a.b.c.d, as its host",
		},
		"a document that is being fetched": {changes: changes{fetching}, want: "Unknown/Unknown: The OpenAPI document is being fetched"},
		"a document that was fetched":      {changes: changes{fetching}, fetched: fromDocs("", pets), want: "True/Valid: Configuration is valid"},
		"a document that could not be fetched": {
			changes: changes{fetching}, fetched: fromDocs("docs.example.com:443 refuses connections", nil),
			want: "False/Invalid: The OpenAPI document (https://docs.example.com/pets.json) cannot be fetched: " +
				"docs.example.com:443 refuses connections",
		},
		"a document that was fetched and is none, by a URL with a secret": {
			changes: changes{fetching, secretQuery}, fetched: fromDocs("The OpenAPI document (https://docs.example.com/pets.json?…) cannot be used: no", nil),
			want: "False/Invalid: The OpenAPI document (https://docs.example.com/pets.json?…) cannot be used: no",
		},
		"a document by a URL with a secret that could not be fetched": {
			changes: changes{fetching, secretQuery}, fetched: fromDocs("no answer", nil),
			want: "False/Invalid: The OpenAPI document (https://docs.example.com/pets.json?…) cannot be fetched: no answer",
		},
		"a document whose newer version is none": {
			changes: changes{fetching}, fetched: fromDocs("The OpenAPI document (https://docs.example.com/pets.json) cannot be used: no", pets),
			want: "True/Valid: Configuration is valid; the last version of its OpenAPI document stays in use, since the newer one cannot be used: no",
		},
		"a document that could not be fetched again": {
			changes: changes{fetching}, fetched: fromDocs("docs.example.com:443 refuses connections", pets),
			want: "True/Valid: Configuration is valid; the last version of its OpenAPI document stays in use, since the attempt to fetch it again failed: " +
				"docs.example.com:443 refuses connections",
		},
		"a document that could not be fetched since the operator started": {
			changes: changes{fetching, served}, fetched: fromDocs("docs.example.com:443 refuses connections", nil),
			want: "True/Valid: Configuration is valid; the last version of its OpenAPI document stays in use, since the attempt to fetch it again failed: " +
				"docs.example.com:443 refuses connections",
		},
		"a document that was served before the operator started, to where a credential may not be sent any more": {
			changes: changes{fetching, served, bearer, func(tool *mcpv1alpha1.MCPTool) { tool.Spec.Endpoint = "https://pets.example.com/v1" }},
			objects: []client.Object{makeSecret("keys", "api.example.com")},
			want: "False/SecretNotAllowed: Secret 'keys' (auth.secretRef) must not be sent to pets.example.com:443: " +
				"its annotation mcp.operator/allowed-hosts does not list that host",
		},
		"a document that was fetched and leads a credential to another host": {
			changes: changes{fetching, bearer}, objects: []client.Object{makeSecret("keys")}, fetched: fromDocs("", pets),
			want: "False/Invalid: auth: the OpenAPI document is at docs.example.com and says that its server is at pets.example.com: " +
				"say in endpoint where the credential may be sent",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := makeTool(tt.changes...)
			w := makeWorld(t, append(slices.Clone(tt.objects), tool)...)
			w.fetcher.known = tt.fetched
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(tool), tool); err != nil { // a document is read of there
				t.Fatal(err)
			}
			s := newScope(w.Reconciler, tool)
			out := s.validate(t.Context())
			c, _ := out.Condition("Accepted", 2)
			if diff := cmp.Diff(tt.want, string(c.Status)+"/"+c.Reason+": "+c.Message); diff != "" {
				t.Errorf("Accepted (-want +got)\n%s", diff)
			}
			if err := out.Err(); err != nil {
				t.Errorf("a user's error is the operator's: %v", err)
			}
		})
	}
}

func TestWhatWasAcceptedBeforeTheOperatorStartedStaysUntilTheDocumentIsThere(t *testing.T) {
	t.Parallel()
	s := newScope(makeWorld(t).Reconciler, makeTool(fetching, served))
	if _, recorded := s.validate(t.Context()).Condition("Accepted", 2); recorded || s.definitions != nil {
		t.Errorf("recorded: %t, definitions: %v", recorded, s.definitions)
	}
}

func TestAnAPIServerThatDoesNotAnswerIsNoFaultOfTheAuthor(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	broken := errors.New("etcd is gone")
	w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake client is one
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
	})
	out := newScope(w.Reconciler, makeTool(bearer)).validate(t.Context())
	c, _ := out.Condition("Accepted", 2)
	if c.Status != metav1.ConditionUnknown || !errors.Is(out.Err(), broken) {
		t.Errorf("%s: %s, error %v", c.Status, c.Message, out.Err())
	}
}

func TestContentIsReadOnceForEachVersion(t *testing.T) {
	t.Parallel()
	ca := makeConfigMap("ca", "ca.crt", mcptest.NewAuthority(t, "ca").PEM)
	secret := makeSecret("keys")
	secret.Data = map[string][]byte{"token": []byte("hunter2")}
	w := makeWorld(t, makeTool(bearer, func(tool *mcpv1alpha1.MCPTool) {
		tool.Spec.CABundle = &mcpv1alpha1.CABundleSource{ConfigMapRef: keyOf("ca", "ca.crt")}
	}), ca, secret)
	w.pass()
	_, reads := w.take()
	if diff := cmp.Diff([]string{"*v1.ConfigMap ca"}, reads); diff != "" {
		t.Errorf("first reads (-want +got)\n%s", diff)
	}
	w.pass()
	if _, reads := w.take(); reads != nil {
		t.Errorf("a second pass reads %v", reads)
	}
	secret.Annotations = map[string]string{mcpv1alpha1.AnnotationAllowedHosts: "elsewhere.example.com"}
	w.update(secret)
	w.pass()
	if _, reads := w.take(); reads != nil {
		t.Errorf("after a change of the Secret, of which the cache has the metadata, it reads %v", reads)
	}
	if got := conditions(w.tool())["Accepted"]; got != "False/SecretNotAllowed" {
		t.Errorf("Accepted is %s", got)
	}
}

func TestHostsAreAllowedByNameAndPort(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		hosts, host, port string
		want              bool
	}{
		"the name":                             {"api.example.com", "api.example.com", "443", true},
		"the name, in other letters":           {" API.Example.com ", "api.EXAMPLE.com", "443", true},
		"the name, with a dot at the end":      {"api.example.com", "api.example.com.", "443", true},
		"another name":                         {"api.example.com", "xapi.example.com", "443", false},
		"a name that begins so":                {"api.example.com", "api.example.com.evil.org", "443", false},
		"one of several":                       {"a.example.com, b.example.com", "b.example.com", "80", true},
		"any name below":                       {"*.example.com", "a.b.example.com", "443", true},
		"not the domain itself":                {"*.example.com", "example.com", "443", false},
		"not one that only ends so":            {"*.example.com", "evilexample.com", "443", false},
		"the port":                             {"db.team.svc:5432", "db.team.svc", "5432", true},
		"another port":                         {"db.team.svc:5432", "db.team.svc", "5433", false},
		"any name below, at a port":            {"*.team.svc:5432", "db.team.svc", "5432", true},
		"an IPv6 address":                      {"2001:db8::1", "2001:db8::1", "443", true},
		"an IPv6 address with a port":          {"[2001:db8::1]:443", "2001:db8::1", "443", true},
		"nothing allows nothing":               {"", "api.example.com", "443", false},
		"a lone star allows nothing":           {"*", "api.example.com", "443", false},
		"a star and a dot allow nothing":       {"*.", "api.example.com", "443", false},
		"an empty entry allows nothing":        {",,", "", "443", false},
		"a star in the middle is no wild card": {"api.*.com", "api.example.com", "443", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isAllowed(tt.hosts, tt.host, tt.port); got != tt.want {
				t.Errorf("%q allows %s:%s: %t, want %t", tt.hosts, tt.host, tt.port, got, tt.want)
			}
		})
	}
}

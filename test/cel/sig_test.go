package cel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// minimalSIG is the smallest valid MCPServer of the compatibility API.
const minimalSIG = `
apiVersion: mcp.x-k8s.io/v1alpha1
kind: MCPServer
metadata: {name: demo, namespace: default}
spec:
  source: {type: ContainerImage, containerImage: {ref: "registry.example.com/team/server:1.2.3"}}
  config: {port: 8080}
`

const digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func image(ref string) string { return "spec: {source: {containerImage: {ref: '" + ref + "'}}}" }

func stored(item string) string { return "spec: {config: {storage: [" + item + "]}}" }

var acceptedSIG = []accepted{
	{"the smallest server", "{}"},
	{"an image of Docker Hub, said in full", image("docker.io/library/x:1")},
	{"an image of this machine", image("localhost/x:local")},
	{"an image of a registry with a port", image("registry.example.com:5000/a/b:1.0_x-y")},
	{"an image of a short name", image("example.com/x:t")},
	{"an image with every separator", image("a-b.c/d_e/f__g/h--i/j.k:l")},
	{"an image with a digest", image("example.com/x@sha256:" + digest)},
	{"an image with a tag and a digest", image("example.com/x:1@sha256:" + digest)},
	{"an image with a tag of 127 characters", image("example.com/x:" + strings.Repeat("a", 127))},
	{"an image with a digest of a compound algorithm", image("example.com/x@sha256+b64u.v-w_x:" + digest)},
	{"an image of 1000 characters", image("example.com/" + strings.Repeat("a", 986) + ":1")},
	{"the first port", "spec: {config: {port: 1}}"},
	{"the last port", "spec: {config: {port: 65535}}"},
	{"a path with a percent sign", "spec: {config: {path: /a%20b/}}"},
	{"no arguments", "spec: {config: {arguments: []}}"},
	{"arguments", "spec: {config: {arguments: ['--a', 'b c']}}"},
	{"a variable that is given twice", "spec: {config: {env: [{name: A, value: b}, {name: A, value: c}]}}"},
	{"variables of every source", `spec: {config: {env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}},
		{name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}],
		envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s, optional: true}, prefix: P_}]}}`},
	{"a ConfigMap", stored("{path: /c, source: {type: ConfigMap, configMap: {name: c, items: [{key: a, path: b}], defaultMode: 256}}}")},
	{
		"a Secret, read-only below as well",
		stored("{path: /s, permissions: RecursiveReadOnly, source: {type: Secret, secret: {secretName: s, optional: true}}}"),
	},
	{"an empty folder to write to", stored("{path: /e, permissions: ReadWrite, source: {type: EmptyDir, emptyDir: {}}}")},
	{"no replicas", "spec: {runtime: {replicas: 0}}"},
	{"an empty security", "spec: {runtime: {security: {}}}"},
	{"an empty account", "spec: {runtime: {security: {serviceAccountName: ''}}}"},
	{"an account", "spec: {runtime: {security: {serviceAccountName: my.account}}}"},
	{
		"security contexts",
		"spec: {runtime: {security: {podSecurityContext: {runAsUser: 1, sysctls: [{name: a, value: b}]}, securityContext: {privileged: true}}}}",
	},
	{"resources", "spec: {runtime: {resources: {limits: {cpu: 1}}}}"},
	{"a probe of any kind", "spec: {runtime: {health: {livenessProbe: {exec: {command: [a]}}, readinessProbe: {httpGet: {path: /, port: mcp}}}}}"},
	{"a stateless server", "spec: {mcp: {stateless: true}}"},
	{"extra metadata", "spec: {extraLabels: {a: b}, extraAnnotations: {c: d}}"},
	{"a network", "spec: {network: {ingressFrom: [{podSelector: {}}], egressTo: [{ipBlock: {cidr: 10.0.0.0/8}}], egressPorts: [{port: 443}, {port: http}]}}"},
	{"TLS with a CA", "spec: {transport: {tls: {enabled: true, caBundleSecret: {name: ca}}}}"},
	{"TLS that trusts anybody", "spec: {transport: {tls: {enabled: true, insecureSkipVerify: true}}}"},
	{"a name that no Service can have, as there", "metadata: {name: 1.a}"},
	{"a status", `status: {observedGeneration: 1, deploymentName: a, serviceName: a, address: {url: 'http://a'},
		handshakeRetryCount: 3, replicas: 1, readyReplicas: 1,
		serverInfo: {name: a, version: b, protocolVersion: c, instructions: d,
		capabilities: {tools: true, resources: true, prompts: true, logging: true, completions: true}},
		conditions: [{type: Ready, status: 'True', reason: A, message: b, lastTransitionTime: '2026-01-01T00:00:00Z'}]}`},
}

const aCondition = "status: 'True', reason: A, message: b, lastTransitionTime: '2026-01-01T00:00:00Z'"

var refusedSIG = []refused{
	{"a server without a specification", "spec: null", "spec", "Required value"},
	{"a server without a source", "spec: {source: null}", "spec.source", "Required value"},
	{"a server without a configuration", "spec: {config: null}", "spec.config", "Required value"},
	{"a source without a type", "spec: {source: {type: null}}", "spec.source.type", "Required value"},
	{"a source of another type", "spec: {source: {type: Git}}", "spec.source.type", "supported values"},
	{"a source without its image", "spec: {source: {containerImage: null}}", "spec.source", "containerImage must be set when type is ContainerImage"},
	{"an image without a reference", "spec: {source: {containerImage: {ref: null}}}", "spec.source.containerImage.ref", "Required value"},
	{"an empty reference", image(""), "spec.source.containerImage.ref", "at least 1 chars"},
	{"a reference of 1001 characters", image("example.com/" + strings.Repeat("a", 987) + ":1"), "spec.source.containerImage.ref", "may not be more than 1000"},
	{"a bare name", image("nginx"), "spec.source.containerImage.ref", "a valid name is required"},
	{"a reference that begins with a dash", image("-a.example.com/x:1"), "spec.source.containerImage.ref", "must start with a valid domain"},
	{"a repository in upper case", image("example.com/X:1"), "spec.source.containerImage.ref", "a valid name is required"},
	{"a reference without a tag", image("example.com/x"), "spec.source.containerImage.ref", "must end with a digest or a tag"},
	{"a tag of 128 characters", image("example.com/x:" + strings.Repeat("a", 128)), "spec.source.containerImage.ref", "more than 127 characters"},
	{"a tag that begins with a dash", image("example.com/x:-a"), "spec.source.containerImage.ref", "tag is invalid: it must begin"},
	{"an algorithm that begins with a digit", image("example.com/x@2sha:" + digest), "spec.source.containerImage.ref", "digest algorithm is not valid"},
	{"a digest of 31 characters", image("example.com/x@sha256:" + digest[:31]), "spec.source.containerImage.ref", "at least 32 characters"},
	{"a digest with another letter", image("example.com/x@sha256:" + digest[:40] + "g"), "spec.source.containerImage.ref", "hexadecimal digits"},
	{"a server without a port", "spec: {config: {port: null}}", "spec.config.port", "Required value"},
	{"the port 0", "spec: {config: {port: 0}}", "spec.config.port", "greater than or equal to 1"},
	{"the port 65536", "spec: {config: {port: 65536}}", "spec.config.port", "less than or equal to 65535"},
	{"an empty path", "spec: {config: {path: ''}}", "spec.config.path", "at least 1 chars"},
	{"a path of 254 characters", "spec: {config: {path: /" + strings.Repeat("a", 253) + "}}", "spec.config.path", "may not be more than 253"},
	{"a relative path", "spec: {config: {path: mcp}}", "spec.config.path", "must start with '/'"},
	{"a path with a space", "spec: {config: {path: '/a b'}}", "spec.config.path", "must start with '/'"},
	{"a path with a query", "spec: {config: {path: '/a?b'}}", "spec.config.path", "must start with '/'"},
	{"a path with a fragment", "spec: {config: {path: '/a#b'}}", "spec.config.path", "must start with '/'"},
	{"a path with a line feed", `spec: {config: {path: "/a\nb"}}`, "spec.config.path", "must start with '/'"},
	{"a path with a carriage return", `spec: {config: {path: "/a\rb"}}`, "spec.config.path", "must start with '/'"},
	{"a path with a tab", `spec: {config: {path: "/a\tb"}}`, "spec.config.path", "must start with '/'"},
	{"an empty argument", "spec: {config: {arguments: [a, '']}}", "spec.config.arguments", "must not contain empty strings"},
	{"no storage, said", stored(""), "spec.config.storage", "at least 1 items"},
	{"65 volumes", stored(volumes(65)), "spec.config.storage", "must have at most 64 items"},
	{"two volumes at one path", stored(volumes(1) + ", " + volumes(1)), "spec.config.storage[]", "Duplicate value"},
	{"a volume without a path", stored("{source: {type: EmptyDir, emptyDir: {}}}"), "spec.config.storage[].path", "Required value"},
	{"a volume at an empty path", stored("{path: '', source: {type: EmptyDir, emptyDir: {}}}"), "spec.config.storage[].path", "at least 1 chars"},
	{
		"a volume at a long path", stored("{path: /" + strings.Repeat("a", 4096) + ", source: {type: EmptyDir, emptyDir: {}}}"),
		"spec.config.storage[].path", "may not be more than 4096",
	},
	{"a volume at a relative path", stored("{path: a, source: {type: EmptyDir, emptyDir: {}}}"), "spec.config.storage[].path", "must be an absolute path"},
	{
		"a volume at a path with a colon", stored("{path: '/a:b', source: {type: EmptyDir, emptyDir: {}}}"), "spec.config.storage[].path",
		"must not contain ':'",
	},
	{
		"another permission", stored("{path: /a, permissions: Execute, source: {type: EmptyDir, emptyDir: {}}}"),
		"spec.config.storage[].permissions", "supported values",
	},
	{"a volume of nothing", stored("{path: /a}"), "spec.config.storage[].source", "Required value"},
	{"a volume without a type", stored("{path: /a, source: {}}"), "spec.config.storage[].source.type", "Required value"},
	{"a volume of another type", stored("{path: /a, source: {type: HostPath}}"), "spec.config.storage[].source.type", "supported values"},
	{
		"a ConfigMap that is not said", stored("{path: /a, source: {type: ConfigMap}}"), "spec.config.storage[].source",
		"configMap must be set when type is ConfigMap",
	},
	{"a Secret that is not said", stored("{path: /a, source: {type: Secret}}"), "spec.config.storage[].source", "secret must be set when type is Secret"},
	{
		"an empty folder that is not said", stored("{path: /a, source: {type: EmptyDir}}"), "spec.config.storage[].source",
		"emptyDir must be set when type is EmptyDir",
	},
	{
		"a Secret beside an empty folder", stored("{path: /a, source: {type: EmptyDir, emptyDir: {}, secret: {secretName: a}}}"),
		"spec.config.storage[].source", "secret must be set when type is Secret",
	},
	{"an empty runtime", "spec: {runtime: {}}", "spec.runtime", "at least 1 properties"},
	{"fewer than no replicas", "spec: {runtime: {replicas: -1}}", "spec.runtime.replicas", "greater than or equal to 0"},
	{"an account of another form", "spec: {runtime: {security: {serviceAccountName: A_b}}}", "spec.runtime.security.serviceAccountName", "DNS subdomain"},
	{
		"an account of 254 characters", "spec: {runtime: {security: {serviceAccountName: " + strings.Repeat("a", 254) + "}}}",
		"spec.runtime.security.serviceAccountName", "may not be more than 253",
	},
	{"an empty health", "spec: {runtime: {health: {}}}", "spec.runtime.health", "at least 1 properties"},
	{"a CA without a name", "spec: {transport: {tls: {caBundleSecret: {}}}}", "spec.transport.tls.caBundleSecret.name", "Required value"},
	{"a CA with an empty name", "spec: {transport: {tls: {caBundleSecret: {name: ''}}}}", "spec.transport.tls.caBundleSecret.name", "at least 1 chars"},
	{
		"two conditions of one type", "status: {conditions: [{type: A, " + aCondition + "}, {type: A, " + aCondition + "}]}",
		"status.conditions[]", "Duplicate value",
	},
}

func volumes(n int) string {
	var list []string
	for i := range n {
		list = append(list, "{path: /v"+strings.Repeat("a", i)+", source: {type: EmptyDir, emptyDir: {}}}")
	}
	return strings.Join(list, ", ")
}

// submitSIG asks the API server what it thinks of an object, without storing it.
func submitSIG(t *testing.T, change string) (*unstructured.Unstructured, error) {
	t.Helper()
	object := changedFrom(t, minimalSIG, change)
	status, ok := object.Object["status"]
	if !ok {
		return object, api.Create(t.Context(), object, client.DryRunAll)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	object.SetName(subject)
	return object, api.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
}

func TestWhatTheCompatibilityAPITakesIsTaken(t *testing.T) {
	t.Parallel()
	for _, c := range acceptedSIG {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := submitSIG(t, c.change); err != nil {
				t.Errorf("%s\nis refused: %v", c.change, err)
			}
		})
	}
}

func TestWhatTheCompatibilityAPIRefusesIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range refusedSIG {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := submitSIG(t, c.change)
			c.judge(t, err)
		})
	}
}

func TestEveryRuleOfTheCompatibilityAPIRefusesSomething(t *testing.T) {
	t.Parallel()
	var causes []metav1.StatusCause
	for _, c := range refusedSIG {
		_, err := submitSIG(t, c.change)
		causes = append(causes, causesOf(err)...)
	}
	provokesAll(t, sigKind, causes)
}

func TestDefaultsOfTheCompatibilityAPI(t *testing.T) {
	t.Parallel()
	object, err := submitSIG(t, stored("{path: /a, source: {type: EmptyDir, emptyDir: {}}}"))
	if err != nil {
		t.Fatal(err)
	}
	config, _, _ := unstructured.NestedMap(object.Object, "spec", "config")
	want := map[string]any{"port": int64(8080), "path": "/mcp", "storage": []any{map[string]any{
		"path": "/a", "permissions": "ReadOnly", "source": map[string]any{"type": "EmptyDir", "emptyDir": map[string]any{}},
	}}}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("spec.config (-want +got)\n%s", diff)
	}
	if spec, _, _ := unstructured.NestedMap(object.Object, "spec"); len(spec) != 2 {
		t.Errorf("more than that is set by default: %v", spec)
	}
}

func TestTheCompatibilityAPILooksAsItsUsersKnowIt(t *testing.T) {
	t.Parallel()
	crd := readCRDs(t)[sigKind]
	version := crd.Spec.Versions[0]
	var columns []string
	for _, c := range version.AdditionalPrinterColumns {
		columns = append(columns, c.Name+" "+c.Type+" "+c.JSONPath)
	}
	want := []string{
		`Ready string .status.conditions[?(@.type=="Ready")].status`,
		`Accepted string .status.conditions[?(@.type=="Accepted")].status`,
		"Image string .spec.source.containerImage.ref",
		"Port integer .spec.config.port",
		"Address string .status.address.url",
		"Age date .metadata.creationTimestamp",
	}
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("columns (-want +got)\n%s", diff)
	}
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "mcpservers", Singular: "mcpserver", Kind: "MCPServer", ListKind: "MCPServerList"}
	if diff := cmp.Diff(names, crd.Spec.Names); diff != "" {
		t.Errorf("names, without short names and categories (-want +got)\n%s", diff)
	}
	if version.Subresources == nil || version.Subresources.Status == nil || version.Subresources.Scale != nil {
		t.Errorf("subresources: %+v, want status alone", version.Subresources)
	}
	if version.Name != "v1alpha1" || !version.Served || !version.Storage || crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
		t.Errorf("version %s, served %t, stored %t, scope %s", version.Name, version.Served, version.Storage, crd.Spec.Scope)
	}
}

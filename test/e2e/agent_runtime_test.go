package e2e

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// addressOf is the address of a Service by number: what has no DNS reaches nothing by name anyway.
func (f *fixture) addressOf(service string, port int) string {
	f.t.Helper()
	object := &corev1.Service{}
	f.read(service, object)
	return "http://" + net.JoinHostPort(object.Spec.ClusterIP, strconv.Itoa(port))
}

func TestWorkloadOfAnAgentReachesItsEndpointAndNothingElse(t *testing.T) {
	t.Parallel()
	f := start(t)
	node := f.listenOnMetadataAddress()
	db := f.database("reader-of-the-test")
	f.tool("pet", statement(db, "SELECT name FROM pets WHERE id = $1"))
	f.run(server("docs"))
	a := f.agent("team", granted("docs"), "pet")
	ready := a.awaitReady("pet", "docs_test_simple_text")
	a.answers("pet", `{"id": 1}`, "Rex")
	a.answers("docs_test_simple_text", `{}`, "simple text")

	far := &fixture{t: t, namespace: newNamespace(t)}
	far.create(serviceOf("far", 8080))
	far.echo(echoPod("far", "serve"))
	free := echoPod("free", "sleep")
	free.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	neighbour, jailed := f.echo(free), a.caller()
	kubernetes := &fixture{t: t, namespace: "default"}
	dns := &corev1.Service{}
	(&fixture{t: t, namespace: "kube-system"}).read("kube-dns", dns)
	closed := map[string]string{
		"the server, past its gateway":   f.addressOf("docs-svc", 8080) + "/mcp",
		"a pod of another namespace":     far.addressOf("far", 8080),
		"the API server":                 strings.Replace(kubernetes.addressOf("kubernetes", 443), "http:", "https:", 1),
		"the address of the metadata":    "http://" + metadataAddress,
		"DNS":                            "http://" + dns.Spec.ClusterIP + ":53",
		"the health port of its gateway": "http://" + net.JoinHostPort(a.podsOf("gateway")[0].Status.PodIP, "8081") + "/metrics",
	}
	for what, address := range closed {
		isKeptOut(t, "the agent's workload from "+what, jailed, address)
	}
	for _, what := range []string{"the server, past its gateway", "a pod of another namespace", "the address of the metadata"} {
		reaches(t, "a pod that is not jailed, to "+what+",", neighbour, closed[what])
	}
	postgres := f.addressOf("db", 5432)
	if out, err := fetch(t.Context(), jailed, postgres); err == nil || strings.Contains(err.Error(), "EOF") || answered(out) {
		t.Errorf("the agent's workload connects to the database, past its gateway: %s %v", out, err)
	}
	await(t, "a pod that is not jailed comes to the database", policySoon, func() string {
		if _, err := fetch(t.Context(), neighbour, postgres); err == nil || !strings.Contains(err.Error(), "EOF") {
			return fmt.Sprint(err) // PostgreSQL ends a connection of another protocol
		}
		return ""
	})
	if _, err := fetch(t.Context(), jailed, ready.Status.Endpoint); err != nil && strings.Contains(err.Error(), "lookup") {
		t.Errorf("the agent's workload does not find its endpoint: %v", err)
	}
	byName := "http://far." + far.namespace + ".svc.cluster.local:8080"
	reaches(t, "a pod that is not jailed, by a name,", neighbour, byName)
	if out, err := fetch(t.Context(), jailed, byName); err == nil || strings.Contains(err.Error(), "connect:") {
		t.Errorf("the agent's workload has DNS: %s %v", out, err)
	}
	environment, err := execute(t.Context(), jailed, "/echo", "env")
	if err != nil || strings.Contains(environment, "reader-of-the-test") || !strings.Contains(environment, "MCP_SERVER_URL="+ready.Status.Endpoint) {
		t.Errorf("the environment of the agent's workload:\n%s", environment)
	}
	if out, err := execute(t.Context(), jailed, "/echo", "ls", "/var/run/secrets/kubernetes.io/serviceaccount"); err == nil {
		t.Errorf("the agent's workload has a token for the API server: %s", out)
	}
}

func TestServerThatLetsInGatewaysIsClosedToEverybodyElse(t *testing.T) {
	t.Parallel()
	f := start(t)
	docs := f.run(server("docs").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Network = &mcpv1alpha1.Network{Ingress: mcpv1alpha1.IngressGateways}
	}))
	docs.awaitReady(readySoon)
	f.run(server("open")).awaitReady(readySoon)
	a := f.agent("team", granted("docs"))
	a.awaitReady("docs_test_simple_text")
	a.answers("docs_test_simple_text", `{}`, "simple text")

	near := f.echo(echoPod("near", "sleep"))
	reaches(t, "a pod of the namespace, to another server,", near, f.addressOf("open-svc", 8080)+"/mcp")
	isKeptOut(t, "a pod of the namespace", near, f.addressOf("docs-svc", 8080)+"/mcp")
	other := f.agent("other", granted("open"))
	other.awaitReady("open_test_simple_text")
	other.fails("docs_test_simple_text", `{}`, "error -32602")

	a.change(func(object *agent) {
		object.Spec.Servers = []mcpv1alpha1.AgentServer{{ObjectName: named("open"), Prefix: "open_"}}
	})
	a.await("has another server", agentSoon, serves("open_test_simple_text"))
	a.fails("docs_test_simple_text", `{}`, "error -32602")
	await(t, "the policy that opened the server is gone", agentSoon, func() string {
		policies := f.kubectl("get", "networkpolicies", "--output=name")
		if strings.Contains(policies, "team-gateway-servers") {
			return "it outlives the grant: " + policies
		}
		return ""
	})
	docs.await("is Ready all the while", readySoon, has(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, mcpv1alpha1.ReasonAvailable))
}

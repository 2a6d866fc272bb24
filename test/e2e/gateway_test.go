package e2e

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// tableRevised is how soon a gateway serves by a table that was written: it watches the ConfigMap.
const tableRevised = 2 * time.Second

// twoServers is a routing table of a server with sessions (2025-11-25) and one of 2026-07-28.
func twoServers(f *fixture, revision, deny string) map[string]string {
	url := func(name string) string {
		return fmt.Sprintf("http://%s-svc.%s.svc.cluster.local:8080/mcp", name, f.namespace)
	}
	return map[string]string{"table.json": fmt.Sprintf(`{"version": 1, "revision": %q, "endpoint": {}, "auth": {"type": "None"}, "backends": [
		{"name": "old", "url": %q, "podsHost": %q, "guarded": true, "allowPrivate": true, "prefix": "old_", "tools": {"allow": null, "deny": [%s]}},
		{"name": "new", "url": %q, "guarded": true, "allowPrivate": true, "prefix": "new_", "tools": {"allow": null}}]}`,
		revision, url("old"), "old-pods."+f.namespace+".svc.cluster.local", deny, url("new"))}
}

// gateway runs two replicas of the gateway with the table in a ConfigMap of their name.
func (f *fixture) gateway(image string, table map[string]string) {
	f.t.Helper()
	const name = "gateway"
	labels := map[string]string{"name": name}
	meta := func() metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	container := echoPod(name).Spec.Containers[0]
	container.Name, container.Image = name, image
	container.Command = []string{
		"/mcp-gateway", "serve", "--table=/table/table.json", "--configmap=" + f.namespace + "/" + name, "--session-keys=/keys", "--drain-delay=2s",
	}
	container.Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8081)},
	}}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "table", MountPath: "/table"}, {Name: "keys", MountPath: "/keys"}}
	pod := echoPod(name).Spec
	pod.TerminationGracePeriodSeconds, pod.ServiceAccountName, pod.Containers = nil, name, []corev1.Container{container}
	pod.Volumes = []corev1.Volume{
		{Name: "table", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}}},
		{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}},
	}
	f.create(
		&corev1.ServiceAccount{ObjectMeta: meta()},
		&rbacv1.Role{ObjectMeta: meta(), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"get", "list", "watch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name}},
		},
		&corev1.ConfigMap{ObjectMeta: meta(), Data: table},
		&corev1.Secret{ObjectMeta: meta(), StringData: map[string]string{"k1": strings.Repeat("k", 32)}},
		&appsv1.Deployment{ObjectMeta: meta(), Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		}},
		&corev1.Service{ObjectMeta: meta(), Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 8080}}}},
	)
	f.kubectl("rollout", "status", "deployment/"+name, "--timeout=3m")
}

// How long an answer may take: a short time where one is waited for by asking again, a long one where nobody asks again.
const askedAgain, askedOnce = 3 * time.Second, 30 * time.Second

// callTool calls a tool at the gateway's Service from a pod, and returns the answer.
func (f *fixture) callTool(caller client.ObjectKey, timeout time.Duration, name, arguments string) string {
	return f.ask("gateway", caller, timeout, "tools/call", name, arguments)
}

// ask posts a message of protocol version 2026-07-28 to a host of the gateway from a pod, and returns the answer.
func (f *fixture) ask(host string, caller client.ObjectKey, timeout time.Duration, method, name, params string) string {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	command := []string{
		"/echo", "post", "-timeout", timeout.String(), "-H", "Accept: application/json, text/event-stream", "-H", "Mcp-Protocol-Version: 2026-07-28",
		"-H", "Mcp-Method: " + method,
	}
	if name != "" {
		command = append(command, "-H", "Mcp-Name: "+name)
		params = fmt.Sprintf(`"name":%q,"arguments":%s,`, name, params)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta)
	out, err := execute(f.t.Context(), caller, append(command, "http://"+net.JoinHostPort(host, "8080")+"/mcp", body)...)
	if err != nil {
		out += err.Error()
	}
	return out
}

// callsWhileReplaced calls tools of both servers all the time, until other pods serve and the old ones are gone. Neither server waits for
// its calls when it is told to end.
func (f *fixture) callsWhileReplaced(caller client.ObjectKey) {
	f.t.Helper()
	old := strings.Fields(f.kubectl("get", "pods", "--selector=mcp.operator/server", "--output=name"))
	f.kubectl("rollout", "restart", "deployment/new", "deployment/old")
	var callers sync.WaitGroup
	defer callers.Wait()
	var isOver atomic.Bool
	defer isOver.Store(true)
	for _, call := range []struct{ tool, arguments, want string }{
		{"new_test_simple_text", `{}`, "simple text"},
		{"old_get-sum", `{"a":1,"b":2}`, "The sum of 1 and 2 is 3"},
		{"old_trigger-long-running-operation", `{"duration":2,"steps":1}`, "Long running operation completed"},
	} {
		callers.Go(func() {
			calls := 0
			for ; !isOver.Load(); calls++ {
				if got := f.callTool(caller, askedOnce, call.tool, call.arguments); !strings.Contains(got, call.want) {
					f.t.Errorf("call %d of %s while its server is replaced: %s", calls, call.tool, got)
				}
			}
			f.t.Logf("%d calls of %s while its server was replaced", calls, call.tool)
		})
	}
	f.kubectl("rollout", "status", "deployment/new", "--timeout=3m")
	f.kubectl("rollout", "status", "deployment/old", "--timeout=3m")
	f.kubectl(append([]string{"wait", "--for=delete", "--timeout=3m"}, old...)...)
}

func TestGatewayServesServersOfBothProtocolVersionsByATableThatIsWatched(t *testing.T) {
	t.Parallel()
	image := gatewayImage(t)
	f := start(t)
	f.run(server("old").image("server-everything").with(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Resources = nil })).awaitReady(3 * readySoon)
	f.run(server("new")).awaitReady(2 * readySoon)
	f.gateway(image, twoServers(f, "1", ""))
	caller := f.echo(echoPod("client", "sleep"))
	replicas := &corev1.PodList{}
	if err := cluster.client.List(t.Context(), replicas, client.InNamespace(f.namespace), client.MatchingLabels{"name": "gateway"}); err != nil {
		t.Fatal(err)
	}
	for _, replica := range replicas.Items { // each reaches the servers as soon as their nodes' network plugin knows it
		await(t, "the tools of both servers are listed by "+replica.Name, readySoon, func() string {
			list := f.ask(replica.Status.PodIP, caller, askedAgain, "tools/list", "", "")
			if !strings.Contains(list, `"old_echo"`) || !strings.Contains(list, `"new_test_simple_text"`) {
				return list
			}
			return ""
		})
	}
	for tool, want := range map[string]string{"old_echo": "Echo: across versions", "new_test_simple_text": "simple text"} {
		await(t, tool+" answers at the Service", readySoon, func() string { // which each node learns of by itself
			if got := f.callTool(caller, askedAgain, tool, `{"message":"across versions"}`); !strings.Contains(got, want) {
				return got
			}
			return ""
		})
	}
	config := &corev1.ConfigMap{}
	f.patch("gateway", config, func() { config.Data = twoServers(f, "2", `"echo"`) })
	await(t, "a tool that the table denies cannot be called", tableRevised, func() string {
		if got := f.callTool(caller, askedAgain, "old_echo", `{"message":"x"}`); !strings.Contains(got, "unknown tool") {
			return got
		}
		return ""
	})
	f.patch("gateway", config, func() { config.Data = map[string]string{"table.json": `{"version": 1, "auht": {}}`} })
	if got := f.callTool(caller, askedOnce, "new_test_simple_text", `{}`); !strings.Contains(got, "simple text") {
		t.Errorf("under a table that is refused: %s", got)
	}
	f.callsWhileReplaced(caller)
}

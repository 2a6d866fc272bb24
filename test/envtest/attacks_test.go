package envtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// secretCanary is in every value of the Secrets that the objects of a test refer to.
const secretCanary = "s3cret-c4nary"

// runTalkative runs the operator's program with all its logs and metrics, and returns both: what it logged, and where its metrics are.
func (f *fixture) runTalkative(t *testing.T) (log *os.File, metrics string) {
	t.Helper()
	kubeconfig, binary := filepath.Join(t.TempDir(), "kubeconfig"), filepath.Join(t.TempDir(), "mcp-operator")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: apiConfig.Host, CertificateAuthorityData: apiConfig.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: apiConfig.CertData, ClientKeyData: apiConfig.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(f.ctx, "go", "build", "-o", binary, "../../cmd/mcp-operator").CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, out)
	}
	if log, err = os.CreateTemp(t.TempDir(), "log"); err != nil {
		t.Fatal(err)
	}
	metrics = launchAddress(t)
	command := exec.CommandContext(context.WithoutCancel(f.ctx), binary, "--metrics-bind-address="+metrics, "--metrics-secure=false",
		"--health-probe-bind-address=0", "--leader-elect=false", "--gateway-image=registry.example.com/mcp-gateway:1", "--log-level=128",
		"--watch-namespaces="+f.namespace)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(command.Process.Signal(os.Interrupt), command.Wait(), log.Close()); err != nil {
			t.Errorf("the operator: %v", err)
		}
	})
	return log, "http://" + metrics + "/metrics"
}

// launchAddress is an address that nothing listens on.
func launchAddress(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(nil)
	defer server.Close()
	return server.Listener.Addr().String()
}

// secretOf is a Secret whose every value is the canary and the key's name; so is the copy that kubectl keeps in an annotation.
func (f *fixture) secretOf(name, canary string, keys ...string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":"` + canary + `"}`,
		}},
		StringData: map[string]string{},
	}
	for _, key := range keys {
		secret.StringData[key] = canary + "-" + key
	}
	return secret
}

// toolsWithSecrets are tools that refer to a Secret in every way there is.
func (f *fixture) toolsWithSecrets() []*mcpv1alpha1.MCPTool {
	auth := func(kind mcpv1alpha1.ToolAuthType) *mcpv1alpha1.ToolAuth {
		a := &mcpv1alpha1.ToolAuth{Type: kind, SecretRef: mcpv1alpha1.ToolSecret{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}}}
		if kind == mcpv1alpha1.AuthHeader {
			a.Header = "X-Api-Key"
		}
		return a
	}
	of := func(kind mcpv1alpha1.ToolAuthType) mcpv1alpha1.MCPToolSpec {
		return mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolHTTP, Endpoint: "https://api.example.com/v1", Auth: auth(kind)}
	}
	trusting := of(mcpv1alpha1.AuthBearer)
	trusting.CABundle = &mcpv1alpha1.CABundleSource{SecretRef: &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}, Key: "ca.crt"}}
	return []*mcpv1alpha1.MCPTool{
		f.makeTool("bearer", of(mcpv1alpha1.AuthBearer)), f.makeTool("basic", of(mcpv1alpha1.AuthBasic)),
		f.makeTool("header", of(mcpv1alpha1.AuthHeader)), f.makeTool("certificate", of(mcpv1alpha1.AuthClientCertificate)),
		f.makeTool("trusting", trusting),
		f.makeTool("database", mcpv1alpha1.MCPToolSpec{
			Type: mcpv1alpha1.ToolPostgres, Endpoint: "postgres://db.example.com/shop", Auth: auth(mcpv1alpha1.AuthBasic),
			Postgres: &mcpv1alpha1.PostgresTool{Statement: "SELECT 1", User: "app", TLS: "VerifyFull"},
		}),
	}
}

// TestTheValueOfASecretIsInNothingThatIsWrittenLoggedOrCounted, before and after it is rotated: no object of the cluster but the Secret
// itself has it, no event, no line of the log at its most talkative, and no metric. Nor is the key of an agent's sessions anywhere else.
func TestTheValueOfASecretIsInNothingThatIsWrittenLoggedOrCounted(t *testing.T) {
	c, err := client.New(apiConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ctx: t.Context(), client: c}
	operators := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}
	if err := c.Create(t.Context(), operators); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "canary-"}}
	f.create(ns)
	f.namespace = ns.Name
	f.leaveNoServers(f.namespace)
	log, metrics := f.runTalkative(t)

	keys := f.secretOf("keys", secretCanary, "token", "username", "password", "value", "tls.crt", "tls.key", "ca.crt")
	f.create(keys)
	f.create(f.secretOf("tls", secretCanary, "tls.crt", "tls.key"))
	server := f.server("web")
	server.Spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}}}
	server.Spec.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "token",
	}}}}
	f.create(server)
	f.create(f.server("mail"))
	agent := f.agent("helper")
	agent.Spec.Gateway = &mcpv1alpha1.AgentGateway{TLS: &mcpv1alpha1.GatewayTLS{SecretName: "tls"}}
	for _, tool := range f.toolsWithSecrets() {
		f.create(tool)
		agent.Spec.Tools = append(agent.Spec.Tools, mcpv1alpha1.ObjectName{Name: tool.Name})
	}
	f.create(agent)
	f.condition("web", "Applied", metav1.ConditionTrue, "Applied")
	f.agentCondition("helper", "Applied", metav1.ConditionTrue, "Applied")
	deployment := &appsv1.Deployment{}
	if err := f.get(deployment, "web"); err != nil {
		t.Fatal(err)
	}
	before := deployment.Spec.Template.Annotations
	f.expectNoCanary(log, metrics, secretCanary)

	f.edit(keys, "keys", func() { keys.Data["token"] = []byte(secretCanary + "-rotated") })
	f.eventually("the rotated Secret rolls the server", func() error {
		if err := f.get(deployment, "web"); err != nil {
			return err
		}
		if fmt.Sprint(before) == fmt.Sprint(deployment.Spec.Template.Annotations) {
			return errors.New("not yet")
		}
		return nil
	})
	f.expectNoCanary(log, metrics, secretCanary)

	session := &corev1.Secret{}
	if err := f.get(session, "helper-session"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k1", "status-token"} {
		if len(session.Data[key]) < 16 {
			t.Errorf("the agent's %s has %d bytes", key, len(session.Data[key]))
			continue
		}
		f.expectNoCanary(log, metrics, string(session.Data[key]))
	}
}

// expectNoCanary looks for a text, as it is or in base64, in every object that the API server lists but Secrets, in the operator's log
// and in its metrics.
func (f *fixture) expectNoCanary(log *os.File, metrics, canary string) {
	f.t.Helper()
	clientset, err := kubernetes.NewForConfig(apiConfig)
	if err != nil {
		f.t.Fatal(err)
	}
	needles := []string{canary}
	for shift := range 3 { // as it is in base64, wherever in the text it begins
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canary))
		needles = append(needles, encoded[4:len(encoded)-4])
	}
	look := func(where string, content []byte) {
		f.t.Helper()
		for _, needle := range needles {
			if at := bytes.Index(content, []byte(needle)); at >= 0 {
				f.t.Errorf("the secret is in %s: …%s…", where, content[max(0, at-300):min(len(content), at+100)])
			}
		}
	}
	lists, err := clientset.Discovery().ServerPreferredResources()
	if err != nil {
		f.t.Fatal(err)
	}
	looked := 0
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if !strings.Contains(fmt.Sprint(resource.Verbs), "list") || resource.Name == "secrets" || resource.Name == "componentstatuses" {
				continue
			}
			path := "/apis/" + list.GroupVersion + "/" + resource.Name
			if list.GroupVersion == "v1" {
				path = "/api/v1/" + resource.Name
			}
			content, err := clientset.Discovery().RESTClient().Get().AbsPath(path).DoRaw(f.ctx)
			if err != nil {
				f.t.Fatalf("list %s: %v", path, err)
			}
			look(path, content)
			looked += bytes.Count(content, []byte(`"`+f.namespace+`"`))
		}
	}
	if looked < 20 {
		f.t.Errorf("only %d mentions of the namespace were found in all objects", looked)
	}
	content, err := os.ReadFile(log.Name())
	if err != nil || !bytes.Contains(content, []byte(f.namespace)) {
		f.t.Errorf("the log has %d bytes (%v)", len(content), err)
	}
	look("the log", content)
	response, err := http.Get(metrics) //nolint:noctx // of a process of this test's own
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err = io.ReadAll(response.Body)
	if err != nil || !bytes.Contains(content, []byte("mcp_operator_")) {
		f.t.Errorf("the metrics have %d bytes (%v)", len(content), err)
	}
	look("the metrics", content)
}

// TestNothingOfSomebodyElsesIsAdoptedReadOrDeleted: whatever its name, labels and owner references say. A controller of another UID is
// another one, though it bears the agent's name in another group.
func TestNothingOfSomebodyElsesIsAdoptedReadOrDeleted(t *testing.T) {
	forged := []metav1.OwnerReference{{APIVersion: "evil.example/v1", Kind: "MCPAgent", Name: "victim", UID: "forged", Controller: new(true)}}
	meta := func(f *fixture, name string, owners []metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: f.namespace, OwnerReferences: owners, Labels: map[string]string{
			"mcp.operator/agent": "victim", "mcp.operator/component": "gateway", "app.kubernetes.io/managed-by": "mcp-operator",
		}}
	}
	for name, make := range map[string]func(f *fixture, owners []metav1.OwnerReference) client.Object{
		"the Secret of sessions": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &corev1.Secret{ObjectMeta: meta(f, "victim-session", owners), StringData: map[string]string{"k1": "theirs"}}
		},
		"the table": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &corev1.ConfigMap{ObjectMeta: meta(f, "victim-gateway", owners), Data: map[string]string{"table.json": "{}"}}
		},
		"the account": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &corev1.ServiceAccount{ObjectMeta: meta(f, "victim-gateway", owners)}
		},
		"the policy": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &networkingv1.NetworkPolicy{ObjectMeta: meta(f, "victim-gateway", owners)}
		},
		"the Service": func(f *fixture, owners []metav1.OwnerReference) client.Object {
			return &corev1.Service{ObjectMeta: meta(f, "victim-gateway", owners), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		},
	} {
		for whose, owners := range map[string][]metav1.OwnerReference{"nobody's": nil, "another's": forged} {
			t.Run(name+", "+whose, func(t *testing.T) {
				f, _ := startAgents(t, "victim")
				theirs := make(f, owners)
				f.create(theirs)
				version := theirs.GetResourceVersion()
				f.create(f.agent("victim"))
				f.agentCondition("victim", "Applied", metav1.ConditionFalse, "OwnershipConflict")
				if err := f.client.Delete(f.ctx, f.agent("victim")); err != nil {
					t.Fatal(err)
				}
				f.quiet()
				if err := f.get(theirs, theirs.GetName()); err != nil || theirs.GetResourceVersion() != version {
					t.Errorf("it was touched: %v", err)
				}
			})
		}
	}
}

// TestAChildThatSomebodyMakesMorePowerfulIsPutBack at once: its pods' privileges, its rights, and who may connect.
func TestAChildThatSomebodyMakesMorePowerfulIsPutBack(t *testing.T) {
	f, _ := startAgents(t, "guarded")
	f.create(f.agent("guarded"))
	f.agentCondition("guarded", "Applied", metav1.ConditionTrue, "Applied")
	f.quiet()
	deployment, role, policy, table := &appsv1.Deployment{}, &rbacv1.Role{}, &networkingv1.NetworkPolicy{}, &corev1.ConfigMap{}
	rules, open := 0, 0
	f.edit(role, "guarded-gateway", func() {
		rules = len(role.Rules)
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
	})
	f.edit(policy, "guarded-gateway", func() {
		open = len(policy.Spec.Ingress)
		policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
	})
	f.edit(deployment, "guarded-gateway", func() {
		deployment.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
		deployment.Spec.Template.Spec.Containers[0].Image = "evil:1"
	})
	f.edit(table, "guarded-gateway", func() { table.Data["table.json"] = `{"version":1,"auth":{"type":"None"}}` })
	f.eventually("all of it is put back", func() error {
		if err := errors.Join(f.get(role, "guarded-gateway"), f.get(policy, "guarded-gateway"), f.get(deployment, "guarded-gateway"),
			f.get(table, "guarded-gateway")); err != nil {
			return err
		}
		container := deployment.Spec.Template.Spec.Containers[0]
		switch s := container.SecurityContext; {
		case len(role.Rules) != rules:
			return fmt.Errorf("rights %+v", role.Rules)
		case len(policy.Spec.Ingress) != open:
			return fmt.Errorf("let in %+v", policy.Spec.Ingress)
		case container.Image != f.gatewayImage:
			return errors.New("the image is " + container.Image)
		case strings.Contains(table.Data["table.json"], `"None"`):
			return errors.New("the table is " + table.Data["table.json"])
		case s == nil || s.RunAsNonRoot == nil && deployment.Spec.Template.Spec.SecurityContext.RunAsNonRoot == nil:
			return fmt.Errorf("security context %+v", s)
		}
		return nil
	})
}

// TestWhatADocumentSaysCannotDisguiseAStatus: a document is somebody else's text. Of what it names, status, conditions and events have
// nothing that moves a cursor, breaks a line or hides, and not more than a little.
func TestWhatADocumentSaysCannotDisguiseAStatus(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	f := startTools(t, server)
	const evil = `\u001b[31mReady\u0007\u202e\u200b\r\nAccepted: True\u2028`
	operation := func(id string) string {
		return `{"get": {"operationId": "` + id + `", "summary": "` + evil + `", "description": "` + strings.Repeat(evil, 500) + `",
			"parameters": [{"name": "` + evil + `", "in": "header", "schema": {"$ref": "` + evil + `"}}]}}`
	}
	for name, document := range map[string]string{
		"operations": `{"openapi": "3.1.0", "servers": [{"url": "http://pets.example.com/v1"}], "paths": {"/a": ` + operation(evil) +
			`, "/b": ` + operation(strings.Repeat("b", 50_000)) + `, "/` + evil + `": ` + operation("c") + `, "/d": {"get": {"operationId": "d"}}}}`,
		"version": `{"openapi": "` + evil + `", "paths": {}}`,
		"server":  `{"openapi": "3.1.0", "servers": [{"url": "http://` + evil + `/"}], "paths": {"/a": {"get": {}}}}`,
		"key":     `{"openapi": "3.1.0", "` + evil + `": 1, "paths": {"/a": {"` + evil + `": {}}}}`,
		"syntax":  evil + strings.Repeat("x", 100_000),
	} {
		f.create(f.configMap("document-"+name, map[string]string{"a": document}))
		f.create(f.makeTool(name, mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolOpenAPI, OpenAPI: &mcpv1alpha1.OpenAPITool{
			Document: mcpv1alpha1.OpenAPIDocument{ConfigMapRef: &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: "document-" + name}, Key: "a"}},
		}}))
		tool := &mcpv1alpha1.MCPTool{}
		f.eventually("the document of "+name+" is judged", func() error {
			if err := f.get(tool, name); err != nil {
				return err
			}
			if accepted := apimeta.FindStatusCondition(tool.Status.Conditions, "Accepted"); accepted == nil || accepted.Status == metav1.ConditionUnknown {
				return errors.New("not yet")
			}
			return nil
		})
		for _, c := range tool.Status.Conditions {
			expectPlain(t, name+": "+c.Type, c.Message, 4<<10)
		}
		for _, one := range tool.Status.Tools {
			expectPlain(t, name+": a tool", one.Name, 128)
		}
	}
	events := &corev1.EventList{}
	f.eventually("events are told", func() error {
		if err := f.client.List(f.ctx, events, client.InNamespace(f.namespace)); err != nil || len(events.Items) < 5 {
			return fmt.Errorf("%d events (%w)", len(events.Items), err)
		}
		return nil
	})
	for _, event := range events.Items {
		expectPlain(t, "an event", event.Message, 1<<10)
	}
}

func expectPlain(t *testing.T, what, text string, most int) {
	t.Helper()
	if len(text) > most {
		t.Errorf("%s has %d bytes, at most %d are wanted", what, len(text), most)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			t.Errorf("%s has %q in it: %.300q", what, r, text)
			return
		}
	}
}

// TestObjectsAreGoneThoughNobodyOperates: what is deleted waits for no operator, no gateway and no backend.
func TestObjectsAreGoneThoughNobodyOperates(t *testing.T) {
	f, _ := startAgents(t, "brief")
	f.create(f.agent("brief"))
	f.agentCondition("brief", "Applied", metav1.ConditionTrue, "Applied")
	f.quiet()
	f.stop()
	tool := f.makeTool("brief", mcpv1alpha1.MCPToolSpec{Type: mcpv1alpha1.ToolHTTP, Endpoint: "https://gone.example.com"})
	f.create(tool)
	begun := time.Now()
	for _, obj := range []client.Object{f.agent("brief"), tool, f.server("web")} {
		if err := f.client.Delete(f.ctx, obj); err != nil {
			t.Fatal(err)
		}
		if err := f.get(obj, obj.GetName()); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%T is still there after %s: %v, finalizers %v", obj, time.Since(begun), err, obj.GetFinalizers())
		}
	}
}

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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// secretCanary is in every value of the Secrets that the objects of a test refer to.
const secretCanary = "s3cret-c4nary"

// runTalkative runs the operator's program with a talkative log and its metrics, and returns both: what it logged, and where its metrics are.
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
			Type: mcpv1alpha1.ToolPostgres, Endpoint: "postgres://db.example.com/shop", Auth: auth(mcpv1alpha1.AuthPassword),
			Postgres: &mcpv1alpha1.PostgresTool{Statement: "SELECT 1", User: "app", TLS: "VerifyFull"},
		}),
	}
}

// TestTheValueOfASecretIsInNothingThatIsWrittenLoggedOrCounted, before and after it is rotated: no object of the cluster but the Secret
// itself has it, no event, no line of a talkative log (more talkative, client-go writes what
// it is answered), and no metric. Nor is the key of an agent's sessions anywhere else.
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
	f.eventually("the metrics are read", func() error { // they are served from some time after the operator began to work
		response, err := http.Get(metrics)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		content, err = io.ReadAll(response.Body)
		if err != nil || !bytes.Contains(content, []byte("controller_runtime_reconcile_total")) {
			return errors.Join(fmt.Errorf("they have %d bytes", len(content)), err)
		}
		return nil
	})
	look("the metrics", content)
}

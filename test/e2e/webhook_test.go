package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// ofKinds makes an object of each kind that runs an image of its author's.
var ofKinds = map[string]func(image string) client.Object{
	"MCPServer": func(image string) client.Object { return server("judged").image(image).object },
	"MCPAgent": func(image string) client.Object {
		return &mcpv1alpha1.MCPAgent{ObjectMeta: metav1.ObjectMeta{Name: "judged"}, Spec: mcpv1alpha1.MCPAgentSpec{
			Tools:   []mcpv1alpha1.ObjectName{named("any")},
			Auth:    mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens},
			Runtime: &mcpv1alpha1.AgentRuntime{Image: imageOf(image)},
		}}
	},
	"MCPServer of the compatibility API": func(image string) client.Object {
		return sigServer("judged", func(spec *sigv1alpha1.MCPServerSpec) { spec.Source.ContainerImage.Ref = imageOf(image) })
	},
}

// Not parallel: it restarts the operator, which answers the API server until it is restarted again.
func TestTheWebhookIsSwitchedOnAndOffAsDocumented(t *testing.T) {
	f := withCompatibilityAPI(t)
	w := f.webhook()
	before := f.installation()
	isOn := true
	t.Cleanup(func() { // whatever came of it, the operator serves the tests that follow
		if isOn {
			out, err := w.sh(w.off, "+e") // it may be half on: then there is not all that the docs delete
			t.Logf("switch the webhook off: %v\n%s", err, out)
			w.awaitRollout(context.Background())
		}
	})

	w.run(w.on)
	w.run("kubectl -n " + operatorNamespace + " set env deployment/" + operatorName + " IMAGE_ALLOWLIST=mcp-operator/everything")
	w.awaitRollout(t.Context())
	for kind, object := range ofKinds {
		await(t, kind+" with an image off the list is refused", podStart, func() string {
			err := f.tryToCreate(object("echo"))
			if !apierrors.IsForbidden(err) || missing(err.Error(), []string{"denied the request", `"mcp-operator/echo:dev" is not on the allow list`}) != nil {
				return fmt.Sprintf("creating it says %v", err)
			}
			return ""
		})
		await(t, kind+" with an image on the list is admitted", podStart, func() string { return textOf(f.tryToCreate(object("everything"))) })
	}
	s := f.run(server("admitted"))
	s.awaitReady(readySoon)
	refused := cluster.client.Patch(t.Context(), &mcpv1alpha1.MCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "admitted"}},
		client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"image":%q}}`, imageOf("echo"))))
	if !apierrors.IsForbidden(refused) {
		t.Errorf("an edit to an image off the list says %v", refused)
	}

	w.run(w.off)
	isOn = false
	w.awaitRollout(t.Context())
	for kind, object := range ofKinds {
		await(t, kind+" is not judged any more", podStart, func() string { return textOf(f.tryToCreate(object("echo"))) })
	}
	if diff := cmp.Diff(before, f.installation()); diff != "" {
		t.Errorf("the installation (-before +after)\n%s", diff)
	}
	f.run(server("afterwards")).awaitReady(readySoon)
}

// tryToCreate has the API server judge an object without making it.
func (f *fixture) tryToCreate(object client.Object) error {
	object.SetNamespace(f.namespace)
	return cluster.client.Create(f.t.Context(), object, client.DryRunAll)
}

func textOf(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// installed is what the webhook changes of an installation.
type installed struct {
	Pod     corev1.PodSpec
	Ingress []networkingv1.NetworkPolicyIngressRule
	Names   []string
}

func (f *fixture) installation() installed {
	f.t.Helper()
	deployment, policy := &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}
	for _, object := range []client.Object{deployment, policy} {
		if err := cluster.client.Get(f.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: operatorName}, object); err != nil {
			f.t.Fatal(err)
		}
	}
	names := f.kubectl("--namespace="+operatorNamespace, "get", "services,secrets,validatingwebhookconfigurations", "--output=name")
	return installed{Pod: deployment.Spec.Template.Spec, Ingress: policy.Spec.Ingress, Names: strings.Fields(names)}
}

// webhook is a folder with the manifests and a certificate, and what the docs say to do there.
type webhook struct {
	t       *testing.T
	dir     string
	on, off string
}

// webhook prepares it. The API server will ask about the test's namespace alone.
func (f *fixture) webhook() *webhook {
	f.t.Helper()
	w := &webhook{t: f.t, dir: f.t.TempDir()}
	if err := os.CopyFS(filepath.Join(w.dir, "config"), os.DirFS("../../config")); err != nil {
		f.t.Fatal(err)
	}
	manifest := filepath.Join("config", "webhook", "validating-webhook.yaml")
	raw, err := os.ReadFile(filepath.Join(w.dir, manifest))
	if err != nil {
		f.t.Fatal(err)
	}
	const before = "  failurePolicy: Fail\n"
	selector := fmt.Sprintf("  namespaceSelector: {matchLabels: {%s: %s}}\n", corev1.LabelMetadataName, f.namespace)
	if strings.Count(string(raw), before) != len(ofKinds) {
		f.t.Fatalf("%s does not say %q for each kind", manifest, before)
	}
	w.write(manifest, strings.ReplaceAll(string(raw), before, selector+before))
	w.certificates("mcp-operator-webhook." + operatorNamespace + ".svc")

	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		f.t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "\n## The webhook\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i, part := range strings.Split(section, "```sh\n") {
		block, _, _ := strings.Cut(part, "```\n")
		switch {
		case i == 0: // what is before the first block
		case strings.Contains(block, "config/mine"):
			w.on = block
		case strings.Contains(block, "delete validatingwebhookconfiguration"):
			w.off = block
		}
	}
	if w.on == "" || w.off == "" {
		f.t.Fatalf("the docs do not say how it is switched on (%q) and off (%q)", w.on, w.off)
	}
	return w
}

// certificates makes an authority, and a certificate of it for a name.
func (w *webhook) certificates(name string) {
	w.t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotAfter: authority.NotAfter}
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			w.t.Fatal(err)
		}
		keys[i] = key
	}
	for file, of := range map[string]struct {
		certificate *x509.Certificate
		key         *ecdsa.PrivateKey
	}{"ca.crt": {authority, keys[0]}, "tls.crt": {leaf, keys[1]}} {
		der, err := x509.CreateCertificate(rand.Reader, of.certificate, authority, of.key.Public(), keys[0])
		if err != nil {
			w.t.Fatal(err)
		}
		w.write(file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	}
	der, err := x509.MarshalPKCS8PrivateKey(keys[1])
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

func (w *webhook) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// run does what a block of the docs says, and fails where one of its commands does.
func (w *webhook) run(block string) {
	w.t.Helper()
	if out, err := w.sh(block, "-e"); err != nil {
		w.t.Fatalf("%s\n%v\n%s", block, err, out)
	}
}

// sh has a shell run commands in the folder; -e lets it end at the first that fails, +e goes on.
func (w *webhook) sh(commands, option string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	path, err := filepath.Abs(cluster.kubectl)
	if err != nil {
		return "", err
	}
	kubeconfig, err := filepath.Abs(os.Getenv("KUBECONFIG"))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "sh", option, "-c", `kubectl() { "$KUBECTL" "$@"; }`+"\n"+commands)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "KUBECTL="+path, "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// awaitRollout waits until nothing but the newest pod of the operator is there, and acts.
func (w *webhook) awaitRollout(ctx context.Context) {
	w.t.Helper()
	out, err := kubectl(ctx, "--namespace="+operatorNamespace, "rollout", "status", "deployment/"+operatorName, "--timeout=1m")
	if err == nil {
		err = awaitLeader(ctx)
	}
	if err != nil {
		w.t.Fatalf("%v\n%s\n%s", err, out, stateOfTheOperator(ctx))
	}
}

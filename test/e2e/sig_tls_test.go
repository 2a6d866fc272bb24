package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

func TestAServerThatSpeaksTLSIsVerifiedByItsChainAndARotationRollsNoPod(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	root := mcptest.NewAuthority(t, "root")
	f.create(certificate("certificate", root, fmt.Sprintf("secure.%s.svc.cluster.local", f.namespace)))
	f.create(sigServer("secure", func(spec *sigv1alpha1.MCPServerSpec) {
		spec.Config.Arguments = []string{"mcp", "-cert", "/certificate/tls.crt", "-key", "/certificate/tls.key"}
		spec.Config.Storage = []sigv1alpha1.StorageMount{{Path: "/certificate", Source: sigv1alpha1.StorageSource{
			Type: "Secret", Secret: &corev1.SecretVolumeSource{SecretName: "certificate"},
		}}}
		spec.Transport = &sigv1alpha1.Transport{TLS: &sigv1alpha1.TLS{Enabled: true, CABundleSecret: &sigv1alpha1.SecretReference{Name: "ca"}}}
	}))
	invalid := func(words ...string) {
		t.Helper()
		f.sigSays("secure", readySoon, metav1.ConditionFalse, "ConfigurationInvalid", words...)
	}
	invalid(fmt.Sprintf("TLS CA bundle Secret not found in namespace '%s'", f.namespace))
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ca"}}
	f.create(ca)
	invalid("ca.crt")
	trust := func(pem string) { f.patch("ca", ca, func() { ca.Data = map[string][]byte{"ca.crt": []byte(pem)} }) }
	trust("no certificate")
	invalid("contains no valid PEM certificates")
	trust(root.PEM)
	ready := f.sigReady("secure")
	if want := fmt.Sprintf("https://secure.%s.svc.cluster.local:8080/mcp", f.namespace); ready.Status.Address == nil || ready.Status.Address.URL != want {
		t.Errorf("address %v, want %s", ready.Status.Address, want)
	}
	pod := f.sigPod("secure")

	trust(mcptest.NewAuthority(t, "somebody else").PEM)
	f.sigSays("secure", readySoon, metav1.ConditionFalse, "MCPEndpointUnavailable", "MCP endpoint is not serving a valid MCP protocol: ", "certificate")
	trust(root.PEM)
	f.sigSays("secure", 2*time.Minute, metav1.ConditionTrue, "Available")
	if now := f.sigPod("secure"); now != pod {
		t.Errorf("another authority replaced pod %s by %s", pod, now)
	}
	f.sigEdit("secure", func(spec *sigv1alpha1.MCPServerSpec) { spec.Transport.TLS.InsecureSkipVerify = true })
	invalid("mutually exclusive")
	f.sigEdit("secure", func(spec *sigv1alpha1.MCPServerSpec) { spec.Transport.TLS.CABundleSecret = nil })
	f.sigReady("secure")
}

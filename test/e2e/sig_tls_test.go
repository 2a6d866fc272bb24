package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

// issuer is a certificate with its key.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue returns a certificate for a name, signed by an issuer, or by itself if that is nil.
func (i *issuer) issue(t *testing.T, name string, isCA bool) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if !isCA {
		template.DNSNames, template.KeyUsage, template.ExtKeyUsage = []string{name}, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	parent, signer := template, key
	if i != nil {
		parent, signer = i.certificate, i.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{certificate, key}
}

func (i *issuer) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Raw}))
}

func (i *issuer) keyPEM(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func TestAServerThatSpeaksTLSIsVerifiedByItsChainAndARotationRollsNoPod(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	root := (*issuer)(nil).issue(t, "root", true)
	intermediate := root.issue(t, "intermediate", true)
	leaf := intermediate.issue(t, fmt.Sprintf("secure.%s.svc.cluster.local", f.namespace), false)
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "certificate"},
		StringData: map[string]string{"tls.crt": leaf.pem() + intermediate.pem(), "tls.key": leaf.keyPEM(t)},
	})
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
	trust(root.pem())
	ready := f.sigReady("secure")
	if want := fmt.Sprintf("https://secure.%s.svc.cluster.local:8080/mcp", f.namespace); ready.Status.Address == nil || ready.Status.Address.URL != want {
		t.Errorf("address %v, want %s", ready.Status.Address, want)
	}
	pod := f.sigPod("secure")

	trust((*issuer)(nil).issue(t, "somebody else", true).pem())
	f.sigSays("secure", readySoon, metav1.ConditionFalse, "MCPEndpointUnavailable", "MCP endpoint is not serving a valid MCP protocol: ", "certificate")
	trust(root.pem())
	f.sigSays("secure", 2*time.Minute, metav1.ConditionTrue, "Available")
	if now := f.sigPod("secure"); now != pod {
		t.Errorf("another authority replaced pod %s by %s", pod, now)
	}
	f.sigEdit("secure", func(spec *sigv1alpha1.MCPServerSpec) { spec.Transport.TLS.InsecureSkipVerify = true })
	invalid("mutually exclusive")
	f.sigEdit("secure", func(spec *sigv1alpha1.MCPServerSpec) { spec.Transport.TLS.CABundleSecret = nil })
	f.sigReady("secure")
}

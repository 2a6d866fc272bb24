// Package pki makes the cluster's certificates, the key that signs ServiceAccount tokens, and the
// kubeconfigs. What is there and still valid is kept: running it again changes nothing.
// All keys are ECDSA P-256; all certificates last ten years.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

const validFor = 10 * 365 * 24 * time.Hour

// Authority signs certificates; its own is at Dir/Name.crt and Dir/Name.key.
type Authority struct {
	Dir, Name string
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
}

// Leaf is a certificate for a server, a client, or both.
type Leaf struct {
	// Name is the name of the files, without suffix.
	Name string
	// User and Group are what Kubernetes takes from the subject: common name and organization.
	User, Group string
	DNS         []string
	IPs         []string
}

// EnsureAuthority reads the authority of that name in dir, or makes it. An authority that has run out
// or cannot be read is made anew, and every leaf with it.
func EnsureAuthority(dir, name string, now time.Time) (*Authority, error) {
	a := &Authority{Dir: dir, Name: name}
	cert, key, err := readPair(filepath.Join(dir, name))
	if err == nil && cert.IsCA && now.Before(cert.NotAfter) {
		a.cert, a.key = cert, key
		return a, nil
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "devcluster-" + name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if a.key, err = newKey(); err != nil {
		return nil, err
	}
	if a.cert, err = a.sign(template, &a.key.PublicKey, template, now); err != nil {
		return nil, err
	}
	return a, writePair(filepath.Join(dir, name), a.cert, a.key)
}

// Ensure makes the leaf, unless one for the same subject and names, signed by this authority, is valid.
func (a *Authority) Ensure(l Leaf, now time.Time) error {
	template := l.template()
	base := filepath.Join(a.Dir, l.Name)
	if old, _, err := readPair(base); err == nil && a.signed(old, now) && sameNames(old, template) {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	cert, err := a.sign(template, &key.PublicKey, a.cert, now)
	if err != nil {
		return err
	}
	return writePair(base, cert, key)
}

// EnsureSigningKey makes the key pair NAME.key and NAME.pub, unless it is there.
func EnsureSigningKey(dir, name string) error {
	base := filepath.Join(dir, name)
	key, err := readKey(base + ".key")
	if err != nil {
		if key, err = newKey(); err != nil {
			return err
		}
		if err := writeKey(base+".key", key); err != nil {
			return err
		}
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("encode the public key %s: %w", base, err)
	}
	return record.WriteFile(base+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), 0o644)
}

func (l Leaf) template() *x509.Certificate {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: l.User},
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:              l.DNS,
	}
	if l.Group != "" {
		t.Subject.Organization = []string{l.Group}
	}
	for _, ip := range l.IPs {
		t.IPAddresses = append(t.IPAddresses, net.ParseIP(ip))
	}
	return t
}

func (a *Authority) signed(c *x509.Certificate, now time.Time) bool {
	return c.CheckSignatureFrom(a.cert) == nil && now.Before(c.NotAfter)
}

func sameNames(a, b *x509.Certificate) bool {
	if a.Subject.String() != b.Subject.String() || len(a.DNSNames) != len(b.DNSNames) || len(a.IPAddresses) != len(b.IPAddresses) {
		return false
	}
	for i := range a.DNSNames {
		if a.DNSNames[i] != b.DNSNames[i] {
			return false
		}
	}
	for i := range a.IPAddresses {
		if !a.IPAddresses[i].Equal(b.IPAddresses[i]) {
			return false
		}
	}
	return true
}

func (a *Authority) sign(template *x509.Certificate, pub *ecdsa.PublicKey, parent *x509.Certificate, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	// An hour of grace: a virtual machine's clock may jump back when it syncs.
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, now.Add(-time.Hour), now.Add(validFor)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

func readPair(base string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := readKey(base + ".key")
	if err != nil {
		return nil, nil, err
	}
	block, err := readPEM(base + ".crt")
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("parse %s.crt: %w", base, err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, fmt.Errorf("%s.crt and its key do not belong together", base)
	}
	return cert, key, nil
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	block, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	return key, nil
}

func readPEM(path string) (*pem.Block, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a certificate or key: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, errors.New(path + " is not PEM")
	}
	return block, nil
}

// writePair writes the key first: a certificate without its key is not taken for a finished pair.
func writePair(base string, cert *x509.Certificate, key *ecdsa.PrivateKey) error {
	if err := writeKey(base+".key", key); err != nil {
		return err
	}
	return record.WriteFile(base+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o644)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key %s: %w", path, err)
	}
	return record.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

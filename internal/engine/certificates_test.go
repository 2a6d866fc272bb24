package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// authority is a certificate authority of a test.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
}

func makeAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, key: makeKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.cert, a.pem = sign(t, template, template, a.key, a.key)
	return a
}

func makeKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, string) {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

// certificate is signed by an authority between this one and it, and for these names.
func (a *authority) certificate(names ...string) tls.Certificate {
	a.t.Helper()
	between, key := makeKey(a.t), makeKey(a.t)
	issuer, _ := sign(a.t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
	}, a.cert, between, a.key)
	leaf, _ := sign(a.t, &x509.Certificate{
		SerialNumber: big.NewInt(3), DNSNames: names, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, issuer, key, between)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, issuer.Raw}, PrivateKey: key}
}

// privateKeyPEM is what must never be quoted.
func privateKeyPEM(t *testing.T) string {
	t.Helper()
	raw, err := x509.MarshalECPrivateKey(makeKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}))
}

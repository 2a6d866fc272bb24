package mcptest

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

// Authority is a certificate authority of a test.
type Authority struct {
	// PEM is the authority's own certificate.
	PEM string

	tb   testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// NewAuthority makes an authority that is good for an hour.
func NewAuthority(tb testing.TB, name string) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, key: makeKey(tb)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.cert, a.PEM = sign(tb, template, template, a.key, a.key)
	return a
}

func makeKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func sign(tb testing.TB, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, string) {
	tb.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

// Certificate returns a certificate for these names, with one of an authority
// between this one and it.
func (a *Authority) Certificate(names ...string) tls.Certificate {
	a.tb.Helper()
	between, key := makeKey(a.tb), makeKey(a.tb)
	issuer, _ := sign(a.tb, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
	}, a.cert, between, a.key)
	leaf, _ := sign(a.tb, &x509.Certificate{
		SerialNumber: big.NewInt(3), DNSNames: names, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, issuer, key, between)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, issuer.Raw}, PrivateKey: key}
}

package reach

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/mcp-operator/mcp-operator/internal/fault"
)

// tlsConfig returns the settings of a handshake, and what says afterwards whether an acceptable certificate was shown in it.
func tlsConfig(host string, trust Trust, profile func(*tls.Config)) (config *tls.Config, shown func() bool) {
	accepted := false
	config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, RootCAs: trust.Roots}
	if profile != nil {
		profile(config)
		config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	}
	// Verified below, or by the gateways; the operator sends nothing.
	config.InsecureSkipVerify = trust.AnyHost || trust.Blind
	config.VerifyConnection = func(state tls.ConnectionState) (err error) {
		defer fault.Catch(host, &err) // net/http has a goroutine of its own for it
		if trust.AnyHost && !trust.Blind {
			if err := verifyChain(state, trust.Roots); err != nil {
				return err
			}
		}
		accepted = true
		return nil
	}
	return config, func() bool { return accepted }
}

// verifyChain is what crypto/tls does, but for the host.
func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}

// errNoTLS says that a database does not encrypt.
var errNoTLS = errors.New("the database refuses TLS")

// askPostgres asks for TLS in the protocol of PostgreSQL (SSLRequest).
func askPostgres(conn net.Conn) error {
	const sslRequest = 80877103
	request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), sslRequest)
	if _, err := conn.Write(request); err != nil {
		return fmt.Errorf("ask for TLS: %w", err)
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("ask for TLS: %w", err)
	}
	if answer[0] != 'S' {
		return errNoTLS
	}
	return nil
}

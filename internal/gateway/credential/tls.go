package credential

import (
	"crypto/tls"
	"errors"
	"io/fs"

	"github.com/mcp-operator/mcp-operator/internal/gateway/certs"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// TLSError is the failure of what the gateway itself brings to a TLS connection, before anybody was dialled: its own certificate, or the
// certificates by which it knows the server. The server has no part in it.
type TLSError struct {
	told string
	err  error
}

func (e *TLSError) Error() string { return e.err.Error() }
func (e *TLSError) Unwrap() error { return e.err }

// Told is what is wrong, for somebody who knows nothing of this machine's files.
func (e *TLSError) Told() string { return e.told }

// NewTLS wraps what makes the configuration for the next connection to a backend. Its error is a *TLSError.
func NewTLS(config *table.Backend, next func() (*tls.Config, error)) func() (*tls.Config, error) {
	return func() (*tls.Config, error) {
		made, err := next()
		if err != nil {
			return nil, &TLSError{told: wrongWith(config), err: err}
		}
		return made, nil
	}
}

// Told is what whoever runs the gateway is told of an error for want of a credential or a certificate: what is wrong with their content, in
// words that hold nothing of it. Of certificates there is a detail for clients too. Both are empty where there is no more to say.
func Told(err error) (told, detail string) {
	if own, ok := errors.AsType[*TLSError](err); ok {
		return own.Told(), "the gateway's certificates for it cannot be used"
	}
	if unfit, ok := errors.AsType[*UnfitError](err); ok {
		return unfit.Told(), ""
	}
	return "", ""
}

// wrongWith looks which of a backend's files cannot be used.
func wrongWith(config *table.Backend) string {
	if config.ClientCertificate != nil {
		if _, err := certs.NewClient("", config.ClientCertificate).Config(); err != nil {
			return told(err, "the client certificate or its key", "the client certificate and its key are no pair in PEM form of at most 256 KiB each")
		}
	}
	if _, err := certs.NewClient(config.CAFile, nil).Config(); err != nil {
		return told(err, "the bundle in caBundle", "caBundle holds no certificate in PEM form, or more than 2 MiB")
	}
	return "the certificates for it could not be used a moment ago"
}

// told says that something could not be read, or what else is wrong with it.
func told(err error, what, unfit string) string {
	if _, isPath := errors.AsType[*fs.PathError](err); isPath {
		return what + " cannot be read: the object that holds it or the key in that is missing, or has not reached the gateway's pod yet"
	}
	return unfit
}

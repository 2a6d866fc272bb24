package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/fault"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// guarded dials addresses that the guard admits, whatever a name resolves to at that moment.
func guarded(allowPrivate bool, dial dialFunc) dialFunc {
	if dial != nil {
		return dial
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Control: mcp.GuardFor(allowPrivate).Control}
	return dialer.DialContext
}

// stage is what was being done when an attempt failed.
type stage int

const (
	dialling stage = iota
	securing
)

// stageError is the error of a stage.
type stageError struct {
	stage stage
	err   error
}

func (e *stageError) Error() string { return e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

// classify puts an error into our words: a reason of Reachable, and a sentence that is the same for the same failure.
func classify(host, port string, bundle Bundle, allowPrivate bool, err error) (reason, message string) {
	address := net.JoinHostPort(host, port)
	failed, _ := errors.AsType[*stageError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, fault.Err):
		return mcpv1alpha1.ReasonConnectFailed, fault.Err.Error()
	case errors.Is(err, mcp.ErrAddressDenied) && allowPrivate:
		return mcpv1alpha1.ReasonAddressDenied, host + " has a loopback, link-local or metadata address, and those are never connected to"
	case errors.Is(err, mcp.ErrAddressDenied):
		return mcpv1alpha1.ReasonAddressDenied, host + " has an address that is not of the public Internet: " +
			"the operator admits such endpoints when started with --allow-private-endpoints, but for loopback, link-local and metadata addresses"
	case isDNS:
		return mcpv1alpha1.ReasonDNSFailed, host + " has no address: correct the name in endpoint, or create its DNS record"
	case failed != nil && failed.stage == securing:
		return mcpv1alpha1.ReasonTLSFailed, address + " " + whyNoTLS(host, bundle, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return mcpv1alpha1.ReasonConnectFailed, address + " refuses connections: nothing listens on that port"
	case isTimeout(err):
		return mcpv1alpha1.ReasonConnectFailed, address + " does not answer: it is down, or a firewall or NetworkPolicy is between"
	}
	return mcpv1alpha1.ReasonConnectFailed, address + " cannot be connected to"
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// remedies are what to do about an authority that is not trusted.
var remedies = map[Bundle]string{
	NoBundle:   "name the authority's certificate in caBundle",
	ReadBundle: "the certificates in caBundle are none of that authority's, so put its own there",
	UnreadBundle: "the operator, which connects there itself, does not read Secrets: " +
		"put the authority's certificate into a ConfigMap (caBundle.configMapRef)",
}

// whyNoTLS says why a handshake failed, without a byte of what the other side sent.
func whyNoTLS(host string, bundle Bundle, err error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, otherHost := errors.AsType[x509.HostnameError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case unknown:
		return "has a certificate by an authority that is not trusted: " + remedies[bundle]
	case otherHost:
		return fmt.Sprintf("has a certificate that is not for %q", host)
	case isInvalid && invalid.Reason == x509.Expired:
		return "has a certificate that has expired, or is not valid yet"
	case isInvalid:
		return "has a certificate that is not valid"
	case noTLS, errors.Is(err, errNoTLS):
		return "does not speak TLS"
	case isTimeout(err):
		return "does not answer the TLS handshake in time"
	}
	return "broke the TLS handshake off"
}

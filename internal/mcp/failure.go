package mcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// failure makes an Error whose message is a stable sentence for users.
func failure(reason Reason, cause error, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: cleanLine(fmt.Sprintf(format, args...), maxMessageBytes), err: cause}
}

// transportFailure translates the error of a request that got no HTTP answer.
func (p *prober) transportFailure(ctx context.Context, step string, err error) *Error {
	progress := p.transport.progress()
	if progress.exhausted {
		return p.bodyFailure(ctx, step, errTotalBytes)
	}
	if dial, ok := errors.AsType[*dialError](err); ok && ctx.Err() == nil {
		failed := p.dialFailure(dial.err)
		failed.Unreached = failed.Reason == ConnectionFailed || failed.Reason == ConnectTimeout
		return failed
	}
	if progress.tlsErr != nil && ctx.Err() == nil {
		return p.tlsFailure(progress.tlsErr)
	}
	if ctx.Err() != nil {
		return p.timeFailure(ctx, step)
	}
	switch {
	case brokenOff(err):
		return failure(ConnectionFailed, err, "The server closed the connection without answering %s. Look at its log.", step)
	case progress.received >= p.limits.HeaderBytes:
		return failure(TooLarge, nil, "The header of the server's answer to %s is larger than %d bytes.", step, p.limits.HeaderBytes)
	case progress.received > 0:
		// The error of net/http quotes what the server sent: it is not kept.
		return failure(NotMCP, nil, "What listens on port %s does not answer in HTTP. %s", p.port(), hintNotMCP)
	}
	return failure(ConnectionFailed, nil, "The connection to port %s failed while %s was sent.", p.port(), step)
}

// brokenOff reports whether the other side ended the connection.
func brokenOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// timeFailure tells who ended ctx: a limit of ours or the caller.
func (p *prober) timeFailure(ctx context.Context, step string) *Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errRequestTimeout):
		return failure(Timeout, context.DeadlineExceeded,
			"The server accepted the connection, but did not finish answering %s within %s.", step, p.limits.Request)
	case errors.Is(cause, errTotalTimeout):
		return failure(Timeout, context.DeadlineExceeded,
			"The server could not be verified within %s; the last step was %s.", p.limits.Total, step)
	}
	return failure(Timeout, ctx.Err(), "The check was stopped during %s, before the server had answered.", step)
}

func (p *prober) dialFailure(err error) *Error {
	var dns *net.DNSError
	var network net.Error
	switch {
	case errors.Is(err, ErrAddressDenied):
		return failure(AddressDenied, err, "The address is one that is never dialled, such as a loopback, link-local or metadata address.")
	case errors.As(err, &dns) && dns.IsNotFound:
		return failure(DNSFailed, err, "The name %q does not exist in DNS.", p.hostname())
	case errors.As(err, &dns):
		return failure(DNSFailed, err, "The name %q could not be resolved: the DNS server did not answer or failed.", p.hostname())
	case errors.Is(err, syscall.ECONNREFUSED):
		return failure(ConnectionFailed, err, "Nothing listens on port %s (connection refused). "+
			"Set spec.port to the port of the server, and let it listen on all addresses (0.0.0.0), not only on localhost.", p.port())
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return failure(ConnectTimeout, err, "Port %s did not accept a connection within %s: "+
			"a network policy or firewall may drop the packets.", p.port(), p.limits.Connect)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return failure(ConnectionFailed, err, "There is no route to the server (port %s).", p.port())
	}
	return failure(ConnectionFailed, err, "Port %s could not be connected to.", p.port())
}

func (p *prober) tlsFailure(err error) *Error {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var network net.Error
	why := "the TLS handshake failed."
	switch {
	case errors.As(err, &authority):
		why = "its certificate is signed by an authority that is not trusted."
	case errors.As(err, &name):
		why = "its certificate is for another name."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		why = "its certificate has expired or is not valid yet."
	case errors.As(err, &invalid):
		why = "its certificate is not valid."
	case errors.As(err, &record):
		why = "it does not speak TLS on this port: the URL should begin with http."
	case errors.As(err, &network) && network.Timeout():
		why = fmt.Sprintf("the TLS handshake did not end within %s.", p.limits.Connect)
	case brokenOff(err):
		why = "the server closed the connection during the TLS handshake."
	}
	return failure(TLSFailed, err, "No TLS connection to the server on port %s: %s", p.port(), why)
}

const hintNotMCP = "Check spec.image, spec.port and spec.path."

// hintHost is what to do when a server knows the Host header not as its own.
const hintHost = "Set spec.hostHeader to a name it accepts, or start it with a flag that allows this one (often --allowed-hosts)."

// bodyFailure translates why the answer to step could not be read.
func (p *prober) bodyFailure(ctx context.Context, step string, err error) *Error {
	l := p.limits
	switch {
	case errors.Is(err, errTotalBytes) || p.transport.progress().exhausted:
		return failure(TooLarge, nil, "The server sent more than %d bytes in total; the last step was %s.", l.TotalBytes, step)
	case errors.Is(err, errBodyBytes):
		return failure(TooLarge, nil, "The server's answer to %s is larger than %d bytes.", step, l.BodyBytes)
	case errors.Is(err, wire.ErrEventTooLarge):
		return failure(TooLarge, nil, "The server's answer to %s has an event larger than %d bytes.", step, l.EventBytes)
	case errors.Is(err, wire.ErrManyEvents):
		return failure(TooLarge, nil, "The server's answer to %s has more than %d events.", step, l.Events)
	case errors.Is(err, wire.ErrTooDeep):
		return failure(TooLarge, nil, "The JSON of the server's answer to %s is nested deeper than %d levels.", step, l.Depth)
	case errors.Is(err, wire.ErrManyMembers):
		return failure(TooLarge, nil, "The JSON of the server's answer to %s has an object with more than %d members.", step, l.Members)
	case ctx.Err() != nil:
		return p.timeFailure(ctx, step)
	case errors.Is(err, errEncoded):
		return failure(ProtocolError, nil, "The server compressed its answer to %s although it was asked not to.", step)
	case errors.Is(err, errMediaType):
		return notMCP(step, "it is neither JSON nor an event stream")
	case errors.Is(err, errEmpty):
		return notMCP(step, "it is empty")
	case errors.Is(err, errOtherID):
		return notMCP(step, "it answers another request")
	case errors.Is(err, errNoResponse):
		return notMCP(step, "the event stream ended without a response")
	case errors.Is(err, wire.ErrSyntax):
		return notMCP(step, "it is not valid JSON")
	case errors.Is(err, errNotRPC), errors.Is(err, wire.ErrDuplicateKey):
		return notMCP(step, "it is not a JSON-RPC 2.0 message")
	}
	return failure(ConnectionFailed, nil, "The server broke off its answer to %s. Look at its log.", step)
}

func notMCP(step, why string) *Error {
	return failure(NotMCP, nil, "The answer to %s is not MCP: %s. %s", step, why, hintNotMCP)
}

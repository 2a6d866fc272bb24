package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// The classes of table.BackendStatus.ErrorClass that an HTTP backend can have.
const (
	classDNS          = "DNS"
	classConnect      = "Connect"
	classDenied       = "Denied"
	classTLS          = "TLS"
	classCredential   = "Credential"
	classTimeout      = "Timeout"
	classUnauthorized = "Unauthorized"
	classForbidden    = "Forbidden"
	classNotFound     = "NotFound"
	classNotMCP       = "NotMCP"
	classServerError  = "ServerError"
	classTooLarge     = "TooLarge"
)

// What a server can do wrong, for logs.
var (
	errIdle       = errors.New("it was silent for too long in the middle of a response")
	errTooLarge   = errors.New("it sent more than allowed")
	errNoResponse = errors.New("the stream ended without the response")
	errEmpty      = errors.New("the answer is empty")
	errMediaType  = errors.New("the answer is neither JSON nor an event stream")
	errEncoded    = errors.New("the answer is compressed, which was not asked for")
	errOtherID    = errors.New("the answer bears another id")
	errNotAnswer  = errors.New("the answer is no JSON-RPC response")
	errHTTP       = errors.New("the answer breaks the rules of HTTP, or broke off")
	errNoAnswer   = errors.New("the request was accepted without a response to come")
)

func (b *Backend) failure(class string, sent bool, err error) *backend.Error {
	return &backend.Error{Backend: b.config.Name, Class: class, Sent: sent, Err: err}
}

// unready is the error of a request for want of what the gateway itself brings: a credential, its certificate, the certificates it knows the
// server by. What is wrong with their content is told to whoever runs the gateway, in words that hold nothing of it.
func (b *Backend) unready(err error) *backend.Error {
	failure := b.failure(classCredential, false, err)
	told, ofCertificates := credential.Told(err)
	failure.Told, failure.Detail = told, cmp.Or(ofCertificates, failure.Detail)
	return failure
}

// isOfTLS says whether an error is of what a TLS connection is made with, here or there, which no other attempt changes.
func isOfTLS(failure *backend.Error) bool {
	return failure.Class == classTLS || failure.Class == classCredential
}

// lostSession is the error of a request that the server refused for its session: nothing was done.
func (b *Backend) lostSession(status int, why string) *backend.Error {
	return &backend.Error{Backend: b.config.Name, Class: classNotFound, Status: status, Err: fmt.Errorf("%w: %s", backend.ErrSession, why)}
}

// taken is the error of a request that the server has.
func (b *Backend) taken(err error) error { return backend.Taken(b.config.Name, classServerError, err) }

// noSuchStream is the error of a server that offers no stream.
func (b *Backend) noSuchStream(status int) *backend.Error {
	return &backend.Error{
		Backend: b.config.Name, Class: statusClass(status), Sent: true, Status: status,
		Err: fmt.Errorf("%w: HTTP status %d", backend.ErrNoStream, status),
	}
}

// broken classes the error of a request that got no answer, or of an answer that broke off.
func (x *exchange) broken(err error, sent bool) *backend.Error {
	if failure, ok := errors.AsType[*backend.Error](err); ok {
		return failure
	}
	cause := context.Cause(x.ctx) // looked at once: it may end meanwhile
	dial, isDial := errors.AsType[*dialError](err)
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, wire.ErrEventTooLarge), errors.Is(err, wire.ErrTooLarge):
		return x.failure(classTooLarge, sent, err)
	case isSyntax(err):
		return x.failure(classNotMCP, sent, err)
	case errors.Is(cause, errClosed):
		return x.failure(classConnect, sent, cause)
	case isDial && cause == nil && dial.class == classCredential:
		return x.unready(dial.err)
	case isDial && cause == nil:
		return x.failure(dial.class, false, err)
	case cause != nil:
		return x.failure(classTimeout, sent, cause)
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return x.failure(classServerError, sent, err)
	}
	// The rest are errors of net/http's that have no types, and may quote the server.
	switch text := err.Error(); {
	case strings.Contains(text, "headers exceeded"), strings.Contains(text, "header list larger"):
		return x.failure(classTooLarge, sent, errTooLarge)
	case strings.Contains(text, "malformed"):
		return x.failure(classNotMCP, sent, errHTTP)
	}
	return x.failure(classServerError, sent, errHTTP)
}

// isSyntax says whether what the server sent is at fault, rather than the way here.
func isSyntax(err error) bool {
	if _, ok := errors.AsType[*wire.ParseError](err); ok {
		return true
	}
	for _, fault := range []error{errEmpty, errMediaType, errEncoded, errOtherID, errNotAnswer, errNoAnswer, wire.ErrSyntax} {
		if errors.Is(err, fault) {
			return true
		}
	}
	return false
}

// statusClass is the class of an HTTP status that is no success and brought no JSON-RPC error.
func statusClass(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return classUnauthorized
	case status == http.StatusForbidden, status == http.StatusMisdirectedRequest:
		return classForbidden
	case status == http.StatusNotFound, status == http.StatusGone:
		return classNotFound
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return classTimeout
	case status == http.StatusRequestEntityTooLarge:
		return classTooLarge
	case status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		return classServerError
	}
	return classNotMCP // redirects, which are not followed, among them
}

// statusFailure is the error of such a status. Sent: the server had the request, whatever it made of it.
func (b *Backend) statusFailure(status int) *backend.Error {
	err := b.failure(statusClass(status), true, fmt.Errorf("HTTP status %d", status))
	err.Status = status
	if status == http.StatusMisdirectedRequest {
		err.Detail = "it answers with HTTP status 421: it takes no requests for the host name in its URL; allow that name in the server's own settings"
	}
	return err
}

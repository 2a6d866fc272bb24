package child

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

// How a call, or the start of a process, ends without a response.
var (
	// errUnsent says that not a byte of the message was written, so that it may go to another process.
	errUnsent = errors.New("the process ended before the message was written to it")
	// errTooLong says that the response was over the limit.
	errTooLong = errors.New("the response is longer than the limit for one line")
	// errNotMCP says that the response was no valid message.
	errNotMCP = errors.New("the response is no valid MCP message")
	// errRefused says that a process answered a handshake, but not as one that speaks the protocol version.
	errRefused = errors.New("the process does not speak this protocol version")
	// errSilent says that a new process did not answer.
	errSilent = errors.New("the process did not answer in time after its start")
	// errHung says that a process owed an answer and said nothing.
	errHung = errors.New("it hung")
	// errStart says that a process could not be started.
	errStart = errors.New("the process could not be started")
	// errStopped says that the backend was closed.
	errStopped = errors.New("the backend is closed")
	// errFull says that no more processes may be started.
	errFull = errors.New("every session has a process of its own, and there are as many as allowed")
)

// diedError says that a process ended, and how.
type diedError struct{ exit string }

func (e *diedError) Error() string { return "the process ended: " + e.exit }

// ended says how the caller's own context ended and, since that is for who ended it to know, why; nil if it did not.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// failed classifies an error. What the caller's own context or sink ended after the message was sent is returned as it is, but for a
// session that was lost meanwhile.
func (b *Backend) failed(err error, sent bool) error {
	if sent {
		err = backend.Taken(b.options.Name, "ChildExited", err)
	}
	if known, ok := errors.AsType[*backend.Error](err); ok {
		return known
	}
	e := &backend.Error{Backend: b.options.Name, Sent: sent, Err: err}
	var died *diedError
	if errors.As(err, &died) {
		e.Detail = died.exit
	}
	switch {
	case errors.Is(err, errRefused), errors.Is(err, errNotMCP):
		e.Class = "NotMCP"
	case errors.Is(err, errTooLong):
		e.Class = "TooLarge"
	case errors.Is(err, errHung), errors.Is(err, errSilent):
		e.Class = "ChildSilent"
	case died != nil, errors.Is(err, errStopped), errors.Is(err, errStart):
		e.Class = "ChildExited"
	case errors.Is(err, errFull):
		e.Class, e.Detail = "ServerError", errFull.Error()
	case errors.Is(err, context.DeadlineExceeded), !sent && errors.Is(err, context.Canceled):
		e.Class = "Timeout"
	case errors.Is(err, errUnsent):
		e.Class = "ChildExited"
	default:
		return err
	}
	return e
}

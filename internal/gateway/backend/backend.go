// Package backend is what the gateway's client side and its upstream side agree on: a backend is one MCP server, a channel
// is one way to talk to it at one protocol version.
package backend

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Era is a generation of the protocol. Within one, messages pass through as they are; across, they are translated.
type Era int

const (
	// Legacy is every version up to 2025-11-25: initialize, sessions, server-to-client requests.
	Legacy Era = iota
	// Modern is 2026-07-28: no sessions, every request describes itself.
	Modern
)

// Description is what a backend said of itself.
type Description struct {
	// Legacy and Modern say which eras it speaks; at least one.
	Legacy, Modern bool
	// Versions are the protocol versions it named, newest first.
	Versions []string
	// Initialize is the raw result object of initialize, if Legacy.
	Initialize json.RawMessage
	// Discover is the raw result object of server/discover, if Modern.
	Discover json.RawMessage
}

// Nearest is the era to speak with a client of the one given: the same if the backend speaks it.
func (d *Description) Nearest(client Era) Era {
	if d.Modern && (client == Modern || !d.Legacy) {
		return Modern
	}
	return Legacy
}

// Client is what a client said of itself, as raw JSON objects that are passed on. Both may be nil.
type Client struct {
	Capabilities json.RawMessage
	Info         json.RawMessage
	// Version is the protocol version to offer; empty is the newest of the era.
	Version string
}

// Handle names a legacy session for as long as the backend keeps it. It is small, and any replica can resume it.
type Handle struct {
	// Address is the host:port of the pod that holds the session; empty where the backend has one address.
	Address string `json:"a,omitempty"`
	// Session is the backend's own session id; empty for a backend that hands out none.
	Session string `json:"s,omitempty"`
	// Version is the protocol version that was agreed on.
	Version string `json:"v,omitempty"`
	// Server is a short hash of where the backend was when the session was opened. At another place, which the table may give the
	// backend at any time, nobody is shown the session's id. Empty for a backend whose sessions do not outlive it.
	Server string `json:"h,omitempty"`
}

// Call is one request to a backend. The message bears the client's id, which the response given to the Sink bears too,
// whatever id the backend saw.
type Call struct {
	Message *wire.Message
	// Headers are the further request headers the protocol demands or allows: Mcp-Param-*, traceparent, tracestate, baggage.
	Headers map[string]string
}

// Sink receives what a backend sends. Calls to it are never concurrent. An error it returns ends the call.
type Sink interface {
	// Message takes a notification, or a request of the backend's, valid until it returns.
	Message(m *wire.Message) error
	// Response takes the one response, a JSON-RPC object with the call's id, and reads it to its end. It comes last, at
	// most once, and as it arrives: nothing holds it in memory.
	Response(r io.Reader) error
}

// Channel is a legacy session, or the stateless way to a modern backend. It is safe for concurrent use.
type Channel interface {
	Era() Era
	// Call sends a request and returns once the response was given to the sink. Ending ctx gives it up and tells the backend.
	Call(ctx context.Context, c *Call, s Sink) error
	// Send sends a notification, or a response to a request of the backend's. Legacy only.
	Send(ctx context.Context, m *wire.Message) error
	// Listen receives what the backend sends outside of calls until ctx ends or the backend hangs up, either of which is nil. A legacy channel
	// takes no request; to a modern one request is the whole subscriptions/listen message, and the response goes to the sink.
	// A backend that offers no stream is ErrNoStream, for good.
	Listen(ctx context.Context, request *Call, s Sink) error
	// Close ends a legacy session at the backend.
	Close(ctx context.Context) error
}

// Backend is one MCP server, whatever its transport. It is safe for concurrent use.
type Backend interface {
	// Describe finds out what the backend speaks and says, once; later calls answer from memory until Forget, or until the
	// backend stops answering as described.
	Describe(ctx context.Context) (*Description, error)
	// Forget makes the next Describe ask again.
	Forget()
	// Open opens a legacy session with what the client said of itself (at a modern-only backend: ErrEra).
	Open(ctx context.Context, c Client) (Channel, Handle, error)
	// Resume is the channel of a session opened before, here or at another replica. It does not dial.
	Resume(h Handle) (Channel, error)
	// Modern is the channel for requests of protocol version 2026-07-28 (at a legacy-only backend: ErrEra).
	Modern(ctx context.Context) (Channel, error)
	// Close gives up everything: connections, sessions of its own, children.
	Close(ctx context.Context) error
}

// Sharer is a Backend that keeps legacy sessions of the gateway's own, opened without any client capability, for callers that
// have no session themselves: clients of protocol version 2026-07-28.
type Sharer interface {
	// Shared is the channel of the session of a subject, opened if there is none. Many callers use it at once, with ids and
	// progress tokens that may be the same: each gets what belongs to its own call. Its Close does nothing, since the session
	// ends when it has been idle. After ErrSession ask again: the session is opened anew.
	Shared(ctx context.Context, subject string) (Channel, Handle, error)
}

// Renewer is a Backend that learns by itself when a failure may be over.
type Renewer interface {
	// Renewed is closed when what Describe failed for has come; nil says nothing.
	Renewed() <-chan struct{}
}

// Checker is a Backend that knows of defects which cost a part of what it offers.
type Checker interface {
	// Check says what of it is not offered, as an *Error, or nil. It asks nobody.
	Check() error
}

// Errors of channels and backends. An *Error says more.
var (
	// ErrSession is returned when the backend does not know the session (any more): open a new one.
	ErrSession = errors.New("the backend does not know the session")
	// ErrNoStream is returned by Listen when the backend offers no stream.
	ErrNoStream = errors.New("the backend offers no stream")
	// ErrEra is returned for a protocol version that the backend does not speak.
	ErrEra = errors.New("the backend does not speak this protocol version")
)

// Error is a failure of a backend, told in classes so that nothing the backend wrote leaks.
type Error struct {
	// Backend is its name in the table.
	Backend string
	// Class is one of table.BackendStatus.ErrorClass. That of a call whose context ended is Timeout, whoever ended it: only Err, which
	// holds the context's cause, tells a backend that is slow from a caller that left.
	Class string
	// Sent says that the request may have reached the backend, so that it must not be sent again.
	Sent bool
	// Status is the backend's HTTP status, or 0.
	Status int
	// Detail is a fact of the gateway's own that helps, such as how a child ended ("exit status 1"); clients are told.
	Detail string
	// Told is for whoever runs the gateway, in place of Detail: it may quote what clients must not read.
	Told string
	// Err is for logs, not for clients. It may hold a server's words, of whatever length and kind.
	Err error
}

// Error is the text for logs: one line that can be shown, of at most 256 bytes of the cause's text.
func (e *Error) Error() string {
	return "backend " + e.Backend + ": " + e.Class + ": " + Line(e.Err.Error(), maxSaid)
}

// Unwrap gives Err.
func (e *Error) Unwrap() error { return e.Err }

// Taken is the error of a request that the backend has: whatever became of its session, of its response, or of a message that was to be
// passed on or answered meanwhile, it may have been carried out. A lost session, after which a request is sent again, becomes a failure
// of the class; no other error loses its own.
func Taken(name, class string, err error) error {
	failure, ok := errors.AsType[*Error](err)
	switch {
	case errors.Is(err, ErrSession):
		return &Error{Backend: name, Class: class, Sent: true, Err: errors.New("it has the request: " + err.Error())}
	case ok && !failure.Sent:
		had := *failure
		had.Sent = true
		return &had
	}
	return err
}

// Pause waits, and reports whether ctx lives on.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Package telemetry is what the gateway says of itself: metrics in the Prometheus text format, OpenTelemetry traces over
// OTLP/HTTP, and one audit line for each call. Nothing a client wrote becomes a label or the name of a span, and nothing it
// passes as arguments, no token and no session id is written anywhere.
package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// DefaultMaxNames is how many tool names are labels unless Options say otherwise.
const DefaultMaxNames = 500

// Options configure a Telemetry. All may be empty.
type Options struct {
	// Logger is told when spans cannot be exported and when they can again.
	Logger *slog.Logger
	// Audit takes a line of JSON for each call, each in one Write; nil writes none. A Write that blocks holds up the call, since
	// a call that nobody can account for is worse than a slow one.
	Audit io.Writer
	// MaxNames is how many tool names are labels; default DefaultMaxNames. The others are "other".
	MaxNames int
	// IgnoreEnvironment exports no traces, whatever the environment says. Trace contexts are passed on all the same.
	IgnoreEnvironment bool
	// Version is the build's, for mcp_gateway_build_info and the traces' service.version.
	Version string
}

// Telemetry counts, traces and audits. It is safe for concurrent use.
type Telemetry struct {
	*registry

	audit  *audit
	traces *traces
	flood  flood
}

// New makes a Telemetry. Traces are exported if the environment names an endpoint (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
// OTEL_EXPORTER_OTLP_ENDPOINT); see traces for the variables that are heeded. A wrong variable is logged and costs the traces
// only.
func New(o Options) *Telemetry {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxNames <= 0 {
		o.MaxNames = DefaultMaxNames
	}
	t := &Telemetry{registry: newRegistry(o.MaxNames, o.Version)}
	if o.Audit != nil {
		t.audit = &audit{w: o.Audit, failures: t.auditFailures}
	}
	if o.IgnoreEnvironment {
		t.traces = &traces{}
		return t
	}
	var err error
	if t.traces, err = newTraces(o.Version, o.Logger, t.spansDropped); err != nil {
		o.Logger.Error("Traces are not exported; mend the environment variable and start again", "error", err)
	}
	return t
}

// Handler serves the metrics, those of the Go runtime and of the process included. Who may read them is for the caller.
func (t *Telemetry) Handler() http.Handler { return http.HandlerFunc(t.serve) }

// Close exports the spans that wait, until ctx ends. Calls that end later are not traced.
func (t *Telemetry) Close(ctx context.Context) error { return t.traces.close(ctx) }

// CallInfo is what is known of a call when it begins.
type CallInfo struct {
	// Method is the JSON-RPC method, as the client wrote it.
	Method string
	// Tool is the name in a tools/call, as the client wrote it; empty for other methods.
	Tool string
	// Backend is the name of the backend that the call is routed to; empty for none or several.
	Backend string
	// Version is the protocol version that the client speaks.
	Version string
	// Carrier is the trace context the client sent, in params._meta or in headers.
	Carrier Carrier
}

// Status is how a call ended.
type Status string

// The ways a call can end.
const (
	StatusOK Status = "ok"
	// StatusToolError is a result with isError.
	StatusToolError Status = "tool_error"
	// StatusError is a JSON-RPC error of the backend or of the gateway.
	StatusError Status = "error"
	// StatusDenied is a call that policy or authorization refused.
	StatusDenied Status = "denied"
	// StatusCancelled is a call that the client gave up.
	StatusCancelled Status = "cancelled"
	// StatusRejected is a call over a limit.
	StatusRejected Status = "rejected"
	// StatusUnavailable is a call whose backend could not be reached.
	StatusUnavailable Status = "unavailable"
)

// Outcome is what is known of a call when it ended.
type Outcome struct {
	// Status counts as StatusError if it is none of the constants.
	Status Status
	// Code is the JSON-RPC error code; 0 for none.
	Code int
	// RequestBytes and ResponseBytes are the sizes of the JSON-RPC messages, in bytes.
	RequestBytes, ResponseBytes int64
	// Principal is who called, issuer included; empty for nobody known.
	Principal string
	// SessionID is a digest of the client's session id, never the id, which is a secret; empty for no session.
	SessionID string
	// Flood says that it was refused over a quota, as any number of calls may be: all of them are counted, and 20 a second told of.
	Flood bool
}

// Span is one call under way.
type Span struct {
	t       *Telemetry
	info    CallInfo
	series  *series
	start   time.Time
	carrier Carrier
	traceID string
	// parent is the client's span, own this one: the client's if traces are off.
	parent, own spanContext
	ended       atomic.Bool
}

// Start begins a call; it must be ended with End.
func (t *Telemetry) Start(info CallInfo) *Span {
	s := &Span{t: t, info: info, series: t.find(&info), start: time.Now()}
	t.inFlight.Add(1)
	t.traces.start(s)
	return s
}

// Carrier is the trace context to send on to the backend: this span's, or the client's if traces are off. What of the client's
// is not valid is left out, so the values fit into headers.
func (s *Span) Carrier() Carrier { return s.carrier }

// End ends the call: it is counted, audited and its span exported. A second End does nothing.
func (s *Span) End(o Outcome) {
	if s.ended.Swap(true) {
		return
	}
	end := time.Now()
	s.t.inFlight.Add(-1)
	if !o.Status.known() {
		o.Status = StatusError
	}
	s.series.count(&o, end.Sub(s.start))
	var omitted int64
	if o.Flood {
		var ok bool
		if omitted, ok = s.t.flood.admits(end); !ok {
			return
		}
	}
	if s.t.audit != nil {
		s.t.audit.write(s, &o, end.Sub(s.start), omitted)
	}
	s.t.traces.end(s, &o, end)
}

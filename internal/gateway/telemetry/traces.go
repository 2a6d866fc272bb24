package telemetry

import (
	"cmp"
	"context"
	"encoding/hex"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

const serviceName = "mcp-gateway"

// traces makes spans and exports them, or passes on trace contexts only (exporter nil). The variables of the OpenTelemetry
// specification that it heeds are those that newEndpoint and newSampler read, OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER (otlp or
// none), OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. OpenTelemetry's own SDK is left out for its size: one span a call, with
// attributes that are known beforehand, is all there is.
type traces struct {
	exporter *exporter
	sampler  sampler
}

// attribute is a text, or a number.
type attribute struct {
	key, text string
	number    int64
	isNumber  bool
}

// newTraces never returns nil: with an error traces are off.
func newTraces(version string, log *slog.Logger, dropped *metrics.Counter) (*traces, error) {
	to, err := newEndpoint(os.Getenv)
	if to == nil || err != nil {
		return &traces{}, err
	}
	sampler, err := newSampler(os.Getenv)
	if err != nil {
		return &traces{}, err
	}
	return &traces{exporter: newExporter(to, resourceOf(version, os.Getenv), version, log, dropped), sampler: sampler}, nil
}

// resourceOf says what sends spans. What the environment says of it wins; pairs that are none are passed over.
func resourceOf(version string, getenv func(string) string) []attribute {
	list := []attribute{
		{key: "service.name", text: serviceName},
		{key: "service.version", text: version},
		{key: "telemetry.sdk.name", text: serviceName},
		{key: "telemetry.sdk.language", text: "go"},
		{key: "telemetry.sdk.version", text: version},
	}
	set := func(key, value string) {
		for i := range list {
			if list[i].key == key {
				list[i].text = value
				return
			}
		}
		list = append(list, attribute{key: key, text: value})
	}
	for pair := range strings.SplitSeq(getenv("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if ok && err == nil && key != "" {
			set(key, value)
		}
	}
	if name := strings.TrimSpace(getenv("OTEL_SERVICE_NAME")); name != "" {
		set("service.name", name)
	}
	return list
}

// start begins a span for a call, child of the client's, and sets what the call passes on.
func (t *traces) start(s *Span) {
	if s.info.Carrier.Traceparent != "" {
		s.parent = parseContext(&s.info.Carrier)
	}
	s.own = s.parent
	if t.exporter != nil {
		s.own = s.parent.child()
		s.own.flags = 0
		if t.sampler.samples(&s.parent, &s.own) {
			s.own.flags = sampled
		}
	}
	if s.own.isValid() {
		s.traceID = hex.EncodeToString(s.own.trace[:])
		s.carrier.Traceparent, s.carrier.Tracestate = s.own.traceparent(), s.own.state
	}
	if baggage := s.info.Carrier.Baggage; len(baggage) <= maxBaggage && isPlain(baggage) {
		s.carrier.Baggage = baggage
	}
}

// end exports the span, if it is one to be exported.
func (t *traces) end(s *Span, o *Outcome, at time.Time) {
	if t.exporter == nil || s.own.flags&sampled == 0 {
		return
	}
	failure := ""
	switch o.Status {
	case StatusToolError, StatusError, StatusUnavailable:
		failure = string(o.Status)
	default: // It went well, or it was for the client to do otherwise.
	}
	t.exporter.add(encodeSpan(s, attributes(s, o), failure, at))
}

// spanName follows OpenTelemetry's semantic conventions for MCP: "<method> <tool>". The names are few, as those of labels.
func spanName(s *series) string {
	if s.tool == "" || s.tool == other {
		return s.method
	}
	return s.method + " " + s.tool
}

// attributes are those of a span; the names are OpenTelemetry's, and mcp_gateway.* where it has none.
func attributes(s *Span, o *Outcome) []attribute {
	list := make([]attribute, 0, 10)
	text := func(key, value string) { list = append(list, attribute{key: key, text: value}) }
	number := func(key string, value int64) { list = append(list, attribute{key: key, number: value, isNumber: true}) }
	text("mcp.method.name", sanitize(s.info.Method, maxShort))
	text("mcp.protocol.version", sanitize(cmp.Or(s.info.Version, "unknown"), maxShort))
	if s.info.Backend != "" {
		text("mcp_gateway.backend", s.info.Backend)
	}
	if s.info.Tool != "" {
		text("gen_ai.tool.name", sanitize(s.info.Tool, maxTool))
		text("gen_ai.operation.name", "execute_tool")
	}
	number("mcp_gateway.request.size", o.RequestBytes)
	number("mcp_gateway.response.size", o.ResponseBytes)
	if o.SessionID != "" {
		text("mcp.session.id", sanitize(o.SessionID, maxShort))
	}
	if o.Code != 0 {
		number("rpc.response.status_code", int64(o.Code))
	}
	if o.Status != StatusOK {
		text("error.type", string(o.Status))
	}
	return list
}

func (t *traces) close(ctx context.Context) error {
	if t.exporter == nil {
		return nil
	}
	return t.exporter.Shutdown(ctx)
}

package telemetry

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/VictoriaMetrics/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const serviceName = "mcp-gateway"

// maxBaggage is what W3C Baggage asks every party to pass on, in bytes; more is left out.
const maxBaggage = 8192

// Carrier is a trace context as W3C Trace Context and W3C Baggage write it; empty where there is none.
type Carrier struct{ Traceparent, Tracestate, Baggage string }

// Get is for the propagator.
func (c *Carrier) Get(key string) string {
	switch key {
	case "traceparent":
		return c.Traceparent
	case "tracestate":
		return c.Tracestate
	}
	return ""
}

// Set is for the propagator.
func (c *Carrier) Set(key, value string) {
	switch key {
	case "traceparent":
		c.Traceparent = value
	case "tracestate":
		c.Tracestate = value
	}
}

// Keys is for the propagator.
func (*Carrier) Keys() []string { return []string{"traceparent", "tracestate"} }

// traces makes spans and exports them, or passes on trace contexts only (provider nil). The variables of the OpenTelemetry
// specification that it heeds are those that newEndpoint reads, OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER (otlp or none),
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, and through the SDK OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG and the limits
// of spans.
type traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// newTraces never returns nil: with an error traces are off.
func newTraces(version string, log *slog.Logger, dropped *metrics.Counter) (*traces, error) {
	to, err := newEndpoint(os.Getenv)
	if to == nil || err != nil {
		return &traces{}, err
	}
	r, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", serviceName), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return &traces{}, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(r), sdktrace.WithSpanProcessor(newExporter(to, r, version, log, dropped)))
	return &traces{provider: provider, tracer: provider.Tracer(serviceName, trace.WithInstrumentationVersion(version))}, nil
}

// start begins a span for a call, child of the client's, and sets what the call passes on.
func (t *traces) start(ctx context.Context, s *Span) (context.Context, trace.Span) {
	var propagator propagation.TraceContext
	if s.info.Carrier.Traceparent != "" {
		ctx = propagator.Extract(ctx, &s.info.Carrier)
	}
	var span trace.Span
	if t.provider != nil {
		ctx, span = t.tracer.Start(ctx, spanName(s.series), trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(s.start),
			trace.WithAttributes(attributes(s)...))
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		s.traceID = sc.TraceID().String()
		propagator.Inject(ctx, &s.carrier)
	}
	if baggage := s.info.Carrier.Baggage; len(baggage) <= maxBaggage && isPlain(baggage) {
		s.carrier.Baggage = baggage
	}
	return ctx, span
}

// spanName follows OpenTelemetry's semantic conventions for MCP: "<method> <tool>". The names are few, as those of labels.
func spanName(s *series) string {
	if s.tool == "" || s.tool == other {
		return s.method
	}
	return s.method + " " + s.tool
}

// attributes are those that samplers see; the names are OpenTelemetry's, and mcp_gateway.* where it has none.
func attributes(s *Span) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 5)
	list = append(list, attribute.String("mcp.method.name", sanitize(s.info.Method, maxShort)),
		attribute.String("mcp.protocol.version", sanitize(cmp.Or(s.info.Version, "unknown"), maxShort)))
	if s.info.Backend != "" {
		list = append(list, attribute.String("mcp_gateway.backend", s.info.Backend))
	}
	if s.info.Tool != "" {
		list = append(list, attribute.String("gen_ai.tool.name", sanitize(s.info.Tool, maxTool)),
			attribute.String("gen_ai.operation.name", "execute_tool"))
	}
	return list
}

func (t *traces) close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

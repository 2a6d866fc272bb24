package telemetry

import (
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers are those of opentelemetry/proto/trace/v1/trace.proto, common/v1/common.proto and resource/v1/resource.proto,
// which are stable. Only what our spans have is written: no events and no links.

// encodeRequest is an ExportTraceServiceRequest with one resource and one scope.
func encodeRequest(resource, scope []byte, spans [][]byte) []byte {
	size := 0
	for _, span := range spans {
		size += len(span) + 8
	}
	scopeSpans := appendMessage(make([]byte, 0, size+len(scope)+8), 1, scope)
	for _, span := range spans {
		scopeSpans = appendMessage(scopeSpans, 2, span)
	}
	resourceSpans := appendMessage(nil, 1, resource)
	resourceSpans = appendMessage(resourceSpans, 2, scopeSpans)
	return appendMessage(nil, 1, resourceSpans)
}

func encodeResource(r *resource.Resource) []byte {
	return appendAttributes(nil, 1, r.Attributes())
}

func encodeScope(name, version string) []byte {
	return appendString(appendString(nil, 1, name), 2, version)
}

func encodeSpan(s sdktrace.ReadOnlySpan) []byte {
	sc, parent := s.SpanContext(), s.Parent()
	traceID, spanID, parentID := sc.TraceID(), sc.SpanID(), parent.SpanID()
	b := make([]byte, 0, 512)
	b = appendMessage(b, 1, traceID[:])
	b = appendMessage(b, 2, spanID[:])
	b = appendString(b, 3, sc.TraceState().String())
	if parent.IsValid() {
		b = appendMessage(b, 4, parentID[:])
	}
	b = appendString(b, 5, s.Name())
	b = appendVarint(b, 6, uint64(s.SpanKind())) //nolint:gosec // a small enum, equal in both
	b = appendFixed64(b, 7, uint64(s.StartTime().UnixNano()))
	b = appendFixed64(b, 8, uint64(s.EndTime().UnixNano()))
	b = appendAttributes(b, 9, s.Attributes())
	if dropped := s.DroppedAttributes(); dropped > 0 {
		b = appendVarint(b, 10, uint64(dropped))
	}
	if status := s.Status(); status.Code == codes.Error {
		const statusCodeError = 2
		b = appendMessage(b, 15, appendVarint(appendString(nil, 2, status.Description), 3, statusCodeError))
	}
	flags := uint32(sc.TraceFlags()) | 0x100 // It is known whether the parent is remote, and
	if parent.IsRemote() {
		flags |= 0x200 // it is.
	}
	b = protowire.AppendTag(b, 16, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, flags)
}

func appendAttributes(b []byte, field protowire.Number, list []attribute.KeyValue) []byte {
	for _, a := range list {
		pair := appendString(make([]byte, 0, 64), 1, string(a.Key))
		b = appendMessage(b, field, appendMessage(pair, 2, encodeValue(a.Value)))
	}
	return b
}

// encodeValue is an AnyValue. Lists, which only OTEL_RESOURCE_ATTRIBUTES could bring and does not, are written as text.
func encodeValue(v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return appendVarint(nil, 2, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return appendVarint(nil, 3, uint64(v.AsInt64())) //nolint:gosec // int64 is two's complement on the wire
	case attribute.FLOAT64:
		return appendFixed64(nil, 4, math.Float64bits(v.AsFloat64()))
	default:
		return appendMessage(nil, 1, []byte(v.String()))
	}
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

// appendString leaves out an empty string, as proto3 does.
func appendString(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFixed64(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

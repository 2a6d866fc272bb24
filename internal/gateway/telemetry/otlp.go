package telemetry

import (
	"time"

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

func encodeResource(list []attribute) []byte { return appendAttributes(nil, 1, list) }

func encodeScope(name, version string) []byte {
	return appendString(appendString(nil, 1, name), 2, version)
}

// encodeSpan writes a span that has ended. Failure is the description of an error, empty for none.
func encodeSpan(s *Span, list []attribute, failure string, end time.Time) []byte {
	const kindServer, statusError = 2, 2
	b := make([]byte, 0, 512)
	b = appendMessage(b, 1, s.own.trace[:])
	b = appendMessage(b, 2, s.own.span[:])
	b = appendString(b, 3, s.own.state)
	flags := uint32(s.own.flags) | 0x100 // It is known whether the parent is remote, and
	if s.parent.isValid() {
		b = appendMessage(b, 4, s.parent.span[:])
		flags |= 0x200 // it is.
	}
	b = appendString(b, 5, spanName(s.series))
	b = appendVarint(b, 6, kindServer)
	b = appendFixed64(b, 7, uint64(s.start.UnixNano()))
	b = appendFixed64(b, 8, uint64(end.UnixNano()))
	b = appendAttributes(b, 9, list)
	if failure != "" {
		b = appendMessage(b, 15, appendVarint(appendString(nil, 2, failure), 3, statusError))
	}
	b = protowire.AppendTag(b, 16, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, flags)
}

func appendAttributes(b []byte, field protowire.Number, list []attribute) []byte {
	for i := range list {
		a := &list[i]
		value := appendMessage(nil, 1, []byte(a.text))
		if a.isNumber {
			value = appendVarint(nil, 3, uint64(a.number)) //nolint:gosec // int64 is two's complement on the wire
		}
		pair := appendString(make([]byte, 0, 64), 1, a.key)
		b = appendMessage(b, field, appendMessage(pair, 2, value))
	}
	return b
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

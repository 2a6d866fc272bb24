package telemetry

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
)

// Carrier is a trace context as W3C Trace Context and W3C Baggage write it; empty where there is none.
type Carrier struct{ Traceparent, Tracestate, Baggage string }

const (
	// maxBaggage is what W3C Baggage asks every party to pass on, in bytes; more is left out.
	maxBaggage = 8192
	// maxStates and maxStateText are the limits of W3C Trace Context: of the entries of a tracestate, and of a key or value.
	maxStates    = 32
	maxStateText = 256
	// sampled is the one flag of a traceparent that is read and written.
	sampled = 1
)

// spanContext says which span of which trace it is.
type spanContext struct {
	trace [16]byte
	span  [8]byte
	flags byte
	// state is the tracestate, passed on as it came.
	state string
}

func (c *spanContext) isValid() bool { return c.trace != [16]byte{} && c.span != [8]byte{} }

// parseContext reads a trace context (W3C Trace Context, level 1). One that is not valid is as none; a tracestate that is not is
// left out.
func parseContext(from *Carrier) (c spanContext) {
	parent := from.Traceparent
	const length = 55 // of version 00, with which later ones begin
	if len(parent) < length || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' || strings.ContainsAny(parent[:length], "ABCDEF") {
		return spanContext{}
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], parent[:2]}, {c.trace[:], parent[3:35]}, {c.span[:], parent[36:52]}, {flags[:], parent[53:length]}} {
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil {
			return spanContext{}
		}
	}
	known := version[0] == 0 && len(parent) == length
	later := version[0] != 0 && version[0] != 0xff && (len(parent) == length || parent[length] == '-')
	if !known && !later || !c.isValid() {
		return spanContext{}
	}
	c.flags = flags[0] & sampled
	if isState(from.Tracestate) {
		c.state = from.Tracestate
	}
	return c
}

// isState says whether a tracestate is a list of keys and values, each key once.
func isState(state string) bool {
	var seen [maxStates]string
	n := 0
	for entry := range strings.SplitSeq(state, ",") {
		entry = strings.Trim(entry, " \t")
		if entry == "" {
			continue
		}
		key, value, ok := strings.Cut(entry, "=")
		if !ok || n == maxStates || !isStateKey(key) || value == "" || len(value) > maxStateText || !isPlain(value) || strings.Contains(value, "=") {
			return false
		}
		if slices.Contains(seen[:n], key) {
			return false
		}
		seen[n] = key
		n++
	}
	return isPlain(state)
}

func isStateKey(key string) bool {
	const first = "abcdefghijklmnopqrstuvwxyz0123456789"
	return key != "" && len(key) <= maxStateText && strings.Contains(first, key[:1]) && strings.Trim(key, first+"_-*/@") == ""
}

// traceparent writes the context in version 00.
func (c *spanContext) traceparent() string {
	b := make([]byte, 0, 55)
	b = hex.AppendEncode(append(b, "00-"...), c.trace[:])
	b = hex.AppendEncode(append(b, '-'), c.span[:])
	return string(hex.AppendEncode(append(b, '-'), []byte{c.flags}))
}

// child is a new span's context: in the parent's trace, or in a new one.
func (c *spanContext) child() spanContext {
	next := *c
	for next.trace == [16]byte{} {
		random(next.trace[:8])
		random(next.trace[8:])
	}
	for next.span = [8]byte{}; next.span == [8]byte{}; {
		random(next.span[:])
	}
	return next
}

func random(eight []byte) {
	binary.BigEndian.PutUint64(eight, rand.Uint64()) //nolint:gosec // the ids of traces are no secrets
}

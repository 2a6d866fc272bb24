package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/VictoriaMetrics/metrics"
)

// Lengths of what is written, in bytes.
const (
	maxPrincipal = 512
	maxTool      = 128
	maxShort     = 64
)

// audit writes the lines.
type audit struct {
	failures *metrics.Counter

	mu sync.Mutex
	w  io.Writer
}

// record is one line.
type record struct {
	// Type tells audit lines from logs in the same stream.
	Type string `json:"type"`
	// Time is when the call began.
	Time          time.Time `json:"time"`
	Principal     string    `json:"principal,omitempty"`
	Session       string    `json:"session,omitempty"`
	Method        string    `json:"method"`
	Tool          string    `json:"tool,omitempty"`
	Backend       string    `json:"backend,omitempty"`
	Outcome       Status    `json:"outcome"`
	Code          int       `json:"code,omitempty"`
	DurationMS    float64   `json:"duration_ms"`
	RequestBytes  int64     `json:"request_bytes"`
	ResponseBytes int64     `json:"response_bytes"`
	TraceID       string    `json:"trace_id,omitempty"`
	// Omitted is how many calls that were refused over a quota before this one have no line.
	Omitted int64 `json:"omitted,omitempty"`
}

// line is what it takes to make one, used again and again.
type line struct {
	record

	buffer  bytes.Buffer
	encoder *json.Encoder
}

var lines = sync.Pool{New: func() any {
	l := new(line)
	l.encoder = json.NewEncoder(&l.buffer)
	l.encoder.SetEscapeHTML(false)
	return l
}}

func (a *audit) write(s *Span, o *Outcome, duration time.Duration, omitted int64) {
	l, _ := lines.Get().(*line)
	defer lines.Put(l)
	l.buffer.Reset()
	l.record = record{
		Type: "audit", Time: s.start.UTC().Truncate(time.Microsecond),
		Principal: sanitize(o.Principal, maxPrincipal), Session: sanitize(o.SessionID, maxShort),
		Method: sanitize(s.info.Method, maxShort), Tool: sanitize(s.info.Tool, maxTool), Backend: s.info.Backend,
		Outcome: o.Status, Code: o.Code, DurationMS: float64(duration.Microseconds()) / 1000,
		RequestBytes: o.RequestBytes, ResponseBytes: o.ResponseBytes, TraceID: s.traceID, Omitted: omitted,
	}
	err := l.encoder.Encode(&l.record)
	if err == nil {
		a.mu.Lock()
		_, err = a.w.Write(l.buffer.Bytes())
		a.mu.Unlock()
	}
	if err != nil {
		a.failures.Inc()
	}
}

// sanitize makes a foreign string fit for a line: at most limit bytes, and '?' for each character that cannot be seen or that
// changes how others are seen. What is fit already is returned as it is.
func sanitize(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit-len("…")] + "…"
	}
	if isPlain(s) {
		return s
	}
	return strings.Map(visible, strings.ToValidUTF8(s, "?"))
}

// isPlain tells whether s is printable ASCII, which can stand anywhere.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func visible(r rune) rune {
	if !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return '?'
	}
	return r
}

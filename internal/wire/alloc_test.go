package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// nowhereWriter is a response writer that keeps nothing.
type nowhereWriter struct{ header http.Header }

func (w nowhereWriter) Header() http.Header               { return w.header }
func (w nowhereWriter) Write(p []byte) (int, error)       { return len(p), nil }
func (w nowhereWriter) WriteString(s string) (int, error) { return len(s), nil }
func (w nowhereWriter) WriteHeader(int)                   {}
func (w nowhereWriter) Flush()                            {}

// TestTheHotPathKeepsItsAllocations holds what every call pays for. A number here may fall; that it rises needs a reason.
func TestTheHotPathKeepsItsAllocations(t *testing.T) {
	m := mustParse(t, toolsCall)
	id := json.RawMessage(`"another-id"`)
	edits := []Edit{SetID(id), SetParam("name", id), SetMeta("progressToken", id), SetMeta("new", id), RemoveMeta("traceparent")}
	short, long := longResult(300), longResult(1<<20)
	event := append(append([]byte("event: message\ndata: "), short...), "\n\n"...)
	buf := make([]byte, 8<<10)
	in := bytes.NewReader(nil)
	events := NewEventReader(in, 1<<20)
	writer := NewEventWriter(nowhereWriter{http.Header{}})
	headers := http.Header{}
	m.Headers(headers)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	drain := func(r io.Reader) {
		for {
			if _, err := r.Read(buf); err != nil {
				return
			}
		}
	}
	for _, tc := range []struct {
		what string
		most float64
		run  func()
	}{
		{"Parse", 1, func() { _, err := Parse(toolsCall, DefaultLimits); must(err) }},
		{"Parse of a long message", 1, func() { _, err := Parse(long, DefaultLimits); must(err) }},
		{"Check", 0, func() { _, err := Check(toolsCall, DefaultLimits); must(err) }},
		{"With", 2, func() { m.With(edits...) }},
		{"Param and MetaField", 0, func() { m.Param("name"); m.MetaField("progressToken") }},
		{"StringParam", 1, func() { m.StringParam("name") }},
		{"NewRequest", 2, func() { NewRequest(id, "tools/call", m.Params) }},
		{"NewError", 2, func() { NewError(id, CodeInternal, "The backend failed.", nil) }},
		{"ReplaceID", 2, func() { in.Reset(short); drain(ReplaceID(in, id)) }},
		{"ReplaceID of a long message", 2, func() { in.Reset(long); drain(ReplaceID(in, id)) }},
		{"EventReader", 2, func() { in.Reset(event); _, err := NewEventReader(in, 1<<20).Next(); must(err) }},
		{"EventReader, used again", 0, func() { in.Reset(event); events.Reset(in); _, err := events.Next(); must(err) }},
		{"EventWriter.Event", 0, func() { must(writer.Event(short)) }},
		{"EventWriter.EventFrom", 0, func() { in.Reset(long); must(writer.EventFrom(in)) }},
		{"CheckHeaders", 2, func() { must(CheckHeaders(headers, m)) }},
	} {
		if got := testing.AllocsPerRun(20, tc.run); got > tc.most {
			t.Errorf("%s: %v allocations, at most %v", tc.what, got, tc.most)
		}
	}
}

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// toolsCall is a tools/call of protocol version 2026-07-28 of about 1 KB, as agents send them.
var toolsCall = []byte(`{"jsonrpc":"2.0","id":"req-000000000042","method":"tools/call","params":{"name":"web_search","arguments":{` +
	`"query":"kubernetes network policies for egress to a single host name, with \"quotes\" and a line\nfeed","limit":25,"safe":true,` +
	`"filters":{"site":["kubernetes.io","github.com"],"after":"2026-01-01","language":"en","score":0.75},` +
	`"notes":"` + strings.Repeat("The quick brown fox jumps over the lazy dog. ", 8) + `"},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{}},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"progressToken":7,` +
	`"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}`)

// longResult is a response of about n bytes, of text with an escape on every line.
func longResult(n int) []byte {
	line := `A line of text as tools print them, with a path /usr/local/bin and a number 12345.\n`
	return []byte(`{"jsonrpc":"2.0","id":42,"result":{"content":[{"type":"text","text":"` + strings.Repeat(line, n/len(line)) + `"}],"isError":false}}`)
}

func mustParse(tb testing.TB, text []byte) *Message {
	tb.Helper()
	m, err := Parse(text, DefaultLimits)
	if err != nil {
		tb.Fatalf("%.200s: %v", text, err)
	}
	return m
}

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(toolsCall)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(toolsCall, DefaultLimits); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseByEncodingJSON(b *testing.B) {
	b.SetBytes(int64(len(toolsCall)))
	b.ReportAllocs()
	for b.Loop() {
		var m struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(toolsCall, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseLong(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		text := longResult(size)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text, DefaultLimits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkManyKeys(b *testing.B) {
	var text bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&text, `%c"key-%d":%d`, ",{"[min(1, max(0, 1-i))], i, i)
	}
	text.WriteByte('}')
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(text.Bytes(), DefaultLimits); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWith(b *testing.B) {
	m := mustParse(b, toolsCall)
	edits := []Edit{SetID(json.RawMessage("17")), SetParam("name", json.RawMessage(`"search"`)), SetMeta("progressToken", json.RawMessage("99"))}
	b.SetBytes(int64(len(toolsCall)))
	b.ReportAllocs()
	for b.Loop() {
		if m.With(edits...) == nil {
			b.Fatal("nothing")
		}
	}
}

func BenchmarkWithByEncodingJSON(b *testing.B) {
	b.SetBytes(int64(len(toolsCall)))
	b.ReportAllocs()
	for b.Loop() {
		var m, params, meta map[string]json.RawMessage
		if json.Unmarshal(toolsCall, &m) != nil || json.Unmarshal(m["params"], &params) != nil || json.Unmarshal(params["_meta"], &meta) != nil {
			b.Fatal("no JSON")
		}
		m["id"], params["name"], meta["progressToken"] = json.RawMessage("17"), json.RawMessage(`"search"`), json.RawMessage("99")
		params["_meta"] = marshal(b, meta)
		m["params"] = marshal(b, params)
		marshal(b, m)
	}
}

func marshal(b *testing.B, object map[string]json.RawMessage) json.RawMessage {
	b.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

func BenchmarkParam(b *testing.B) {
	m := mustParse(b, toolsCall)
	b.ReportAllocs()
	for b.Loop() {
		if m.MetaField(MetaProtocolVersion) == nil {
			b.Fatal("absent")
		}
	}
}

func BenchmarkReplaceID(b *testing.B) {
	for _, size := range []int{300, 64 << 10, 4 << 20} {
		text := longResult(size)
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			buf := make([]byte, 32<<10)
			for b.Loop() {
				r := ReplaceID(bytes.NewReader(text), json.RawMessage(`"a-longer-id"`))
				for {
					if _, err := r.Read(buf); err != nil {
						break
					}
				}
			}
		})
	}
}

func BenchmarkReplaceIDByEncodingJSON(b *testing.B) {
	text := longResult(64 << 10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var m map[string]json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&m); err != nil {
			b.Fatal(err)
		}
		m["id"] = json.RawMessage(`"a-longer-id"`)
		if err := json.NewEncoder(io.Discard).Encode(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEventReader(b *testing.B) {
	for _, size := range []int{300, 8 << 10, 1 << 20} {
		stream := append(append([]byte("event: message\ndata: "), longResult(size)...), "\n\n"...)
		b.Run(fmt.Sprint(len(stream)), func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			buf := make([]byte, 32<<10)
			for b.Loop() {
				e := NewEventReader(bytes.NewReader(stream), 1<<20)
				event, err := e.Next()
				if err != nil {
					b.Fatal(err)
				}
				if event.Rest == nil {
					continue
				}
				for err == nil {
					_, err = event.Rest.Read(buf)
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEventWriter(b *testing.B) {
	text := longResult(8 << 10)
	w := NewEventWriter(nowhereWriter{http.Header{}})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Event(text); err != nil {
			b.Fatal(err)
		}
	}
}

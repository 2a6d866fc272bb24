package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEachCallIsOneAuditLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written bytes.Buffer
		tel := New(Options{Audit: &written})
		tel.SetCatalog(catalog())
		span := tel.Start(CallInfo{
			Method: "tools/call", Tool: "search", Backend: "web", Version: "2025-11-25",
			Carrier: Carrier{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		})
		<-time.After(1234567 * time.Microsecond)
		span.End(Outcome{
			Status: StatusError, Code: -32602, RequestBytes: 12, ResponseBytes: 34, Principal: "https://login.example.com#jane", SessionID: "5f70bf18",
		})
		call(t, tel, CallInfo{Method: "ping"}, Outcome{Status: StatusOK})
		want := `{"type":"audit","time":"2000-01-01T00:00:00Z","principal":"https://login.example.com#jane","session":"5f70bf18",` +
			`"method":"tools/call","tool":"search","backend":"web","outcome":"error","code":-32602,"duration_ms":1234.567,` +
			`"request_bytes":12,"response_bytes":34,"trace_id":"0af7651916cd43dd8448eb211c80319c"}` + "\n" +
			`{"type":"audit","time":"2000-01-01T00:00:01.234567Z","method":"ping","outcome":"ok","duration_ms":0,"request_bytes":0,"response_bytes":0}` + "\n"
		if diff := cmp.Diff(want, written.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestForeignTextCannotForgeOrDisguiseALine(t *testing.T) {
	for text, want := range map[string]string{
		"plain text <a&b>":       "plain text <a&b>",
		"two\nlines":             "two?lines",
		"\x1b[31mred":            "?[31mred",
		"quote\"}\n{\"type\"":    `quote"}?{"type"`,
		"turned\u202eround":      "turned?round",
		"zero\u200bwidth":        "zero?width",
		"varied\ufe0f":           "varied?",
		"tag\U000e0041":          "tag?",
		"bad\xff\xfeUTF-8":       "bad?UTF-8",
		"Straße":                 "Straße",
		strings.Repeat("a", 200): strings.Repeat("a", 125) + "…",
		strings.Repeat("ä", 100): strings.Repeat("ä", 62) + "?…",
	} {
		var written bytes.Buffer
		tel := New(Options{Audit: &written})
		call(t, tel, CallInfo{Method: "tools/call", Tool: text}, Outcome{Status: StatusDenied})
		var got record
		if err := json.Unmarshal(written.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got.Tool != want {
			t.Errorf("%q is written as %q, want %q", text, got.Tool, want)
		}
		if strings.Count(written.String(), "\n") != 1 {
			t.Errorf("%q makes more than a line", text)
		}
	}
	if got := sanitize(strings.Repeat("x", 10_000), maxPrincipal); len(got) != maxPrincipal {
		t.Errorf("a principal has %d bytes", len(got))
	}
}

func TestAuditLinesOfConcurrentCallsAreWhole(t *testing.T) {
	var written bytes.Buffer
	tel := New(Options{Audit: &written})
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			for range 20 {
				call(t, tel, CallInfo{Method: "tools/call", Tool: "x"}, Outcome{Status: StatusOK})
			}
		})
	}
	wait.Wait()
	lines := 0
	for line := range bytes.Lines(written.Bytes()) {
		lines++
		if !json.Valid(line) {
			t.Fatalf("broken: %s", line)
		}
	}
	if lines != 1000 {
		t.Errorf("%d lines", lines)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestALineThatCannotBeWrittenIsCounted(t *testing.T) {
	tel := New(Options{Audit: failing{}})
	call(t, tel, CallInfo{Method: "ping"}, Outcome{Status: StatusOK})
	if diff := cmp.Diff([]string{"mcp_gateway_audit_failures_total 1"}, scrape(t, tel, "mcp_gateway_audit_failures_total")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

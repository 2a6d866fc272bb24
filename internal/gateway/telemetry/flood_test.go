package telemetry

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFloodOfRefusedCallsIsCountedAndToldOfAtARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var audit bytes.Buffer
		tel := New(Options{Audit: &audit, IgnoreEnvironment: true})
		info, refused := CallInfo{Method: "tools/call"}, Outcome{Status: StatusRejected, Flood: true}
		for range 1000 {
			tel.Start(info).End(refused)
		}
		if lines := strings.Count(audit.String(), "\n"); lines != floodLines || strings.Contains(audit.String(), "omitted") {
			t.Errorf("%d lines: %s", lines, audit.String())
		}
		audit.Reset()
		call(t, tel, info, Outcome{Status: StatusOK}) // which is none of the flood
		if lines := strings.Count(audit.String(), "\n"); lines != 1 {
			t.Errorf("%d lines of a call beside it", lines)
		}
		audit.Reset()
		<-time.After(time.Second)
		tel.Start(info).End(refused)
		if want := fmt.Sprintf(`"omitted":%d}`, 1000-floodLines); !strings.Contains(audit.String(), want) {
			t.Errorf("%s, want %s", audit.String(), want)
		}
		want := `mcp_gateway_calls_total{method="tools/call",backend="",tool="",status="rejected"} 1001`
		if got := scrape(t, tel, `mcp_gateway_calls_total{method="tools/call"`); !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%q, want %s", got, want)
		}
	})
}

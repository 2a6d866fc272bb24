package telemetry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// scrape returns the samples that begin so.
func scrape(t *testing.T, tel *Telemetry, prefix string) []string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if got := w.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("the content type is %q", got)
	}
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// call makes a call that ends so.
func call(t *testing.T, tel *Telemetry, info CallInfo, o Outcome) {
	t.Helper()
	tel.Start(info).End(o)
}

func catalog() []Names {
	return []Names{{Backend: "web", Tools: []string{"search", "fetch"}}, {Backend: "files"}}
}

func TestCallsAreCountedByMethodBackendAndTool(t *testing.T) {
	tel := New(Options{})
	tel.SetCatalog(catalog())
	search := CallInfo{Method: "tools/call", Backend: "web", Tool: "search"}
	call(t, tel, search, Outcome{Status: StatusOK, RequestBytes: 100, ResponseBytes: 2000})
	call(t, tel, search, Outcome{Status: StatusToolError, RequestBytes: 10, ResponseBytes: 20})
	call(t, tel, CallInfo{Method: "tools/list"}, Outcome{Status: StatusOK})
	call(t, tel, CallInfo{Method: "tools/list"}, Outcome{Status: "wonderful"})

	var nonzero []string
	for _, line := range scrape(t, tel, "mcp_gateway_calls_total") {
		if !strings.HasSuffix(line, " 0") {
			nonzero = append(nonzero, line)
		}
	}
	want := []string{
		`mcp_gateway_calls_total{method="tools/call",backend="web",tool="search",status="ok"} 1`,
		`mcp_gateway_calls_total{method="tools/call",backend="web",tool="search",status="tool_error"} 1`,
		`mcp_gateway_calls_total{method="tools/list",backend="",tool="",status="error"} 1`,
		`mcp_gateway_calls_total{method="tools/list",backend="",tool="",status="ok"} 1`,
	}
	if diff := cmp.Diff(want, nonzero); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	want = []string{`mcp_gateway_request_bytes_total{backend=""} 0`, `mcp_gateway_request_bytes_total{backend="web"} 110`}
	if diff := cmp.Diff(want, scrape(t, tel, "mcp_gateway_request_bytes")); diff != "" {
		t.Errorf("request bytes (-want +got):\n%s", diff)
	}
	want = []string{`mcp_gateway_response_bytes_total{backend=""} 0`, `mcp_gateway_response_bytes_total{backend="web"} 2020`}
	if diff := cmp.Diff(want, scrape(t, tel, "mcp_gateway_response_bytes")); diff != "" {
		t.Errorf("response bytes (-want +got):\n%s", diff)
	}
}

func TestDurationsAreInBucketsFromAMillisecondToAMinute(t *testing.T) {
	tel := New(Options{})
	call(t, tel, CallInfo{Method: "ping"}, Outcome{Status: StatusOK})
	lines := scrape(t, tel, "mcp_gateway_call_duration_seconds_bucket")
	if len(lines) != 16 || !strings.Contains(lines[0], `le="0.001"`) || !strings.Contains(lines[14], `le="60"`) {
		t.Errorf("buckets:\n%s", strings.Join(lines, "\n"))
	}
	if want := `mcp_gateway_call_duration_seconds_bucket{method="ping",backend="",tool="",le="+Inf"} 1`; lines[15] != want {
		t.Errorf("last bucket %s, want %s", lines[15], want)
	}
}

func TestWhatClientsWriteMakesNoSeries(t *testing.T) {
	tel := New(Options{})
	tel.SetCatalog(catalog())
	for i := range 100_000 {
		name := fmt.Sprintf("%d\n\"\\\xff", i)
		call(t, tel, CallInfo{Method: "tools/call", Backend: "web", Tool: name}, Outcome{Status: StatusDenied})
		call(t, tel, CallInfo{Method: name, Version: name}, Outcome{Status: StatusError, Principal: name, SessionID: name})
		call(t, tel, CallInfo{Method: "tools/call", Backend: name, Tool: name}, Outcome{Status: Status(name)})
		tel.AuthFailure(name)
		tel.Rejected(name)
		tel.ChildRestarted(name)
	}
	if got := len(scrape(t, tel, "mcp_gateway_call")); got > 200 {
		t.Errorf("%d lines for calls", got)
	}
	if got := len(scrape(t, tel, "mcp_gateway_")); got > 200+3*(maxValues+1) {
		t.Errorf("%d lines in all", got)
	}
	want := []string{`mcp_gateway_calls_total{method="other",backend="",tool="",status="error"} 100000`}
	if diff := cmp.Diff(want, scrape(t, tel, `mcp_gateway_calls_total{method="other",backend="",tool="",status="error"}`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoMoreToolsThanMaxNamesAreLabels(t *testing.T) {
	tel := New(Options{MaxNames: 3})
	tel.SetCatalog([]Names{{"a", []string{"1", "2"}}, {"b", []string{"3", "4"}}, {"c", []string{"5"}}})
	for _, c := range [][2]string{{"a", "1"}, {"a", "2"}, {"b", "3"}, {"b", "4"}, {"c", "5"}} {
		call(t, tel, CallInfo{Method: "tools/call", Backend: c[0], Tool: c[1]}, Outcome{Status: StatusOK})
	}
	var got []string
	for _, line := range scrape(t, tel, "mcp_gateway_call_duration_seconds_count") {
		_, line, _ = strings.Cut(line, "backend=")
		got = append(got, line)
	}
	want := []string{`"a",tool="1"} 1`, `"a",tool="2"} 1`, `"b",tool="3"} 1`, `"b",tool="other"} 1`, `"c",tool="other"} 1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestToolsThatAreGoneAreForgottenAndTheOthersCountOn(t *testing.T) {
	tel := New(Options{})
	tel.SetCatalog(catalog())
	search, fetch := CallInfo{Method: "tools/call", Backend: "web", Tool: "search"}, CallInfo{Method: "tools/call", Backend: "web", Tool: "fetch"}
	call(t, tel, search, Outcome{Status: StatusOK})
	call(t, tel, CallInfo{Method: "ping", Backend: "files"}, Outcome{Status: StatusOK})
	running := tel.Start(fetch)
	tel.SetCatalog([]Names{{Backend: "web", Tools: []string{"search"}}})
	running.End(Outcome{Status: StatusOK})
	call(t, tel, search, Outcome{Status: StatusOK})
	want := []string{`mcp_gateway_call_duration_seconds_count{method="tools/call",backend="web",tool="search"} 2`}
	if diff := cmp.Diff(want, scrape(t, tel, "mcp_gateway_call_duration_seconds_count")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := len(scrape(t, tel, "mcp_gateway_calls_total")); got != len(statuses) {
		t.Errorf("%d counters are left", got)
	}
}

func TestEventsAreCounted(t *testing.T) {
	tel := New(Options{Version: `v1.2.3"`})
	tel.AddSessions(3)
	tel.AddSessions(-1)
	tel.AddStreams(5)
	tel.AuthFailure("expired")
	tel.AuthFailure("expired")
	tel.Rejected("body")
	tel.ChildRestarted("child")
	tel.TableRefused()
	span := tel.Start(CallInfo{Method: "ping"})

	var got []string
	for _, line := range scrape(t, tel, "mcp_gateway_") {
		if !strings.HasPrefix(line, "mcp_gateway_call_d") && !strings.HasPrefix(line, "mcp_gateway_calls_total") {
			got = append(got, line)
		}
	}
	want := []string{
		`mcp_gateway_audit_failures_total 0`,
		`mcp_gateway_auth_failures_total{reason="expired"} 2`,
		`mcp_gateway_build_info{version="v1.2.3\"",go_version="` + runtime.Version() + `"} 1`,
		`mcp_gateway_calls_in_flight 1`,
		`mcp_gateway_child_restarts_total{backend="child"} 1`,
		`mcp_gateway_rejected_total{limit="body"} 1`,
		`mcp_gateway_request_bytes_total{backend=""} 0`,
		`mcp_gateway_response_bytes_total{backend=""} 0`,
		`mcp_gateway_sessions 2`,
		`mcp_gateway_spans_dropped_total 0`,
		`mcp_gateway_streams 5`,
		`mcp_gateway_table_refused 1`,
		`mcp_gateway_table_updates_total{result="applied"} 0`,
		`mcp_gateway_table_updates_total{result="refused"} 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	tel.TableApplied()
	span.End(Outcome{Status: StatusOK})
	span.End(Outcome{Status: StatusOK})
	for prefix, want := range map[string]string{
		"mcp_gateway_table_refused":                         "mcp_gateway_table_refused 0",
		`mcp_gateway_table_updates_total{result="applied"}`: `mcp_gateway_table_updates_total{result="applied"} 1`,
		"mcp_gateway_calls_in_flight":                       "mcp_gateway_calls_in_flight 0",
		"mcp_gateway_call_duration_seconds_count":           `mcp_gateway_call_duration_seconds_count{method="ping",backend="",tool=""} 1`,
	} {
		if diff := cmp.Diff([]string{want}, scrape(t, tel, prefix)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestPrometheusUnderstandsTheMetrics(t *testing.T) {
	tel := New(Options{Version: "v1"})
	tel.SetCatalog([]Names{{"web", []string{"a\"b\\c\n{d}=e, f\xff"}}})
	call(t, tel, CallInfo{Method: "tools/call", Backend: "web", Tool: "a\"b\\c\n{d}=e, f\xff"}, Outcome{Status: StatusOK})
	want := `mcp_gateway_call_duration_seconds_count{method="tools/call",backend="web",tool="a\"b\\c\n{d}=e, f?"} 1`
	if diff := cmp.Diff([]string{want}, scrape(t, tel, "mcp_gateway_call_duration_seconds_count")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	problems, err := promlint.New(w.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "mcp_gateway_") && p.Text != "no help text" {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if len(scrape(t, tel, "go_goroutines ")) != 1 || len(scrape(t, tel, "process_resident_memory_bytes ")) != 1 {
		t.Error("the runtime's and the process's metrics are missing")
	}
}

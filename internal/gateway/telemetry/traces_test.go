package telemetry

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	parentTrace = "0af7651916cd43dd8448eb211c80319c"
	parent      = "00-" + parentTrace + "-b7ad6b7169203331-01"
)

// collector is an OTLP receiver that keeps what it got.
type collector struct {
	*httptest.Server

	requests chan *collectorv1.ExportTraceServiceRequest
	headers  chan http.Header
}

// newCollector starts one and points the environment to it.
func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{requests: make(chan *collectorv1.ExportTraceServiceRequest, 100), headers: make(chan http.Header, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := new(collectorv1.ExportTraceServiceRequest)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		if err := proto.Unmarshal(body, request); err != nil {
			t.Errorf("the request is not OTLP: %v", err)
		}
		if unknown := request.ProtoReflect().GetUnknown(); len(unknown) > 0 {
			t.Errorf("unknown fields: %x", unknown)
		}
		c.headers <- r.Header
		c.requests <- request
	}))
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/")
	return c
}

// closed closes t and returns all spans.
func (c *collector) closed(t *testing.T, tel *Telemetry) []*tracev1.Span {
	t.Helper()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(c.requests)
	var spans []*tracev1.Span
	for request := range c.requests {
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				spans = append(spans, scope.Spans...)
			}
		}
	}
	return spans
}

func pairsOf(list []*commonv1.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		m[kv.Key] = strings.TrimSpace(kv.Value.String())
	}
	return m
}

func TestACallIsASpanOfTheClientsTrace(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=y")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.namespace.name=team-a")
	tel := New(Options{Version: "v1.2.3"})
	tel.SetCatalog(catalog())
	span := tel.Start(CallInfo{
		Method: "tools/call", Tool: "search", Backend: "web", Version: "2026-07-28",
		Carrier: Carrier{Traceparent: parent, Tracestate: "vendor=1", Baggage: "user=7"},
	})
	own := span.own.span
	want := Carrier{Traceparent: "00-" + parentTrace + "-" + hex.EncodeToString(own[:]) + "-01", Tracestate: "vendor=1", Baggage: "user=7"}
	if diff := cmp.Diff(want, span.Carrier()); diff != "" {
		t.Errorf("sent on (-want +got):\n%s", diff)
	}
	if own == [8]byte{} || span.traceID != parentTrace {
		t.Errorf("the span is %x of the trace %s", own, span.traceID)
	}
	span.End(Outcome{Status: StatusToolError, RequestBytes: 5, ResponseBytes: 6, SessionID: "5f70", Principal: "jane"})
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	request := <-c.requests
	resource := request.ResourceSpans[0].Resource
	got := pairsOf(resource.Attributes)
	for key, want := range map[string]string{"service.name": "mcp-gateway", "service.version": "v1.2.3", "k8s.namespace.name": "team-a"} {
		if got[key] != `string_value:"`+want+`"` {
			t.Errorf("resource %s is %s", key, got[key])
		}
	}
	scope := request.ResourceSpans[0].ScopeSpans[0]
	if scope.Scope.Name != "mcp-gateway" || scope.Scope.Version != "v1.2.3" {
		t.Errorf("scope %v", scope.Scope)
	}
	exported := scope.Spans[0]
	if string(exported.SpanId) != string(own[:]) || exported.EndTimeUnixNano < exported.StartTimeUnixNano || exported.StartTimeUnixNano == 0 {
		t.Errorf("span %v", exported)
	}
	wantAttributes := map[string]string{
		"mcp.method.name": `string_value:"tools/call"`, "mcp.protocol.version": `string_value:"2026-07-28"`,
		"mcp_gateway.backend": `string_value:"web"`, "gen_ai.tool.name": `string_value:"search"`,
		"gen_ai.operation.name": `string_value:"execute_tool"`, "mcp_gateway.request.size": "int_value:5",
		"mcp_gateway.response.size": "int_value:6", "mcp.session.id": `string_value:"5f70"`, "error.type": `string_value:"tool_error"`,
	}
	if diff := cmp.Diff(wantAttributes, pairsOf(exported.Attributes)); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	exported.Attributes, exported.SpanId, exported.StartTimeUnixNano, exported.EndTimeUnixNano = nil, nil, 0, 0
	wantSpan := &tracev1.Span{
		TraceId:      []byte("\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c"),
		ParentSpanId: []byte("\xb7\xad\x6b\x71\x69\x20\x33\x31"), TraceState: "vendor=1", Name: "tools/call search",
		Kind: tracev1.Span_SPAN_KIND_SERVER, Flags: 0x301,
		Status: &tracev1.Status{Code: tracev1.Status_STATUS_CODE_ERROR, Message: "tool_error"},
	}
	if !proto.Equal(wantSpan, exported) {
		t.Errorf("span\n%v\nwant\n%v", exported, wantSpan)
	}
	headers := <-c.headers
	if headers.Get("Api-Key") != "a b" || headers.Get("X") != "y" || headers.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("headers %v", headers)
	}
}

func TestNamesOfSpansAreFew(t *testing.T) {
	c := newCollector(t)
	tel := New(Options{})
	tel.SetCatalog(catalog())
	calls := []CallInfo{
		{Method: "tools/call", Backend: "web", Tool: "search"},
		{Method: "tools/call", Backend: "web", Tool: "hacked"},
		{Method: "tools/list"},
		{Method: "evil\nmethod"},
	}
	for _, info := range calls {
		call(t, tel, info, Outcome{Status: StatusOK})
	}
	var got []string
	for _, s := range c.closed(t, tel) {
		got = append(got, s.Name)
		if s.ParentSpanId != nil || s.Status != nil || s.Flags&0x200 != 0 {
			t.Errorf("a good call without a parent: %v", s)
		}
	}
	if diff := cmp.Diff([]string{"tools/call search", "tools/call", "tools/list", "other"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyFaultsAreErrorsOfASpan(t *testing.T) {
	c := newCollector(t)
	tel := New(Options{})
	for _, status := range statuses {
		call(t, tel, CallInfo{Method: "tools/call"}, Outcome{Status: status, Code: -32602})
	}
	spans := c.closed(t, tel)
	for i, status := range statuses {
		isError := spans[i].Status.GetCode() == tracev1.Status_STATUS_CODE_ERROR
		if want := status == StatusToolError || status == StatusError || status == StatusUnavailable; isError != want {
			t.Errorf("%s: an error is %v", status, isError)
		}
		if got := pairsOf(spans[i].Attributes)["rpc.response.status_code"]; got != "int_value:-32602" {
			t.Errorf("code %s", got)
		}
	}
}

func TestTheSamplerIsTheEnvironments(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	tel := New(Options{})
	span := tel.Start(CallInfo{Method: "ping", Carrier: Carrier{Traceparent: parent}})
	if got := span.Carrier().Traceparent; !strings.HasPrefix(got, "00-"+parentTrace+"-") || !strings.HasSuffix(got, "-00") {
		t.Errorf("sent on is %s", got)
	}
	span.End(Outcome{Status: StatusOK})
	if spans := c.closed(t, tel); len(spans) != 0 {
		t.Errorf("%d spans were exported", len(spans))
	}
}

func TestTheServiceNameIsTheEnvironments(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_SERVICE_NAME", "research")
	tel := New(Options{})
	call(t, tel, CallInfo{Method: "ping"}, Outcome{Status: StatusOK})
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := pairsOf((<-c.requests).ResourceSpans[0].Resource.Attributes)["service.name"]; got != `string_value:"research"` {
		t.Errorf("it is %s", got)
	}
}

func TestWithoutAnEndpointTheClientsTraceIsPassedOn(t *testing.T) {
	tel := New(Options{})
	for name, tc := range map[string]struct{ from, want Carrier }{
		"nothing":  {},
		"all":      {Carrier{parent, "vendor=1", "user=7"}, Carrier{parent, "vendor=1", "user=7"}},
		"no trace": {Carrier{Traceparent: "00-x", Tracestate: "vendor=1"}, Carrier{}},
		"a trace id of zeros": {
			Carrier{Traceparent: "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, Carrier{},
		},
		"an injected header":  {Carrier{parent + "\r\nX: y", "", "a=b\r\nX: y"}, Carrier{}},
		"a wrong state":       {Carrier{parent, "a b c", ""}, Carrier{Traceparent: parent}},
		"too much baggage":    {Carrier{parent, "", strings.Repeat("a", 8193)}, Carrier{Traceparent: parent}},
		"baggage that is not": {Carrier{parent, "", "a=ä"}, Carrier{Traceparent: parent}},
	} {
		span := tel.Start(CallInfo{Method: "ping", Carrier: tc.from})
		span.End(Outcome{Status: StatusOK})
		if diff := cmp.Diff(tc.want, span.Carrier()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

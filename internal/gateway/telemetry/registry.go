package telemetry

import (
	"bytes"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// other is the label of whatever is not known to be one of few.
const other = "other"

// maxValues is how many values a label has that is given as a string: as many as a table has backends.
const maxValues = 256

// buckets are those of the duration, in seconds.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// methods are the labels of methods: those of the protocol versions 2024-11-05 to 2026-07-28 that reach a gateway.
var methods = set(
	"initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list",
	"resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
	"completion/complete", "logging/setLevel", "tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update",
	"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
)

// statuses are the labels of outcomes; a series keeps a counter at each index.
var statuses = [...]Status{
	StatusOK, StatusToolError, StatusError, StatusDenied, StatusCancelled, StatusRejected, StatusUnavailable,
}

func (s Status) known() bool { return slices.Contains(statuses[:], s) }

// Names are the tools of one backend.
type Names struct {
	Backend string
	Tools   []string
}

// registry holds the metrics.
type registry struct {
	set *metrics.Set

	inFlight, sessions, streams, tableRefused atomic.Int64
	auditFailures, spansDropped               *metrics.Counter

	maxNames int

	mu     sync.RWMutex
	names  map[string]map[string]bool // the labels: backend, tool
	series map[labels]*series
	// values are those seen of each label that is given as a string.
	values map[string]map[string]*metrics.Counter
}

// labels are those of a series.
type labels struct{ method, backend, tool string }

// series are the metrics of calls with equal labels.
type series struct {
	labels

	calls           [len(statuses)]*metrics.Counter
	duration        *metrics.PrometheusHistogram
	received, given *metrics.Counter
}

func newRegistry(maxNames int, version string) *registry {
	metrics.ExposeMetadata(true) // The switch is the process's. Without it there are no types.
	r := &registry{
		set: metrics.NewSet(), maxNames: maxNames, names: map[string]map[string]bool{}, series: map[labels]*series{},
		values: map[string]map[string]*metrics.Counter{},
	}
	for name, value := range map[string]*atomic.Int64{
		"mcp_gateway_calls_in_flight": &r.inFlight, "mcp_gateway_sessions": &r.sessions, "mcp_gateway_streams": &r.streams,
		"mcp_gateway_table_refused": &r.tableRefused,
	} {
		r.set.NewGauge(name, func() float64 { return float64(value.Load()) })
	}
	r.set.NewGauge("mcp_gateway_build_info"+pairs("version", version, "go_version", runtime.Version()), func() float64 { return 1 })
	r.auditFailures = r.set.NewCounter("mcp_gateway_audit_failures_total")
	r.spansDropped = r.set.NewCounter("mcp_gateway_spans_dropped_total")
	for _, result := range []string{"applied", "refused"} {
		r.counter("mcp_gateway_table_updates_total", "result", result)
	}
	return r
}

// SetCatalog says which backends and tools there are. Only they become labels, the tools up to MaxNames in the order given;
// what is no longer there is forgotten.
func (r *registry) SetCatalog(catalog []Names) {
	names, left := make(map[string]map[string]bool, len(catalog)), r.maxNames
	for _, c := range catalog {
		tools := map[string]bool{}
		for _, tool := range c.Tools[:min(left, len(c.Tools))] {
			tools[tool] = true
		}
		left -= len(tools)
		names[c.Backend] = tools
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = names
	for l, s := range r.series {
		if r.bound(l) != l {
			delete(r.series, l)
			s.unregister(r.set)
		}
	}
}

// bound replaces what would let the number of series grow.
func (r *registry) bound(l labels) labels {
	if !methods[l.method] {
		l.method = other
	}
	tools, known := r.names[l.backend]
	if l.backend != "" && !known {
		l.backend = other
	}
	if l.tool != "" && !tools[l.tool] {
		l.tool = other
	}
	return l
}

// find returns the series of a call.
func (r *registry) find(info *CallInfo) *series {
	r.mu.RLock()
	l := r.bound(labels{info.Method, info.Backend, info.Tool})
	s := r.series[l]
	r.mu.RUnlock()
	if s != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l = r.bound(l) // The catalog may be another by now.
	if s = r.series[l]; s == nil {
		// A string of the client's may be part of a long message, which must not be kept for it.
		l = labels{strings.Clone(l.method), strings.Clone(l.backend), strings.Clone(l.tool)}
		s = newSeries(r.set, l)
		r.series[l] = s
	}
	return s
}

func newSeries(set *metrics.Set, l labels) *series {
	s := &series{labels: l}
	for i := range statuses {
		s.calls[i] = set.GetOrCreateCounter(l.calls(i))
	}
	s.duration = set.GetOrCreatePrometheusHistogramExt(l.duration(), buckets)
	s.received = set.GetOrCreateCounter("mcp_gateway_request_bytes_total" + pairs("backend", l.backend))
	s.given = set.GetOrCreateCounter("mcp_gateway_response_bytes_total" + pairs("backend", l.backend))
	return s
}

// calls is the name of a counter.
func (l labels) calls(status int) string {
	return "mcp_gateway_calls_total" + pairs("method", l.method, "backend", l.backend, "tool", l.tool, "status", string(statuses[status]))
}

// duration is the name of the histogram.
func (l labels) duration() string {
	return "mcp_gateway_call_duration_seconds" + pairs("method", l.method, "backend", l.backend, "tool", l.tool)
}

// unregister ends a series. The bytes, which are per backend, are few and stay.
func (s *series) unregister(set *metrics.Set) {
	for i := range statuses {
		set.UnregisterMetric(s.labels.calls(i))
	}
	set.UnregisterMetric(s.labels.duration())
}

// count counts a call that ended.
func (s *series) count(o *Outcome, duration time.Duration) {
	s.calls[slices.Index(statuses[:], o.Status)].Inc()
	s.duration.Update(duration.Seconds())
	s.received.AddInt64(o.RequestBytes)
	s.given.AddInt64(o.ResponseBytes)
}

// AddSessions changes the number of live legacy sessions by delta.
func (r *registry) AddSessions(delta int) { r.sessions.Add(int64(delta)) }

// AddStreams changes the number of open streams by delta.
func (r *registry) AddStreams(delta int) { r.streams.Add(int64(delta)) }

// AuthFailure counts a caller that was turned away. The reason is one of few words of ours.
func (r *registry) AuthFailure(reason string) {
	r.counter("mcp_gateway_auth_failures_total", "reason", reason).Inc()
}

// Rejected counts what was over a limit. The limit is one of few words of ours.
func (r *registry) Rejected(limit string) {
	r.counter("mcp_gateway_rejected_total", "limit", limit).Inc()
}

// HeadersIgnored counts a request that was served although its headers do not repeat its body. The part is "standard" or
// "parameter".
func (r *registry) HeadersIgnored(part string) {
	r.counter("mcp_gateway_headers_ignored_total", "part", part).Inc()
}

// TableApplied counts a table that is in force now.
func (r *registry) TableApplied() {
	r.tableRefused.Store(0)
	r.counter("mcp_gateway_table_updates_total", "result", "applied").Inc()
}

// TableRefused counts a table that was refused: mcp_gateway_table_refused is 1 until TableApplied.
func (r *registry) TableRefused() {
	r.tableRefused.Store(1)
	r.counter("mcp_gateway_table_updates_total", "result", "refused").Inc()
}

// Panicked counts a fault of the gateway's own at the data of a backend; empty is that of none.
func (r *registry) Panicked(backend string) {
	r.counter("mcp_gateway_panics_total", "backend", backend).Inc()
}

// ChildRestarted counts a child process that had to be started again.
func (r *registry) ChildRestarted(backend string) {
	r.counter("mcp_gateway_child_restarts_total", "backend", backend).Inc()
}

// counter is the one with a label of that value. Values beyond maxValues share one, in case they are not of ours after all.
func (r *registry) counter(name, label, value string) *metrics.Counter {
	r.mu.RLock()
	c := r.values[name][value]
	r.mu.RUnlock()
	if c != nil {
		return c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values[name] == nil {
		r.values[name] = map[string]*metrics.Counter{}
	}
	if len(r.values[name]) >= maxValues {
		value = other
	}
	c = r.set.GetOrCreateCounter(name + pairs(label, value))
	r.values[name][value] = c
	return c
}

// serve answers a scrape.
func (r *registry) serve(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	r.set.WritePrometheus(&text)
	metrics.WriteProcessMetrics(&text)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text.Bytes()) // A scraper that has gone is no matter of ours.
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// pairs are labels in the text format, from names and values in turn.
func pairs(namesAndValues ...string) string {
	var b strings.Builder
	separator := "{"
	for pair := range slices.Chunk(namesAndValues, 2) {
		b.WriteString(separator + pair[0] + `="` + escaper.Replace(strings.ToValidUTF8(pair[1], "?")) + `"`)
		separator = ","
	}
	return b.String() + "}"
}

func set(values ...string) map[string]bool {
	m := make(map[string]bool, len(values))
	for _, v := range values {
		m[v] = true
	}
	return m
}

package telemetry

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

// The hot path has a budget of 120 allocations for a whole call, so the part of it that is spent here is held down.
func TestACallAllocatesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools drop at random")
	}
	for _, tc := range []struct {
		name    string
		sampled bool
		carrier Carrier
		most    float64
	}{
		{"audited", false, Carrier{}, 2},
		{"audited, in the client's trace", false, Carrier{Traceparent: parent}, 7},
		{"traced", true, Carrier{Traceparent: parent}, 35},
	} {
		tel := New(Options{Audit: io.Discard})
		tel.SetCatalog(catalog())
		if tc.sampled {
			exportAll(t, tel)
		}
		info := CallInfo{Method: "tools/call", Tool: "search", Backend: "web", Version: "2025-11-25", Carrier: tc.carrier}
		got := testing.AllocsPerRun(1000, func() { call(t, tel, info, Outcome{Status: StatusOK, Principal: "jane"}) })
		if got > tc.most {
			t.Errorf("%s: %.0f allocations, at most %.0f", tc.name, got, tc.most)
		}
	}
}

type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// exportAll makes tel export every span to nobody.
func exportAll(tb testing.TB, tel *Telemetry) {
	tb.Helper()
	to := &endpoint{url: "http://collector", headers: http.Header{}, timeout: time.Second, client: &http.Client{Transport: nobody{}}}
	tel.traces.exporter, tel.traces.sampler = newExporter(to, nil, "", nil, tel.spansDropped), sampler{bound: all}
	tb.Cleanup(func() {
		if err := tel.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	for _, bc := range []struct {
		name    string
		audit   io.Writer
		sampled bool
		carrier Carrier
	}{
		{"counted", nil, false, Carrier{}},
		{"audited", io.Discard, false, Carrier{}},
		{"audited, in the client's trace", io.Discard, false, Carrier{Traceparent: parent}},
		{"traced", io.Discard, true, Carrier{Traceparent: parent}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			tel := New(Options{Audit: bc.audit})
			tel.SetCatalog(catalog())
			if bc.sampled {
				exportAll(b, tel)
			}
			info := CallInfo{Method: "tools/call", Tool: "search", Backend: "web", Version: "2025-11-25", Carrier: bc.carrier}
			b.ReportAllocs()
			for b.Loop() {
				span := tel.Start(info)
				span.End(Outcome{Status: StatusOK, Principal: "jane"})
			}
		})
	}
}

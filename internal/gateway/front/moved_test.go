package front

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// slow is a server that takes 5 s for a call.
func slow(from time.Time) *acting {
	return &acting{late: late{from: from}, call: func(ctx context.Context, call *backend.Call, s backend.Sink) error {
		if !backend.Pause(ctx, 5*time.Second) {
			return &backend.Error{Backend: "b", Class: "Timeout", Sent: true, Err: context.Cause(ctx)}
		}
		return s.Response(bytes.NewReader(wire.NewResult(call.Message.ID, []byte(`{"answered":true}`)).Raw))
	}}
}

func TestACallEndsWhereItBeganUnlessItIsWithdrawn(t *testing.T) {
	t.Parallel()
	before := table.Backend{Name: "inc", Prefix: "h_", URL: "http://inc:9191/mcp"}
	moved := func(edit func(*table.Backend)) table.Backend {
		b := before
		b.URL = "http://inc:9999/mcp"
		edit(&b)
		return b
	}
	readOnly := func(b *table.Backend) { b.Trusted, b.Tools.ReadOnly = true, true }
	for name, tc := range map[string]struct {
		before, now table.Backend
		outcome     string
	}{
		"its server has moved":       {before, moved(func(*table.Backend) {}), "ok"},
		"and is denied another tool": {before, moved(func(b *table.Backend) { b.Tools.Deny = []string{"other"} }), "ok"},
		"and is denied this one":     {before, moved(func(b *table.Backend) { b.Tools.Deny = []string{"incr"} }), "denied"},
		"and it is called otherwise": {before, moved(func(b *table.Backend) { b.Prefix = "i_" }), "denied"},
		"and another is called so": {before, moved(func(b *table.Backend) {
			b.Tools.Rename = map[string]string{"other": "h_incr", "incr": "x"}
		}), "denied"},
		"and nobody knows yet that it reads":            {before, moved(readOnly), "denied"},
		"its server is gone":                            {before, table.Backend{Name: "other", Prefix: "o_"}, "denied"},
		"its server is gone, and another has its names": {before, table.Backend{Name: "other", Prefix: "h_"}, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				y, down := newYoung(t, Limits{}), NewBackend(table.Backend{Name: "down", Prefix: "d_"}, &late{})
				b := NewBackend(tc.before, slow(time.Now()))
				y.use(ctx, b, down)
				synctest.Wait()
				var quiet time.Duration
				begun := time.Now()
				time.AfterFunc(time.Second, func() {
					y.use(ctx, NewBackend(tc.now, slow(time.Time{})), NewBackend(down.Config, down.Server)) // it is not there yet
					<-b.Quiet()
					quiet = time.Since(begun)
				})
				_, answer, took := y.asks(ctx, "tools/call", "h_incr")
				synctest.Wait()
				want := time.Second
				if tc.outcome == "ok" {
					want = 5 * time.Second
				}
				if got := y.outcome(t); got != tc.outcome || took != want || quiet != want {
					t.Errorf("audited %q after %s, the old place is quiet after %s: %s", got, took, quiet, answer)
				}
				if told := strings.Contains(answer, `"class":"Forbidden","sent":true`); told != (tc.outcome == "denied") {
					t.Errorf("answered %s", answer)
				}
			})
		})
	}
}

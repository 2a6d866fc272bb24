package front

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// dripping is a response of which a piece comes now and then, until the call is given up.
type dripping struct {
	endless

	pause time.Duration
}

func (d dripping) Read(p []byte) (int, error) {
	select {
	case <-time.After(d.pause):
		return copy(p, " "), nil
	case <-d.Done():
		return d.endless.Read(p)
	}
}

func TestABackendThatIsStillAtACallIsSlowAndDoesNotHang(t *testing.T) {
	t.Parallel()
	// Until the call is given up, or for so long, something comes at each pause.
	progress := func(pause, length time.Duration) func(context.Context, *backend.Call, backend.Sink) error {
		return func(ctx context.Context, _ *backend.Call, s backend.Sink) error {
			for begun := time.Now(); time.Since(begun) < length && ctx.Err() == nil; {
				if err := s.Message(wire.NewNotification("notifications/progress", nil)); err != nil {
					return err
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
			_, err := stalling{endless{ctx}}.Read(nil)
			return err
		}
	}
	response := func(pause time.Duration) func(context.Context, *backend.Call, backend.Sink) error {
		return func(ctx context.Context, _ *backend.Call, s backend.Sink) error {
			return s.Response(io.MultiReader(bytes.NewReader(make([]byte, 2*peeked)), dripping{endless{ctx}, pause}))
		}
	}
	for name, tc := range map[string]struct {
		seconds int
		call    func(ctx context.Context, call *backend.Call, s backend.Sink) error
		want    int
	}{
		"progress to the end":                     {60, progress(2*time.Second, time.Hour), 0},
		"progress to the end of a short call":     {4, progress(time.Second, time.Hour), 0},
		"progress too seldom":                     {60, progress(9*time.Second, time.Hour), hanging},
		"progress, and then nothing":              {60, progress(2*time.Second, 30*time.Second), hanging},
		"a word at the beginning of a short call": {4, progress(time.Hour, time.Hour), hanging},
		"a response piece by piece":               {60, response(2 * time.Second), 0},
		"a response with long pauses":             {60, response(9 * time.Second), hanging},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				y := newYoung(t, Limits{KeepAlive: 100 * time.Hour})
				b := NewBackend(table.Backend{Name: "inc", TimeoutSeconds: tc.seconds}, &acting{late: late{from: time.Now()}, call: tc.call})
				y.use(ctx, b)
				synctest.Wait()
				for range hanging {
					func() {
						defer func() {
							if got := recover(); got != nil && got != http.ErrAbortHandler { //nolint:errorlint // it is this very value
								t.Error(got)
							}
						}()
						request := incrementing(t)
						request.Header.Set("Accept", "application/json, text/event-stream")
						y.ServeHTTP(meanwhile{httptest.NewRecorder(), func() error { return nil }}, request)
					}()
				}
				if b.gate.late != tc.want {
					t.Errorf("%d calls count as not answered, want %d", b.gate.late, tc.want)
				}
			})
		})
	}
}

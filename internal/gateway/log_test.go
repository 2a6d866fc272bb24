package gateway

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

// TestForeignWordsInAnErrorCannotDisguiseTheLog: of a backend, of an issuer, or of whatever else an error quotes.
func TestForeignWordsInAnErrorCannotDisguiseTheLog(t *testing.T) {
	t.Parallel()
	evil := strings.Repeat("\u202e\x1b[31mevil\n\u200b\xff", 20_000)
	clean := strings.Repeat("[31mevil ", 500)
	short, long := clean[:253]+"…", clean[:1021]+"…"
	for name, tc := range map[string]struct {
		is   any
		want any
	}{
		"an error of a backend": {&backend.Error{Backend: "b", Class: "Unauthorized", Err: errors.New(evil)}, "backend b: Unauthorized: " + short},
		"any other error":       {errors.New(evil), long},
		"a text":                {evil, long},
		"texts":                 {[]string{evil, "a"}, []any{long, "a"}},
		"a number":              {1.0, 1.0},
		"nothing":               {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written strings.Builder
			newLogger(&written, slog.LevelInfo).With("backend", evil).Warn("it failed", "error", tc.is, "stack", "a\n\tb")
			if len(written.String()) > 2<<10+500 || strings.Contains(written.String(), "\u202e") {
				t.Errorf("%d bytes: %.100s", len(written.String()), written.String())
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(written.String()), &got); err != nil {
				t.Fatal(err)
			}
			delete(got, "time")
			want := map[string]any{"level": "WARN", "msg": "it failed", "backend": long, "error": tc.want, "stack": "a\n\tb"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

package gateway

import (
	"io"
	"log/slog"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

const (
	// maxLogged bounds a text in the log, in bytes. A backend's error says less by itself.
	maxLogged = 1 << 10
	// stackKey is the attribute of a stack, which is many lines, and ours.
	stackKey = "stack"
)

// newLogger logs an event a line, as JSON. Whatever says what went wrong may quote a server, an issuer or a client: its texts are made fit
// to be shown here, at the one place that all of them pass.
func newLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: fit}))
}

// fit makes the texts of an attribute fit for the log. The message is the gateway's own.
func fit(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.MessageKey || a.Key == stackKey {
		return a
	}
	switch a.Value.Kind() { //nolint:exhaustive // the others are numbers, times and the like
	case slog.KindString:
		a.Value = slog.StringValue(backend.Line(a.Value.String(), maxLogged))
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(backend.Line(v.Error(), maxLogged))
		case []string:
			lines := make([]string, len(v))
			for i, text := range v {
				lines[i] = backend.Line(text, maxLogged)
			}
			a.Value = slog.AnyValue(lines)
		}
	}
	return a
}

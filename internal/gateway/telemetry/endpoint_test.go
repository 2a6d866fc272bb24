package telemetry

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheEndpointIsTheEnvironments(t *testing.T) {
	type env map[string]string
	for name, tc := range map[string]struct {
		env     env
		url     string
		timeout time.Duration
	}{
		"nothing":         {env{}, "", 0},
		"for all signals": {env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, "http://a:4318/v1/traces", 10 * time.Second},
		"below a path":    {env{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://a/otlp/"}, "https://a/otlp/v1/traces", 10 * time.Second},
		"for traces": {
			env{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/x",
				"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "2500",
				"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_TRACES_EXPORTER": "otlp",
			},
			"http://b/x", 2500 * time.Millisecond,
		},
		"not for traces": {env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_EXPORTER": "none"}, "", 0},
		"switched off":   {env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "TRUE"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := newEndpoint(func(key string) string { return tc.env[key] })
			switch {
			case err != nil:
				t.Fatal(err)
			case e == nil && tc.url == "":
			case e == nil || e.url != tc.url || e.timeout != tc.timeout:
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestAWrongVariableIsToldAndCostsTheTracesOnly(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.crt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ key, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "must be an http or https URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://u:secret@a", "must be an http or https URL"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "only http/protobuf is spoken"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "otlp and none are known"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "must be a number of milliseconds"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "secret", "must be name=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=%zz-secret", "must be name=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0d%0aX:y", "must be name=value"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/does/not/exist", "no such file"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", empty, "there is no certificate"},
	} {
		t.Run(tc.key+"="+tc.value, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
			t.Setenv(tc.key, tc.value)
			var logged bytes.Buffer
			tel := New(Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			if !strings.Contains(logged.String(), tc.want) || strings.Contains(strings.ReplaceAll(logged.String(), tc.value, ""), "secret") {
				t.Errorf("logged %s", &logged)
			}
			if strings.Contains(tc.key, "HEADERS") && strings.Contains(logged.String(), "secret") {
				t.Errorf("a secret is logged: %s", &logged)
			}
			call(t, tel, CallInfo{Method: "ping"}, Outcome{Status: StatusOK})
			if err := tel.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheHeadersOfTheExporterStayWithItsEndpoint(t *testing.T) {
	e, err := newEndpoint(func(key string) string { return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}[key] })
	if err != nil {
		t.Fatal(err)
	}
	if transport, ok := e.client.Transport.(*http.Transport); !ok || transport.Proxy != nil {
		t.Error("a proxy gets them")
	}
	if e.client.CheckRedirect == nil || e.client.CheckRedirect(nil, nil) != http.ErrUseLastResponse { //nolint:errorlint // compared by identity in net/http too
		t.Error("a redirect takes them elsewhere")
	}
}

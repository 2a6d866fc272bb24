package telemetry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// endpoint is where spans go.
type endpoint struct {
	url     string
	headers http.Header
	// timeout bounds one attempt.
	timeout time.Duration
	client  *http.Client
}

// newEndpoint reads the variables of the OTLP exporter specification: OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT,
// _CERTIFICATE and _PROTOCOL (http/protobuf only), each with OTEL_EXPORTER_OTLP_TRACES_ before it for this signal alone.
// It returns nil if traces are not wanted.
func newEndpoint(getenv func(string) string) (*endpoint, error) {
	get := func(name string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	target := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); target == "" && base != "" {
		target = strings.TrimRight(base, "/") + "/v1/traces"
	}
	if target == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil //nolint:nilnil // no endpoint is no error
	}
	switch kind := getenv("OTEL_TRACES_EXPORTER"); kind {
	case "", "otlp":
	case "none":
		return nil, nil //nolint:nilnil // no endpoint is no error
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; otlp and none are known", kind)
	}
	if protocol := get("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; only http/protobuf is spoken (most collectors take it on port 4318)", protocol)
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL without user and password (use OTEL_EXPORTER_OTLP_HEADERS)")
	}
	e := &endpoint{url: target, headers: http.Header{}, timeout: 10 * time.Second}
	if text := get("TIMEOUT"); text != "" {
		ms, err := strconv.ParseUint(text, 10, 31)
		if err != nil || ms == 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q; it must be a number of milliseconds", text)
		}
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	if err := e.addHeaders(get("HEADERS")); err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := get("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: there is no certificate in %s", file)
		}
	}
	e.client = &http.Client{
		// No proxy of the environment: it is for the way out of the cluster.
		Transport: &http.Transport{
			TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
			DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return e, nil
}

// addHeaders reads "name=value,name=value", values percent-encoded. Errors do not quote it, since it holds secrets.
func (e *endpoint) addHeaders(list string) error {
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		name = strings.TrimSpace(name)
		if !ok || err != nil || name == "" || !isPlain(name+value) {
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS must be name=value, separated by commas, values percent-encoded")
		}
		e.headers.Set(name, value)
	}
	return nil
}

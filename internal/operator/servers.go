package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func metricsOptions(o Options) metricsserver.Options {
	options := metricsserver.Options{
		BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure,
		CertDir: o.MetricsCert.Dir, CertName: o.MetricsCert.Name, KeyName: o.MetricsCert.Key,
	}
	if o.MetricsSecure {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
		options.TLSOpts = tlsOptions(o)
	}
	return options
}

func webhookOptions(o Options) webhook.Options {
	return webhook.Options{CertDir: o.WebhookCert.Dir, CertName: o.WebhookCert.Name, KeyName: o.WebhookCert.Key, TLSOpts: tlsOptions(o)}
}

// tlsOptions are those of both servers. Without HTTP/2, since its resets were used to exhaust servers (CVE-2023-44487) and neither
// scrapers nor the API server need it.
func tlsOptions(o Options) []func(*tls.Config) {
	return []func(*tls.Config){o.TLS.Apply, func(config *tls.Config) {
		if config.NextProtos = []string{"http/1.1"}; o.EnableHTTP2 {
			config.NextProtos = []string{"h2", "http/1.1"}
		}
	}}
}

// synced says that every watch has delivered what exists: before that, nothing can be judged.
func synced(informers cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !informers.WaitForCacheSync(ctx) {
			return errors.New("caches have not been filled yet: is the API server reachable, and may the operator list all that it watches?")
		}
		return nil
	}
}

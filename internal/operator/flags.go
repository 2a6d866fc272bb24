package operator

import (
	"cmp"
	"flag"
	"slices"
	"strings"
)

// aliases are further names of flags, by which users of the operator of Kubernetes SIG Apps know them, or we did.
var aliases = map[string]string{
	"metrics-cert-dir": "metrics-cert-path",
	"zap-log-level":    "log-level",
	"zap-encoder":      "log-format",
}

// plainVariables are environment variables by which the operator of Kubernetes SIG Apps is told its policy.
var plainVariables = map[string]string{
	"image-allowlist":      "IMAGE_ALLOWLIST",
	"require-image-digest": "REQUIRE_IMAGE_DIGEST",
	"max-storage-mounts":   "MAX_STORAGE_MOUNTS",
	"required-labels":      "REQUIRED_LABELS",
}

// original returns the name of a flag that has several.
func original(name string) string { return cmp.Or(aliases[name], name) }

func addAliases(flags *flag.FlagSet) {
	for alias, name := range aliases {
		flags.Var(flags.Lookup(name).Value, alias, "the same as --"+name)
	}
}

func (o *Options) addFlags(flags *flag.FlagSet, getenv func(string) string) {
	flags.StringVar(&o.Namespace, "namespace", cmp.Or(getenv("POD_NAMESPACE"), "mcp-operator-system"),
		"`namespace` of the operator itself: its lease, its key, and where NetworkPolicies let callers in from")
	flags.StringVar(&o.ClusterDomain, "cluster-domain", "cluster.local", "DNS `domain` of the cluster")
	flags.StringVar(&o.WatchNamespaces, "watch-namespaces", "",
		"comma-separated `namespaces` to act in; nothing of any other is read or watched (default: all of them)")
	flags.StringVar(&o.GatewayImage, "gateway-image", "",
		"`image` with /mcp-gateway, which is the endpoint of agents and runs servers of the transport Stdio; without it neither is run, and they say so")
	flags.BoolVar(&o.AllowPrivateEndpoints, "allow-private-endpoints", false,
		"let the endpoints of MCPTools, and the OIDC issuers of MCPAgents, be at private addresses, such as Services of the cluster; "+
			"loopback, link-local and metadata addresses never may")
	flags.StringVar(&o.DNSNamespace, "dns-namespace", "kube-system",
		"`namespace` of the pods that answer DNS, which gateways may ask; empty lets them ask anybody at port 53")
	flags.StringVar(&o.DNSSelector, "dns-selector", "k8s-app=kube-dns", "`labels` of those pods; empty means all of the namespace")
	flags.IntVar(&o.Workers, "workers", 16, "`number` of objects that are reconciled at once")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "act only while holding a lease, so that several operators can run")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "`address` to serve /healthz and /readyz on; 0 serves none")
	flags.BoolVar(&o.EnableHTTP2, "enable-http2", false, "serve metrics and webhook by HTTP/2 too")
}

func (o *Options) addMetricsFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "`address` to serve metrics on; 0 serves none")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "serve metrics by TLS, to callers that the API server authenticates and authorizes")
	flags.StringVar(&o.MetricsCert.Dir, "metrics-cert-path", "",
		"`folder` with the certificate for the metrics, read again when it changes (default: a self-signed certificate)")
	flags.StringVar(&o.MetricsCert.Name, "metrics-cert-name", "tls.crt", "`file` with the certificate in that folder")
	flags.StringVar(&o.MetricsCert.Key, "metrics-cert-key", "tls.key", "`file` with its key in that folder")
}

func (o *Options) addWebhookFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.EnableWebhook, "enable-webhook", false,
		"serve the validating webhook on port 9443, which enforces --image-allowlist, --require-image-digest, --max-storage-mounts and --required-labels")
	flags.StringVar(&o.WebhookCert.Dir, "webhook-cert-path", "/tmp/k8s-webhook-server/serving-certs",
		"`folder` with the certificate of the webhook, read again when it changes")
	flags.StringVar(&o.WebhookCert.Name, "webhook-cert-name", "tls.crt", "`file` with the certificate in that folder")
	flags.StringVar(&o.WebhookCert.Key, "webhook-cert-key", "tls.key", "`file` with its key in that folder")
	flags.Var((*list)(&o.Policy.Images), "image-allowlist",
		"comma-separated `prefixes` of images that may run, whole up to a '/', ':' or '@' (default: all); or IMAGE_ALLOWLIST")
	flags.BoolVar(&o.Policy.RequireDigest, "require-image-digest", false, "images must end in @sha256: and a digest; or REQUIRE_IMAGE_DIGEST")
	flags.IntVar(&o.Policy.MaxStorageMounts, "max-storage-mounts", -1, "most `volumes` that a server may mount, -1 for any; or MAX_STORAGE_MOUNTS")
	flags.Var((*list)(&o.Policy.RequiredLabels), "required-labels",
		"comma-separated `keys` of labels that MCPServers and MCPAgents must have, in metadata.labels; or REQUIRED_LABELS")
}

func (o *Options) addLogFlags(flags *flag.FlagSet) (development *bool) {
	flags.StringVar(&o.LogLevel, "log-level", "info", "`level` of the log: debug, info, error, panic, or a verbosity from 1 to 128; "+
		"more than 7 counts as 7, beyond which Secrets would be logged")
	flags.StringVar(&o.LogFormat, "log-format", "json", "`format` of the log: json, or text, which is also called console")
	flags.StringVar(&o.LogTime, "zap-time-encoding", "rfc3339", "`format` of times in the log: rfc3339, rfc3339nano, iso8601, epoch, millis or nanos")
	flags.StringVar(&o.LogStacktraces, "zap-stacktrace-level", "panic", "`level` from which on stack traces are logged: info, error or panic")
	flags.StringVar(&o.LogConfigMap.Name, "logging-configmap-name", "mcp-operator-config",
		"`name` of a ConfigMap whose level replaces --log-level while the operator runs; empty looks for none")
	flags.StringVar(&o.LogConfigMap.Namespace, "logging-configmap-namespace", "", "`namespace` of that ConfigMap (default: that of --namespace)")
	flags.StringVar(&o.LogConfigMap.Key, "logging-configmap-key", "log-level", "`key` of the level in that ConfigMap")
	return flags.Bool("zap-devel", false, "log as text and from debug on, unless --log-format or --log-level says otherwise")
}

// list is a flag of several values, separated by commas. Spaces around them, and empty ones, do not count.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	*l = slices.DeleteFunc(strings.Split(text, ","), func(value string) bool { return strings.TrimSpace(value) == "" })
	for i := range *l {
		(*l)[i] = strings.TrimSpace((*l)[i])
	}
	return nil
}

package operator

import (
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/webhook"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// environment is a list of these variables, as a process is given one.
func environment(variables map[string]string) (list []string) {
	for name, value := range variables {
		list = append(list, name+"="+value)
	}
	return list
}

// environ is an environment of these variables.
func environ(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func defaults() Options {
	return Options{
		Namespace:      "mcp-operator-system",
		ClusterDomain:  "cluster.local",
		DNSNamespace:   "kube-system",
		DNSSelector:    "k8s-app=kube-dns",
		MetricsAddress: ":8443",
		MetricsSecure:  true,
		MetricsCert:    CertFiles{Name: "tls.crt", Key: "tls.key"},
		WebhookCert:    CertFiles{Dir: "/tmp/k8s-webhook-server/serving-certs", Name: "tls.crt", Key: "tls.key"},
		Policy:         webhook.Policy{MaxStorageMounts: -1},
		HealthAddress:  ":8081",
		LeaderElect:    true,
		Workers:        16,
		LogLevel:       "info",
		LogFormat:      "json",
		LogTime:        "rfc3339",
		LogStacktraces: "panic",
		LogConfigMap:   LogConfigMap{Name: "mcp-operator-config", Namespace: "mcp-operator-system", Key: "log-level"},
	}
}

// certificates makes a folder with files of these names.
func certificates(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// parseCase is a command line and what it asks for.
type parseCase struct {
	args []string
	env  map[string]string
	want Options
}

func changed(change func(*Options)) Options {
	o := defaults()
	change(&o)
	return o
}

func TestParse(t *testing.T) {
	t.Parallel()
	certs := certificates(t, "tls.crt", "tls.key", "a.crt", "a.key")
	everything := Options{
		Namespace: "own", ClusterDomain: "k8s.example.com", MetricsAddress: "127.0.0.1:9443",
		MetricsCert:   CertFiles{Dir: certs, Name: "a.crt", Key: "a.key"},
		HealthAddress: "[::1]:9081", Workers: 3, LogLevel: "debug", LogFormat: "text", LogTime: "epoch", LogStacktraces: "error",
		LogConfigMap: LogConfigMap{Name: "loud", Namespace: "elsewhere", Key: "level"},
		EnableHTTP2:  true, GatewayImage: "registry.example.com/gateway:1", AllowPrivateEndpoints: true, DNSNamespace: "dns", DNSSelector: "app in (dns)",
		EnableWebhook: true, WebhookCert: CertFiles{Dir: certs, Name: "a.crt", Key: "a.key"},
		Policy: webhook.Policy{
			Images: []string{"registry.example.com/team", "quay.example.com/"}, RequireDigest: true, MaxStorageMounts: 2,
			RequiredLabels: []string{"team", "example.com/cost"},
		},
	}
	line := map[string]string{
		"namespace": "own", "cluster-domain": "k8s.example.com", "metrics-bind-address": "127.0.0.1:9443", "metrics-secure": "false",
		"metrics-cert-path": certs, "metrics-cert-name": "a.crt", "metrics-cert-key": "a.key", "health-probe-bind-address": "[::1]:9081",
		"leader-elect": "false", "workers": "3", "log-level": "debug", "log-format": "text", "zap-time-encoding": "epoch",
		"zap-stacktrace-level": "error", "logging-configmap-name": "loud", "logging-configmap-namespace": "elsewhere",
		"logging-configmap-key": "level", "enable-http2": "true", "gateway-image": "registry.example.com/gateway:1", "enable-webhook": "true",
		"webhook-cert-path": certs, "webhook-cert-name": "a.crt", "webhook-cert-key": "a.key",
		"image-allowlist": "registry.example.com/team, quay.example.com/,", "require-image-digest": "true", "max-storage-mounts": "2",
		"required-labels": "team,example.com/cost", "allow-private-endpoints": "true", "dns-namespace": "dns", "dns-selector": "app in (dns)",
	}
	var args []string
	env := map[string]string{}
	for name, value := range line {
		args = append(args, "--"+name+"="+value)
		env["MCP_OPERATOR_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = value
	}
	checkParse(t, map[string]parseCase{
		"nothing is given":           {want: defaults()},
		"every flag":                 {args: args, want: everything},
		"every environment variable": {env: env, want: everything},
		"a flag wins over its environment variable": {
			args: []string{"--log-level=error"},
			env:  map[string]string{"MCP_OPERATOR_LOG_LEVEL": "debug"},
			want: changed(func(o *Options) { o.LogLevel = "error" }),
		},
		"the pod's namespace is the default": {
			env:  map[string]string{"POD_NAMESPACE": "of-the-pod"},
			want: changed(func(o *Options) { o.Namespace, o.LogConfigMap.Namespace = "of-the-pod", "of-the-pod" }),
		},
		"the environment variable wins over the pod's namespace": {
			env:  map[string]string{"POD_NAMESPACE": "of-the-pod", "MCP_OPERATOR_NAMESPACE": "other"},
			want: changed(func(o *Options) { o.Namespace, o.LogConfigMap.Namespace = "other", "other" }),
		},
		"an empty environment variable is none": {
			env:  map[string]string{"MCP_OPERATOR_WORKERS": "", "POD_NAMESPACE": "", "IMAGE_ALLOWLIST": "", "TLS_MIN_VERSION": ""},
			want: defaults(),
		},
		"nothing is served at 0": {
			args: []string{"--metrics-bind-address=0", "--health-probe-bind-address=0"},
			want: changed(func(o *Options) { o.MetricsAddress, o.HealthAddress = "0", "0" }),
		},
		"some namespaces only": {
			env:  map[string]string{"MCP_OPERATOR_WATCH_NAMESPACES": "team-a,team-b"},
			want: changed(func(o *Options) { o.WatchNamespaces = "team-a,team-b" }),
		},
		"no ConfigMap is looked for": {
			args: []string{"--logging-configmap-name="},
			want: changed(func(o *Options) { o.LogConfigMap.Name = "" }),
		},
	})
}

func TestFlagsAndVariablesOfTheSIGOperatorAreUnderstood(t *testing.T) {
	t.Parallel()
	certs := certificates(t, "tls.crt", "tls.key")
	checkParse(t, map[string]parseCase{
		"the policy by its variables": {
			args: []string{"--enable-webhook", "--webhook-cert-path=" + certs},
			env: map[string]string{
				"IMAGE_ALLOWLIST": "registry.example.com", "REQUIRE_IMAGE_DIGEST": "true", "MAX_STORAGE_MOUNTS": "0", "REQUIRED_LABELS": "team",
			},
			want: changed(func(o *Options) {
				o.EnableWebhook, o.WebhookCert.Dir = true, certs
				o.Policy = webhook.Policy{Images: []string{"registry.example.com"}, RequireDigest: true, RequiredLabels: []string{"team"}}
			}),
		},
		"our variable wins over theirs, and a flag over both": {
			args: []string{"--enable-webhook", "--webhook-cert-path=" + certs, "--max-storage-mounts=3"},
			env: map[string]string{
				"REQUIRED_LABELS": "theirs", "MCP_OPERATOR_REQUIRED_LABELS": "ours", "MAX_STORAGE_MOUNTS": "1", "MCP_OPERATOR_MAX_STORAGE_MOUNTS": "2",
			},
			want: changed(func(o *Options) {
				o.EnableWebhook, o.WebhookCert.Dir = true, certs
				o.Policy.RequiredLabels, o.Policy.MaxStorageMounts = []string{"ours"}, 3
			}),
		},
		"the TLS profile": {
			env:  map[string]string{"TLS_MIN_VERSION": "VersionTLS13"},
			want: changed(func(o *Options) { o.TLS.MinVersion = tls.VersionTLS13 }),
		},
		"the older name of the folder": {
			args: []string{"--metrics-cert-dir=" + certs},
			want: changed(func(o *Options) { o.MetricsCert.Dir = certs }),
		},
		"names of zap": {
			args: []string{"--zap-log-level=5", "--zap-encoder=console"},
			want: changed(func(o *Options) { o.LogLevel, o.LogFormat = "5", "text" }),
		},
		"words of zap in any case": {
			args: []string{"--zap-log-level=DEBUG", "--zap-encoder=Console", "--zap-time-encoding=ISO8601", "--zap-stacktrace-level=Error"},
			want: changed(func(o *Options) {
				o.LogLevel, o.LogFormat, o.LogTime, o.LogStacktraces = "DEBUG", "text", "iso8601", "error"
			}),
		},
		"a name of zap wins over the variable of ours": {
			args: []string{"--zap-log-level=error"},
			env:  map[string]string{"MCP_OPERATOR_LOG_LEVEL": "debug"},
			want: changed(func(o *Options) { o.LogLevel = "error" }),
		},
		"development": {
			args: []string{"--zap-devel"},
			want: changed(func(o *Options) { o.LogLevel, o.LogFormat = "debug", "text" }),
		},
		"development that says more": {
			args: []string{"--zap-devel", "--zap-log-level=info"},
			env:  map[string]string{"MCP_OPERATOR_LOG_FORMAT": "json"},
			want: changed(func(*Options) {}),
		},
	})
}

func checkParse(t *testing.T, tests map[string]parseCase) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tt.args, environment(tt.env), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseRefusesABadValueWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"namespace":       {args: []string{"--namespace=Not_A_Name"}, want: `--namespace "Not_A_Name" is not the name of a namespace`},
		"empty namespace": {args: []string{"--namespace="}, want: `--namespace "" is not the name of a namespace`},
		"long namespace":  {args: []string{"--namespace=" + strings.Repeat("a", 64)}, want: `" is not the name of a namespace`},
		"cluster domain":  {args: []string{"--cluster-domain=cluster..local"}, want: `--cluster-domain "cluster..local" is not a DNS domain`},
		"metrics address": {args: []string{"--metrics-bind-address=8443"}, want: `--metrics-bind-address "8443" is neither host:port, :port nor 0`},
		"health address":  {args: []string{"--health-probe-bind-address=:99999"}, want: `--health-probe-bind-address ":99999" is neither host`},
		"a namespace that is none": {
			args: []string{"--watch-namespaces=team-a,"},
			want: `--watch-namespaces "" is not the name of a namespace, or is the operator's own, where no server is run`,
		},
		"the operator's own namespace": {
			args: []string{"--watch-namespaces=mcp-operator-system"},
			want: `--watch-namespaces "mcp-operator-system" is not the name of a namespace, or is the operator's own, where no server is run`,
		},
		"no namespace of DNS": {
			args: []string{"--dns-namespace=Kube System"}, want: `--dns-namespace "Kube System" is not the name of a namespace`,
		},
		"no selector of DNS": {
			args: []string{"--dns-selector=a=b=c"}, want: `--dns-selector "a=b=c": it is not a selector of labels: ` +
				`couldn't parse the selector string "a=b=c": found '=', expected: ',' or 'end of string'`,
		},
		"no workers":       {args: []string{"--workers=0"}, want: `--workers 0 is not between 1 and 256`},
		"too many workers": {args: []string{"--workers=257"}, want: `--workers 257 is not between 1 and 256`},
		"log format":       {args: []string{"--log-format=xml"}, want: `--log-format "xml" is neither json nor text`},
		"log level":        {args: []string{"--log-level=loud"}, want: `--log-level: "loud" is neither debug, info, error, panic nor a verbosity from 1`},
		"certificates":     {args: []string{"--metrics-cert-path=/nowhere"}, want: `--metrics-cert-path "/nowhere": stat /nowhere/tls.crt: no such file`},
		"times in the log": {args: []string{"--zap-time-encoding=stardate"}, want: `--zap-time-encoding "stardate" is none of ["rfc3339"`},
		"stack traces":     {args: []string{"--zap-stacktrace-level=debug"}, want: `--zap-stacktrace-level "debug" is none of ["info" "error" "panic"]`},
		"webhook without certificates": {
			args: []string{"--enable-webhook", "--webhook-cert-path=/nowhere"}, want: `--webhook-cert-path "/nowhere": stat /nowhere/tls.crt: no such file`,
		},
		"policy without the webhook": {args: []string{"--required-labels=team"}, want: "are enforced by the webhook alone: give --enable-webhook too"},
		"policy of the environment without the webhook": {
			env: map[string]string{"IMAGE_ALLOWLIST": "registry.example.com"}, want: "are enforced by the webhook alone: give --enable-webhook too",
		},
		"variable of the policy": {
			env: map[string]string{"MAX_STORAGE_MOUNTS": "few"}, want: `environment variable MAX_STORAGE_MOUNTS="few": parse error`,
		},
		"image on the allow list": {args: []string{"--enable-webhook", "--image-allowlist=a b"}, want: `--image-allowlist "a b" is not the beginning`},
		"key of a label":          {args: []string{"--required-labels=team=a"}, want: `--required-labels "team=a" is not the key of a label`},
		"number of mounts":        {args: []string{"--max-storage-mounts=-2"}, want: "--max-storage-mounts -2 is neither -1, for any number, nor a number"},
		"name of the ConfigMap":   {args: []string{"--logging-configmap-name=A"}, want: `--logging-configmap-name "A" is not the name of a ConfigMap`},
		"namespace of the ConfigMap": {
			args: []string{"--logging-configmap-namespace=a.b"}, want: `--logging-configmap-namespace "a.b" is not the name of a namespace`,
		},
		"key in the ConfigMap": {args: []string{"--logging-configmap-key="}, want: `--logging-configmap-key "" is not a key of a ConfigMap`},
		"argument":             {args: []string{"serve"}, want: `unexpected argument "serve": mcp-operator takes flags only, see --help`},
		"number in the environment": {
			env: map[string]string{"MCP_OPERATOR_WORKERS": "many"}, want: `environment variable MCP_OPERATOR_WORKERS="many": parse error`,
		},
		"switch in the environment": {
			env: map[string]string{"MCP_OPERATOR_LEADER_ELECT": "maybe"}, want: `environment variable MCP_OPERATOR_LEADER_ELECT="maybe": parse error`,
		},
		"text in the environment": {
			env: map[string]string{"MCP_OPERATOR_LOG_FORMAT": "xml"}, want: `--log-format "xml" is neither json nor text`,
		},
		"several at once": {
			args: []string{"--workers=0", "--log-format=xml"},
			want: "--workers 0 is not between 1 and 256\n--log-format \"xml\" is neither json nor text",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tt.args, environment(tt.env), io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestUnknownFlagsAndBadValuesPointToTheHelp(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--colour", "--workers=many"} {
		var help strings.Builder
		_, err := Parse([]string{arg}, nil, &help)
		if err == nil || !strings.HasSuffix(err.Error(), "; see --help") || help.Len() > 0 {
			t.Errorf("%s: error is %v, printed %q", arg, err, help.String())
		}
	}
}

func TestHelpIsShownWhateverTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	if _, err := Parse([]string{"--help"}, []string{"MCP_OPERATOR_WORKERS=many", "MCP_OPERATOR_WORKER=3"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error is %v", err)
	}
}

func TestHelpShowsEveryFlagAndItsDefault(t *testing.T) {
	const golden = "testdata/help.golden"
	var printed strings.Builder
	if _, err := Parse([]string{"--help"}, nil, &printed); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error is %v", err)
	}
	got := printed.String()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the help differs from %s (-want +got); -update rewrites it:\n%s", golden, diff)
	}
}

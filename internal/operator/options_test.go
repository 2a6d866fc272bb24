package operator

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// environ is an environment of these variables.
func environ(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func defaults() Options {
	return Options{
		Namespace:      "mcp-operator-system",
		ClusterDomain:  "cluster.local",
		MetricsAddress: ":8443",
		MetricsSecure:  true,
		HealthAddress:  ":8081",
		LeaderElect:    true,
		Workers:        16,
		LogLevel:       "info",
		LogFormat:      "json",
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	certs := t.TempDir()
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.WriteFile(filepath.Join(certs, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := func(change func(*Options)) Options {
		o := defaults()
		change(&o)
		return o
	}
	everything := Options{
		Namespace: "own", ClusterDomain: "k8s.example.com", MetricsAddress: "127.0.0.1:9443", MetricsCertDir: certs,
		HealthAddress: "[::1]:9081", Workers: 3, LogLevel: "debug", LogFormat: "text",
	}
	tests := map[string]struct {
		args []string
		env  map[string]string
		want Options
	}{
		"nothing is given": {want: defaults()},
		"every flag": {
			args: []string{
				"--namespace=own", "--cluster-domain=k8s.example.com", "--metrics-bind-address=127.0.0.1:9443", "--metrics-secure=false",
				"--metrics-cert-dir=" + certs, "--health-probe-bind-address=[::1]:9081", "--leader-elect=false", "--workers=3",
				"--log-level=debug", "--log-format=text",
			},
			want: everything,
		},
		"every environment variable": {
			env: map[string]string{
				"MCP_OPERATOR_NAMESPACE": "own", "MCP_OPERATOR_CLUSTER_DOMAIN": "k8s.example.com",
				"MCP_OPERATOR_METRICS_BIND_ADDRESS": "127.0.0.1:9443", "MCP_OPERATOR_METRICS_SECURE": "false",
				"MCP_OPERATOR_METRICS_CERT_DIR": certs, "MCP_OPERATOR_HEALTH_PROBE_BIND_ADDRESS": "[::1]:9081",
				"MCP_OPERATOR_LEADER_ELECT": "false", "MCP_OPERATOR_WORKERS": "3",
				"MCP_OPERATOR_LOG_LEVEL": "debug", "MCP_OPERATOR_LOG_FORMAT": "text",
			},
			want: everything,
		},
		"a flag wins over its environment variable": {
			args: []string{"--log-level=error"},
			env:  map[string]string{"MCP_OPERATOR_LOG_LEVEL": "debug"},
			want: changed(func(o *Options) { o.LogLevel = "error" }),
		},
		"the pod's namespace is the default": {
			env:  map[string]string{"POD_NAMESPACE": "of-the-pod"},
			want: changed(func(o *Options) { o.Namespace = "of-the-pod" }),
		},
		"the environment variable wins over the pod's namespace": {
			env:  map[string]string{"POD_NAMESPACE": "of-the-pod", "MCP_OPERATOR_NAMESPACE": "other"},
			want: changed(func(o *Options) { o.Namespace = "other" }),
		},
		"an empty environment variable is none": {
			env:  map[string]string{"MCP_OPERATOR_WORKERS": "", "POD_NAMESPACE": ""},
			want: defaults(),
		},
		"nothing is served at 0": {
			args: []string{"--metrics-bind-address=0", "--health-probe-bind-address=0"},
			want: changed(func(o *Options) { o.MetricsAddress, o.HealthAddress = "0", "0" }),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tt.args, environ(tt.env), io.Discard)
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
		"namespace":        {args: []string{"--namespace=Not_A_Name"}, want: `--namespace "Not_A_Name" is not the name of a namespace`},
		"empty namespace":  {args: []string{"--namespace="}, want: `--namespace "" is not the name of a namespace`},
		"long namespace":   {args: []string{"--namespace=" + strings.Repeat("a", 64)}, want: `" is not the name of a namespace`},
		"cluster domain":   {args: []string{"--cluster-domain=cluster..local"}, want: `--cluster-domain "cluster..local" is not a DNS domain`},
		"metrics address":  {args: []string{"--metrics-bind-address=8443"}, want: `--metrics-bind-address "8443" is neither host:port, :port nor 0`},
		"health address":   {args: []string{"--health-probe-bind-address=:99999"}, want: `--health-probe-bind-address ":99999" is neither host`},
		"no workers":       {args: []string{"--workers=0"}, want: `--workers 0 is not between 1 and 256`},
		"too many workers": {args: []string{"--workers=257"}, want: `--workers 257 is not between 1 and 256`},
		"log format":       {args: []string{"--log-format=xml"}, want: `--log-format "xml" is neither json nor text`},
		"log level":        {args: []string{"--log-level=loud"}, want: `--log-level "loud" is neither debug, info, error nor a verbosity from 1 to 10`},
		"certificates":     {args: []string{"--metrics-cert-dir=/nowhere"}, want: `--metrics-cert-dir "/nowhere": stat /nowhere/tls.crt: no such file`},
		"argument":         {args: []string{"serve"}, want: `unexpected argument "serve": mcp-operator takes flags only, see --help`},
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
			_, err := Parse(tt.args, environ(tt.env), io.Discard)
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
		_, err := Parse([]string{arg}, environ(nil), &help)
		if err == nil || !strings.HasSuffix(err.Error(), "; see --help") || help.Len() > 0 {
			t.Errorf("%s: error is %v, printed %q", arg, err, help.String())
		}
	}
}

func TestHelpIsShownWhateverTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	if _, err := Parse([]string{"--help"}, environ(map[string]string{"MCP_OPERATOR_WORKERS": "many"}), io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error is %v", err)
	}
}

func TestHelpShowsEveryFlagAndItsDefault(t *testing.T) {
	const golden = "testdata/help.golden"
	var printed strings.Builder
	if _, err := Parse([]string{"--help"}, environ(nil), &printed); !errors.Is(err, flag.ErrHelp) {
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

func TestLogLevelsAreThoseOfZap(t *testing.T) {
	t.Parallel()
	tests := map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel, "1": -1, "4": -4, "10": -10}
	for name, want := range tests {
		if got, err := parseLevel(name); err != nil || got != want {
			t.Errorf("parseLevel(%q) = %v, %v; want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "0", "11", "-1", "warn", "INFO", "999", "5abc", "1.5", "3 debug"} {
		if got, err := parseLevel(name); err == nil {
			t.Errorf("parseLevel(%q) = %v, want an error", name, got)
		}
	}
}

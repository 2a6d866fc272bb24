package operator

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAVariableOfNoFlagIsRefused(t *testing.T) {
	t.Parallel()
	const seeHelp = " belongs to no flag, and would be ignored: see --help for those that there are"
	tests := map[string]struct {
		args, env []string
		want      string
	}{
		"singular for plural": {
			env: []string{"MCP_OPERATOR_WATCH_NAMESPACE=team-a"},
			want: "environment variable MCP_OPERATOR_WATCH_NAMESPACE belongs to no flag, and would be ignored: " +
				"is MCP_OPERATOR_WATCH_NAMESPACES meant (--watch-namespaces)? See --help for all",
		},
		"the right one beside it": {
			env: []string{"MCP_OPERATOR_WATCH_NAMESPACES=team-a", "MCP_OPERATOR_WATCH_NAMESPACE=team-a"},
			want: "environment variable MCP_OPERATOR_WATCH_NAMESPACE belongs to no flag, and would be ignored: " +
				"is MCP_OPERATOR_WATCH_NAMESPACES meant (--watch-namespaces)? See --help for all",
		},
		"the flag beside it": {
			args: []string{"--watch-namespaces=team-a"}, env: []string{"MCP_OPERATOR_NAMESPACE_WATCHED=team-a"},
			want: "environment variable MCP_OPERATOR_NAMESPACE_WATCHED" + seeHelp,
		},
		"small letters": {
			env: []string{"mcp_operator_watch_namespaces=team-a"},
			want: "environment variable mcp_operator_watch_namespaces belongs to no flag, and would be ignored: " +
				"is MCP_OPERATOR_WATCH_NAMESPACES meant (--watch-namespaces)? See --help for all",
		},
		"a policy": {
			env: []string{"MCP_OPERATOR_IMAGE_ALLOW_LIST=registry.example.com"},
			want: "environment variable MCP_OPERATOR_IMAGE_ALLOW_LIST belongs to no flag, and would be ignored: " +
				"is MCP_OPERATOR_IMAGE_ALLOWLIST meant (--image-allowlist)? See --help for all",
		},
		"another name of a flag": {
			env: []string{"MCP_OPERATOR_METRIC_CERT_DIR=/certs"},
			want: "environment variable MCP_OPERATOR_METRIC_CERT_DIR belongs to no flag, and would be ignored: " +
				"is MCP_OPERATOR_METRICS_CERT_DIR meant (--metrics-cert-dir)? See --help for all",
		},
		"a variable that has no prefix, with one": {
			env: []string{"MCP_OPERATOR_TLS_MIN_VERSION=VersionTLS13"}, want: "environment variable MCP_OPERATOR_TLS_MIN_VERSION" + seeHelp,
		},
		"like none":      {env: []string{"MCP_OPERATOR_COLOUR=red"}, want: "environment variable MCP_OPERATOR_COLOUR" + seeHelp},
		"the prefix":     {env: []string{"MCP_OPERATOR_=red"}, want: "environment variable MCP_OPERATOR_" + seeHelp},
		"a port of none": {env: []string{"MCP_OPERATOR_PORT_HTTP=8080"}, want: "environment variable MCP_OPERATOR_PORT_HTTP" + seeHelp},
		"a host of none": {env: []string{"MCP_OPERATOR_HOST=a"}, want: "environment variable MCP_OPERATOR_HOST" + seeHelp},
		"several, sorted": {
			env:  []string{"MCP_OPERATOR_Q=1", "MCP_OPERATOR_COLOUR=1"},
			want: "environment variable MCP_OPERATOR_COLOUR" + seeHelp + "\nenvironment variable MCP_OPERATOR_Q" + seeHelp,
		},
		"beside a value that is wrong": {
			env: []string{"MCP_OPERATOR_COLOUR=red", "MCP_OPERATOR_WORKERS=many"},
			want: `environment variable MCP_OPERATOR_WORKERS="many": parse error` +
				"\nenvironment variable MCP_OPERATOR_COLOUR" + seeHelp,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tt.args, tt.env, io.Discard)
			if err == nil {
				t.Fatal("nothing is said")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVariablesOfOthersAreNobodysBusiness(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"an empty one is none":       {"MCP_OPERATOR_COLOUR="},
		"another prefix":             {"MCP_OPERATORS=1", "MCP_GATEWAY_COLOUR=red", "OPERATOR_COLOUR=red", "MCP_OPERATOR=1", "PATH=/bin", ""},
		"a Service of the same name": ofService("MCP_OPERATOR", "HTTP"),
		"the Service of the metrics": ofService("MCP_OPERATOR_METRICS", "HTTPS"),
		"the Service of the webhook": ofService("MCP_OPERATOR_WEBHOOK", "HTTPS_2"),
		"a Service named as a flag":  ofService("MCP_OPERATOR_WATCH_NAMESPACE", "DNS_UDP"),
	}
	for name, env := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(nil, env, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(defaults(), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// ofService are the variables that the kubelet makes of a Service with a named port.
func ofService(service, port string) []string {
	return []string{
		service + "_SERVICE_HOST=10.0.0.1", service + "_SERVICE_PORT=8443", service + "_SERVICE_PORT_" + port + "=8443",
		service + "_PORT=tcp://10.0.0.1:8443", service + "_PORT_8443_TCP=tcp://10.0.0.1:8443", service + "_PORT_8443_TCP_PROTO=tcp",
		service + "_PORT_8443_TCP_PORT=8443", service + "_PORT_8443_TCP_ADDR=10.0.0.1", service + "_PORT_53_UDP_ADDR=10.0.0.1",
	}
}

package gateway

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestAWrongCommandLineIsRefusedWithTheFlagThatIsWrong(t *testing.T) {
	t.Parallel()
	serving := []string{"--table", "t.json", "--ephemeral-session-key"}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "--table is missing"},
		{[]string{"--table", "t.json"}, "--session-keys"},
		{append(serving, "--session-keys", "keys"), "--session-keys"},
		{append(serving, "more"), `"more"`},
		{append(serving, "--tls-cert", "c.pem"), "--tls-key"},
		{append(serving, "--configmap", "name"), "--configmap"},
		{append(serving, "--max-calls", "0"), "--max-calls"},
		{append(serving, "--max-body-bytes", "20000000"), "--max-bodies-bytes"},
		{append(serving, "--max-bodies-bytes", "100000000"), "--max-total-bodies-bytes"},
		{append(serving, "--max-tools", "0"), "--max-tools"},
		{append(serving, "--max-response-header-bytes", "0"), "--max-response-header-bytes"},
		{append(serving, "--configmap", "a.b/name"), "--configmap"},
		{append(serving, "--configmap", "a/-name"), "--configmap"},
		{append(serving, "--call-timeout", "0"), "--call-timeout"},
		{append(serving, "--hold", "0"), "--hold"},
		{append(serving, "--hold", "-5s"), "--hold"},
		{append(serving, "--drain-delay", "-1s"), "--drain-delay"},
	} {
		_, err := ParseServe(tc.args, func(string) string { return "" }, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("serve %q: %v, want %s in it", tc.args, err, tc.want)
		}
	}
	if _, err := ParseServe(serving, func(string) string { return "" }, io.Discard); err != nil {
		t.Errorf("a right one is refused: %v", err)
	}
}

func TestAFlagIsReadFromTheEnvironmentUnlessItIsGiven(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string {
		return map[string]string{"MCP_GATEWAY_MAX_CALLS": "7", "MCP_GATEWAY_MAX_STREAMS": "8"}[name]
	}
	o, err := ParseServe([]string{"--table", "t.json", "--ephemeral-session-key", "--max-streams", "9"}, getenv, io.Discard)
	if err != nil || o.Limits.Calls != 7 || o.Limits.Streams != 9 {
		t.Errorf("calls %d, streams %d, %v", o.Limits.Calls, o.Limits.Streams, err)
	}
}

func TestAGatewayThatIgnoresItsEnvironmentGoesByItsCommandLineAlone(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string {
		return map[string]string{
			"MCP_GATEWAY_MAX_CALLS": "7", "MCP_GATEWAY_STATUS_TOKEN_FILE": "/etc/passwd", "MCP_GATEWAY_CALL_TIMEOUT": "nonsense",
			"MCP_GATEWAY_IGNORE_ENVIRONMENT": "false",
		}[name]
	}
	for name, parsed := range map[string]func() (Options, error){
		"stdio": func() (Options, error) {
			return ParseStdio([]string{"--ignore-environment", "--max-streams", "9", "--", "server"}, getenv, io.Discard)
		},
		"serve": func() (Options, error) {
			return ParseServe([]string{"--table", "t.json", "--ephemeral-session-key", "--ignore-environment", "--max-streams=9"}, getenv, io.Discard)
		},
	} {
		o, err := parsed()
		if err != nil || o.Limits.Calls != 100 || o.Limits.Streams != 9 || o.StatusTokenFile != "" || !o.IgnoreEnvironment {
			t.Errorf("%s: calls %d, streams %d, token %q, %v", name, o.Limits.Calls, o.Limits.Streams, o.StatusTokenFile, err)
		}
	}
	only := func(name string) string {
		return map[string]string{"MCP_GATEWAY_IGNORE_ENVIRONMENT": "true", "MCP_GATEWAY_MAX_CALLS": "7"}[name]
	}
	o, err := ParseStdio([]string{"--", "server"}, only, io.Discard)
	if err != nil || o.IgnoreEnvironment || o.Limits.Calls != 7 {
		t.Errorf("the environment says to ignore it: %v, calls %d, %v", o.IgnoreEnvironment, o.Limits.Calls, err)
	}
	var help strings.Builder
	if _, err := ParseStdio([]string{"--help"}, getenv, &help); err == nil || !strings.Contains(help.String(), "-ignore-environment") {
		t.Errorf("the help does not tell of it: %v", err)
	}
}

func TestAChildIsGivenTheEnvironmentWithoutWhatIsTheGateways(t *testing.T) {
	t.Parallel()
	given := []string{"A=1", "MCP_GATEWAY_MAX_CALLS=7", "OTEL_SERVICE_NAME=child", "MCP_GATEWAYS=2"}
	for ignores, want := range map[bool]string{true: strings.Join(given, " "), false: "A=1 OTEL_SERVICE_NAME=child MCP_GATEWAYS=2"} {
		o := Options{IgnoreEnvironment: ignores}
		if got := strings.Join(o.childEnvironment(slices.Clone(given)), " "); got != want {
			t.Errorf("ignoring it %v: %s", ignores, got)
		}
	}
}

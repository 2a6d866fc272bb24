package operator

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/webhook"
)

// Options are the operator's command line. Each flag has an environment variable: MCP_OPERATOR_ and the flag's name in
// capitals, with '_' for '-'. A flag that is given wins.
type Options struct {
	// Namespace is the operator's own namespace.
	Namespace string
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain string
	// WatchNamespaces are the namespaces to act in, separated by commas; empty acts in all.
	WatchNamespaces string
	// GatewayImage is the image of the endpoint of agents, and of the bridge that runs Stdio servers; empty runs neither.
	GatewayImage string
	// AllowPrivateEndpoints lets the endpoints of MCPTools be at private addresses.
	AllowPrivateEndpoints bool
	// DNSNamespace and DNSSelector say which pods answer DNS; without a namespace it may be anybody.
	DNSNamespace, DNSSelector string
	// Workers is how many objects are reconciled at once.
	Workers int
	// LeaderElect lets only one of several operators act.
	LeaderElect bool
	// HealthAddress is where /healthz and /readyz are served.
	HealthAddress string

	// MetricsAddress is where metrics are served; "0" serves none.
	MetricsAddress string
	// MetricsSecure serves metrics by TLS and asks the API server who may read them.
	MetricsSecure bool
	// MetricsCert is the certificate for the metrics; without a folder it is a self-signed one.
	MetricsCert CertFiles

	// EnableWebhook serves the validating webhook, which holds MCPServers to Policy.
	EnableWebhook bool
	// WebhookCert is the certificate of the webhook.
	WebhookCert CertFiles
	// Policy is what every MCPServer has to meet.
	Policy webhook.Policy

	// EnableHTTP2 lets metrics and webhook be asked by HTTP/2.
	EnableHTTP2 bool
	// TLS is the profile of the environment; it has no flags.
	TLS TLSProfile

	// LogLevel is debug, info, error, panic, or a verbosity from 1 to 128.
	LogLevel string
	// LogFormat is json or text; console is text.
	LogFormat string
	// LogTime is how times are written: rfc3339, rfc3339nano, iso8601, epoch, millis or nanos.
	LogTime string
	// LogStacktraces is the level from which on stack traces are logged: info, error or panic.
	LogStacktraces string
	// LogConfigMap is where the level is read while the operator runs.
	LogConfigMap LogConfigMap
}

// CertFiles are a certificate and its key as files, which are read again when they change.
type CertFiles struct {
	// Dir is the folder.
	Dir string
	// Name and Key are the names of the files in it.
	Name, Key string
}

// LogConfigMap names an entry of a ConfigMap.
type LogConfigMap struct {
	// Name of the ConfigMap; empty looks for none.
	Name string
	// Namespace of the ConfigMap. Default: that of the operator.
	Namespace string
	// Key is that of the entry.
	Key string
}

const environmentPrefix = "MCP_OPERATOR_"

// Parse reads a command line and the environment, a list of name=value. Asked for help, it writes that to help and returns flag.ErrHelp.
func Parse(args, environment []string, help io.Writer) (Options, error) {
	var o Options
	variables := parseEnvironment(environment)
	getenv := func(name string) string { return variables[name] }
	flags := flag.NewFlagSet("mcp-operator", flag.ContinueOnError)
	o.addFlags(flags, getenv)
	o.addMetricsFlags(flags)
	o.addWebhookFlags(flags)
	development := o.addLogFlags(flags)
	addAliases(flags)
	flags.SetOutput(io.Discard) // the caller tells the error, once
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		printHelp(flags, help)
		return o, err
	}
	if err != nil {
		return o, fmt.Errorf("%w; see --help", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: mcp-operator takes flags only, see --help", flags.Arg(0))
	}
	given, err := fromEnvironment(flags, getenv)
	if err := errors.Join(err, refuseStrangers(flags, variables)); err != nil {
		return o, err
	}
	o.complete(*development, given)
	o.TLS = ParseTLSProfile(getenv)
	return o, o.validate()
}

// complete fills in what one flag leaves to another.
func (o *Options) complete(development bool, given map[string]bool) {
	for _, word := range []*string{&o.LogFormat, &o.LogTime, &o.LogStacktraces} {
		*word = strings.ToLower(*word) // as controller-runtime reads its flags
	}
	if development && !given["log-format"] {
		o.LogFormat = "text"
	}
	if development && !given["log-level"] {
		o.LogLevel = "debug"
	}
	if o.LogFormat == "console" {
		o.LogFormat = "text"
	}
	o.LogConfigMap.Namespace = cmp.Or(o.LogConfigMap.Namespace, o.Namespace)
}

func printHelp(flags *flag.FlagSet, out io.Writer) {
	flags.SetOutput(out)
	fmt.Fprintf(out, "mcp-operator runs MCP servers on Kubernetes.\n\nUsage: mcp-operator [flags]\n\n"+
		"Each flag can be given as an environment variable too: --log-level as %sLOG_LEVEL.\n\nFlags:\n", environmentPrefix)
	flags.PrintDefaults()
}

// variableOf returns the environment variable of a flag.
func variableOf(name string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// fromEnvironment sets the flags that were not given, and returns the names of those that have been set one way or the other.
func fromEnvironment(flags *flag.FlagSet, getenv func(string) string) (given map[string]bool, bad error) {
	given = map[string]bool{}
	note := func(f *flag.Flag) {
		given[f.Name], given[original(f.Name)] = true, true
	}
	flags.Visit(note)
	flags.VisitAll(func(f *flag.Flag) {
		name := variableOf(f.Name)
		if getenv(name) == "" && plainVariables[f.Name] != "" {
			name = plainVariables[f.Name]
		}
		value := getenv(name)
		if value == "" || given[f.Name] || given[original(f.Name)] {
			return
		}
		if err := f.Value.Set(value); err != nil {
			bad = errors.Join(bad, fmt.Errorf("environment variable %s=%q: %w", name, value, err))
			return
		}
		note(f)
	})
	return given, bad
}

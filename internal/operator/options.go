package operator

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.uber.org/zap/zapcore"
)

// Options are the operator's command line. Each flag has an environment variable: MCP_OPERATOR_ and the flag's name in
// capitals, with '_' for '-'. A flag that is given wins.
type Options struct {
	// Namespace is the operator's own namespace.
	Namespace string
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain string
	// MetricsAddress is where metrics are served; "0" serves none.
	MetricsAddress string
	// MetricsSecure serves metrics by TLS and asks the API server who may read them.
	MetricsSecure bool
	// MetricsCertDir holds tls.crt and tls.key for the metrics; empty uses a self-signed certificate.
	MetricsCertDir string
	// HealthAddress is where /healthz and /readyz are served.
	HealthAddress string
	// LeaderElect lets only one of several operators act.
	LeaderElect bool
	// GatewayImage is the image with the bridge that runs Stdio servers; empty runs none.
	GatewayImage string
	// Workers is how many objects are reconciled at once.
	Workers int
	// LogLevel is debug, info, error, or a verbosity from 1 to 10.
	LogLevel string
	// LogFormat is json or text.
	LogFormat string
}

const environmentPrefix = "MCP_OPERATOR_"

// Parse reads a command line and the environment. Asked for help, it writes that to help and returns flag.ErrHelp.
func Parse(args []string, getenv func(string) string, help io.Writer) (Options, error) {
	var o Options
	flags := flag.NewFlagSet("mcp-operator", flag.ContinueOnError)
	flags.StringVar(&o.Namespace, "namespace", cmp.Or(getenv("POD_NAMESPACE"), "mcp-operator-system"),
		"`namespace` of the operator itself: its lease, its key, and where NetworkPolicies let callers in from")
	flags.StringVar(&o.ClusterDomain, "cluster-domain", "cluster.local", "DNS `domain` of the cluster")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "`address` to serve metrics on; 0 serves none")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "serve metrics by TLS, to callers that the API server authenticates and authorizes")
	flags.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "",
		"`folder` with tls.crt and tls.key for the metrics, read again when they change (default: a self-signed certificate)")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "`address` to serve /healthz and /readyz on; 0 serves none")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "act only while holding a lease, so that several operators can run")
	flags.StringVar(&o.GatewayImage, "gateway-image", "",
		"`image` with /mcp-gateway, which runs servers of the transport Stdio; without it they are not run, and say so")
	flags.IntVar(&o.Workers, "workers", 16, "`number` of objects that are reconciled at once")
	flags.StringVar(&o.LogLevel, "log-level", "info", "`level` of the log: debug, info, error, or a verbosity from 1 to 10")
	flags.StringVar(&o.LogFormat, "log-format", "json", "`format` of the log: json or text")
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
	if err := fromEnvironment(flags, getenv); err != nil {
		return o, err
	}
	return o, o.validate()
}

func printHelp(flags *flag.FlagSet, out io.Writer) {
	flags.SetOutput(out)
	fmt.Fprintf(out, "mcp-operator runs MCP servers on Kubernetes.\n\nUsage: mcp-operator [flags]\n\n"+
		"Each flag can be given as an environment variable too: --log-level as %sLOG_LEVEL.\n\nFlags:\n", environmentPrefix)
	flags.PrintDefaults()
}

// fromEnvironment sets the flags that were not given.
func fromEnvironment(flags *flag.FlagSet, getenv func(string) string) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var bad error
	flags.VisitAll(func(f *flag.Flag) {
		name := environmentPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value := getenv(name)
		if value == "" || given[f.Name] {
			return
		}
		if err := f.Value.Set(value); err != nil {
			bad = errors.Join(bad, fmt.Errorf("environment variable %s=%q: %w", name, value, err))
		}
	})
	return bad
}

var (
	dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// The container runtime knows better; this catches a value that was not meant.
	imageReference = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511}$`)
	dnsDomain      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

func (o Options) validate() error {
	var problems []error
	complain := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	complain(dnsLabel.MatchString(o.Namespace), "--namespace %q is not the name of a namespace", o.Namespace)
	complain(dnsDomain.MatchString(o.ClusterDomain), "--cluster-domain %q is not a DNS domain", o.ClusterDomain)
	complain(isAddress(o.MetricsAddress), "--metrics-bind-address %q is neither host:port, :port nor 0", o.MetricsAddress)
	complain(isAddress(o.HealthAddress), "--health-probe-bind-address %q is neither host:port, :port nor 0", o.HealthAddress)
	complain(o.GatewayImage == "" || imageReference.MatchString(o.GatewayImage), "--gateway-image %q is not an image reference", o.GatewayImage)
	complain(o.Workers >= 1 && o.Workers <= 256, "--workers %d is not between 1 and 256", o.Workers)
	complain(o.LogFormat == "json" || o.LogFormat == "text", "--log-format %q is neither json nor text", o.LogFormat)
	if _, err := parseLevel(o.LogLevel); err != nil {
		problems = append(problems, err)
	}
	if o.MetricsCertDir != "" {
		for _, name := range []string{"tls.crt", "tls.key"} {
			_, err := os.Stat(o.MetricsCertDir + "/" + name)
			complain(err == nil, "--metrics-cert-dir %q: %v", o.MetricsCertDir, err)
		}
	}
	return errors.Join(problems...)
}

func isAddress(address string) bool {
	if address == "0" {
		return true
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

// parseLevel turns a level's name, or a verbosity, into zap's level: verbosity n is -n.
func parseLevel(name string) (zapcore.Level, error) {
	switch name {
	case "debug":
		return zapcore.DebugLevel, nil
	case "info":
		return zapcore.InfoLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	}
	verbosity, err := strconv.ParseInt(name, 10, 8)
	if err != nil || verbosity < 1 || verbosity > 10 {
		return 0, fmt.Errorf("--log-level %q is neither debug, info, error nor a verbosity from 1 to 10", name)
	}
	return zapcore.Level(-verbosity), nil
}

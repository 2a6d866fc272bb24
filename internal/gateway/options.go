// Package gateway is the composition root of mcp-gateway: it alone makes listeners, backends and clients, and wires them to
// the routing table.
package gateway

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// Options are the gateway's command line. Each flag has an environment variable: MCP_GATEWAY_ and the flag's name in
// capitals, with '_' for '-'. A flag that is given wins. With IgnoreEnvironment flags alone count.
type Options struct {
	// Listen is the address clients connect to.
	Listen string
	// HealthListen is the address of /livez, /readyz, /metrics and /status; "0" serves none of them.
	HealthListen string
	// TLSCert and TLSKey are PEM files, read again when they change; both or none.
	TLSCert, TLSKey string
	// TableFile is the routing table, read again when it changes.
	TableFile string
	// ConfigMap is "namespace/name" of the ConfigMap that TableFile is mounted from, watched besides.
	ConfigMap string
	// ConfigMapKey is the key of the table in the ConfigMap's data.
	ConfigMapKey string
	// DefinitionsCache is the folder for what is fetched of ConfigMaps that the table names; empty keeps that in memory.
	DefinitionsCache string
	// SessionKeys is the folder of keys that seal session ids.
	SessionKeys string
	// EphemeralKeys seals with a random key, for a gateway that runs alone.
	EphemeralKeys bool
	// StatusTokenFile holds the bearer token that /status asks for; without it /status is not served.
	StatusTokenFile string
	// DrainDelay is how long a gateway that was told to stop serves on as before, so that nobody is sent to it any more when
	// it stops; DrainTimeout is how long requests in flight may then take.
	DrainDelay, DrainTimeout time.Duration
	// Hold is how long a request that was not sent yet waits for its backend to come back.
	Hold time.Duration
	// Response, Event and ResponseHeader bound what a backend may send, in bytes: one response, one notification or request, and
	// the header of an HTTP response.
	Response, Event, ResponseHeader int
	// Header bounds the header of a request, in bytes.
	Header int
	// Connect bounds a TCP connect to a backend, and StreamIdle how long its response may be silent once it has begun.
	Connect, StreamIdle time.Duration
	// Connections is how many connections are accepted at once.
	Connections int
	// LoopbackIssuers lets OIDC issuers live on this host.
	LoopbackIssuers bool
	// IgnoreEnvironment says that no option was taken from the environment, and that none for the export of traces is: all of it is for
	// the child.
	IgnoreEnvironment bool
	LogLevel          slog.Level
	Limits            front.Limits

	// Stdio is set by the command of that name.
	Stdio *Stdio
}

// Stdio is the one backend of a gateway that runs a server as its child.
type Stdio struct {
	// Table is made from the command line.
	Table *table.Table
	// Sessions is auto, stateful or stateless; see package child.
	Sessions string
	// Children is how many processes run at most that belong to one session.
	Children int
	// StopGrace is how long the child may take to end. Default 5 s.
	StopGrace time.Duration
	// StartDeadline is when a gateway whose server has never answered gives up.
	StartDeadline time.Duration
	// TerminationLog is the file the reason is written to then (Kubernetes' terminationMessagePath).
	TerminationLog string
}

const (
	environmentPrefix = "MCP_GATEWAY_"
	flagIgnore        = "ignore-environment"
)

// flagSet is a command's flags, bound to o.
func flagSet(name string, o *Options) *flag.FlagSet {
	flags := flag.NewFlagSet("mcp-gateway "+name, flag.ContinueOnError)
	flags.BoolVar(&o.IgnoreEnvironment, flagIgnore, false,
		"take no option from the environment, neither "+environmentPrefix+"* nor OTEL_*: where it is meant for the server that is run; command line only")
	flags.StringVar(&o.Listen, "listen", ":8080", "`address` that clients connect to")
	flags.StringVar(&o.HealthListen, "health-listen", ":8081", "`address` of /livez, /readyz, /metrics and /status; 0 serves none of them")
	flags.StringVar(&o.TLSCert, "tls-cert", "", "PEM `file` with the certificate clients are shown, read again when it changes")
	flags.StringVar(&o.TLSKey, "tls-key", "", "PEM `file` with its key")
	flags.StringVar(&o.StatusTokenFile, "status-token-file", "", "`file` with the bearer token that /status asks for; without it /status is not served")
	flags.DurationVar(&o.DrainDelay, "drain-delay", 3*time.Second, "`time` to serve on after being told to stop, until nobody is sent here any more")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 20*time.Second, "`time` for requests in flight to end after that")
	flags.DurationVar(&o.Hold, "hold", 10*time.Second, "`time` that a request which was not sent yet waits for its backend to come back")
	flags.IntVar(&o.Connections, "max-connections", 6_000, "`number` of connections accepted at once")
	flags.IntVar(&o.Header, "max-header-bytes", 64<<10, "`bytes` of the largest header of a request")
	flags.IntVar(&o.Response, "max-response-bytes", 16<<20, "`bytes` of the largest response of a backend")
	flags.IntVar(&o.Event, "max-event-bytes", 1<<20, "`bytes` of the largest notification or request of a backend over HTTP")
	flags.IntVar(&o.ResponseHeader, "max-response-header-bytes", 64<<10, "`bytes` of the largest header of a backend's HTTP response")
	flags.DurationVar(&o.Connect, "connect-timeout", 2*time.Second, "`time` that a TCP connect to a backend may take")
	flags.DurationVar(&o.StreamIdle, "stream-idle", 5*time.Minute, "`time` that a backend's response may be silent once it has begun")
	flags.TextVar(&o.LogLevel, "log-level", slog.LevelInfo, "`level` of the log: debug, info, warn or error")
	l := &o.Limits
	flags.IntVar(&l.Body, "max-body-bytes", 4<<20, "`bytes` of the largest request")
	flags.IntVar(&l.Bodies, "max-bodies-bytes", 16<<20, "`bytes` of request bodies of one caller in memory at once")
	flags.IntVar(&l.TotalBodies, "max-total-bodies-bytes", 64<<20, "`bytes` of request bodies of all callers in memory at once")
	flags.IntVar(&l.Depth, "max-json-depth", 64, "deepest `nesting` of a request's JSON")
	flags.IntVar(&l.Members, "max-json-members", 10_000, "`number` of members of one object of a request's JSON")
	flags.IntVar(&l.Calls, "max-calls", 100, "`number` of requests of one caller at once")
	flags.IntVar(&l.Streams, "max-streams", 50, "`number` of event streams of one caller")
	flags.IntVar(&l.Sessions, "max-sessions", 100, "`number` of sessions of one caller (protocol versions up to 2025-11-25)")
	flags.IntVar(&l.Tools, "max-tools", 512, "`number` of tools of one server that are known here (a lone server's list is passed on as it is)")
	flags.IntVar(&l.TotalCalls, "max-total-calls", 1000, "`number` of requests of all callers at once")
	flags.IntVar(&l.TotalStreams, "max-total-streams", 5_000, "`number` of event streams of all callers")
	flags.IntVar(&l.TotalSessions, "max-total-sessions", 20_000, "`number` of sessions kept in memory")
	flags.DurationVar(&l.Call, "call-timeout", time.Minute, "`time` that a call may take, if the table says nothing else of its backend")
	flags.DurationVar(&l.Listing, "listing-timeout", 2*time.Second, "`time` that a list waits for a slow backend of several")
	flags.DurationVar(&l.StreamAge, "max-stream-age", time.Hour, "`time` after which an event stream is ended, for its client to open another")
	flags.DurationVar(&l.KeepAlive, "keep-alive", 20*time.Second, "`pause` after which a comment is sent on a silent event stream")
	flags.DurationVar(&l.Write, "write-timeout", 30*time.Second, "`time` that a client may stop reading")
	flags.DurationVar(&l.SessionIdle, "session-idle", 30*time.Minute, "`time` after which an unused session is forgotten; any replica can go on with it still")
	flags.DurationVar(&l.SessionAge, "session-age", 7*24*time.Hour, "`time` that a session id is valid")
	return flags
}

// ParseServe reads the command line of "mcp-gateway serve". Asked for help, it writes that to help and returns flag.ErrHelp.
func ParseServe(args []string, getenv func(string) string, help io.Writer) (Options, error) {
	var o Options
	flags := flagSet("serve", &o)
	flags.StringVar(&o.TableFile, "table", "", "`file` with the routing table, read again when it changes")
	flags.StringVar(&o.ConfigMap, "configmap", "", "`namespace/name` of the ConfigMap that --table is mounted from, watched for speed")
	flags.StringVar(&o.ConfigMapKey, "configmap-key", "table.json", "`key` of the table in that ConfigMap")
	flags.StringVar(&o.DefinitionsCache, "definitions-cache", "",
		"`folder` for the ConfigMaps with tools that the table names, read first at the next start; without it they are fetched at each")
	flags.StringVar(&o.SessionKeys, "session-keys", "", "`folder` of keys that seal session ids: each file a key of at least 32 bytes, named by its id")
	flags.BoolVar(&o.EphemeralKeys, "ephemeral-session-key", false, "seal session ids with a random key: for one gateway alone, whose sessions end with it")
	flags.BoolVar(&o.LoopbackIssuers, "loopback-issuers", false, "let OIDC issuers live on this host and speak plain HTTP: for trying things out")
	if err := parse(flags, args, getenv, help, "Usage: mcp-gateway serve --table FILE --session-keys FOLDER [flags]"); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: serve takes flags only, see mcp-gateway serve --help", flags.Arg(0))
	}
	var problems []error
	if o.TableFile == "" {
		problems = append(problems, errors.New("--table is missing: it names the file with the routing table"))
	}
	if (o.SessionKeys == "") != o.EphemeralKeys {
		problems = append(problems, errors.New("give --session-keys, or --ephemeral-session-key for a gateway that runs alone: there is no default key"))
	}
	if namespace, name, _ := strings.Cut(o.ConfigMap, "/"); o.ConfigMap != "" && (!isNamespace(namespace) || !table.IsConfigMapName(name)) {
		problems = append(problems, fmt.Errorf("--configmap %q is not namespace/name", o.ConfigMap))
	}
	return o, errors.Join(append(problems, o.validate()...)...)
}

func isNamespace(name string) bool {
	return table.IsConfigMapName(name) && !strings.Contains(name, ".")
}

// ParseStdio reads the command line of "mcp-gateway stdio".
func ParseStdio(args []string, getenv func(string) string, help io.Writer) (Options, error) {
	o := Options{EphemeralKeys: true, Stdio: &Stdio{}}
	s := o.Stdio
	var path, name string
	flags := flagSet("stdio", &o)
	flags.StringVar(&path, "path", "/mcp", "URL `path` of the endpoint")
	flags.StringVar(&name, "server-name", "server", "`name` of the server in metrics and logs: a-z, 0-9 and '-'")
	flags.StringVar(&s.Sessions, "sessions", "auto",
		"auto: clients that can be asked something get a process of their own, others share one; stateful: all get their own; stateless: all share one")
	flags.IntVar(&s.Children, "max-children", 8, "`number` of processes at most that belong to one client; clients beyond that share one")
	flags.DurationVar(&s.StartDeadline, "start-deadline", 2*time.Minute,
		"`time` after which a gateway whose server never answered gives up, for others to see; 0 waits for ever")
	flags.StringVar(&s.TerminationLog, "termination-log", "/dev/termination-log", "`file` for the reason then, if it exists")
	var grace time.Duration
	flags.DurationVar(&grace, "termination-grace", 0,
		"`time` between SIGTERM and SIGKILL, as of a pod; given, it is divided and takes the place of --drain-delay and --drain-timeout")
	const usage = "Usage: mcp-gateway stdio [flags] -- COMMAND [ARGUMENTS]\n\nRuns COMMAND, an MCP server on stdin and stdout, and serves it over HTTP."
	if err := parse(flags, args, getenv, help, usage); err != nil {
		return o, err
	}
	if grace > 0 {
		o.divide(grace)
	}
	problems := o.validate()
	if s.Children < 1 || s.StartDeadline < 0 || grace < 0 {
		problems = append(problems, errors.New("--max-children must be at least 1, --start-deadline and --termination-grace not negative"))
	}
	switch s.Sessions {
	case "auto", "stateful", "stateless":
	default:
		problems = append(problems, fmt.Errorf("--sessions %q is none of auto, stateful and stateless", s.Sessions))
	}
	if flags.NArg() == 0 {
		problems = append(problems, errors.New("the server's command is missing: mcp-gateway stdio [flags] -- COMMAND [ARGUMENTS]"))
	}
	s.Table = &table.Table{
		Version:  table.Version,
		Endpoint: table.Endpoint{Path: path},
		Auth:     table.Auth{Type: table.AuthNone},
		Backends: []table.Backend{{Name: name, Transport: table.TransportStdio, Command: flags.Args()}},
	}
	if len(problems) == 0 {
		if err := s.Table.Validate(); err != nil {
			problems = append(problems, err)
		}
	}
	return o, errors.Join(problems...)
}

// divide makes what is done after SIGTERM fit into a pod's grace period: a sixth of it, and at most 3 s, to be found by nobody
// any more; as much, and at most 5 s, for the child to end; the rest for requests in flight.
func (o *Options) divide(grace time.Duration) {
	o.DrainDelay, o.Stdio.StopGrace = min(grace/6, 3*time.Second), min(grace/6, 5*time.Second)
	o.DrainTimeout = grace - o.DrainDelay - o.Stdio.StopGrace - grace/12
}

// parse reads flags from args and, those not given, from the environment.
func parse(flags *flag.FlagSet, args []string, getenv func(string) string, help io.Writer, usage string) error {
	flags.SetOutput(io.Discard) // the caller tells the error, once
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(help)
		fmt.Fprintf(help, "%s\n\nEach flag can be given as an environment variable too: --log-level as %sLOG_LEVEL.\n"+
			"--%s leaves all of them aside.\n\nFlags:\n", usage, environmentPrefix, flagIgnore)
		flags.PrintDefaults()
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; see %s --help", err, flags.Name())
	}
	if flags.Lookup(flagIgnore).Value.String() == "true" {
		return nil
	}
	given := map[string]bool{flagIgnore: true} // it cannot be said by what it says to ignore
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var bad error
	flags.VisitAll(func(f *flag.Flag) {
		name := environmentPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := getenv(name); value != "" && !given[f.Name] {
			if err := f.Value.Set(value); err != nil {
				bad = errors.Join(bad, fmt.Errorf("environment variable %s=%q: %w", name, value, err))
			}
		}
	})
	return bad
}

func (o *Options) validate() []error {
	var problems []error
	if (o.TLSCert == "") != (o.TLSKey == "") {
		problems = append(problems, errors.New("--tls-cert and --tls-key go together"))
	}
	l := o.Limits
	for _, count := range []struct {
		flag  string
		value int
	}{
		{"max-body-bytes", l.Body},
		{"max-bodies-bytes", l.Bodies},
		{"max-total-bodies-bytes", l.TotalBodies},
		{"max-json-depth", l.Depth},
		{"max-json-members", l.Members},
		{"max-calls", l.Calls},
		{"max-streams", l.Streams},
		{"max-sessions", l.Sessions},
		{"max-total-calls", l.TotalCalls},
		{"max-total-streams", l.TotalStreams},
		{"max-total-sessions", l.TotalSessions},
		{"max-connections", o.Connections},
		{"max-header-bytes", o.Header},
		{"max-response-bytes", o.Response},
		{"max-event-bytes", o.Event},
		{"max-response-header-bytes", o.ResponseHeader},
		{"max-tools", l.Tools},
	} {
		if count.value < 1 {
			problems = append(problems, fmt.Errorf("--%s must be at least 1", count.flag))
		}
	}
	if l.Body > l.Bodies || l.Bodies > l.TotalBodies {
		problems = append(problems, errors.New("--max-body-bytes must be at most --max-bodies-bytes, and that at most --max-total-bodies-bytes"))
	}
	for _, span := range []struct {
		flag  string
		value time.Duration
	}{
		{"call-timeout", l.Call},
		{"listing-timeout", l.Listing},
		{"max-stream-age", l.StreamAge},
		{"keep-alive", l.KeepAlive},
		{"write-timeout", l.Write},
		{"session-idle", l.SessionIdle},
		{"session-age", l.SessionAge},
		{"hold", o.Hold},
		{"connect-timeout", o.Connect},
		{"stream-idle", o.StreamIdle},
	} {
		if span.value < 10*time.Millisecond {
			problems = append(problems, fmt.Errorf("--%s must be at least 10ms", span.flag))
		}
	}
	if o.DrainDelay < 0 || o.DrainTimeout < 0 {
		problems = append(problems, errors.New("--drain-delay and --drain-timeout must not be negative"))
	}
	return problems
}

// Install copies the running binary to a file, for an init container that brings it into a pod.
func Install(target string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the gateway's own binary: %w", err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("read the gateway's own binary: %w", err)
	}
	// Written beside and renamed, so that nobody ever starts half of it. Any user must be able to run it.
	if err := os.WriteFile(target+".new", content, 0o755); err != nil { //nolint:gosec // G306: a program, with no secret in it
		return fmt.Errorf("install the gateway: %w", err)
	}
	if err := os.Rename(target+".new", target); err != nil {
		return errors.Join(fmt.Errorf("install the gateway: %w", err), os.Remove(target+".new"))
	}
	return nil
}

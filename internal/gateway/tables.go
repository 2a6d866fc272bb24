package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/auth"
	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/child"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
	"github.com/mcp-operator/mcp-operator/internal/gateway/source"
	"github.com/mcp-operator/mcp-operator/internal/gateway/toolset"
	"github.com/mcp-operator/mcp-operator/internal/gateway/upstream"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/version"
)

// tables is what is made of the routing table in use.
type tables struct {
	current  atomic.Pointer[front.State]
	draining atomic.Bool
	// refused is why a newer table is not in use; nil if none was refused since.
	refused atomic.Pointer[error]

	mu sync.Mutex // held while a table is taken into use
	// closed says that no other table is taken into use: nobody would end what it starts.
	closed bool
	// stops ends the watch of each backend.
	stops map[*front.Backend]context.CancelFunc
	// leaving are the ends of backends that are gone; over, once there was a table, is closed when they have no time left.
	leaving sync.WaitGroup
	over    chan struct{}

	counting sync.Mutex // held while restarts are counted
	// restarts is how many restarts of its child were counted, for each server of the table in use.
	restarts map[backend.Backend]int
}

// start takes the first table into use, and the ones that follow.
func (g *gateway) start(ctx context.Context) error {
	if g.options.Stdio != nil {
		if err := g.use(ctx, g.options.Stdio.Table); err != nil {
			return err
		}
		go g.awaitChild(ctx)
		return nil
	}
	options := source.Options{
		File: g.options.TableFile, Logger: g.logger, Panics: g.panics, Refused: g.refuse,
		Table: func(t *table.Table) {
			if err := g.use(ctx, t); err != nil {
				g.refuse(err)
			}
		},
	}
	if namespace, name, ok := strings.Cut(g.options.ConfigMap, "/"); ok {
		options.ConfigMap = &source.ConfigMap{Namespace: namespace, Name: name, Key: g.options.ConfigMapKey}
	}
	var err error
	if g.definitions, err = source.NewDefinitions(options.ConfigMap, g.options.DefinitionsCache, g.logger, g.panics); err != nil {
		return err
	}
	go g.definitions.Run(ctx)
	go func() {
		if err := source.Run(ctx, options); err != nil {
			g.fail(err)
		}
	}()
	return nil
}

// refuse keeps the table in use, and says why the newer one is not.
func (g *gateway) refuse(err error) {
	g.tables.refused.Store(&err)
	g.telemetry.TableRefused()
	if g.tables.current.Load() == nil {
		g.logger.Error("there is no routing table yet: it is waited for", "error", err)
		return
	}
	g.logger.Error("the new routing table is refused, the one in use serves on", "error", err)
}

// use serves by another table from now on, at once: it may take something away. What it names in ConfigMaps comes when it is there;
// until then it is missing, and for a moment whoever asks for it waits.
func (g *gateway) use(ctx context.Context, t *table.Table) error {
	if g.definitions != nil {
		g.definitions.Begin(filesOf(t))
		defer func() { g.definitions.Keep(filesOf(g.inUse())) }()
	}
	g.tables.mu.Lock()
	defer g.tables.mu.Unlock()
	if g.tables.closed {
		return nil
	}
	before := g.tables.current.Load()
	next, err := g.build(ctx, t, before)
	if err != nil {
		return err
	}
	g.front.Use(next)
	g.tables.refused.Store(nil) // before the next is in use: of that none was refused
	g.tables.current.Store(next)
	g.telemetry.TableApplied()
	g.logger.Info("routing table in use", "revision", t.Revision, "backends", len(t.Backends))
	g.watch(ctx, next, before)
	return nil
}

// inUse is the table in use, or an empty one.
func (g *gateway) inUse() *table.Table {
	if state := g.tables.current.Load(); state != nil {
		return state.Table
	}
	return &table.Table{}
}

// filesOf are the files of a table's tools that are in ConfigMaps.
func filesOf(t *table.Table) (files []table.ToolFile) {
	for _, b := range t.Backends {
		if b.Toolset == nil {
			continue
		}
		for _, file := range b.Toolset.Files {
			if file.ConfigMap != "" {
				files = append(files, file)
			}
		}
	}
	return files
}

// build makes the live state of a table. A backend whose configuration is the same as before is kept.
func (g *gateway) build(ctx context.Context, t *table.Table, before *front.State) (*front.State, error) {
	var verifier *auth.Verifier
	kept := map[string]*front.Backend{}
	if before != nil {
		verifier = before.Verifier
		for _, b := range before.Backends {
			kept[b.Config.Name] = b
		}
	}
	verifier, err := auth.New(ctx, t.Auth, auth.Options{
		PublicURL: t.Endpoint.PublicURL, Path: t.Endpoint.Path, Logger: g.logger, Panics: g.panics,
		LoopbackIssuers: g.options.LoopbackIssuers,
	}, verifier)
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	state := &front.State{Table: t, Verifier: verifier}
	var made []*front.Backend
	for _, config := range t.Backends {
		if b := kept[config.Name]; b != nil && isSameServer(b.Config, config) {
			if !reflect.DeepEqual(b.Config, config) {
				b = b.With(config)
			}
			state.Backends = append(state.Backends, b)
			continue
		}
		server, err := g.backend(config)
		if err != nil {
			g.discard(ctx, made)
			return nil, fmt.Errorf("backend %q: %w", config.Name, err)
		}
		b := front.NewBackend(config, server)
		b.Hold = g.options.Hold
		made = append(made, b)
		state.Backends = append(state.Backends, b)
	}
	return state, nil
}

// discard closes what was made for a table that is refused.
func (g *gateway) discard(ctx context.Context, made []*front.Backend) {
	for _, b := range made {
		go g.giveUp(ctx, b)
	}
}

// isSameServer says whether two configurations reach a server in the same way, and differ at most in what of it is served and
// under which names.
func isSameServer(a, b table.Backend) bool {
	a.Prefix, a.Tools, a.Trusted = b.Prefix, b.Tools, b.Trusted
	return reflect.DeepEqual(a, b)
}

// backend makes the upstream side of one backend.
func (g *gateway) backend(config table.Backend) (backend.Backend, error) {
	if config.Transport == table.TransportStdio {
		options := child.Options{
			Name: config.Name, Version: version.String(), Command: config.Command, ProtocolVersion: config.ProtocolVersion,
			Logger: g.logger, Panics: g.panics, Env: g.options.childEnvironment(os.Environ()),
			HoldTimeout: g.options.Hold, IdleTimeout: g.options.Limits.SessionIdle,
			LineLimit:   g.options.Response,
			CallTimeout: max(g.options.Limits.Call, time.Duration(config.TimeoutSeconds)*time.Second),
		}
		if s := g.options.Stdio; s != nil {
			options.MaxChildren, options.StopGrace = s.Children, s.StopGrace
			options.Sessions = map[string]child.Sessions{"auto": child.Auto, "stateful": child.Stateful, "stateless": child.Stateless}[s.Sessions]
		}
		return child.New(options)
	}
	secret, err := credential.New(config.Credential)
	if err != nil {
		return nil, err
	}
	if config.Transport == table.TransportToolset {
		options := toolset.Options{
			Logger: g.logger, Panics: g.panics, Version: version.String(), Credential: secret, HeaderBytes: int64(g.options.ResponseHeader),
		}
		if g.definitions != nil {
			options.Definitions = g.definitions
		}
		return toolset.New(config, options)
	}
	return upstream.New(config, upstream.Options{
		Logger: g.logger, Panics: g.panics, Version: version.String(), Hold: g.options.Hold, Credential: secret,
		Limits: upstream.Limits{
			Headers: int64(g.options.ResponseHeader), Response: int64(g.options.Response), Event: g.options.Event, Connect: g.options.Connect,
			StreamIdle: max(g.options.StreamIdle, g.options.Limits.Call), SessionIdle: g.options.Limits.SessionIdle,
		},
	})
}

// childEnvironment leaves out what is the gateway's own: nothing of it, if that goes by its command line alone.
func (o *Options) childEnvironment(environment []string) []string {
	if o.IgnoreEnvironment {
		return environment
	}
	return slices.DeleteFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, environmentPrefix) })
}

// watch keeps the new backends' catalogs up to date, and gives up the ones that are gone.
func (g *gateway) watch(ctx context.Context, next, before *front.State) {
	t := &g.tables
	if t.stops == nil {
		t.stops, t.over = map[*front.Backend]context.CancelFunc{}, make(chan struct{})
	}
	wanted, servers := map[*front.Backend]bool{}, map[backend.Backend]bool{}
	for _, b := range next.Backends {
		wanted[b], servers[b.Server] = true, true
		if t.stops[b] == nil {
			watching, stop := context.WithCancel(ctx)
			t.stops[b] = stop
			go g.front.Watch(watching, b)
		}
	}
	t.countFor(servers)
	if before == nil {
		return
	}
	for _, b := range before.Backends {
		if !wanted[b] {
			t.stops[b]()
			delete(t.stops, b)
			if !servers[b.Server] {
				t.leaving.Go(func() {
					g.letEnd(b)
					g.giveUp(ctx, b)
				})
			}
		}
	}
}

// moment is how long a request may take from the table that it goes by to the backend that it is sent to.
const moment = 100 * time.Millisecond

// letEnd waits for the calls that are under way at a backend: where it has moved, they end at its old place. The front ends those of which
// something was withdrawn.
func (g *gateway) letEnd(b *front.Backend) {
	patience := max(g.options.Limits.Call, time.Duration(b.Config.TimeoutSeconds)*time.Second, time.Minute)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-time.After(moment):
	case <-g.tables.over:
	}
	select {
	case <-b.Quiet():
	case <-deadline.C:
	case <-g.tables.over:
	}
}

// giveUp closes a backend that the table no longer has.
func (g *gateway) giveUp(ctx context.Context, b *front.Backend) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	defer g.panics.Catch(b.Config.Name, nil)
	if err := b.Server.Close(ctx); err != nil {
		g.logger.Debug("close a backend", "backend", b.Config.Name, "error", err)
	}
}

func (t *tables) close(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil && !t.closed {
		close(t.over)
	}
	t.closed = true
	defer t.leaving.Wait()
	state := t.current.Load()
	if state == nil {
		return
	}
	var wg sync.WaitGroup
	for _, b := range state.Backends {
		t.stops[b]()
		wg.Go(func() { _ = b.Server.Close(ctx) }) // the process ends: nobody is left to tell
	}
	wg.Wait()
}

// Check says what is wrong with a routing table, or that nothing is.
func Check(file string, out io.Writer) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the routing table: %w", err)
	}
	t, err := table.Parse(content)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "valid: format %d, %d backends at %s\n", t.Version, len(t.Backends), t.Endpoint.Path)
	return err
}

// maxStarts is how often a child that never answered may end before the gateway gives up on it.
const maxStarts = 5

// awaitChild ends the process if its server has not answered by the deadline, or ends whenever it is started: the reason is in
// the termination log then, and the platform shows it and starts anew.
func (g *gateway) awaitChild(ctx context.Context) {
	if g.options.Stdio.StartDeadline == 0 {
		return
	}
	b := g.tables.current.Load().Backends[0]
	deadline := time.After(g.options.Stdio.StartDeadline)
	for tick := time.Tick(200 * time.Millisecond); ; {
		select {
		case <-b.Ready():
			return
		case <-ctx.Done():
			return
		case <-tick:
			child := b.Status().Child
			if b.Answered() {
				return
			}
			if child != nil && child.Restarts >= maxStarts-1 {
				g.giveUpChild(fmt.Sprintf("the server's process ended each time it was started, %d times, lastly with %s", child.Restarts+1, child.LastExit))
				return
			}
		case <-deadline:
			if b.Answered() { // by then, and before anybody looked
				return
			}
			g.giveUpChild(fmt.Sprintf("the server did not answer MCP on its standard output within %s of its start", g.options.Stdio.StartDeadline))
			return
		}
	}
}

// giveUpChild ends the process, and says why where the platform looks for it.
func (g *gateway) giveUpChild(why string) {
	if log := g.options.Stdio.TerminationLog; log != "" {
		if _, err := os.Stat(log); err == nil {
			if err := os.WriteFile(log, []byte(why), 0o600); err != nil {
				g.logger.Warn("write the termination log", "error", err)
			}
		}
	}
	g.fail(errors.New(why))
}

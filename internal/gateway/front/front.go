// Package front is the gateway's side towards clients: one endpoint that serves protocol versions up to 2025-11-25 and
// 2026-07-28 alike, whatever the backends behind it speak.
//
// It guarantees that a request is decided on by its body, that a tool which is not shown cannot be called, that a call which
// may have reached a backend is not sent again, that nothing of one caller reaches another, and that responses are passed on
// as they arrive.
package front

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/auth"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// Options are what a Front is made of.
type Options struct {
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// Panics tells of faults of the gateway's own; default the default logger.
	Panics *panics.Recorder
	// Sealer seals session ids, and which session of a backend asks a client.
	Sealer *seal.Keyring
	Limits Limits
	// Version is told to clients as the gateway's.
	Version string
	// LoopbackOnly serves loopback names as Host only, unless the table says otherwise: for a listener on a loopback address
	// (DNS rebinding).
	LoopbackOnly bool
}

// Front is an http.Handler. Use starts to serve, with the first State.
type Front struct {
	options  Options
	limits   Limits
	hub      *hub
	sessions *registry
	calls    *quota
	messages *quota
	streams  *quota
	bodies   *quota

	state atomic.Pointer[State]
	view  atomic.Pointer[catalog.View]

	// news rings when another table, or another view, is served.
	news bell

	memory releaser
	// hostTold is when a Host header that was refused was logged last, in nanoseconds since 1970; 0 is never.
	hostTold atomic.Int64

	// swapping orders changes of state and of the view made from it.
	swapping sync.Mutex
	// begun is when the first State was used.
	begun time.Time

	flights  sync.Map     // of *exchange
	requests atomic.Int64 // of the gateway's own
	draining chan struct{}
	once     sync.Once
}

// State is one table, live.
type State struct {
	Table    *table.Table
	Verifier *auth.Verifier
	// Backends are in the table's order. Those of the State before, whose configuration is the same, live on.
	Backends []*Backend

	byName map[string]*Backend
}

// Causes of the end of a request.
var (
	errCancelled = errors.New("cancelled by the client")
	errWithdrawn = errors.New("access was withdrawn while the request ran")
	errDraining  = errors.New("the gateway is shutting down")
	errReplaced  = errors.New("the stream is ended after its longest age: open another")
)

// New makes a Front that answers 503 until Use is called.
func New(options Options) *Front {
	f := &Front{options: options, limits: options.Limits.withDefaults(), hub: newHub(), draining: make(chan struct{})}
	f.memory.release = debug.FreeOSMemory
	f.sessions = newRegistry(&f.limits, f.dropSession, options.Telemetry.AddSessions)
	f.sessions.evict = f.evictSession
	f.calls = newQuota(f.limits.Calls, f.limits.TotalCalls)
	f.messages = newQuota(f.limits.Calls, f.limits.TotalCalls)
	f.bodies = newQuota(f.limits.Bodies, f.limits.TotalBodies)
	f.streams = newQuota(f.limits.Streams, f.limits.TotalStreams)
	f.view.Store(catalog.Compile(nil, 0))
	return f
}

// Use serves by another table from now on. Requests and streams that are no longer allowed are ended, those that need an
// issuer's word for it a moment later; the other streams go on with what is served now, since there are clients that open one only
// once. Backends that are gone are not ended: the caller closes them.
func (f *Front) Use(s *State) {
	s.byName = make(map[string]*Backend, len(s.Backends))
	for _, b := range s.Backends {
		s.byName[b.Config.Name] = b
	}
	before := f.swap(s)
	if before == nil {
		return
	}
	authChanged := admitsOthers(before.Table, s.Table)
	f.flights.Range(func(key, _ any) bool {
		if x, ok := key.(*exchange); ok {
			go f.recheck(s, x, authChanged) // asking for an issuer's keys may take its time
		}
		return true
	})
	if authChanged {
		f.hub.recheck(s)
	}
	f.hub.stir()
}

// swap makes a state the one that is served, and returns the one before.
func (f *Front) swap(s *State) (before *State) {
	f.swapping.Lock()
	defer f.swapping.Unlock()
	// The view first: a request that finds the new table must not find a tool that it holds back in the old view.
	f.compile(s, false)
	defer f.news.ring()
	if before = f.state.Swap(s); before == nil {
		f.begun = time.Now()
	}
	return before
}

// admitsOthers says whether a table lets others in than the one before.
func admitsOthers(before, now *table.Table) bool {
	return !reflect.DeepEqual(before.Auth, now.Auth) || before.Endpoint.PublicURL != now.Endpoint.PublicURL
}

// stillAllowed says whether a request in flight would be let through now.
func (f *Front) stillAllowed(s *State, x *exchange, authChanged bool) bool {
	b := s.byName[x.backend.Config.Name]
	if b == nil || x.tool != "" && !f.stillServes(s, b, x) {
		return false
	}
	return !authChanged || x.isLetIn(s)
}

// isLetIn says whether who asked would be let in now. It may wait for an issuer's keys.
func (v *visit) isLetIn(s *State) (isLetIn bool) {
	defer v.options.Panics.Catch("", nil)
	p, err := s.Verifier.Verify(v.r)
	return err == nil && p.Subject == v.principal.Subject
}

// compile makes the view of the backends' catalogs anew. The caller holds f.swapping. relayed says that it is because of a
// change that a backend told the gateway of: a lone one has told those streams too that it is relayed to, and clients have asked for its
// list since, unless that is by the view.
func (f *Front) compile(s *State, relayed bool) {
	sources := make([]catalog.Source, 0, len(s.Backends))
	for _, b := range s.Backends {
		sources = append(sources, b.source())
	}
	view := catalog.Compile(sources, 0)
	before := f.view.Swap(view)
	f.options.Telemetry.SetCatalog(namesOf(view))
	f.logConflicts(before, view)
	b := f.lone(s)
	f.hub.publish(catalog.Diff(before, view), relayed && b != nil && !catalog.IsByAnnotations(&b.Config))
	f.memory.compiled(view.Size())
}

// logConflicts tells of names that are offered more than once, by several backends or by one that renames, when they begin to be.
func (f *Front) logConflicts(before, view *catalog.View) {
	for _, c := range view.Conflicts() {
		isSame := func(known catalog.Conflict) bool { return reflect.DeepEqual(known, c) }
		if !slices.ContainsFunc(before.Conflicts(), isSame) {
			f.options.Logger.Warn("a name that is offered more than once is not served",
				"kind", c.Kind.Method(), "name", c.Name, "backends", c.Backends)
		}
	}
}

// namesOf is what of a view may become labels of metrics.
func namesOf(view *catalog.View) []telemetry.Names {
	var names []telemetry.Names
	for _, b := range view.Backends() {
		n := telemetry.Names{Backend: b.Name}
		for _, t := range b.Tools {
			if t.Verdict == table.ToolServed {
				n.Tools = append(n.Tools, t.Name)
			}
		}
		names = append(names, n)
	}
	return names
}

// lone is the one backend of a table that has one; lists and notifications of such a backend pass through.
func (f *Front) lone(s *State) *Backend {
	if len(s.Backends) == 1 {
		return s.Backends[0]
	}
	return nil
}

// Drain ends event streams so that their clients come back elsewhere, and lets requests in flight finish.
func (f *Front) Drain() {
	f.once.Do(func() {
		close(f.draining)
		f.hub.endStreams(errDraining)
	})
}

// Serve expires idle sessions until ctx ends.
func (f *Front) Serve(ctx context.Context) {
	for tick := time.Tick(f.limits.SessionIdle/30 + time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick:
			f.sessions.expire(now.Add(-f.limits.SessionIdle))
		}
	}
}

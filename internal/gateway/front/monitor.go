package front

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Backend is one backend of the table, live. Watch keeps its catalog up to date.
type Backend struct {
	Config table.Backend
	Server backend.Backend
	// Hold is how long a request waits for the backend to be reached for the first time. Default 10 s.
	Hold time.Duration

	gate *gate
	// asked is closed once the backend has answered, or has failed for a moment.
	asked chan struct{}
	// ready is closed once it has answered.
	ready       chan struct{}
	onceAsked   sync.Once
	onceReadied sync.Once
	// kicked gets an element when the backend should be looked at soon.
	kicked chan struct{}

	mu          sync.Mutex
	state       table.BackendState
	class       string
	detail      string
	since       time.Time
	description *backend.Description
	catalog     *catalog.Catalog
	doubted     string // the digest of the catalog that kickForNews was for
	keeping     keeping
}

// keeping says whether a backend that speaks legacy versions alone keeps sessions.
type keeping int

const (
	keepsUnknown keeping = iota
	keepsSessions
	// keepsNone gave no session id when it was asked.
	keepsNone
)

// NewBackend makes a Backend that was not asked yet.
func NewBackend(config table.Backend, server backend.Backend) *Backend {
	return &Backend{
		Config: config, Server: server, gate: newGate(), asked: make(chan struct{}), ready: make(chan struct{}), kicked: make(chan struct{}, 1),
		state: table.BackendUnknown, since: time.Now(),
	}
}

// With is the same server under another policy or other names: calls to it that are still allowed go on.
func (b *Backend) With(config table.Backend) *Backend {
	next := NewBackend(config, b.Server)
	next.gate, next.Hold = b.gate, b.Hold
	b.mu.Lock()
	defer b.mu.Unlock()
	next.state, next.class, next.detail, next.since = b.state, b.class, b.detail, b.since
	next.description, next.catalog, next.keeping = b.description, b.catalog, b.keeping
	if b.catalog != nil {
		next.onceAsked.Do(func() { close(next.asked) })
	}
	if b.Answered() {
		next.onceReadied.Do(func() { close(next.ready) })
	}
	return next
}

// kick has the backend looked at soon: it behaved as if it had changed.
func (b *Backend) kick() {
	select {
	case b.kicked <- struct{}{}:
	default:
	}
}

// kickForNews is kick where a client was told something else of the backend's tools than what is known of them. That is looked into once:
// a server may tell each of its sessions something else.
func (b *Backend) kickForNews() {
	b.mu.Lock()
	known := ""
	if b.catalog != nil {
		known = b.catalog.Digest
	}
	isNews := b.doubted != known
	b.doubted = known
	b.mu.Unlock()
	if isNews {
		b.kick()
	}
}

// known is what the backend said of itself; nil before it did.
func (b *Backend) known() *backend.Description {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.description
}

// describe notes what the backend says of itself; anew says that it speaks other protocol versions than before, for which event
// streams were opened. The caller holds b.mu.
func (b *Backend) describe(d *backend.Description) (anew bool) {
	anew = b.description != nil && (b.description.Legacy != d.Legacy || b.description.Modern != d.Modern)
	b.description = d
	return anew
}

// wantsSession says whether the backend is known to serve nobody without a session.
func (b *Backend) wantsSession() bool {
	d := b.known()
	return d != nil && !d.Modern && b.keeps() == keepsSessions
}

func (b *Backend) keeps() keeping {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keeping
}

// shared is a session at a legacy backend that callers of one subject share, since nobody is ever asked anything in it.
func (b *Backend) shared(ctx context.Context, subject string) (backend.Channel, error) {
	sharer, ok := b.Server.(backend.Sharer)
	if !ok {
		return nil, backend.ErrEra
	}
	channel, handle, err := sharer.Shared(ctx, subject)
	if err == nil {
		b.mu.Lock()
		if b.keeping = keepsSessions; handle.Session == "" {
			b.keeping = keepsNone
		}
		b.mu.Unlock()
	}
	return channel, err
}

// Ready is closed once the backend has answered for the first time.
func (b *Backend) Ready() <-chan struct{} { return b.ready }

// Answered says whether the backend has ever answered.
func (b *Backend) Answered() bool {
	select {
	case <-b.ready:
		return true
	default:
		return false
	}
}

// source is what the catalogs are compiled from.
func (b *Backend) source() catalog.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	return catalog.Source{Backend: b.Config, Catalog: b.catalog, State: b.state}
}

const (
	// firstLook is the pause before a backend that behaved as if it had changed is looked at.
	firstLook = 500 * time.Millisecond
	// pollInterval is how often a backend that offers no stream of changes is looked at.
	pollInterval = 15 * time.Second
	// leastStream is the shortest life of a stream that is worth opening again.
	leastStream = time.Second
	// settle is how long is waited before a look: what changes at once is looked at once.
	settle = 100 * time.Millisecond
	// lookTime bounds one look.
	lookTime = 30 * time.Second
)

// Watch keeps a backend's catalog up to date until ctx ends: it looks, then listens for changes, and looks again when it
// hears of one, when the backend hangs up, or when calls to it fail.
func (f *Front) Watch(ctx context.Context, b *Backend) {
	failing, restless := retry{}, settle
	for ctx.Err() == nil {
		select {
		case <-b.kicked: // this look is the one that was asked for
		default:
		}
		channel, err := f.look(ctx, b, false)
		if err != nil {
			f.missed(ctx, b, &failing, err)
			continue
		}
		failing = retry{}
		begun := time.Now()
		f.await(ctx, b, channel)
		if time.Since(begun) >= leastStream {
			restless = settle
			continue
		}
		backend.Pause(ctx, restless)
		restless = min(2*restless, pollInterval)
	}
}

// renewed is closed when a backend that failed is worth another look; nil if only time tells.
func renewed(server backend.Backend) <-chan struct{} {
	if r, ok := server.(backend.Renewer); ok {
		return r.Renewed()
	}
	return nil
}

// lookOnce looks once.
func (f *Front) lookOnce(ctx context.Context, b *Backend, relayed bool) (channel backend.Channel, err error) {
	defer f.options.Panics.Catch(b.Config.Name, &err)
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	d, channel, got, err := f.fetch(ctx, b)
	if errors.Is(err, backend.ErrSession) {
		// The backend has forgotten the gateway's own session. There is another by now.
		d, channel, got, err = f.fetch(ctx, b)
	}
	if err != nil {
		f.learn(b, d, nil, err, false)
		return nil, err
	}
	f.learn(b, d, got, nil, relayed)
	b.onceAsked.Do(func() { close(b.asked) })
	return channel, nil
}

// fetch asks a backend what it is and offers.
func (f *Front) fetch(ctx context.Context, b *Backend) (*backend.Description, backend.Channel, *catalog.Catalog, error) {
	d, channel, err := f.reach(ctx, b)
	if err != nil {
		return nil, nil, nil, err
	}
	got, err := catalog.Fetch(ctx, channel, catalog.Options{
		Backend: b.Config.Name, Capabilities: capabilitiesOf(d), Last: b.source().Catalog, Time: lookTime, Tools: f.limits.Tools,
	})
	return d, channel, got, err
}

// reach finds out what a backend speaks and opens the gateway's own way to it.
func (f *Front) reach(ctx context.Context, b *Backend) (*backend.Description, backend.Channel, error) {
	d, err := b.Server.Describe(ctx)
	if err != nil {
		return nil, nil, err
	}
	if d.Modern {
		channel, err := b.Server.Modern(ctx)
		return d, channel, err
	}
	channel, err := b.shared(ctx, gatewaySubject)
	return d, channel, err
}

// gatewaySubject is whom the gateway's own sessions belong to. No caller's subject is like it.
const gatewaySubject = "\x00gateway"

func capabilitiesOf(d *backend.Description) json.RawMessage {
	if d.Modern {
		return wire.Field(d.Discover, "capabilities")
	}
	return wire.Field(d.Initialize, "capabilities")
}

// learn notes what a look brought, and compiles the catalogs anew if that changes anything.
func (f *Front) learn(b *Backend, d *backend.Description, got *catalog.Catalog, err error, relayed bool) {
	state, class, detail := table.BackendReady, "", ""
	if err != nil {
		state, class = table.BackendFailed, "ServerError"
		if failure, ok := errors.AsType[*backend.Error](err); ok {
			class, detail = failure.Class, detailOf(failure)
		}
	} else if checker, ok := b.Server.(backend.Checker); ok {
		if defect, ok := errors.AsType[*backend.Error](checker.Check()); ok {
			detail = detailOf(defect)
		}
	}
	defer f.tellBeyond(b, got, relayed)
	isNews := got != nil && !b.source().Catalog.Equal(got) // else the one that is held already serves as well
	b.mu.Lock()
	changed := b.state != state
	if changed {
		b.since = time.Now()
	}
	b.state, b.class, b.detail = state, class, detail
	anew := d != nil && b.describe(d)
	if got != nil {
		// Of a lone backend sessions have had the list itself, before there was a catalog.
		relayed = relayed || b.catalog == nil
		if isNews {
			f.logGaps(b.Config.Name, b.catalog, got)
			b.catalog, changed = got, true
		}
	}
	b.mu.Unlock()
	if err == nil {
		b.onceReadied.Do(func() { close(b.ready) })
	}
	if anew {
		f.hub.stir()
	}
	if !changed {
		return
	}
	f.swapping.Lock()
	defer f.swapping.Unlock()
	if s := f.state.Load(); s != nil && s.byName[b.Config.Name] == b {
		f.compile(s, relayed)
		f.news.ring()
	}
}

// logGaps tells of lists that a catalog has not the whole of, when they begin to be.
func (f *Front) logGaps(name string, before, now *catalog.Catalog) {
	if before == nil {
		before = &catalog.Catalog{}
	}
	if len(now.Truncated) > 0 && !slices.Equal(before.Truncated, now.Truncated) {
		f.options.Logger.Warn("a backend lists more than is taken: the first entries are served, the others only if it is the one backend there is",
			"backend", name, "methods", now.Truncated, "maxTools", f.limits.Tools)
	}
	if len(now.Unread) > 0 && !slices.Equal(before.Unread, now.Unread) {
		f.options.Logger.Warn("lists of a backend could not be read: what they had before is served on", "backend", name, "methods", now.Unread)
	}
}

// await listens to the backend, looks at it whenever it tells of a change, and returns when it should be described anew. The
// stream stays open meanwhile, so that no change falls between two streams.
func (f *Front) await(ctx context.Context, b *Backend, channel backend.Channel) {
	listening, stop := context.WithCancel(ctx)
	defer stop()
	heard := &changes{heard: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	begun := time.Now()
	go func() { ended <- f.listenAt(listening, b, channel, listenRequest(channel), heard) }()
	// What changed between the look before and the stream, nobody tells of.
	opened := time.After(settle)
	poll, hasStream := b.poll(), true
	restless, last := settle, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-opened:
			if _, err := f.look(ctx, b, true); err != nil {
				return
			}
			poll = b.poll()
		case <-heard.heard:
			opened = nil
			if time.Since(last) >= leastStream {
				restless = settle
			}
			backend.Pause(ctx, restless)
			if _, err := f.look(ctx, b, true); err != nil {
				return
			}
			// A backend that changes on and on is looked at less and less often.
			restless, last = min(2*restless, pollInterval), time.Now()
			poll = b.poll()
		case <-b.kicked:
			backend.Pause(ctx, firstLook)
			b.refresh()
			return
		case err := <-ended:
			// A stream that ends as soon as it began is none: the backend would have told of nothing.
			isNone := errors.Is(err, backend.ErrNoStream) || err == nil && time.Since(begun) < leastStream
			if !isNone {
				backend.Pause(ctx, firstLook)
				b.refresh()
				return
			}
			opened, poll, hasStream = nil, time.After(pollInterval), false
		case <-poll:
			if !hasStream {
				return
			}
			if _, err := f.look(ctx, b, false); err != nil {
				return
			}
			poll = b.poll()
		}
	}
}

// refresh forgets what is remembered of a backend that may be another by now. A child is looked after by its supervisor.
func (b *Backend) refresh() {
	if b.Config.Transport != table.TransportStdio {
		b.Server.Forget()
	}
}

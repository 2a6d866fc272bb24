package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const (
	// firstPause and longestPause are between attempts to find out what a server speaks that fail.
	firstPause   = 100 * time.Millisecond
	longestPause = time.Second
	// doubtPause is between finding out again whether a server that answers oddly speaks something else now.
	doubtPause = 5 * time.Second
)

// discovery is what is known of a server. Of several callers who ask, one finds out.
type discovery struct {
	mu sync.Mutex
	// known is nil before the first success, and after the server answered and could not be described again. While nobody
	// answers it stands, so that requests are held for a server that restarts, and not refused.
	known *description
	// doubted says that the server did not answer as described, or may be another by now.
	doubted bool
	running chan struct{} // closed when finding out has ended; nil if nobody does
	err     error         // of the last attempt, if it failed
	next    time.Time     // no attempt before that
	pause   time.Duration
	// forgotten is how often Forget was called, and asOf how often when the last attempt began that has ended: what began before
	// tells nothing of what is there since.
	forgotten, asOf int
}

// description is what a server speaks.
type description struct {
	backend.Description

	// sse says that legacy clients are served over HTTP+SSE.
	sse bool
}

// Describe finds out what the server speaks, once.
func (b *Backend) Describe(ctx context.Context) (*backend.Description, error) {
	known, err := b.describe(ctx)
	if err != nil {
		return nil, err
	}
	return &known.Description, nil
}

func (b *Backend) describe(ctx context.Context) (*description, error) {
	d := &b.discovery
	d.mu.Lock()
	defer d.mu.Unlock()
	for asked := d.forgotten; ; {
		waiting := time.Now().Before(d.next)
		switch {
		case d.known != nil && (!d.doubted || waiting):
			return d.known, nil
		case d.running == nil && d.err != nil && waiting:
			return nil, d.err
		case d.running == nil:
			d.running = make(chan struct{})
			go b.findOut(context.WithoutCancel(ctx), d.running, d.forgotten)
		}
		if err := d.wait(ctx, d.running); err != nil {
			return nil, b.failure(classTimeout, false, err)
		}
		switch {
		case d.asOf < asked: // it began before the Forget that this caller came after
		case d.known != nil:
			return d.known, nil
		case d.err != nil:
			return nil, d.err
		}
	}
}

// wait waits, without the lock that the caller holds, for an attempt to end. The error is the cause of the context's end.
func (d *discovery) wait(ctx context.Context, running chan struct{}) error {
	d.mu.Unlock()
	defer d.mu.Lock()
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isUnreached says whether an error is that of a server that was not reached at all.
func isUnreached(err error) bool {
	failure, ok := errors.AsType[*backend.Error](err)
	return ok && !failure.Sent && (failure.Class == classDNS || failure.Class == classConnect || failure.Class == classTimeout)
}

// Forget makes the next Describe ask again. What was known is the answer as long as the server cannot be reached.
func (b *Backend) Forget() {
	b.discovery.mu.Lock()
	defer b.discovery.mu.Unlock()
	b.discovery.doubted, b.discovery.err, b.discovery.next, b.discovery.pause = true, nil, time.Time{}, 0
	b.discovery.forgotten++
}

// doubt notes an answer that does not fit the description.
func (d *discovery) doubt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doubted = true
}

// doubt doubts the description if the error is of a server that speaks something else.
func (b *Backend) doubt(err error) {
	failure, ok := errors.AsType[*backend.Error](err)
	if ok && (failure.Class == classNotFound || failure.Class == classNotMCP) && !errors.Is(err, backend.ErrSession) {
		b.discovery.doubt()
	}
}

// findOut asks the server beside those who wait for it. Forgotten is how often Forget was called before.
func (b *Backend) findOut(ctx context.Context, running chan struct{}, forgotten int) {
	ctx, cancel := context.WithTimeout(ctx, b.limits.Describe)
	defer cancel()
	known, err := b.find(ctx)
	d := &b.discovery
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(running)
	unreached := d.known != nil && isUnreached(err)
	if !unreached {
		d.known = known
	}
	d.running, d.err, d.doubted, d.asOf = nil, err, unreached, forgotten
	if err == nil {
		d.pause, d.next = 0, time.Now().Add(doubtPause)
	} else {
		d.pause = min(max(2*d.pause, firstPause), longestPause)
		d.next = time.Now().Add(d.pause)
	}
	if d.forgotten != forgotten { // Forget came meanwhile: the next one asks at once
		d.doubted, d.pause, d.next = true, 0, time.Time{}
	}
	if err != nil {
		return
	}
	for era := range b.noStream {
		b.noStream[era].Store(false)
	}
	b.log.Info("the backend was described", "versions", known.Versions, "legacy", known.Legacy, "modern", known.Modern, "sse", known.sse)
}

// find asks for what the server speaks: server/discover first, since servers that do not know it refuse it without harm, then
// initialize, then the stream of HTTP+SSE.
func (b *Backend) find(ctx context.Context) (found *description, err error) {
	defer b.options.Panics.Catch(b.config.Name, &err)
	d := &description{}
	if b.config.Transport != table.TransportSSE && b.config.ProtocolVersion != wire.Version20251125 {
		if err = b.findModern(ctx, d); isBeyondVersions(err) {
			return nil, err
		}
	}
	if b.config.ProtocolVersion != wire.Version20260728 {
		err = b.findLegacy(ctx, d)
	}
	if !d.Legacy && !d.Modern {
		return nil, err
	}
	slices.SortFunc(d.Versions, func(a, b string) int { return strings.Compare(b, a) })
	d.Versions = slices.Compact(d.Versions)
	return d, nil
}

// isBeyondVersions says whether an error is one that any other request would have too.
func isBeyondVersions(err error) bool {
	if failure, ok := errors.AsType[*backend.Error](err); ok {
		switch failure.Class {
		case classDNS, classConnect, classTLS, classCredential, classUnauthorized, classForbidden:
			return true
		}
	}
	return false
}

// findModern asks server/discover.
func (b *Backend) findModern(ctx context.Context, d *description) error {
	// A server may be silent to what it does not know.
	ctx, cancel := context.WithTimeout(ctx, b.limits.Describe*2/5)
	defer cancel()
	m := wire.NewRequest(json.RawMessage(`"gateway-discover"`), "server/discover", slices.Concat(
		[]byte(`{"_meta":{"`+wire.MetaProtocolVersion+`":"`+wire.Version20260728+`","`+wire.MetaClientCapabilities+`":{},"`+wire.MetaClientInfo+`":`),
		b.info(), []byte(`}}`)))
	channel := b.modern()
	answer, id, err := b.ask(ctx, channel.request(&backend.Call{Message: m}), m, false)
	if id != "" && validSession(id) {
		leaked := &session{Backend: b, to: b.targetAt("")}
		leaked.to.session = id
		leaked.endQuietly(ctx)
	}
	if err != nil {
		return err
	}
	d.list(wire.Field(answer.Result, "supportedVersions"))
	if !slices.Contains(d.Versions, wire.Version20260728) {
		return b.failure(classNotMCP, true, errors.New("it does not speak protocol version "+wire.Version20260728))
	}
	d.Modern, d.Discover = true, answer.Result
	return nil
}

// maxVersions is how many of a server's protocol versions are kept.
const maxVersions = 16

// list takes the protocol versions that a server lists. Servers with sessions may answer server/discover too, and list no other
// versions than those that have them.
func (d *description) list(versions json.RawMessage) {
	for raw := range wire.Elements(versions) {
		if v, ok := wire.String(raw); ok && looksLikeVersion(v) && len(d.Versions) < maxVersions {
			d.Versions = append(d.Versions, v)
		}
	}
}

// findLegacy asks initialize, and if there is nobody who takes a POST, for the stream of HTTP+SSE.
func (b *Backend) findLegacy(ctx context.Context, d *description) error {
	var err error
	if b.config.Transport != table.TransportSSE {
		to := b.targetAt("")
		var g greeting
		if g, err = b.greet(ctx, &to, backend.Client{}, false); err == nil {
			d.greeted(g)
			if g.session != "" {
				opened := &session{Backend: b, to: to}
				opened.to.session, opened.to.version = g.session, g.version
				opened.endQuietly(ctx)
			}
			return nil
		}
		failure, ok := errors.AsType[*backend.Error](err)
		if d.Modern || !ok || failure.Class != classNotFound && failure.Class != classNotMCP {
			return err
		}
	}
	g, sseErr := b.findSSE(ctx)
	if sseErr == nil {
		d.greeted(g)
		d.sse = true
		return nil
	}
	if err == nil {
		err = sseErr
	}
	return err
}

// greeted notes what a server answered to initialize.
func (d *description) greeted(g greeting) {
	d.Legacy, d.Initialize = true, g.result
	if !slices.Contains(d.Versions, g.version) {
		d.Versions = append(d.Versions, g.version)
	}
}

// findSSE opens a session over HTTP+SSE and ends it.
func (b *Backend) findSSE(ctx context.Context) (greeting, error) {
	p, err := b.dialPipe(ctx, "", false)
	if err != nil {
		return greeting{}, err
	}
	defer p.end(errEnded)
	g, err := p.greet(ctx, backend.Client{})
	if err != nil {
		return greeting{}, fmt.Errorf("over HTTP+SSE: %w", err)
	}
	return g, nil
}

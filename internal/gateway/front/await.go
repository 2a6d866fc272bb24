package front

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

const (
	// defaultHold is Backend.Hold unless it is set.
	defaultHold = 10 * time.Second
	// firstAgain and lastAgain are the pauses between attempts at a backend that a request waits for.
	firstAgain = 100 * time.Millisecond
	lastAgain  = time.Second
)

// errUnread is what is logged of a backend that was waited for in vain.
var errUnread = errors.New("what it offers could not be read since the gateway started")

// hold is how long a request waits for the backend to be reached for the first time.
func (b *Backend) hold() time.Duration {
	if b.Hold > 0 {
		return b.Hold
	}
	return defaultHold
}

// find says whether what a request asks for was found. If not, it is answered: as unknown, which it is only once no backend is left that
// never said what it has and could have it. Look looks, by x.state.
func (x *exchange) find(k catalog.Kind, name string, look func() bool) bool {
	if look() {
		return true
	}
	b := x.unread(k, name)
	if b == nil {
		x.unknown(k, name)
		return false
	}
	if verdict := b.gate.enter(x.caller, x.share(), time.Now()); verdict != gateOpen {
		x.begin(b, k, name)
		x.turnAway(b, verdict)
		return false
	}
	defer b.gate.leave(x.caller) // whoever is found is entered for the call
	ctx := x.r.Context()
	if x.register() { // an id that is taken is refused with the call
		ctx = x.waited
	}
	return x.await(ctx, b, k, name, look)
}

// register has a cancellation, and the end of its session, end a request of which it is not known yet where it goes, and what becomes of
// it after that: in between there is nobody else who could be told. It says whether it did, and then unregister must follow.
func (x *exchange) register() bool {
	if x.session == nil || x.waited != nil {
		return x.waited != nil
	}
	ctx, cancel := context.WithCancelCause(x.r.Context())
	id := string(x.request.ID)
	if !x.session.begin(id, cancel) {
		cancel(nil)
		return false
	}
	x.waited, x.leave = ctx, func() {
		x.session.finish(id)
		cancel(nil)
	}
	return true
}

// unregister is for the end of the request, whether it was registered or not.
func (x *exchange) unregister() {
	if x.leave != nil {
		x.leave()
	}
}

// await is find while b may turn out to serve what is asked for, or another after it.
func (x *exchange) await(ctx context.Context, b *Backend, k catalog.Kind, name string, look func() bool) bool {
	hold := time.NewTimer(min(b.hold(), x.patience(b)))
	defer hold.Stop()
	for isOver := false; ; {
		news := x.news.next()
		cause := context.Cause(ctx)
		if cause == nil && !x.renew() {
			cause = errWithdrawn
		}
		if cause == nil {
			if look() {
				return x.isWanted(ctx, b, k, name)
			}
			next := x.unread(k, name)
			if next == nil {
				x.unknown(k, name)
				return false
			}
			b = next
		}
		if isOver || cause != nil {
			x.giveUp(ctx, b, k, name, cause)
			return false
		}
		b.kick()
		again := time.NewTimer(lastAgain)
		select {
		case <-news:
		case <-again.C:
		case <-hold.C:
			isOver = true
		case <-ctx.Done():
		}
		again.Stop()
	}
}

// isWanted answers a request that was cancelled while it was found out who serves it: a client says so but once.
func (x *exchange) isWanted(ctx context.Context, b *Backend, k catalog.Kind, name string) bool {
	cause := context.Cause(ctx)
	if cause != nil {
		x.giveUp(ctx, b, k, name, cause)
	}
	return cause == nil
}

// renew has a request of which nothing was sent yet go by the table in use, if that lets it in.
func (x *exchange) renew() (isLetIn bool) {
	now := x.Front.state.Load()
	if isLetIn = now == x.state || x.isLetIn(now); isLetIn {
		x.state = now
	}
	return isLetIn
}

// findPrompt finds who serves a prompt, and what it is called there.
func (x *exchange) findPrompt(name string) (b *Backend, original string, ok bool) {
	ok = x.find(catalog.Prompts, name, func() bool {
		b, original, ok = x.promptRoute(name)
		return ok
	})
	return b, original, ok
}

// findOwner finds who serves a resource.
func (x *exchange) findOwner(uri string) (b *Backend, ok bool) {
	ok = x.find(catalog.Resources, uri, func() bool {
		b, ok = x.ownerOf(x.state, uri)
		return ok
	})
	return b, ok
}

// giveUp answers a request whose backend did not come in time, or that ended before, by a cause.
func (x *exchange) giveUp(ctx context.Context, b *Backend, k catalog.Kind, name string, cause error) {
	x.begin(b, k, name)
	x.backend = b
	if cause != nil {
		ended, end := context.WithCancelCause(context.WithoutCancel(ctx))
		end(cause)
		x.finish(ended, cause)
		return
	}
	class := b.Status().ErrorClass
	if class == "" {
		class = "Timeout" // it was not even refused
	}
	x.finish(ctx, &backend.Error{Backend: b.Config.Name, Class: class, Err: errUnread})
}

// begin begins to account for a request that does not get as far as its backend.
func (x *exchange) begin(b *Backend, k catalog.Kind, name string) {
	info := telemetry.CallInfo{Method: x.request.Method, Backend: b.Config.Name, Version: versionOf(x.reply.era)}
	if k == catalog.Tools {
		info.Tool = name
	}
	x.span = x.options.Telemetry.Start(info)
}

// unread is the first backend that may turn out to serve what nobody is known to; nil if there is none.
func (x *exchange) unread(k catalog.Kind, name string) *Backend {
	for _, b := range x.state.Backends {
		if name != "" && b.isUnread(k) && b.mayServe(k, name) {
			return b
		}
	}
	return nil
}

// isUnread says that the backend never said what it has of a kind.
func (b *Backend) isUnread(k catalog.Kind) bool {
	known := b.source().Catalog
	if known == nil {
		return true
	}
	unread := func(k catalog.Kind) bool {
		return len(known.Entries[k]) == 0 && slices.Contains(known.Unread, k.Method())
	}
	if k == catalog.Resources || k == catalog.Templates { // a resource is found by either
		return unread(catalog.Resources) || unread(catalog.Templates)
	}
	return unread(k)
}

// mayServe says whether the backend's names and policy leave it open that it serves something of the name.
func (b *Backend) mayServe(k catalog.Kind, name string) bool {
	switch k {
	case catalog.Tools:
		config := b.Config
		if (config.Tools.ReadOnly || config.Tools.DenyDestructive) && !config.Trusted {
			return false // its word for what a tool does is not taken
		}
		config.Tools.ReadOnly, config.Tools.DenyDestructive = false, false
		_, ok := catalog.OriginalTool(&config, name)
		return ok && mcp.ValidToolName(name)
	case catalog.Prompts:
		original, ok := strings.CutPrefix(name, b.Config.Prefix)
		return ok && original != ""
	case catalog.Resources, catalog.Templates: // anybody's
	}
	return true
}

// described is what a backend speaks. One that was never reached is waited for, as one that restarts is by whatever is sent to it.
func (x *exchange) described(ctx context.Context, b *Backend) (*backend.Description, error) {
	deadline := time.Now().Add(b.hold())
	for pause := firstAgain; ; pause = min(2*pause, lastAgain) {
		d, err := b.Server.Describe(ctx)
		if err == nil || !isUnreached(err) || time.Now().Add(pause).After(deadline) || !backend.Pause(ctx, pause) {
			return d, err
		}
	}
}

// isUnreached says whether an error is that of a server that took no connection.
func isUnreached(err error) bool {
	failure, ok := errors.AsType[*backend.Error](err)
	return ok && !failure.Sent && (failure.Class == "Connect" || failure.Class == "DNS")
}

package front

import (
	"context"
	"errors"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
)

// look asks a backend what it is and offers, and makes that known. What the gateway itself fails at costs this backend alone: it goes
// on with the catalog that it had.
func (f *Front) look(ctx context.Context, b *Backend, relayed bool) (channel backend.Channel, err error) {
	defer f.options.Panics.Catch(b.Config.Name, &err)
	before := b.source().Catalog
	if channel, err = f.lookOnce(ctx, b, relayed); errors.Is(err, panics.Err) {
		b.restore(before)
		f.learn(b, nil, nil, err, false)
	}
	return channel, err
}

// restore makes an earlier catalog the one that is served.
func (b *Backend) restore(before *catalog.Catalog) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.catalog = before
}

// listenAt listens at a backend. What the gateway fails at ends that.
func (f *Front) listenAt(ctx context.Context, b *Backend, channel backend.Channel, request *backend.Call, sink backend.Sink) (err error) {
	defer f.options.Panics.Catch(b.Config.Name, &err)
	return channel.Listen(ctx, request, sink)
}

// recheck ends a request in flight unless it would be let through now.
func (f *Front) recheck(s *State, x *exchange, authChanged bool) {
	isAllowed := false
	defer func() {
		if !isAllowed {
			x.cancel(errWithdrawn)
		}
	}()
	defer f.options.Panics.Catch(x.backend.Config.Name, nil)
	isAllowed = f.stillAllowed(s, x, authChanged)
}

package front

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// hearing is a subscription of the gateway's at a backend of 2026-07-28.
type hearing struct {
	filter translate.Filter
	stop   context.CancelFunc
	ended  chan error
}

var errUnacknowledged = errors.New("the backend ended the stream before it acknowledged it")

// follow listens at a backend of 2026-07-28 for the resources subscribed to, and for changes of its lists if they are relayed. When the
// session subscribes to something else it opens another stream before it ends the one it has, so that nothing falls between the two.
func (r *relay) follow(ctx context.Context) error {
	name := r.backend.Config.Name
	defer r.ears.hear(ctx, name, nil)
	var now *hearing
	defer func() {
		if now != nil {
			now.stop()
		}
	}()
	for pause := firstRelayPause; ; {
		filter, changed := r.wanted()
		var retry <-chan time.Time
		if now == nil || !isSameFilter(now.filter, filter) {
			next, err := r.hear(ctx, filter)
			switch {
			case err != nil && now == nil:
				return err
			case err != nil:
				retry = time.After(pause)
				pause = min(2*pause, lastRelayPause)
			default:
				if now != nil {
					now.stop()
				}
				now, pause = next, firstRelayPause
			}
		}
		r.ears.hear(ctx, name, now.filter.URIs)
		if r.hears {
			r.news.hear(ctx, true)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-now.ended:
			return err
		case <-changed:
		case <-r.anew:
		case <-retry:
		}
	}
}

// wanted is what there is to listen for at a backend of 2026-07-28, and what is closed when that changes.
func (r *relay) wanted() (f translate.Filter, changed <-chan struct{}) {
	f.URIs = r.filter.URIs
	if r.session != nil {
		var subscribed map[string]struct{}
		subscribed, changed = r.session.subscribed()
		f.URIs = nil
		for uri := range subscribed {
			f.URIs = append(f.URIs, uri)
		}
	}
	f.URIs = r.servedBy(r.Front.state.Load(), r.backend, f.URIs)
	slices.Sort(f.URIs)
	f.Tools, f.Prompts, f.Resources = r.hears, r.hears, r.hears
	return f, changed
}

func isSameFilter(a, b translate.Filter) bool {
	return a.Tools == b.Tools && a.Prompts == b.Prompts && a.Resources == b.Resources && slices.Equal(a.URIs, b.URIs)
}

// hear opens a subscription at the backend, and returns when it is acknowledged. A backend that says nothing for a while is taken at
// its silence. Where there is nothing to listen for nothing is opened.
func (r *relay) hear(ctx context.Context, filter translate.Filter) (*hearing, error) {
	h := &hearing{filter: filter, stop: func() {}, ended: make(chan error, 1)}
	if filter.Empty() {
		return h, nil
	}
	sink := &relay{stream: r.stream, backend: r.backend, hears: r.hears, begun: make(chan struct{}, 1)}
	var err error
	if sink.channel, err = r.backend.Server.Modern(ctx); err != nil {
		return nil, err
	}
	var self backend.Client
	if r.session != nil {
		self.Info = r.session.Info
	}
	id := json.RawMessage(`"gateway-listen-` + strconv.FormatInt(r.requests.Add(1), 10) + `"`)
	request := &backend.Call{Message: filter.Listen(id, self, wire.Version20260728)}
	ctx, h.stop = context.WithCancel(ctx)
	sink.ctx = ctx
	go func() { h.ended <- r.listenAt(ctx, r.backend, sink.channel, request, sink) }()
	patience := time.NewTimer(r.limits.Listing)
	defer patience.Stop()
	select {
	case <-sink.begun:
	case <-patience.C:
	case err = <-h.ended:
		if err == nil {
			err = errUnacknowledged
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

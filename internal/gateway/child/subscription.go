package child

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// join subscribes a listener and acknowledges it. If the process refuses its request, the refusal is returned.
func (h *hub) join(ctx context.Context, l *listener) (refusal io.Reader, err error) {
	deadline := time.Now().Add(h.s.b.options.HoldTimeout)
	for {
		p, err := h.s.keeper.get(ctx, deadline)
		if err != nil {
			return nil, err
		}
		u, wait := h.ask(p, l)
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ended(ctx)
		}
		if joined, refusal, err := h.admit(p, l, u); joined || refusal != nil || err != nil {
			return refusal, err
		}
	}
}

// ask asks a process for what a listener wants and nobody asked for before. It returns what there is to wait for.
func (h *hub) ask(p *process, l *listener) (own *upstream, wait <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.over() { // and another one may have taken its place since it was looked up
		return nil, closed
	}
	if h.leaving != nil && !done(h.leaving) {
		return nil, h.leaving
	}
	if h.sub == nil || h.sub.p != p {
		if h.sub != nil {
			h.sub.cancel()
		}
		h.sub = h.subscription(p)
	}
	sub := h.sub
	missing := slices.DeleteFunc(slices.Clone(l.want.uris), func(uri string) bool { return slices.Contains(sub.asked.uris, uri) })
	if len(missing) == 0 {
		if u := sub.pending(&l.want); u != nil {
			return nil, u.ready
		}
		if sub.acked {
			return nil, closed
		}
	}
	if len(sub.open) >= maxUpstream || len(sub.asked.uris)+len(missing) > maxURIs {
		if leaving := h.hangUp(); leaving != nil {
			return nil, leaving
		}
		h.sub = h.subscription(p)
		sub = h.sub
	}
	u := h.open(sub, missing, false)
	return u, u.ready
}

// closed is ready at once.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// pending returns an upstream whose acknowledgement says something of what is wanted.
func (sub *subscription) pending(want *filter) *upstream {
	for _, u := range sub.open {
		if !u.done && (!sub.acked || !want.and(&filter{uris: u.asks.uris}).empty()) {
			return u
		}
	}
	return nil
}

// admit acknowledges a listener once it is known what the process grants. It is to try again if that was lost with the process.
func (h *hub) admit(p *process, l *listener, own *upstream) (joined bool, refusal io.Reader, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if own != nil && own.err != nil && !own.acked { // it would be answered in the same way again
		return false, nil, own.err
	}
	if own != nil && own.raw != nil && !own.acked {
		m, err := wire.Parse(own.raw, p.options.limits())
		if err != nil || m.Error != nil {
			return false, bytes.NewReader(own.raw), nil
		}
		if h.sub != nil && h.sub.p == p {
			h.sub.acked = true // ended without a word: it grants nothing
		}
	}
	switch {
	case h.s.b.ctx.Err() != nil: // before all else: the end of all listeners may have been
		return false, nil, errStopped
	case h.sub != nil && h.sub.p == p && h.sub.acked && !p.over(): // or all may have moved already
		h.listeners[l] = true
		l.acknowledge(&h.sub.granted)
		return true, nil, nil
	}
	return false, nil, nil
}

func (h *hub) subscription(p *process) *subscription {
	sub := &subscription{p: p, open: map[int64]*upstream{}, over: make(chan struct{})}
	sub.ctx, sub.cancel = context.WithCancel(h.s.b.ctx)
	return sub
}

// open sends one more request to the process: for all lists, and for the resources. The caller holds the lock.
func (h *hub) open(sub *subscription, uris []string, again bool) *upstream {
	asks := filter{uris: uris}
	for _, list := range listFields {
		asks.lists = append(asks.lists, list.method)
	}
	meta := wire.Field(sub.p.options.discoverParams(), "_meta")
	params := json.RawMessage(`{"_meta":` + string(meta) + `,"notifications":` + string(asks.params()) + `}`)
	u := &upstream{c: newCall(wire.NewRequest(idOf(0), methodListen, params)), asks: asks, again: again, ready: make(chan struct{})}
	u.c.ours = true
	sub.p.reserve(u.c)
	sub.open[u.c.id] = u
	sub.asked.add(&asks)
	go h.follow(sub, u)
	return u
}

// follow waits for the end of an upstream.
func (h *hub) follow(sub *subscription, u *upstream) {
	var got answer
	err := h.ended(sub, u, &got)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(sub.open, u.c.id)
	if err == nil {
		u.raw = got.raw
	} else if sub.ctx.Err() == nil && !sub.p.over() {
		u.err = err
	}
	if !u.done {
		u.done = true
		close(u.ready)
		sub.asked.uris = slices.DeleteFunc(sub.asked.uris, func(uri string) bool { return slices.Contains(u.asks.uris, uri) })
	}
	switch {
	case sub.leaving && len(sub.open) == 0:
		sub.cancel()
		close(sub.over)
	case h.sub == sub && (err == nil || u.err != nil) && u.acked && !u.granted.empty():
		h.hangUp() // the server has ended it, and so do we: in peace
	}
}

// ended waits for the end of an upstream, and takes what it brings.
func (h *hub) ended(sub *subscription, u *upstream, got *answer) (err error) {
	defer h.s.b.options.Panics.Catch(h.s.b.options.Name, &err)
	return sub.p.do(sub.ctx, u.c, got)
}

// hangUp ends all listeners in peace: they come again, and what was asked for on behalf of those who left long ago is forgotten. It
// returns what to wait for until the process may be asked anew, if anything. The caller holds the lock.
func (h *hub) hangUp() <-chan struct{} {
	for l := range h.listeners {
		l.q.fail(errStopped)
	}
	clear(h.listeners)
	return h.drop()
}

// drop ends the subscription at the process. The caller holds the lock.
func (h *hub) drop() <-chan struct{} {
	sub := h.sub
	h.sub = nil
	if sub == nil {
		return nil
	}
	if len(sub.open) == 0 {
		sub.cancel()
		return nil
	}
	sub.leaving = true
	for _, u := range sub.open {
		sub.p.cancel(u.c)
	}
	time.AfterFunc(leaveTime, sub.cancel)
	h.leaving = sub.over
	return sub.over
}

// leave ends a listener. With the last one the subscription at the process ends.
func (h *hub) leave(l *listener) {
	l.q.close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.listeners[l] {
		return
	}
	delete(h.listeners, l)
	if len(h.listeners) == 0 {
		h.drop()
	}
}

// end ends all listeners.
func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hangUp()
}

// move asks a new process for what the listeners were granted by the one before.
func (h *hub) move(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.listeners) == 0 {
		return
	}
	var all filter
	for l := range h.listeners {
		all.add(&l.granted)
	}
	if h.sub != nil {
		h.sub.cancel()
	}
	h.sub = h.subscription(p)
	h.open(h.sub, all.uris[:min(len(all.uris), maxURIs)], true)
}

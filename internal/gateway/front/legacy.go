package front

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// purposeSession is what session ids are sealed for.
const purposeSession = "session"

// maxOpened is how many backends' sessions are opened at initialize; others are opened when they are called.
const maxOpened = 16

// legacy answers a client of a protocol version up to 2025-11-25.
func (v *visit) legacy(m *wire.Message, reply *reply) {
	if m.Kind == wire.Request && m.Method == "initialize" {
		v.initialize(m, reply)
		return
	}
	s, status, why := v.enter()
	if status != 0 {
		v.refuse(status, wire.NewError(m.ID, wire.CodeInvalidRequest, why, nil))
		v.refused(m, "", telemetry.Outcome{Code: wire.CodeInvalidRequest})
		return
	}
	if s != nil {
		defer v.sessions.leave(s)
	}
	switch m.Kind {
	case wire.Request:
	case wire.Response:
		v.answered(s, m)
		return
	case wire.Notification:
		v.passUp(s, m)
		v.w.WriteHeader(http.StatusAccepted)
		return
	}
	x := &exchange{visit: v, reply: reply, request: m, session: s}
	defer x.unregister()
	if s != nil {
		x.level = s.logLevel()
	}
	switch m.Method {
	case "ping":
		_ = reply.send(wire.NewResult(m.ID, json.RawMessage("{}")))
	case "logging/setLevel":
		x.setLevel()
	case "resources/subscribe", "resources/unsubscribe":
		x.subscribe()
	default:
		x.serve()
	}
}

// enter finds the session that the request names. No id at all is fine unless all backends are known to want one: what the request is for
// decides, and may not be known yet.
func (v *visit) enter() (s *session, status int, why string) {
	ids := v.r.Header.Values(headerSession)
	switch {
	case len(ids) > 1:
		return nil, http.StatusBadRequest, "more than one Mcp-Session-Id"
	case len(ids) == 0 && !v.allWantSessions():
		return nil, 0, ""
	case len(ids) == 0:
		return nil, http.StatusBadRequest, errNoSession.Error()
	}
	const unknown = "the session is unknown or has ended: send initialize again"
	raw, err := v.options.Sealer.Open(purposeSession, v.principal.Subject, ids[0])
	if err != nil {
		return nil, http.StatusNotFound, unknown
	}
	var p passport
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, http.StatusNotFound, unknown
	}
	if s = v.sessions.enter(keyOf(ids[0]), v.caller, p); s == nil {
		return nil, http.StatusNotFound, unknown
	}
	return s, 0, ""
}

// errNoSession is the answer to who names no session, where one is wanted.
var errNoSession = errors.New("the Mcp-Session-Id header is missing: send initialize first, and the id it gave with every request")

// allWantSessions says whether no backend is left that may serve who has no session. Where there are none at all nobody wants one.
func (v *visit) allWantSessions() bool {
	return len(v.state.Backends) > 0 && !slices.ContainsFunc(v.state.Backends, func(b *Backend) bool { return !b.wantsSession() })
}

// initialize opens a session: its id is the passport, sealed to the caller.
func (v *visit) initialize(m *wire.Message, reply *reply) {
	ctx, stop := v.deadline(v.r.Context(), nil)
	defer stop()
	if !v.sessions.admit(v.caller) {
		v.w.Header().Set("Retry-After", "10")
		v.refuse(http.StatusTooManyRequests, wire.NewError(m.ID, wire.CodeInternal, "too many sessions of this caller are in use", nil))
		return
	}
	p := passport{Capabilities: bounded(m.Param("capabilities")), Info: bounded(m.Param("clientInfo"))}
	asked, _ := m.StringParam("protocolVersion")
	p.Version = translate.Negotiate(asked)
	x := &exchange{visit: v, reply: reply, request: m}
	offer, channels, err := x.greet(ctx, &p)
	if err != nil {
		x.backend = v.state.Backends[0]
		x.fail(ctx, err, false)
		return
	}
	p.Seen = v.seen()
	id, left, err := v.issue(&p)
	if err != nil {
		v.options.Logger.Warn("a session could not be sealed", "error", err)
		v.closeAll(slices.Collect(maps.Values(channels)))
		x.reply.reject(http.StatusInternalServerError, wire.NewError(m.ID, wire.CodeInternal, "the session could not be sealed", nil))
		return
	}
	s := v.sessions.enter(keyOf(id), v.caller, p)
	for name, channel := range channels {
		handle, isLeft := left[name]
		if !isLeft {
			handle = p.Backends[name]
		}
		s.linkTo(name).use(v.state.byName[name], channel, handle, isLeft)
	}
	v.sessions.leave(s)
	v.w.Header().Set(headerSession, id)
	_ = reply.send(wire.NewResult(m.ID, offer.Initialize(p.Version)))
}

// bounded leaves out what would make the session id too long.
func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxClientInfo {
		return nil
	}
	return raw
}

// greet opens the backends' sessions and works out what they offer. A lone backend answers for itself; of several, those
// that do not answer in time are left out, and opened when they are called.
func (x *exchange) greet(ctx context.Context, p *passport) (translate.Offer, map[string]backend.Channel, error) {
	b := x.lone(x.state)
	if b == nil {
		x.awaitCatalogs()
		channels := x.openAll(ctx, p)
		offer, err := x.offer(ctx)
		return offer, channels, err
	}
	offer, err := x.offer(ctx)
	if err != nil || !b.known().Legacy {
		return offer, nil, err
	}
	channel, handle, err := b.Server.Open(ctx, backend.Client{Capabilities: p.Capabilities, Info: p.Info, Version: p.Version})
	if err != nil {
		return offer, nil, err
	}
	if b.Config.Transport != table.TransportStdio {
		p.Version = handle.Version
	} // a process may be shared by clients of several versions: each is answered its own
	p.Backends = map[string]backend.Handle{b.Config.Name: handle}
	return offer, map[string]backend.Channel{b.Config.Name: channel}, nil
}

// openAll opens the sessions of several backends at once, for as long as a listing may take.
func (x *exchange) openAll(ctx context.Context, p *passport) map[string]backend.Channel {
	ctx, cancel := context.WithTimeout(ctx, x.limits.Listing)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	channels := map[string]backend.Channel{}
	p.Backends = map[string]backend.Handle{}
	opened := 0
	for _, b := range x.state.Backends {
		d := b.known()
		if d == nil || !d.Legacy || opened == maxOpened {
			continue
		}
		opened++
		wg.Go(func() {
			defer x.options.Panics.Catch(b.Config.Name, nil)
			channel, handle, err := b.Server.Open(ctx, backend.Client{Capabilities: p.Capabilities, Info: p.Info, Version: p.Version})
			if err != nil {
				x.options.Logger.Debug("open a session", "backend", b.Config.Name, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			channels[b.Config.Name], p.Backends[b.Config.Name] = channel, handle
		})
	}
	wg.Wait()
	return channels
}

// passUp passes a notification on to the backends. Failures are logged: the protocol has no answer to it.
func (v *visit) passUp(s *session, m *wire.Message) {
	if s == nil || m.Method == "notifications/initialized" { // a session at a backend is opened with it
		return
	}
	if !strings.HasPrefix(m.Method, "notifications/") {
		return // a request without an id, which a lenient server would carry out past all policy
	}
	if m.Method == "notifications/cancelled" && s.cancel(string(m.Param("requestId"))) {
		return
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), 10*time.Second)
	defer cancel()
	var passing sync.WaitGroup // beside each other: one that hangs must not keep it from the others
	for _, b := range v.state.Backends {
		if d := b.known(); d == nil || !d.Legacy || s.linkTo(b.Config.Name).isIdle() {
			continue
		}
		passing.Go(func() {
			err := v.passTo(ctx, s, b, m)
			if err != nil {
				v.options.Logger.Debug("pass a message on", "backend", b.Config.Name, "method", m.Method, "error", err)
			}
		})
	}
	passing.Wait()
}

// passTo passes a message on to one backend.
func (v *visit) passTo(ctx context.Context, s *session, b *Backend, m *wire.Message) (err error) {
	defer v.options.Panics.Catch(b.Config.Name, &err)
	channel, _, err := v.channelOf(ctx, s, b)
	if err != nil {
		return err
	}
	return channel.Send(ctx, m)
}

// delete ends a session, here and at the backends.
func (v *visit) delete() {
	if v.r.Header.Get(headerSession) == "" {
		http.Error(v.w, "the Mcp-Session-Id header is missing", http.StatusBadRequest)
		return
	}
	status, why := v.take(v.messages, 1)
	if status != 0 {
		v.w.Header().Set("Retry-After", "1")
		http.Error(v.w, why, status)
		return
	}
	defer v.messages.give(v.caller, 1)
	s, status, why := v.enter()
	if status != 0 {
		http.Error(v.w, why, status)
		return
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), v.limits.Listing)
	defer cancel()
	v.claimAll(ctx, s)
	v.sessions.leave(s)
	v.sessions.end(s)
	v.w.WriteHeader(http.StatusNoContent)
}

package front

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// serve answers a request, of either generation of the protocol, that goes to a backend or is answered from the catalogs.
func (x *exchange) serve() {
	x.renew()
	m := x.request
	switch m.Method {
	case "tools/call":
		x.callTool()
	case "prompts/get":
		name, _ := m.StringParam("name")
		if b, original, ok := x.findPrompt(name); ok {
			x.send(b, rename(m, name, original), nil)
		}
	case "resources/read":
		uri, _ := m.StringParam("uri")
		if b, ok := x.findOwner(uri); ok {
			x.send(b, m, nil)
		}
	case "completion/complete":
		x.complete()
	default:
		if kind, ok := catalog.KindOf(m.Method); ok {
			x.list(kind)
			return
		}
		x.other()
	}
}

// other forwards what is not known here to a lone backend, which may know.
func (x *exchange) other() {
	b := x.lone(x.state)
	if b == nil {
		x.noMethod()
		return
	}
	d, err := b.Server.Describe(x.r.Context())
	if err == nil && translate.Method(x.request.Method, x.reply.era, d.Nearest(x.reply.era)) != translate.Forward {
		x.noMethod()
		return
	}
	x.send(b, x.request, nil)
}

// noMethod says that the method does not exist here.
func (x *exchange) noMethod() {
	_ = x.reply.send(translate.MethodNotFound(x.request.ID, x.request.Method))
}

// unknown says that something is not served. What is hidden is told no differently.
func (x *exchange) unknown(k catalog.Kind, name string) {
	defer x.refused(x.request, "", telemetry.Outcome{Status: telemetry.StatusDenied, Code: wire.CodeInvalidParams}) // a trace of who tries what is hidden
	_ = x.reply.send(catalog.Unknown(k, x.request.ID, name, x.reply.era))
}

// send forwards the request, traced and measured.
func (x *exchange) send(b *Backend, m *wire.Message, headers map[string]string) {
	info := telemetry.CallInfo{Method: x.request.Method, Tool: x.tool, Backend: b.Config.Name, Version: versionOf(x.reply.era)}
	info.Carrier = telemetry.Carrier{
		Traceparent: x.traceOf("traceparent", "Traceparent"), Tracestate: x.traceOf("tracestate", "Tracestate"), Baggage: x.traceOf("baggage", "Baggage"),
	}
	span := x.options.Telemetry.Start(info)
	x.span = span
	if !x.enter(b) {
		return
	}
	defer b.gate.leave(x.caller)
	x.forward(x.r.Context(), b, traced(m, span.Carrier()), carry(span.Carrier(), headers))
}

// traced puts the trace context into the message's _meta, where the protocol has it (2026-07-28) and a child over stdio finds it.
func traced(m *wire.Message, c telemetry.Carrier) *wire.Message {
	var edits []wire.Edit
	for _, part := range []struct{ key, value string }{{"traceparent", c.Traceparent}, {"tracestate", c.Tracestate}, {"baggage", c.Baggage}} {
		if said, _ := wire.String(m.MetaField(part.key)); part.value != "" && part.value != said {
			edits = append(edits, wire.SetMeta(part.key, wire.Quote(part.value)))
		}
	}
	if edits == nil {
		return m
	}
	return m.With(edits...)
}

// traceOf is a part of the trace context that the client sent, in the message or in a header.
func (x *exchange) traceOf(meta, header string) string {
	if value, ok := wire.String(x.request.MetaField(meta)); ok {
		return value
	}
	return x.r.Header.Get(header)
}

// carry adds the trace context to the headers that go to a backend.
func carry(c telemetry.Carrier, headers map[string]string) map[string]string {
	for _, part := range []struct{ key, value string }{{"Traceparent", c.Traceparent}, {"Tracestate", c.Tracestate}, {"Baggage", c.Baggage}} {
		if part.value == "" {
			continue
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[part.key] = part.value
	}
	return headers
}

func versionOf(era backend.Era) string {
	if era == backend.Modern {
		return wire.Version20260728
	}
	return wire.Version20251125
}

func rename(m *wire.Message, name, original string) *wire.Message {
	if name == original {
		return m
	}
	return m.With(wire.SetParam("name", wire.Quote(original)))
}

// callTool forwards a call to the backend that serves the tool.
func (x *exchange) callTool() {
	name, _ := x.request.StringParam("name")
	var route catalog.Route
	var known bool
	if !x.find(catalog.Tools, name, func() (ok bool) {
		route, known, ok = x.route(x.state, name)
		return ok
	}) {
		return
	}
	x.tool, x.original = name, route.Original
	b := x.state.byName[route.Backend]
	arguments := x.request.Param("arguments")
	if x.reply.era == backend.Modern {
		err := wire.CheckParamHeaders(x.r.Header, route.ParamHeaders, arguments)
		if mismatch, ok := errors.AsType[*wire.HeaderError](err); ok && !x.overlooks("parameter") {
			x.reply.reject(http.StatusBadRequest, wire.NewError(x.request.ID, wire.CodeHeaderMismatch, mismatch.Reason, nil))
			x.refused(x.request, b.Config.Name, telemetry.Outcome{Code: wire.CodeHeaderMismatch})
			return
		}
	}
	headers := wire.ParamHeaderValues(route.ParamHeaders, arguments)
	if !known { // by the view that gave the route: another may be there by now
		headers = x.paramHeaders()
	}
	x.send(b, rename(x.request, name, route.Original), headers)
}

// paramHeaders are the client's own Mcp-Param headers, for a tool whose schema is not known here: its server knows it.
func (x *exchange) paramHeaders() map[string]string {
	var headers map[string]string
	for key, values := range x.r.Header {
		if strings.HasPrefix(key, "Mcp-Param-") && len(values) == 1 {
			if headers == nil {
				headers = map[string]string{}
			}
			headers[key] = values[0]
		}
	}
	return headers
}

// complete forwards a request for completions to whoever serves what it refers to.
func (x *exchange) complete() {
	ref := x.request.Param("ref")
	kind, _ := wire.String(wire.Field(ref, "type"))
	if kind == "ref/resource" {
		uri, _ := wire.String(wire.Field(ref, "uri"))
		var b *Backend
		if x.find(catalog.Templates, uri, func() (ok bool) {
			b, ok = x.ownerOf(x.state, uri)
			if route, isTemplate := x.view.Load().Template(uri); isTemplate && x.lone(x.state) == nil {
				b = x.state.byName[route.Backend]
				ok = b != nil
			}
			return ok
		}) {
			x.send(b, x.request, nil)
		}
		return
	}
	name, _ := wire.String(wire.Field(ref, "name"))
	b, original, ok := x.findPrompt(name)
	if !ok {
		return
	}
	m := x.request
	if name != original {
		renamed := wire.NewResult(nil, ref).With(wire.SetResult("name", wire.Quote(original)))
		m = m.With(wire.SetParam("ref", renamed.Result))
	}
	x.send(b, m, nil)
}

// setLevel sets the log level of a session at its backends, and remembers it for those that know no sessions.
func (x *exchange) setLevel() {
	level, ok := x.request.StringParam("level")
	if !ok || !translate.KnownLevel(level) {
		_ = x.reply.send(wire.NewError(x.request.ID, wire.CodeInvalidParams, "the log level is missing or unknown", nil))
		return
	}
	if x.session == nil { // there is nothing to keep it in
		_ = x.reply.send(wire.NewResult(x.request.ID, json.RawMessage("{}")))
		return
	}
	x.session.setLogLevel(level)
	x.level = level
	if b := x.lone(x.state); b != nil {
		if d := b.known(); d != nil && d.Legacy {
			x.send(b, x.request, nil)
			return
		}
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), x.limits.Listing)
	defer cancel()
	var telling sync.WaitGroup // beside each other: one that hangs must not keep it from the others
	for _, b := range x.state.Backends {
		d := b.known()
		if d == nil || !d.Legacy || x.session.linkTo(b.Config.Name).isIdle() ||
			!wire.IsObject(wire.Field(wire.Field(d.Initialize, "capabilities"), "logging")) {
			continue
		}
		telling.Go(func() {
			defer x.options.Panics.Catch(b.Config.Name, nil)
			if channel, _, err := x.channelOf(ctx, x.session, b); err == nil {
				x.Front.request(ctx, channel, "logging/setLevel", map[string]string{"level": level})
			}
		})
	}
	telling.Wait()
	_ = x.reply.send(wire.NewResult(x.request.ID, json.RawMessage("{}")))
}

// subscribe subscribes a session to a resource, or ends that: at a backend of its own protocol version, or here, for the
// session's stream to listen for.
func (x *exchange) subscribe() {
	uri, _ := x.request.StringParam("uri")
	if x.session == nil {
		x.rejectWithoutSession()
		return
	}
	b, ok := x.findOwner(uri)
	if !ok {
		return
	}
	if !x.session.subscribe(uri, x.request.Method == "resources/subscribe") {
		_ = x.reply.send(wire.NewError(x.request.ID, wire.CodeInvalidParams, "too many subscriptions in this session", nil))
		return
	}
	d, err := x.described(x.r.Context(), b)
	if err == nil && d.Modern && x.request.Method == "resources/subscribe" {
		x.awaitHeard(b, d, uri)
	}
	switch {
	case err != nil:
		x.backend = b
		x.fail(x.r.Context(), err, false)
	case d.Legacy:
		x.send(b, x.request, nil)
	default:
		_ = x.reply.send(wire.NewResult(x.request.ID, json.RawMessage("{}")))
	}
}

package front

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// modern answers a client of protocol version 2026-07-28.
func (v *visit) modern(m *wire.Message, reply *reply) {
	if status, refusal := v.checkModern(m); refusal != nil {
		v.refuse(status, refusal)
		v.refused(m, "", telemetry.Outcome{Code: codeIn(refusal)})
		return
	}
	if m.Kind != wire.Request {
		v.w.WriteHeader(http.StatusAccepted) // there is nothing it could say: a request is cancelled by closing its stream
		return
	}
	x := &exchange{visit: v, reply: reply, request: m}
	x.level, _ = wire.String(m.MetaField(wire.MetaLogLevel))
	switch m.Method {
	case "server/discover":
		x.discover()
	case "subscriptions/listen":
		x.listenModern()
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		x.noMethod()
	default:
		x.serve()
	}
}

// checkModern checks what every request of 2026-07-28 must say of itself.
func (v *visit) checkModern(m *wire.Message) (status int, refusal *wire.Message) {
	asked := v.r.Header.Get(headerVersion)
	said, _ := wire.String(m.MetaField(wire.MetaProtocolVersion))
	if asked != "" && asked != wire.Version20260728 && (said == asked || said == "") {
		data, err := json.Marshal(map[string]any{"supported": wire.Versions(), "requested": asked})
		if err != nil {
			data = nil
		}
		return http.StatusBadRequest, wire.NewError(m.ID, wire.CodeUnsupportedVersion, "the protocol version is not supported", data)
	}
	if mismatch, ok := errors.AsType[*wire.HeaderError](wire.CheckHeaders(v.r.Header, m)); ok && !v.overlooks("standard") {
		return http.StatusBadRequest, wire.NewError(m.ID, wire.CodeHeaderMismatch, mismatch.Reason, nil)
	}
	if m.Kind == wire.Request && (said == "" || m.MetaField(wire.MetaClientCapabilities) == nil) {
		return http.StatusBadRequest, wire.NewError(m.ID, wire.CodeInvalidParams,
			"params._meta must carry "+wire.MetaProtocolVersion+" and "+wire.MetaClientCapabilities, nil)
	}
	return 0, nil
}

// overlooks says whether headers that do not repeat the body are let pass, and counts that they were.
func (v *visit) overlooks(part string) bool {
	if v.state.Table.Endpoint.LenientHeaders {
		v.options.Telemetry.HeadersIgnored(part)
	}
	return v.state.Table.Endpoint.LenientHeaders
}

// discover says what the endpoint offers.
func (x *exchange) discover() {
	ctx, stop := x.deadline(x.r.Context(), x.lone(x.state))
	defer stop()
	x.awaitCatalogs()
	offer, err := x.offer(ctx)
	if err != nil {
		x.fail(ctx, err, false)
		return
	}
	_ = x.reply.send(wire.NewResult(x.request.ID, offer.Discover()))
}

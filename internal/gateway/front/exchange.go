package front

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// exchange is one request on its way through a backend, and the sink of what comes back.
type exchange struct {
	*visit

	reply *reply
	// request is the client's message.
	request *wire.Message
	// session is the client's, nil for a client of 2026-07-28 and for one that needs none.
	session *session
	backend *Backend
	channel backend.Channel
	// handle is that of the channel, if that is of the client's session.
	handle backend.Handle
	// tool is the name the client called a tool by, original what its server calls it.
	tool, original string
	// level is the least severe log message the client wants; empty wants all that comes.
	level string
	// filter, if not nil, changes the result of a list.
	filter func(json.RawMessage) (json.RawMessage, error)
	// ctx is that of the call under way, which cancel ends.
	ctx    context.Context //nolint:containedctx // of the call whose sink it is
	cancel context.CancelCauseFunc
	span   *telemetry.Span
	// waited is that of a call that was waited for its backend with, nil for others, and leave ends that: see await.
	waited context.Context //nolint:containedctx // of the call
	leave  func()
	// begun is when the call began.
	begun time.Time
	// lags says that the client was being written to when the time of the call was over.
	lags bool
	// heard says that the backend said something about the request, so that it has it.
	heard bool
	// words is what the response is read through, and knows when something of the call came last.
	words lastWord
}

// forward sends the request, as message has it, to the backend, and answers with what comes back.
func (x *exchange) forward(ctx context.Context, b *Backend, message *wire.Message, headers map[string]string) {
	x.backend = b
	if x.waited != nil {
		ctx = x.waited
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.ctx, x.cancel, x.begun = ctx, cancel, time.Now()
	// A timer rather than a context of its own: this is done for every call.
	defer time.AfterFunc(x.patience(b), func() {
		x.lags = x.reply.writing.Load()
		cancel(errTimeout)
	}).Stop()
	x.flights.Store(x, nil)
	defer x.flights.Delete(x)
	if now := x.Front.state.Load(); now != x.state && !x.stillAllowed(now, x, true) {
		x.cancel(errWithdrawn) // it was withdrawn before the request could be found
	}
	if x.session != nil && x.waited == nil {
		id := string(x.request.ID)
		if !x.session.begin(id, x.cancel) {
			const why = "a request of this id is in flight in the session: give each request an id of its own"
			x.reply.reject(http.StatusBadRequest, wire.NewError(x.request.ID, wire.CodeInvalidRequest, why, nil))
			x.span.End(telemetry.Outcome{Status: telemetry.StatusRejected, Code: wire.CodeInvalidRequest, Principal: x.principal.Subject})
			return
		}
		defer x.session.finish(id)
	}
	x.reply.start()
	err := x.call(ctx, message, headers)
	if x.isLost(err) && x.channel != nil && x.channel.Era() == backend.Legacy {
		// The backend lost the session, by a restart say. A session that callers share is opened anew by whoever asks for it.
		b.kick()
		broken := x.channel
		x.channel = nil
		if err = nil; x.session != nil {
			err = x.reopen(ctx, x.session, b, broken)
		}
		if err == nil {
			err = x.call(ctx, message, headers)
		}
	}
	x.note(ctx, err)
	x.finish(ctx, err)
}

// enter lets the request through to the backend, or answers why not.
func (x *exchange) enter(b *Backend) bool {
	verdict := b.gate.enter(x.caller, x.share(), time.Now())
	if verdict != gateOpen {
		x.turnAway(b, verdict)
	}
	return verdict == gateOpen
}

// turnAway answers why a request is not let through.
func (x *exchange) turnAway(b *Backend, verdict gateVerdict) {
	var why, class string
	status := http.StatusOK
	switch verdict {
	case gateOpen:
	case gateCallerFull:
		why, class, status = busy(b.Config.Name), "Busy", http.StatusTooManyRequests
		x.w.Header().Set("Retry-After", "1")
		x.options.Telemetry.Rejected("backend")
	case gateHangs:
		why, class = hung(b.Config.Name), "Timeout"
	}
	data, _ := json.Marshal(problem{Class: class}) //nolint:errchkjson // strings and booleans
	x.reply.reject(status, wire.NewError(x.request.ID, wire.CodeInternal, why, data))
	x.span.End(telemetry.Outcome{
		Status: telemetry.StatusRejected, Code: wire.CodeInternal, Principal: x.principal.Subject, Flood: verdict == gateCallerFull,
	})
}

// note tells the backend's gate how the call ended. A call that was given up, or could not be sent, tells nothing, and nor does one of
// which something was being written to its client when its time was over, or whose client was asked something meanwhile: that is who is slow.
// Nor does one that the backend was still at when its time was over.
func (x *exchange) note(ctx context.Context, err error) {
	failure, isFailure := errors.AsType[*backend.Error](err)
	cause := context.Cause(ctx)
	late := errors.Is(cause, errTimeout) && !x.lags || cause == nil && isFailure && failure.Class == "Timeout"
	if err != nil && (!late || x.hasAsked() || x.words.isSlow(x.patience(x.backend), time.Now())) {
		return
	}
	if x.backend.gate.note(err == nil, time.Now()) {
		x.options.Logger.Warn("backend answers no call in time: until it does, one call a second is sent to it", "backend", x.backend.Config.Name)
		x.backend.kick()
	}
}

// hasAsked says that the backend has asked the client something since the call began: the call may wait for the answer.
func (x *exchange) hasAsked() bool {
	return x.session != nil && x.session.linkTo(x.backend.Config.Name).askedSince(x.begun)
}

// isLost says that the backend does not know the session, and so did nothing: the one failure after which the request is sent again.
func (x *exchange) isLost(err error) bool {
	failure, isFailure := errors.AsType[*backend.Error](err)
	return errors.Is(err, backend.ErrSession) && !x.heard && (!isFailure || !failure.Sent)
}

// call sends the request once, unless it has ended already: a channel may take what it is given without a look.
func (x *exchange) call(ctx context.Context, message *wire.Message, headers map[string]string) (err error) {
	defer x.options.Panics.Catch(x.backend.Config.Name, &err)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	channel, err := x.pick(ctx, x.backend)
	if err == nil {
		err = context.Cause(ctx) // to open a session takes its time
	}
	if err != nil {
		return err
	}
	x.channel = channel
	switch {
	case channel.Era() == x.reply.era:
	case x.reply.era == backend.Legacy:
		message = translate.ToModern(message, x.speaker(), wire.Version20260728, x.level)
	default:
		message = translate.ToLegacy(message)
	}
	return channel.Call(ctx, &backend.Call{Message: message, Headers: headers}, x)
}

// pick is the way to the backend: in the client's own protocol version if the backend speaks it, else in the other.
func (x *exchange) pick(ctx context.Context, b *Backend) (backend.Channel, error) {
	d, err := x.described(ctx, b)
	if err != nil {
		return nil, err
	}
	switch {
	case x.reply.era == backend.Modern && d.Modern:
		return b.Server.Modern(ctx)
	case x.reply.era == backend.Legacy && d.Legacy && x.session != nil:
		channel, handle, err := x.channelOf(ctx, x.session, b)
		x.handle = handle
		return channel, err
	case x.reply.era == backend.Legacy && d.Legacy && !d.Modern:
		return x.withoutSession(ctx, b)
	case x.reply.era == backend.Legacy:
		return b.Server.Modern(ctx)
	}
	return b.shared(ctx, x.caller)
}

// withoutSession is the way of a client that names no session to a backend that speaks legacy versions alone: one that keeps none either.
func (x *exchange) withoutSession(ctx context.Context, b *Backend) (backend.Channel, error) {
	if b.keeps() == keepsSessions {
		return nil, errNoSession
	}
	channel, err := b.shared(ctx, x.caller)
	if err == nil && b.keeps() == keepsSessions { // it may not have been known before
		err = errNoSession
	}
	return channel, err
}

// speaker is the client as a backend of 2026-07-28 is told of it.
func (x *exchange) speaker() backend.Client {
	if x.session == nil {
		return backend.Client{}
	}
	return backend.Client{Capabilities: x.session.Capabilities, Info: x.session.Info}
}

// Message passes on what the backend sends before its response.
func (x *exchange) Message(m *wire.Message) error {
	x.heard, x.words.at = true, time.Now()
	if m.Kind == wire.Request {
		return x.ask(m)
	}
	if x.channel.Era() != x.reply.era && !translate.ForCaller(m, x.reply.era, x.level) {
		return nil
	}
	return x.reply.message(x.unasked(x.session, origin{x.backend.Config.Name, x.handle}, m))
}

// Response passes the response on as it arrives.
func (x *exchange) Response(r io.Reader) error {
	x.heard, x.words.Reader = true, r
	r = &x.words
	if x.filter != nil {
		filtered, err := x.filtered(r)
		if err != nil {
			return err
		}
		r = filtered
	}
	switch {
	case x.channel.Era() == x.reply.era:
	case x.reply.era == backend.Modern:
		r = translate.StreamToModern(r, x.request.Method)
	default:
		r = translate.StreamToLegacy(r, x.request.ID)
	}
	return x.reply.response(r)
}

// finish ends the exchange: an answer that did not come is told as an error.
func (x *exchange) finish(ctx context.Context, err error) {
	x.reply.mu.Lock()
	answered, written := x.reply.done, x.reply.written
	x.reply.mu.Unlock()
	outcome := telemetry.Outcome{
		Status: x.reply.status, Code: x.reply.code, RequestBytes: int64(len(x.request.Raw)), ResponseBytes: written, Principal: x.principal.Subject,
	}
	if x.session != nil {
		outcome.SessionID = hex.EncodeToString(x.session.key[:8])
	}
	if err != nil {
		outcome.Status, outcome.Code = x.fail(ctx, err, answered)
	}
	x.span.End(outcome)
	if err != nil && answered {
		// Half a response must not pass for a whole one.
		panic(http.ErrAbortHandler)
	}
}

// fail answers with what went wrong, unless an answer was begun.
func (x *exchange) fail(ctx context.Context, err error, answered bool) (status telemetry.Status, code int) {
	if errors.Is(err, errNoSession) {
		x.rejectWithoutSession()
		return telemetry.StatusRejected, wire.CodeInvalidRequest
	}
	status = telemetry.StatusError
	var message string
	var data *problem
	failure, isFailure := errors.AsType[*backend.Error](err)
	// What is said of sending is said of this request, and not of what the gateway asked before, to get a channel.
	sent := x.channel != nil && (!isFailure || failure.Sent || x.heard)
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errCancelled), x.r.Context().Err() != nil:
		status, message = telemetry.StatusCancelled, "the request was cancelled"
	case errors.Is(cause, errWithdrawn):
		status, message = telemetry.StatusDenied, errWithdrawn.Error()
		data = &problem{Class: "Forbidden", Sent: sent}
	case errors.Is(cause, errOver) && sent:
		status, message = telemetry.StatusCancelled, "the session was ended while the request ran; it may have been carried out"
		data = &problem{Class: "NotFound", Sent: true}
	case errors.Is(cause, errTimeout) && (sent || !isFailure):
		message = fmt.Sprintf("backend %q: %s", x.backend.Config.Name, describe("Timeout", sent))
		data = &problem{Class: "Timeout", Sent: sent}
	case x.isLost(err), errors.Is(err, errOver):
		message = fmt.Sprintf("backend %q: the session was lost; the request was not carried out, it is safe to try again", x.backend.Config.Name)
		data = &problem{Class: "NotFound"}
	case errors.Is(err, backend.ErrSession):
		message = fmt.Sprintf("backend %q: the session was lost while the request ran; it may have been carried out", x.backend.Config.Name)
		data = &problem{Class: "NotFound", Sent: true}
	case isFailure:
		if tellsOfChange(failure) {
			x.backend.kick()
		}
		status = telemetry.StatusUnavailable
		message = fmt.Sprintf("backend %q: %s", x.backend.Config.Name, describe(failure.Class, sent))
		data = &problem{Class: failure.Class, Sent: sent, Detail: failure.Detail}
	default:
		message = fmt.Sprintf("backend %q: the request could not be passed on", x.backend.Config.Name)
	}
	x.options.Logger.Debug("call failed", "backend", x.backend.Config.Name, "method", x.request.Method, "error", err)
	if !answered {
		var raw json.RawMessage
		if data != nil {
			raw, _ = json.Marshal(data) //nolint:errchkjson // strings and booleans
		}
		x.reply.reject(http.StatusOK, wire.NewError(x.request.ID, wire.CodeInternal, message, raw))
	}
	return status, wire.CodeInternal
}

// tellsOfChange says whether a failure is one of a server that may be another by now, or gone. One that answers, with an error
// or too much, is who it was.
func tellsOfChange(failure *backend.Error) bool {
	switch failure.Class {
	case "NotFound", "NotMCP", "Connect", "DNS", "ChildExited", "ChildSilent":
		return true
	}
	return !failure.Sent
}

// problem is the data of an error about a backend.
type problem struct {
	// Class is backend.Error.Class.
	Class string `json:"class"`
	// Sent says that the request may have been carried out.
	Sent   bool   `json:"sent"`
	Detail string `json:"detail,omitempty"`
}

// describe says what a failure means to a client, in words that nothing of the backend's enters.
func describe(class string, sent bool) string {
	what := map[string]string{
		"DNS": "its name does not resolve", "Connect": "it refuses connections", "TLS": "its certificate is not valid",
		"Timeout": "it did not answer in time", "Unauthorized": "it refuses the gateway's credential", "Forbidden": "it forbids the request",
		"NotFound": "there is no MCP endpoint at its address", "NotMCP": "it does not speak MCP",
		"NotPostgres": "it does not speak PostgreSQL", "ServerError": "it failed",
		"ChildExited": "its process ended", "ChildSilent": "its process does not answer", "TooLarge": "it sent more than allowed",
		"Denied": "its address is not allowed", "Credential": "the gateway's credential or certificates for it cannot be used",
		"Definition": "the tool is defined wrongly", "Statement": "its statement cannot be run",
	}[class]
	if what == "" {
		what = "it failed"
	}
	var b strings.Builder
	b.WriteString(what)
	if sent {
		b.WriteString("; the request may have been carried out")
	} else {
		b.WriteString("; the request was not sent, it is safe to try again")
	}
	return b.String()
}

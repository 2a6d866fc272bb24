package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Why a probe ran out of time.
var (
	errRequestTimeout = errors.New("request timeout")
	errTotalTimeout   = errors.New("total timeout")
)

// Why a body holds no answer to a request.
var (
	errBodyBytes  = errors.New("body too large")
	errEncoded    = errors.New("body is compressed")
	errMediaType  = errors.New("body is neither JSON nor an event stream")
	errEmpty      = errors.New("body is empty")
	errOtherID    = errors.New("body answers another request")
	errNoResponse = errors.New("event stream ended without a response")
)

// reply is an HTTP answer as far as it was read.
type reply struct {
	status    int
	challenge challenge  // of a 401
	session   string     // Mcp-Session-Id
	redirect  *url.URL   // where a redirect leads that stays within the server
	message   rpcMessage // the response to our request
	hasRPC    bool       // message is set
	bodyErr   error      // why it is not: an *Error
}

// exchange is one request: what is sent and how it is told in messages.
type exchange struct {
	step       string // for messages, such as "tools/list"
	httpMethod string
	body       []byte
	id         int // of the JSON-RPC request in body; 0 = none, no answer is read
	version    string
	rpcMethod  string // sent as Mcp-Method to stateless servers
	session    string
	host       string
	target     *url.URL // nil: the prober's
}

// call sends the JSON-RPC request method in the given protocol version and
// returns the answer. The error is an *Error for a server that gave none.
// The reply's message is valid until the next call.
func (p *prober) call(ctx context.Context, method, version string, params map[string]any) (reply, error) {
	p.lastID++
	body, err := p.encode(map[string]any{"jsonrpc": "2.0", "id": p.lastID, "method": method}, version, params)
	if err != nil {
		return reply{}, err
	}
	x := exchange{
		step: method, httpMethod: http.MethodPost, body: body, id: p.lastID,
		version: version, rpcMethod: method, session: p.session, host: p.host,
	}
	if p.stream != nil {
		return p.callStream(ctx, x)
	}
	return p.send(ctx, x)
}

// notify sends the JSON-RPC notification method.
func (p *prober) notify(ctx context.Context, method, version string) (reply, error) {
	body, err := p.encode(map[string]any{"jsonrpc": "2.0", "method": method}, version, nil)
	if err != nil {
		return reply{}, err
	}
	x := exchange{
		step: method, httpMethod: http.MethodPost, body: body,
		version: version, session: p.session, host: p.host,
	}
	if p.stream != nil {
		x.target = p.stream.post
	}
	return p.send(ctx, x)
}

func (p *prober) encode(message map[string]any, version string, params map[string]any) ([]byte, error) {
	if Stateless(version) {
		if params == nil {
			params = map[string]any{}
		}
		params["_meta"] = map[string]any{
			wire.MetaProtocolVersion: version, wire.MetaClientInfo: p.clientInfo(), wire.MetaClientCapabilities: map[string]any{},
		}
	}
	if params != nil {
		message["params"] = params
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, &Error{Reason: InvalidTarget, Message: "The MCP request could not be written as JSON.", err: err}
	}
	return body, nil
}

// send does one exchange, and what it is redirected to where that is followed.
func (p *prober) send(ctx context.Context, x exchange) (reply, error) {
	for {
		r, err := p.sendOnce(ctx, x)
		if err != nil || r.redirect == nil || !p.follows(r.status) {
			return r, err
		}
		p.followed++
		p.target = r.redirect
	}
}

// sendOnce sends one request within Limits.Request.
func (p *prober) sendOnce(ctx context.Context, x exchange) (reply, error) {
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, p.limits.Request, errRequestTimeout)
	defer cancelTimeout()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	req, err := p.request(ctx, x)
	if err != nil {
		return reply{}, err
	}
	resp, err := p.transport.roundTrip(req)
	if err != nil {
		return reply{}, p.transportFailure(ctx, x.step, err)
	}
	// What was needed of the body has been read by then.
	defer func() { _ = resp.Body.Close() }()
	r := reply{status: resp.StatusCode, session: resp.Header.Get(wire.HeaderSession)}
	if r.status == http.StatusUnauthorized {
		r.challenge = parseChallenge(resp.Header.Values("WWW-Authenticate"), p.limits.IdentityBytes)
	}
	if r.status >= 300 && r.status < 400 && x.target == nil {
		r.redirect = p.redirect(resp.Header.Get("Location"), x.host)
	}
	if x.id != 0 {
		r.message, err = p.read(ctx, x, resp)
		r.hasRPC = err == nil
		if err != nil {
			r.bodyErr = p.bodyFailure(ctx, x.step, err)
		}
	}
	drain(resp.Body, cancel)
	return r, nil
}

// request sets the fixed headers of ours and no other.
func (p *prober) request(ctx context.Context, x exchange) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, x.httpMethod, cmp.Or(x.target, p.target).String(), bytes.NewReader(x.body))
	if err != nil {
		return nil, &Error{Reason: InvalidTarget, Message: "The URL of the MCP server is not valid.", err: err}
	}
	req.Host = x.host
	h := http.Header{}
	h.Set("User-Agent", p.userAgent())
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("Accept-Encoding", "identity")
	if x.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if x.version != "" {
		h.Set(wire.HeaderVersion, x.version)
	}
	if Stateless(x.version) && x.rpcMethod != "" {
		h.Set(wire.HeaderMethod, x.rpcMethod)
	}
	if x.session != "" {
		h.Set(wire.HeaderSession, x.session)
	}
	req.Header = h
	return req, nil
}

// read finds the response to x in the body.
func (p *prober) read(ctx context.Context, x exchange, resp *http.Response) (rpcMessage, error) {
	plain, length, err := p.plain(resp)
	if err != nil {
		return rpcMessage{}, err
	}
	mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	body := &limitedBody{in: plain, left: p.limits.BodyBytes}
	switch {
	case mediaType == "text/event-stream" && resp.StatusCode < http.StatusBadRequest:
		return p.readEvents(ctx, x.id, body)
	case mediaType == "", mediaType == "application/json", mediaType == "text/plain", strings.HasSuffix(mediaType, "+json"):
		return p.readMessage(x.id, length, body)
	}
	return rpcMessage{}, errMediaType
}

// readMessage reads one message of the declared length, -1 if that is unknown.
func (p *prober) readMessage(id int, declared int64, body *limitedBody) (rpcMessage, error) {
	var err error
	if declared > int64(cap(p.body)) && declared <= p.limits.BodyBytes {
		p.body = make([]byte, 0, declared+1)
	}
	if p.body, err = readAll(body, p.body[:0], p.limits.BodyBytes); err != nil {
		return rpcMessage{}, err
	}
	if len(p.body) == 0 {
		return rpcMessage{}, errEmpty
	}
	m, err := parseMessage(p.body, p.limits)
	if err != nil {
		return rpcMessage{}, err
	}
	if !m.answers(id) && !m.refuses() {
		return rpcMessage{}, errOtherID
	}
	return m, nil
}

// readAll appends all of in to buf, which it grows to at most limit and a byte:
// io.ReadAll would leave twice as much behind.
func readAll(in io.Reader, buf []byte, limit int64) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			size := max(2*int64(cap(buf)), 4<<10)
			if size >= limit {
				size = limit + 1
			}
			grown := make([]byte, len(buf), size)
			copy(grown, buf)
			buf = grown
		}
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// readEvents looks for the response among the events of a stream. Requests and
// notifications of the server in between are left unanswered.
func (p *prober) readEvents(ctx context.Context, id int, body *limitedBody) (rpcMessage, error) {
	if p.events == nil {
		p.events = wire.NewEventReader(nil, p.limits.EventBytes)
		p.events.MaxEvents, p.events.Whole = p.limits.Events, true
	}
	p.events.Reset(body)
	return p.await(ctx, p.events, id)
}

// await reads events until the answer to a request.
func (p *prober) await(ctx context.Context, events *wire.EventReader, id int) (rpcMessage, error) {
	for ctx.Err() == nil {
		event, err := events.Next()
		if errors.Is(err, io.EOF) {
			return rpcMessage{}, errNoResponse
		}
		if err != nil {
			return rpcMessage{}, err
		}
		if event.Type != wire.TypeMessage {
			continue
		}
		m, err := parseMessage(event.Data, p.limits)
		if err != nil {
			return rpcMessage{}, err
		}
		if m.answers(id) || m.refuses() {
			return m, nil
		}
	}
	return rpcMessage{}, ctx.Err()
}

// limitedBody is a body that fails, instead of ending, at its limit.
type limitedBody struct {
	in   io.Reader
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.in.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errBodyBytes
	}
	return n, err
}

// drain reads what little may be left of a body, so that its connection can be
// used again: a session may live in one of several replicas, and another
// connection may lead to another one.
func drain(body io.Reader, cancel context.CancelFunc) {
	defer time.AfterFunc(drainTime, cancel).Stop()
	// Whatever goes wrong here only costs the connection.
	_, _ = io.CopyN(io.Discard, body, drainBytes)
}

const (
	drainTime  = 50 * time.Millisecond
	drainBytes = 4 << 10
)

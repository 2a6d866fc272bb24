package mcp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// sseStream is the open event stream of a server that speaks HTTP with SSE
// (2024-11-05). It is the session: it ends with the stream.
type sseStream struct {
	post   *url.URL // where messages are posted
	events *wire.EventReader
	cancel context.CancelFunc
	body   io.Closer
}

func (s *sseStream) close() {
	s.cancel()
	// There is nothing to do about an error: the connection is given up.
	_ = s.body.Close()
}

// handshakeSSE opens the event stream and initializes. The version offered is
// the newest with initialize: servers answer with the one they speak.
func (p *prober) handshakeSSE(ctx context.Context) error {
	p.asLocal = true // the stream was asked: a later refusal has another cause
	if err := p.openStream(ctx); err != nil {
		return err
	}
	if err := p.initialize(ctx, Version20251125); err != nil {
		return err
	}
	// Whoever posts must post to the process that holds the stream.
	p.result.Stateful = true
	return nil
}

// stepStream names the opening of the stream in messages.
const stepStream = "GET"

// openStream opens the event stream and reads where to post, within
// Limits.Request. The stream itself lives until it is closed.
func (p *prober) openStream(ctx context.Context) error {
	opening, done := context.WithTimeoutCause(ctx, p.limits.Request, errRequestTimeout)
	defer done()
	resp, cancel, err := p.getStream(ctx, opening, p.host) //nolint:bodyclose // it is closed with the stream, at the end of the probe
	if err != nil {
		return err
	}
	stop := context.AfterFunc(opening, cancel)
	s := &sseStream{cancel: cancel, body: resp.Body}
	s.events = wire.NewEventReader(&limitedBody{in: resp.Body, left: p.limits.TotalBytes}, p.limits.EventBytes)
	s.events.MaxEvents, s.events.Whole = p.limits.Events, true
	if err := p.judgeStream(opening, resp); err != nil {
		s.close()
		return err
	}
	endpoint, err := readEndpoint(s.events)
	if err == nil {
		s.post, err = p.endpointURL(endpoint)
	}
	if err == nil && !stop() {
		err = opening.Err()
	}
	if err != nil {
		s.close()
		return p.streamFailure(opening, err)
	}
	p.stream = s
	return nil
}

// getStream asks for the stream. The request ends with cancel, and when opening
// does before there was an answer.
func (p *prober) getStream(ctx, opening context.Context, host string) (*http.Response, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(opening, cancel)
	defer stop()
	req, err := p.request(ctx, exchange{step: stepStream, httpMethod: http.MethodGet, host: host})
	if err == nil {
		req.Header.Set("Accept", "text/event-stream")
		var resp *http.Response
		if resp, err = p.transport.roundTrip(req); err == nil {
			return resp, cancel, nil
		}
		err = p.transportFailure(opening, stepStream, err)
	}
	cancel()
	return nil, nil, err
}

// judgeStream tells what an answer to the GET means if it is not an event
// stream: nil for one that is.
func (p *prober) judgeStream(ctx context.Context, resp *http.Response) error {
	switch status := resp.StatusCode; {
	case mayRefuseHost(status) && p.streamTakesLocalHost(ctx):
		return p.hostFailure(status)
	case status == http.StatusBadRequest, status == http.StatusMethodNotAllowed, status == http.StatusNotAcceptable:
		return failure(MethodNotAllowed, nil, "The server has no event stream at path %s (HTTP %d): "+
			"spec.path names something else, or the server speaks the newer transport: then set spec.transport to StreamableHTTP.", p.path(), status)
	case status != http.StatusOK:
		r := reply{status: status, bodyErr: notMCP(stepStream, "it is not an event stream")}
		if status == http.StatusUnauthorized {
			r.challenge = parseChallenge(resp.Header.Values("WWW-Authenticate"), p.limits.IdentityBytes)
		}
		return p.judge(stepStream, r)
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return p.bodyFailure(ctx, stepStream, errEncoded)
	}
	if mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || mediaType != "text/event-stream" {
		return notMCP(stepStream, "it is not an event stream")
	}
	return nil
}

// streamTakesLocalHost asks as a caller on the server's own machine would, and
// reports whether that one is let in.
func (p *prober) streamTakesLocalHost(ctx context.Context) bool {
	resp, cancel, err := p.getStream(ctx, ctx, localHost(p.target))
	if err != nil {
		return false
	}
	defer cancel()
	defer func() { _ = resp.Body.Close() }() // nothing of it is read
	return letsIn(resp.StatusCode)
}

// Why a stream names no place to post to.
var (
	errNoEndpoint  = errors.New("the event stream does not begin with an endpoint")
	errOtherOrigin = errors.New("the endpoint is on another origin")
)

func (p *prober) streamFailure(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errNoEndpoint), errors.Is(err, io.EOF) && ctx.Err() == nil:
		return notMCP(stepStream, "its event stream does not begin with an endpoint event")
	case errors.Is(err, errOtherOrigin):
		return failure(ProtocolError, nil, "The server's event stream names an endpoint that is not on the same scheme, host and port: "+
			"messages are never posted elsewhere. If it is told its own address, that must be the Service's name, or a path alone.")
	}
	return p.bodyFailure(ctx, stepStream, err)
}

// readEndpoint reads the event that names the endpoint, which is the first one.
func readEndpoint(events *wire.EventReader) (string, error) {
	event, err := events.Next()
	if err != nil {
		return "", err
	}
	if event.Type != "endpoint" {
		return "", errNoEndpoint
	}
	return string(event.Data), nil
}

// maxEndpointBytes is longer than any endpoint in use.
const maxEndpointBytes = 4 << 10

// endpointURL is where to post: what the server named, but always at the address
// that the stream came from.
func (p *prober) endpointURL(endpoint string) (*url.URL, error) {
	return p.within(endpoint, p.hostHeader())
}

// within is a place that the server named, always at the address dialled. A
// server that names its host must mean that one, by the address or by the Host
// header it was sent.
func (p *prober) within(place, host string) (*url.URL, error) {
	named, err := url.Parse(place)
	if err != nil || len(place) > maxEndpointBytes || named.Opaque != "" || named.User != nil || named.Fragment != "" {
		return nil, errNoEndpoint
	}
	sameHost := named.Host == "" || strings.EqualFold(named.Host, p.target.Host) || strings.EqualFold(named.Host, host)
	if !sameHost || named.Scheme != "" && named.Scheme != p.target.Scheme {
		return nil, errOtherOrigin
	}
	named.Scheme, named.Host = "", ""
	post := p.target.ResolveReference(named)
	if post.Host != p.target.Host || post.Scheme != p.target.Scheme {
		return nil, errOtherOrigin
	}
	return post, nil
}

// callStream posts a request and waits for its answer on the stream. Both at
// once, since a server may write the answer before it takes the post.
func (p *prober) callStream(ctx context.Context, x exchange) (reply, error) {
	ctx, done := context.WithTimeoutCause(ctx, p.limits.Request, errRequestTimeout)
	defer done()
	stop := context.AfterFunc(ctx, p.stream.cancel)
	defer stop()

	id := x.id
	x.id, x.target = 0, p.stream.post // the answer is not in the body
	var posted reply
	var postErr error
	var panicked any
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { panicked = recover() }() // it is the caller's, who may be prepared
		posted, postErr = p.send(ctx, x)
		if postErr != nil || posted.status >= http.StatusMultipleChoices {
			p.stream.cancel() // no answer will come
		}
	}()
	message, err := p.await(ctx, p.stream.events, id)
	<-ended
	if panicked != nil {
		panic(panicked)
	}
	if !stop() && err == nil {
		err = ctx.Err() // the stream was given up when its answer had just come: the next call would find it broken off
	}
	switch {
	case postErr != nil:
		return reply{}, postErr
	case posted.status == http.StatusNotFound:
		return reply{}, failure(ProtocolError, nil, "%s", p.lostSession(x.step))
	case posted.status >= http.StatusMultipleChoices:
		posted.bodyErr = notMCP(x.step, "it is refused")
		return posted, nil
	case err != nil:
		return reply{status: http.StatusOK, bodyErr: p.bodyFailure(ctx, x.step, err)}, nil
	}
	return reply{status: http.StatusOK, message: message, hasRPC: true}, nil
}

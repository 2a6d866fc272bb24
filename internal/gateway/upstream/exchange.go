package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

// exchange is a request and what comes back, in one or, where a stream is resumed, several HTTP requests. Its context is that of
// its caller and of the backend, until it is detached: the end of a stream is read after the caller has left.
type exchange struct {
	*Backend

	ctx    context.Context //nolint:containedctx // this object is the scope of the context
	cancel context.CancelCauseFunc
	// detach lets go of the caller's context.
	detach func() bool
	// hold is how long to wait for a server that takes no connection.
	hold time.Duration
	// patience is how long a response may be silent; 0 is for ever.
	patience time.Duration
	idle     *time.Timer
	response *http.Response
	// tail says that the response came in a stream, of which only the end is to come.
	tail bool
}

// begin starts an exchange that must end.
func (b *Backend) begin(ctx context.Context) *exchange {
	x := &exchange{Backend: b, hold: b.options.Hold, patience: b.limits.StreamIdle}
	x.ctx, x.cancel = context.WithCancelCause(b.ctx)
	x.detach = context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	return x
}

// end gives up what is still open.
func (x *exchange) end() {
	x.detach()
	if x.idle != nil {
		x.idle.Stop()
	}
	x.release()
	x.cancel(nil)
}

// release ends the HTTP request at hand.
func (x *exchange) release() {
	if x.response != nil {
		_ = x.response.Body.Close() // nothing of it is wanted any more
		x.response = nil
	}
}

// drainBytes and drainTime bound what is read after the response so that the connection can be used again.
const (
	drainBytes = 4 << 10
	drainTime  = time.Second
)

// finish ends the exchange; the end of a stream is read beside the caller first.
func (x *exchange) finish() {
	if !x.tail {
		x.end()
		return
	}
	x.detach()
	if !x.background(func() {
		defer x.end()
		x.patience = drainTime
		_, _ = io.CopyN(io.Discard, x.watched(x.response.Body), drainBytes) // whatever comes, the response is complete
	}) {
		x.end()
	}
}

// send sends a request; closing the response is up to release. While the server accepts no connection it waits and tries again:
// nothing was sent by then. The error is a *backend.Error.
func (x *exchange) send(o *outgoing) error {
	if err := x.prepare(o); err != nil {
		return err
	}
	began := time.Now()
	var pause backoff
	for stale := false; ; {
		err := x.roundTrip(o)
		if err == nil {
			return nil
		}
		ended := x.ctx.Err() != nil
		failure := x.broken(err, o.sent)
		if ended || failure.Sent || isOfTLS(failure) {
			return failure
		}
		if _, dialled := errors.AsType[*dialError](err); !dialled {
			// An unused connection ended just when the request took it.
			if stale {
				return failure
			}
			stale = true
			continue
		}
		wait := pause.next()
		waited := time.Since(began) + wait
		if waited > podPatience && x.isForPod(o) && x.pods.haveOther(x.ctx, o.to.address) {
			if x.ctx.Err() != nil { // perhaps it ended before the pods were looked up
				return x.over()
			}
			return x.lostSession(0, "its pod does not answer: "+err.Error())
		}
		if waited > x.hold {
			return failure
		}
		if !x.wait(wait) {
			return x.over()
		}
	}
}

// over is the error of a request that was not sent, since the exchange has ended.
func (x *exchange) over() error { return x.broken(context.Cause(x.ctx), false) }

// prepare gives a request its credential, and refuses one for a pod that is gone.
func (x *exchange) prepare(o *outgoing) error {
	if x.options.Credential != nil {
		if err := x.options.Credential.Apply(o.header); err != nil {
			return x.unready(err)
		}
	}
	if x.isForPod(o) && !x.pods.knows(x.ctx, o.to.address) {
		if x.ctx.Err() != nil { // perhaps before the pods were looked up
			return x.over()
		}
		return x.lostSession(0, "its pod is gone")
	}
	return nil
}

// isForPod says whether a request goes to one pod of several.
func (x *exchange) isForPod(o *outgoing) bool { return x.pods != nil && o.to.address != "" }

// wait returns false if the exchange ended.
func (x *exchange) wait(d time.Duration) bool { return backend.Pause(x.ctx, d) }

// roundTrip sends the request once. Without GetBody, net/http does not send a body a second time either.
func (x *exchange) roundTrip(o *outgoing) (err error) {
	request := (&http.Request{
		Method: o.method, URL: o.to.url, Host: x.host, Header: o.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(x.ctx)
	if o.body == nil {
		x.response, err = x.transport.RoundTrip(request) //nolint:bodyclose // release does
		return err
	}
	in := bytes.NewReader(o.body)
	request.Body, request.ContentLength = io.NopCloser(in), int64(len(o.body))
	var tracked *trackedBody
	if o.to.url.Scheme == "https" {
		tracked = &trackedBody{in: in}
		request.Body = tracked
	}
	x.response, err = x.transport.RoundTrip(request) //nolint:bodyclose // release does
	// What was not read was not sent.
	switch {
	case err == nil:
		o.sent = true
	case tracked != nil:
		o.sent = tracked.read.Load()
	default:
		// net/http waits for the writer of an HTTP/1 connection before it returns an error. It writes headers and a body
		// in one piece if it knows the type of the body.
		o.sent = in.Len() < len(o.body)
	}
	return err
}

// trackedBody is the body of a request that may go by HTTP/2, whose writer may still be at work when the error is there.
type trackedBody struct {
	in   *bytes.Reader
	read atomic.Bool
}

// Read gives out the body.
func (b *trackedBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.in.Read(p)
}

// Close does nothing.
func (*trackedBody) Close() error { return nil }

// watched ends the exchange when r is silent for too long. Time that nobody reads does not count.
func (x *exchange) watched(r io.Reader) io.Reader {
	if x.patience == 0 {
		return r
	}
	if x.idle == nil {
		x.idle = time.AfterFunc(x.patience, func() { x.cancel(errIdle) })
		x.idle.Stop()
	}
	return &watchedReader{in: r, exchange: x}
}

type watchedReader struct {
	in       io.Reader
	exchange *exchange
}

// Read reads within the exchange's patience.
func (w *watchedReader) Read(p []byte) (int, error) {
	w.exchange.idle.Reset(w.exchange.patience)
	n, err := w.in.Read(p)
	w.exchange.idle.Stop()
	return n, err
}

// cappedReader fails once more than it allows was read, and remembers how reading failed, since that says more than what a
// sink makes of it.
type cappedReader struct {
	in   io.Reader
	left int64
	err  error
}

// Read reads up to the limit.
func (c *cappedReader) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.in.Read(p)
	if c.left -= int64(n); c.left < 0 {
		n, err = 0, errTooLarge
	}
	if err != nil {
		c.err = err
	}
	return n, err
}

// failed returns how reading failed, or nil if it did not or came to the end.
func (c *cappedReader) failed() error {
	if errors.Is(c.err, io.EOF) {
		return nil
	}
	return c.err
}

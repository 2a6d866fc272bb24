package front

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// reply answers one POST: with one JSON object, or with an event stream as soon as something comes before the response or
// the response is late. It is safe for concurrent use.
type reply struct {
	acceptance

	w      http.ResponseWriter
	rc     http.ResponseController
	era    backend.Era
	limits *Limits

	mu      sync.Mutex
	events  *wire.EventWriter // not nil once the event stream has begun
	done    bool
	written int64
	alive   *time.Timer
	// patient is what the response is read through.
	patient patientReader
	// writing says that it is the client who is waited for, to take a message or a piece of the response.
	writing atomic.Bool
	// status and code are how the response went, as far as it was looked at.
	status telemetry.Status
	code   int
}

var errReplied = errors.New("the request was answered already")

// start arms the keep-alive: a response that is late becomes an event stream, so that nobody between takes the silence for
// an end.
func (r *reply) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arm()
}

// arm starts the keep-alive. The caller holds the lock.
func (r *reply) arm() {
	if r.stream {
		r.alive = time.AfterFunc(r.limits.KeepAlive, r.keepAlive)
	}
}

// open begins the event stream at once.
func (r *reply) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patience()
	r.begin()
	_ = r.events.Comment()
	r.arm()
}

// stop ends the answer, given or not. Nothing is sent after it returns, which is before the handler does: what is written
// later could come out in the answer to somebody else.
func (r *reply) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end()
}

func (r *reply) keepAlive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return
	}
	r.patience()
	r.begin()
	if r.events.Comment() == nil {
		r.alive.Reset(r.limits.KeepAlive)
	}
}

// patience bounds the next write: a client that stops reading is cut.
func (r *reply) patience() { _ = r.rc.SetWriteDeadline(time.Now().Add(r.limits.Write)) }

// begin turns the answer into an event stream. The caller holds the lock.
func (r *reply) begin() {
	if r.events != nil {
		return
	}
	streamHeaders(r.w.Header())
	r.w.WriteHeader(http.StatusOK)
	r.events = wire.NewEventWriter(r.w)
}

func streamHeaders(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// message sends something before the response. A client that accepts no stream does not get it.
func (r *reply) message(m *wire.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.done:
		return errReplied
	case !r.stream:
		return nil
	}
	r.patience()
	r.begin()
	r.written += int64(len(m.Raw))
	r.writing.Store(true)
	defer r.writing.Store(false)
	return r.events.Event(m.Raw)
}

// peeked is how much of a response is looked at.
const peeked = 4 << 10

// head is what is peeked at, and a reader of it.
type head struct {
	bytes.Reader

	buffer [peeked]byte
}

// heads are kept, since each response needs one.
var heads = sync.Pool{New: func() any { return new(head) }}

// response sends the response as it arrives, and ends the answer. What is short is looked at: errors and results that say so
// have a status of their own.
func (r *reply) response(from io.Reader) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return errReplied
	}
	r.end()
	r.patient = patientReader{Reader: from, reply: r}
	from = &r.patient
	pooled, ok := heads.Get().(*head)
	if !ok {
		pooled = new(head)
	}
	defer heads.Put(pooled)
	n, err := io.ReadFull(from, pooled.buffer[:])
	whole := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	if err != nil && !whole {
		return err
	}
	pooled.Reset(pooled.buffer[:n])
	var rest io.Reader = pooled
	if whole {
		r.judge(pooled.buffer[:n])
	} else {
		rest = io.MultiReader(rest, from)
	}
	failed := r.httpStatus() != http.StatusOK // told by the status, which a stream has no other of
	if r.events != nil || !r.json || r.streamFirst && !failed {
		r.begin()
		return r.events.EventFrom(rest)
	}
	r.w.Header()["Content-Type"] = typeJSON
	r.w.WriteHeader(r.httpStatus())
	_, err = io.Copy(r.w, rest)
	return err
}

// judge says how a response that is known as a whole went.
func (r *reply) judge(response []byte) {
	if failure := wire.Field(response, "error"); failure != nil {
		r.status = telemetry.StatusError
		if code, err := strconv.Atoi(string(wire.Field(failure, "code"))); err == nil {
			r.code = code
		}
	} else if string(wire.Field(wire.Field(response, "result"), "isError")) == "true" {
		r.status = telemetry.StatusToolError
	}
}

// typeJSON is shared by all answers: net/http copies headers.
var typeJSON = []string{"application/json"}

// end marks the answer as given. The caller holds the lock.
func (r *reply) end() {
	r.done = true
	if r.alive != nil {
		r.alive.Stop()
	}
}

// send answers with a message made here.
func (r *reply) send(m *wire.Message) error { return r.response(bytes.NewReader(m.Raw)) }

// reject answers with a JSON-RPC error under an HTTP status of its own, if nothing was sent yet.
func (r *reply) reject(status int, m *wire.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return
	}
	r.end()
	r.patience()
	if r.events != nil {
		_ = r.events.Event(m.Raw)
		return
	}
	writeJSON(r.w, status, m.Raw)
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// patientReader renews the time to write with every piece that is read, and counts it. What is done between two pieces is writing.
type patientReader struct {
	io.Reader

	reply *reply
}

func (p *patientReader) Read(b []byte) (int, error) {
	p.reply.writing.Store(false)
	n, err := p.Reader.Read(b)
	p.reply.writing.Store(true)
	p.reply.written += int64(n)
	p.reply.patience()
	return n, err
}

// httpStatus is the HTTP status of a response: by protocol version 2026-07-28 (SEP-2575) some errors have one of their own.
func (r *reply) httpStatus() int {
	if r.era == backend.Legacy {
		return http.StatusOK
	}
	switch r.code {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case wire.CodeInvalidParams, wire.CodeHeaderMismatch, wire.CodeMissingCapability, wire.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

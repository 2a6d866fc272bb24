package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// call is one request of MCP on its way.
type call struct {
	*exchange

	to   *target
	sink backend.Sink
	// names are the request's, here and there.
	names names
	// sent says that the server may have the request.
	sent bool
	// answered says that the response came, or began to.
	answered bool
	// session is what a response to initialize gave.
	session string
	// probing asks for the HTTP status alone.
	probing bool
	// listening is set for subscriptions/listen: its stream has no bounds, and a server that does not know it has none.
	listening bool
}

// answerLimits are what a response held in memory may be like. Nothing is decided on it, so that it may be deep.
var answerLimits = wire.Limits{Bytes: headBytes, Depth: 512, Members: headBytes}

// run sends a request and gives the response, and what comes before it, to the sink.
func (c *call) run(ctx context.Context, o outgoing) error {
	err := c.send(&o)
	c.sent = o.sent
	if err != nil {
		return err
	}
	response := c.response
	c.session = response.Header.Get("Mcp-Session-Id")
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return c.refused(ctx, response)
	}
	return c.taken(c.read(response))
}

// read reads the response to a request that the server took.
func (c *call) read(response *http.Response) error {
	media, err := mediaOf(response)
	switch {
	case err != nil:
		return c.broken(err, true)
	case response.StatusCode == http.StatusAccepted || response.StatusCode == http.StatusNoContent:
		return c.broken(errNoAnswer, true)
	case media == mediaJSON:
		return c.object(response)
	}
	return c.streams()
}

type media int

const (
	mediaOther media = iota
	mediaJSON
	mediaStream
)

// mediaOf is what the body is; an error if it is nothing that can be read here.
func mediaOf(response *http.Response) (media, error) {
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return mediaOther, errEncoded
	}
	name, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch name = strings.TrimSpace(name); {
	case strings.EqualFold(name, "application/json"):
		return mediaJSON, nil
	case strings.EqualFold(name, "text/event-stream"):
		return mediaStream, nil
	}
	return mediaOther, errMediaType
}

// headBytes is how much of a response is held to look at it. A response that is longer passes unseen, but for its id.
const headBytes = 64 << 10

// Most responses are small. The buffers are pooled by size, so that they do not cost as much as the large ones.
var (
	smallHeads = sync.Pool{New: func() any { return new([4 << 10]byte) }}
	largeHeads = sync.Pool{New: func() any { return new([headBytes]byte) }}
)

// object reads a response that is one JSON object.
func (c *call) object(response *http.Response) error {
	if response.ContentLength > c.limits.Response {
		return c.broken(errTooLarge, true)
	}
	body := &cappedReader{in: c.watched(response.Body), left: c.limits.Response}
	small, _ := smallHeads.Get().(*[4 << 10]byte)
	defer smallHeads.Put(small)
	head, whole, err := fill(body, small[:], 0)
	if err == nil && !whole {
		large, _ := largeHeads.Get().(*[headBytes]byte)
		defer largeHeads.Put(large)
		head, whole, err = fill(body, large[:], copy(large[:], head))
	}
	switch {
	case err != nil:
		return c.broken(err, true)
	case whole && len(bytes.TrimSpace(head)) == 0:
		return c.broken(errEmpty, true)
	case whole:
		return c.whole(head)
	}
	return c.passOn(head, body)
}

// fill reads until the buffer is full or the end came; n bytes are in it already.
func fill(r io.Reader, buffer []byte, n int) (head []byte, whole bool, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = r.Read(buffer[n:])
		n += more
	}
	if errors.Is(err, io.EOF) {
		return buffer[:n], true, nil
	}
	return buffer[:n], false, err
}

// whole gives a response to the sink that is in memory.
func (c *call) whole(raw []byte) error {
	m, err := wire.Parse(raw, answerLimits)
	if err != nil {
		return c.broken(err, true)
	}
	if m.Kind != wire.Response {
		return c.broken(errNotAnswer, true)
	}
	return c.answer(m)
}

// answer gives the response to the sink, as *bytes.Reader. An error may come without the id, if the server could not read it.
func (c *call) answer(m *wire.Message) error {
	if c.listening && m.Error != nil && codeOf(m) == wire.CodeMethodNotFound {
		return c.noSuchStream(http.StatusOK)
	}
	nameless := m.Error != nil && (m.ID == nil || string(m.ID) == "null")
	if !nameless && !bytes.Equal(m.ID, c.names.id) {
		return c.broken(errOtherID, true)
	}
	m, err := c.redacted(m)
	if err != nil {
		return c.broken(err, true)
	}
	if !bytes.Equal(m.ID, c.names.outerID) {
		m = m.With(wire.SetID(c.names.outerID))
	}
	c.answered = true
	return c.sink.Response(bytes.NewReader(m.Raw))
}

// passOn gives a response to the sink that goes on after its head. It gets the caller's id, whichever it bears: it is the only
// one that can come here.
func (c *call) passOn(head []byte, rest *cappedReader) error {
	if trimmed := bytes.TrimLeft(head, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return c.broken(errNotAnswer, true)
	}
	c.answered = true
	whole := c.secrets().Reader(io.MultiReader(bytes.NewReader(head), rest))
	err := c.sink.Response(wire.ReplaceID(whole, c.names.outerID))
	if failed := rest.failed(); failed != nil {
		return c.broken(failed, true)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return c.broken(err, true)
	}
	return err
}

// refused makes an error of an HTTP status that is no success, or passes on the JSON-RPC error that came with it. What a server
// writes when it fails or does not know the gateway is passed to nobody.
func (c *call) refused(ctx context.Context, response *http.Response) error {
	status := response.StatusCode
	failure := c.statusFailure(status)
	switch failure.Class {
	case classUnauthorized, classForbidden, classServerError:
		return failure
	}
	if c.probing || status < 400 {
		return failure
	}
	m := c.errorOf(response)
	if c.listening && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) {
		return c.noSuchStream(status)
	}
	ours := m != nil && bytes.Equal(m.ID, c.names.id)
	if c.to.session != "" && !isModern(c.to.version) {
		if status == http.StatusNotFound && (!ours || codeOf(m) != wire.CodeMethodNotFound) {
			return c.lostSession(status, "HTTP status 404")
		}
		if status == http.StatusBadRequest && !ours && c.isLost(ctx, c.to) {
			return c.lostSession(status, "HTTP status 400, and so it says to a ping")
		}
	}
	if m == nil {
		return failure
	}
	if codeOf(m) == wire.CodeUnsupportedVersion {
		c.discovery.doubt()
	}
	return c.answer(m)
}

// isLost asks with a ping whether the server knows the session. There are servers that answer 400 to a request in a session they
// do not know, and it may mean anything else.
func (b *Backend) isLost(ctx context.Context, to *target) bool {
	lost, _ := b.pinged(ctx, to)
	return lost
}

// pinged says whether a session is lost, and whether the server told: it may not have been reached, or be in trouble, or the caller
// may have left before.
func (b *Backend) pinged(ctx context.Context, to *target) (lost, told bool) {
	ctx, cancel := context.WithTimeout(ctx, b.limits.Notice)
	defer cancel()
	x := b.begin(ctx)
	defer x.finish()
	ping := wire.NewRequest(json.RawMessage(`"gateway-ping"`), "ping", nil)
	c := &call{exchange: x, to: to, sink: &collector{limit: maxOwnAnswer}, names: namesOf(ping), probing: true}
	failure, ok := errors.AsType[*backend.Error](c.run(ctx, b.post(to, ping.Raw, nil)))
	if !ok {
		return false, true
	}
	if errors.Is(failure, backend.ErrSession) { // it was not even asked: its pod is gone
		return true, true
	}
	switch failure.Class {
	case classDNS, classConnect, classDenied, classTLS, classCredential, classTimeout, classServerError:
		return false, false
	}
	return failure.Status == http.StatusBadRequest || failure.Status == http.StatusNotFound, true
}

// errorOf reads the JSON-RPC error that came with a status; nil if there is none.
func (c *call) errorOf(response *http.Response) *wire.Message {
	if kind, err := mediaOf(response); err != nil || kind != mediaJSON {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(c.watched(response.Body), headBytes+1))
	if err != nil {
		return nil
	}
	m, err := wire.Parse(raw, answerLimits)
	if err != nil || m.Error == nil {
		return nil
	}
	return m
}

func codeOf(m *wire.Message) int {
	code, err := strconv.Atoi(string(wire.Field(m.Error, "code")))
	if err != nil {
		return 0
	}
	return code
}

// names are what a request is called at the server, and by its caller. They differ where many callers share a session.
type names struct {
	id, outerID       json.RawMessage
	token, outerToken json.RawMessage
}

// namesOf are the names of a request that keeps its own.
func namesOf(m *wire.Message) names { return names{id: m.ID, outerID: m.ID} }

// renamed gives a request an id of its own, and a progress token if it has one.
func renamed(m *wire.Message, id json.RawMessage) (*wire.Message, names) {
	n := names{id: id, outerID: m.ID}
	if n.outerToken = m.MetaField(progressToken); n.outerToken == nil {
		return m.With(wire.SetID(id)), n
	}
	n.token = id
	return m.With(wire.SetID(id), wire.SetMeta(progressToken, id)), n
}

const progressToken = "progressToken"

// restored is a message of the server's as the caller knows it.
func (n *names) restored(m *wire.Message) *wire.Message {
	if n.token == nil || m.Method != "notifications/progress" || !bytes.Equal(m.Param(progressToken), n.token) {
		return m
	}
	return m.With(wire.SetParam(progressToken, n.outerToken))
}

// collector is a sink that keeps the response and drops what comes before it.
type collector struct {
	limit int64
	raw   []byte
}

// Message drops a message.
func (*collector) Message(*wire.Message) error { return nil }

// Response keeps the response.
func (c *collector) Response(r io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(r, c.limit+1))
	if err == nil && int64(len(raw)) > c.limit {
		err = errTooLarge
	}
	c.raw = raw
	return err
}

// message is the response.
func (c *collector) message() (*wire.Message, error) {
	return wire.Parse(c.raw, wire.Limits{Bytes: int(c.limit), Depth: answerLimits.Depth})
}

// maxOwnAnswer bounds the answers that the gateway reads for itself: to server/discover, initialize and ping.
const maxOwnAnswer = 1 << 20

// ask sends a request of the gateway's own. The error is a *backend.Error; a JSON-RPC error is an answer.
func (b *Backend) ask(ctx context.Context, o outgoing, m *wire.Message, hold bool) (answer *wire.Message, session string, err error) {
	into := &collector{limit: maxOwnAnswer}
	x := b.begin(ctx)
	defer x.finish()
	if !hold {
		x.hold = 0
	}
	c := &call{exchange: x, to: o.to, sink: into, names: namesOf(m)}
	if err = c.run(ctx, o); err != nil {
		return nil, c.session, c.broken(err, c.sent)
	}
	if answer, err = into.message(); err != nil {
		return nil, c.session, c.broken(err, true)
	}
	return answer, c.session, nil
}

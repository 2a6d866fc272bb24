package upstream

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// target is where the requests of a channel go.
type target struct {
	url *url.URL
	// address is that of the pod, host:port; empty goes where the URL says.
	address string
	// session is the server's id for the session, or empty.
	session string
	// version is the protocol version agreed on, empty before that.
	version string
}

// targetAt is the target of a pod, or without an address that of the URL.
func (b *Backend) targetAt(address string) target {
	if address == "" {
		return target{url: b.url}
	}
	at := *b.url
	at.Host = address
	return target{url: &at, address: address}
}

// Header values are shared by all requests: net/http only reads them.
var (
	userAgent    = []string{"mcp-gateway"}
	jsonType     = []string{"application/json"}
	acceptBoth   = []string{"application/json, text/event-stream"}
	acceptStream = []string{"text/event-stream"}
	modernHeader = []string{wire.Version20260728}
)

// outgoing is one HTTP request.
type outgoing struct {
	method string
	to     *target
	header http.Header
	body   []byte
	// sent says that some of the body left, so that the server may have all of it.
	sent bool
}

// post is the POST of a message.
func (b *Backend) post(to *target, message []byte, further map[string]string) outgoing {
	h := b.header(to)
	for key, value := range further {
		if key = http.CanonicalHeaderKey(key); passedOn(key) {
			h[key] = []string{value}
		}
	}
	h["Content-Type"], h["Accept"] = jsonType, acceptBoth
	return outgoing{method: http.MethodPost, to: to, header: h, body: message}
}

// get is the GET of a stream; after is the id of the last event seen, or empty.
func (b *Backend) get(to *target, after string) outgoing {
	h := b.header(to)
	h["Accept"] = acceptStream
	if after != "" {
		h["Last-Event-Id"] = []string{after}
	}
	return outgoing{method: http.MethodGet, to: to, header: h}
}

// header makes the headers that every request of a channel has.
func (b *Backend) header(to *target) http.Header {
	h := make(http.Header, 8)
	h["User-Agent"] = userAgent
	if to.session != "" {
		h["Mcp-Session-Id"] = []string{to.session}
	}
	if to.version >= wire.Version20250618 {
		h["Mcp-Protocol-Version"] = []string{to.version}
	}
	return h
}

// passedOn says which headers a caller may add; nothing of the client's connection or identity is among them.
func passedOn(canonical string) bool {
	switch canonical {
	case "Traceparent", "Tracestate", "Baggage":
		return true
	}
	return strings.HasPrefix(canonical, "Mcp-Param-")
}

// describeRequest adds the headers of protocol version 2026-07-28, from the message as it is sent.
func describeRequest(h http.Header, m *wire.Message) {
	h["Mcp-Protocol-Version"] = modernHeader
	if version := m.MetaField(wire.MetaProtocolVersion); version != nil && !wire.TextIs(version, wire.Version20260728) {
		if text, ok := wire.String(version); ok {
			h["Mcp-Protocol-Version"] = []string{wire.EncodeHeader(text)}
		}
	}
	h["Mcp-Method"] = []string{wire.EncodeHeader(m.Method)}
	var key string
	switch m.Method {
	case "tools/call", "prompts/get":
		key = "name"
	case "resources/read":
		key = "uri"
	default:
		return
	}
	if name, ok := m.StringParam(key); ok {
		h["Mcp-Name"] = []string{wire.EncodeHeader(name)}
	}
}

// backoff is a pause that doubles, from 50 ms to 1 s, give or take a quarter.
type backoff time.Duration

func (p *backoff) next() time.Duration {
	*p = min(max(2**p, backoff(50*time.Millisecond)), backoff(time.Second))
	d := time.Duration(*p)
	return d*3/4 + rand.N(d/2) //nolint:gosec // it only spreads load
}

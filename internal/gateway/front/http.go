package front

import (
	"context"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/auth"
	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
)

// visit is one HTTP request that was let in.
type visit struct {
	*Front

	state     *State
	principal auth.Principal
	// caller is whom quotas count: the principal, or without authentication the peer's address.
	caller string
	// place is the quota that it holds a place in: that of calls, or of messages without an answer; nil for none.
	place *quota
	// held is what it holds of the budget for bodies, in bytes.
	held int
	w    http.ResponseWriter
	r    *http.Request
}

// ServeHTTP serves the endpoint's path, exactly, and its metadata.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
		// A length that came with the chunks is forgotten by net/http, while a proxy in front may have counted by it: what it takes
		// for the end of this request must not be served as another (request smuggling).
		w.Header().Set("Connection", "close")
	}
	if r.Body != http.NoBody {
		// Where nobody reads the body, net/http looks for its end before it answers: who sends one by drops to be refused, and needs no
		// token for that, must not hold a connection for long. Who reads it gives it more time.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(min(unreadBody, f.limits.Write)))
	}
	s := f.state.Load()
	if s == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the gateway has no routing table yet", http.StatusServiceUnavailable)
		return
	}
	if status, why := f.admit(s, r); status != 0 {
		http.Error(w, why, status)
		return
	}
	// The path as it was sent: nothing is cleaned or decoded on the way to an exact match.
	switch path := r.URL.EscapedPath(); {
	case path == s.Table.Endpoint.Path:
	case s.Verifier.IsMetadata(path):
		s.Verifier.MetadataHandler().ServeHTTP(w, r)
		return
	default:
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("Origin") != "" {
		letRead(w.Header(), r.Header.Get("Origin"))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	principal, err := s.Verifier.Verify(r)
	if err != nil {
		if refusal, ok := errors.AsType[*auth.Error](err); ok {
			f.options.Telemetry.AuthFailure(string(refusal.Reason))
		}
		s.Verifier.Challenge(w, err)
		return
	}
	v := &visit{Front: f, state: s, principal: principal, caller: principal.Subject, w: w, r: r}
	if principal.Issuer == "" {
		v.caller, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	switch r.Method {
	case http.MethodPost:
		v.post()
	case http.MethodGet:
		v.get()
	case http.MethodDelete:
		v.delete()
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "the endpoint takes GET, POST and DELETE", http.StatusMethodNotAllowed)
	}
}

// unreadBody is how long the body of a request that is refused may take.
const unreadBody = time.Second

// admit checks Host and Origin (DNS rebinding, cross-site requests); 0 lets in.
func (f *Front) admit(s *State, r *http.Request) (status int, why string) {
	host, ok := hostName(r.Host)
	if !ok {
		return http.StatusBadRequest, "the Host header is malformed"
	}
	allowed := s.Table.Endpoint.AllowedHosts
	switch {
	case len(allowed) > 0 && !isServed(&s.Table.Endpoint, host):
		f.tellOfHost(&s.Table.Endpoint, host)
		return http.StatusForbidden, "the Host header names a host that is not served here: " +
			"if clients are to use it, gateway.publicURL has to name it (endpoint.publicURL or allowedHosts in a routing table)"
	case len(allowed) == 0 && f.options.LoopbackOnly && !isLoopback(host):
		return http.StatusForbidden, "a gateway on a loopback address serves loopback names only, unless it is told otherwise"
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return 0, ""
	}
	// That the Origin equals the Host proves nothing, unless the Host is known to be ours.
	isHostKnown := len(allowed) > 0 || f.options.LoopbackOnly
	if len(origins) == 1 && (slices.Contains(s.Table.Endpoint.AllowedOrigins, origins[0]) ||
		isPublic(origins[0], s.Table.Endpoint.PublicURL) || isHostKnown && sameOrigin(origins[0], r)) {
		return 0, ""
	}
	return http.StatusForbidden, "requests of this Origin are not served"
}

// letRead lets the page of an allowed origin send requests and read the answers (CORS). Credentials of the browser's own are
// never asked for: callers send a token.
func letRead(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Vary", "Origin")
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "*, Authorization")
	h.Set("Access-Control-Expose-Headers", headerSession+", WWW-Authenticate")
	h.Set("Access-Control-Max-Age", "600")
}

// hostName is the Host header without its port.
func hostName(host string) (string, bool) {
	if host == "" || strings.ContainsAny(host, "/\\?#@ \t%") {
		return "", false
	}
	name := host
	isBareIPv6 := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if strings.Contains(host, ":") && !isBareIPv6 {
		h, port, err := net.SplitHostPort(host)
		if err != nil || port == "" || strings.Trim(port, "0123456789") != "" {
			return "", false
		}
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return name, name != ""
}

func matchesHost(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, strings.ToLower(suffix)) && len(host) > len(suffix)
	}
	return strings.EqualFold(pattern, host)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// isPublic says whether the origin is that of the URL clients know the endpoint by.
func isPublic(origin, publicURL string) bool {
	public, err := url.Parse(publicURL)
	return err == nil && public.Host != "" && strings.EqualFold(origin, public.Scheme+"://"+public.Host)
}

// sameOrigin says whether a page of the Host that is asked asks.
func sameOrigin(origin string, r *http.Request) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return strings.EqualFold(origin, scheme+r.Host)
}

// post answers one JSON-RPC message.
func (v *visit) post() {
	reply := &reply{w: v.w, rc: *http.NewResponseController(v.w), limits: &v.limits, status: telemetry.StatusOK}
	defer reply.stop()
	reply.acceptance = accepts(v.r.Header.Values("Accept"))
	if !reply.json && !reply.stream {
		http.Error(v.w, "the client must accept application/json or text/event-stream", http.StatusNotAcceptable)
		return
	}
	defer v.release()
	m, status, err := v.read(&reply.rc)
	if err != nil {
		v.refuse(status, wire.NewError(nil, codeOf(err), err.Error(), nil))
		return
	}
	places := v.calls
	if m.Kind != wire.Request { // a cancellation, or an answer to a backend, must get through when no call does
		places = v.messages
	}
	if status, why := v.take(places, 1); status != 0 {
		v.w.Header().Set("Retry-After", "1")
		v.refuse(status, wire.NewError(m.ID, wire.CodeInternal, why, nil))
		v.refused(m, "", telemetry.Outcome{Code: wire.CodeInternal, Flood: true})
		return
	}
	v.place = places
	defer v.endCall()
	if v.eraOf(m) == backend.Legacy {
		v.legacy(m, reply)
		return
	}
	reply.era = backend.Modern
	v.modern(m, reply)
}

// eraOf is the generation of the protocol that a message is of.
func (v *visit) eraOf(m *wire.Message) backend.Era {
	version := v.r.Header.Get(headerVersion)
	era, known := translate.EraOf(version)
	if known && era == backend.Legacy || version == "" && m.MetaField(wire.MetaProtocolVersion) == nil {
		return backend.Legacy
	}
	return backend.Modern
}

// endCall gives back the place in the quota, once.
func (v *visit) endCall() {
	if v.place != nil {
		v.place.give(v.caller, 1)
		v.place = nil
	}
}

// refuse answers a request that is not handled.
func (v *visit) refuse(status int, m *wire.Message) {
	writeJSON(v.w, status, m.Raw)
}

// read reads the one message of a POST.
func (v *visit) read(rc *http.ResponseController) (m *wire.Message, status int, err error) {
	if !isJSON(v.r.Header.Get("Content-Type")) || v.r.Header.Get("Content-Encoding") != "" {
		return nil, http.StatusUnsupportedMediaType, errors.New("the body must be application/json, without a Content-Encoding")
	}
	_ = rc.SetReadDeadline(time.Now().Add(v.limits.Write))
	body, status, err := v.body()
	if err != nil {
		return nil, status, err
	}
	_ = rc.SetReadDeadline(time.Time{})
	limits := wire.DefaultLimits
	limits.Bytes, limits.Depth, limits.Members = v.limits.Body, v.limits.Depth, v.limits.Members
	m, err = wire.Parse(body, limits)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	return m, 0, nil
}

func isJSON(contentType string) bool {
	const want = "application/json"
	if contentType == want {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == want
}

// codeOf is the JSON-RPC code of an error of read.
func codeOf(err error) int {
	if bad, ok := errors.AsType[*wire.ParseError](err); ok {
		return bad.Code
	}
	return wire.CodeInvalidRequest
}

// take takes n from a quota for the caller, who gives it back; if there is too little left it says what to answer.
func (v *visit) take(q *quota, n int) (status int, why string) {
	switch q.take(v.caller, n) {
	case quotaCallerFull:
		v.options.Telemetry.Rejected("caller")
		return http.StatusTooManyRequests, "too many requests of this caller at once"
	case quotaFull:
		v.options.Telemetry.Rejected("total")
		return http.StatusServiceUnavailable, "the gateway is at its limit of requests"
	case quotaGranted:
	}
	return 0, ""
}

// acceptance is what a client accepts. One that names the stream first gets one, also for a response alone.
type acceptance struct{ json, stream, streamFirst bool }

// accepts reads the Accept headers. None at all accepts both, as RFC 9110 has it.
func accepts(values []string) (a acceptance) {
	if len(values) == 0 {
		return acceptance{json: true, stream: true}
	}
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "*/*":
				a.json, a.stream = true, true
			case "application/json", "application/*":
				a.json = true
			case "text/event-stream", "text/*":
				a.stream, a.streamFirst = true, !a.json
			}
		}
	}
	return a
}

// patience is how long a call to a backend may take; nil is no backend in particular.
func (v *visit) patience(b *Backend) time.Duration {
	if b != nil && b.Config.TimeoutSeconds > 0 {
		return time.Duration(b.Config.TimeoutSeconds) * time.Second
	}
	return v.limits.Call
}

// deadline is a context that ends when a call to the backend would.
func (v *visit) deadline(ctx context.Context, b *Backend) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, v.patience(b), errTimeout)
}

var errTimeout = errors.New("the backend did not answer in time")

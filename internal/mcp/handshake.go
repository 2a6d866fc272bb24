package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// prober is the state of one Probe or Check.
type prober struct {
	limits        Limits
	target        *url.URL
	host          string   // Host header; empty: the URL's
	name, version string   // of ours
	known         []string // protocol versions, newest first
	transport     *transport
	result        *Result

	lastID   int
	body     []byte            // of the last answer; reused
	events   *wire.EventReader // of the last stream; reused
	session  string            // sent with each request once the handshake gave one
	sse      bool              // the server speaks HTTP with SSE
	stream   *sseStream        // then: its event stream, once it is open
	sessions []string          // all that were handed out, to be ended
	refusal  *Error            // how a server refused the newest protocol version
	asLocal  bool              // a refusal was already tried with "Host: localhost"
	lenient  bool              // as Client.Lenient
	followed int               // redirects
	guarded  bool              // as known before, the server wants credentials for whatever it is asked

	unconfirmed bool // the server waits for notifications/initialized
}

// handshake finds the protocol version and fills the result with what the
// server says about itself. Servers without sessions are asked first: such a
// request does no harm to others, which refuse it or say what they speak.
func (p *prober) handshake(ctx context.Context) error {
	if p.sse {
		return p.handshakeSSE(ctx)
	}
	done, err := p.discover(ctx, p.known[0])
	guarded := isGuarded(err)
	if done || err != nil && (!guarded || p.guarded) {
		return err
	}
	refused := err
	err = p.initialize(ctx, Version20251125)
	if guarded && err != nil {
		return refused
	}
	if p.refusal != nil && oneOf(err, ProtocolError, NotMCP, NotFound) {
		// The server knew the newer request: its refusal says more.
		return p.refusal
	}
	return err
}

// isGuarded reports whether a server wants credentials for what it was asked.
// Where the guard knows the methods of MCP, it may want none for another one.
func isGuarded(err error) bool {
	_, asked := errors.AsType[*authRequiredError](err)
	return asked || oneOf(err, Unauthorized)
}

// oneOf reports whether err has one of the reasons.
func oneOf(err error, reasons ...Reason) bool {
	return err != nil && slices.Contains(reasons, ReasonOf(err))
}

// discover asks a server in a version without sessions. False without an error
// means that the server does not speak one, and is to be asked by initialize.
func (p *prober) discover(ctx context.Context, version string) (bool, error) {
	r, err := p.call(ctx, "server/discover", version, nil)
	if err != nil {
		return false, err
	}
	p.remember(r.session)
	if mayRefuseHost(r.status) {
		return false, p.hostRefused(ctx, version, r.status)
	}
	if oneOf(r.bodyErr, TooLarge) && r.status < 300 {
		return false, r.bodyErr
	}
	if err := p.judge("server/discover", r); err != nil {
		if isGuarded(err) || oneOf(err, Redirected) {
			return false, err
		}
		return false, nil
	}
	if r.message.err != nil {
		return p.offerAgain(ctx, version, r)
	}
	return p.discovered(r.message.result)
}

// offerAgain retries discover once if the server refused the version and listed
// one that is known.
func (p *prober) offerAgain(ctx context.Context, version string, r reply) (bool, error) {
	e := r.message.err
	if r.status != http.StatusBadRequest {
		return false, nil
	}
	switch e.code {
	case wire.CodeHeaderMismatch, wire.CodeMissingCapability, wire.CodeUnsupportedVersion:
	default:
		return false, nil
	}
	again := newestStateless(p.known, e.supported())
	if again == "" || again == version || p.refusal != nil {
		if newestStateful(p.known, e.supported()) == "" {
			p.refusal = rpcFailure("server/discover", e)
		}
		return false, nil
	}
	p.refusal = rpcFailure("server/discover", e)
	return p.discover(ctx, again)
}

// discovered takes the result of server/discover. Servers with sessions may
// answer it too, listing only versions that have them.
func (p *prober) discovered(result json.RawMessage) (bool, error) {
	f, err := wire.Pick(result, "supportedVersions", "capabilities", "instructions", "_meta")
	if err != nil {
		return false, notMCP("server/discover", "it has a key twice")
	}
	offered := textList(f[0])
	p.result.ProtocolVersions = tidyVersions(offered)
	version := newestStateless(p.known, offered)
	if version == "" {
		return false, nil
	}
	p.result.ProtocolVersion = version
	p.identify(wire.Field(f[3], wire.MetaServerInfo), f[1], f[2])
	return true, nil
}

// initialize does the handshake of a version with sessions, offering version.
func (p *prober) initialize(ctx context.Context, version string) error {
	r, err := p.sendInitialize(ctx, version)
	if err != nil {
		return err
	}
	if e := r.message.err; e != nil {
		again := newestStateful(p.known, e.supported())
		if again == "" || again == version {
			return rpcFailure("initialize", e)
		}
		if r, err = p.sendInitialize(ctx, again); err != nil {
			return err
		}
		if r.message.err != nil {
			return rpcFailure("initialize", r.message.err)
		}
	}
	return p.initialized(r)
}

// sendInitialize returns a JSON-RPC response to initialize, or an error.
func (p *prober) sendInitialize(ctx context.Context, version string) (reply, error) {
	// The version is negotiated by this very request: no header names it yet.
	r, err := p.call(ctx, "initialize", "", p.initializeParams(version))
	if err != nil {
		return r, err
	}
	p.remember(r.session)
	if mayRefuseHost(r.status) {
		if err := p.hostRefused(ctx, p.known[0], r.status); err != nil {
			return r, err
		}
	}
	return r, p.judge("initialize", r)
}

func (p *prober) initializeParams(version string) map[string]any {
	return map[string]any{"protocolVersion": version, "capabilities": map[string]any{}, "clientInfo": p.clientInfo()}
}

// initialized takes the result of initialize.
func (p *prober) initialized(r reply) error {
	f, err := wire.Pick(r.message.result, "protocolVersion", "capabilities", "instructions", "serverInfo")
	if err != nil {
		return notMCP("initialize", "it has a key twice")
	}
	version := wire.Text(f[0], 64)
	switch {
	case version == "":
		return failure(ProtocolError, nil, "The server's answer to initialize names no protocol version. %s", hintNotMCP)
	case !slices.Contains(p.known, version):
		return failure(ProtocolError, nil, "The server speaks protocol version %q, which this operator does not know.", cleanLine(version, 64))
	case r.session != "" && !validSession(r.session):
		return failure(ProtocolError, nil, "The server handed out a session id that is too long or has other than visible ASCII characters.")
	}
	p.result.ProtocolVersion = version
	if !slices.Contains(p.result.ProtocolVersions, version) {
		p.result.ProtocolVersions = tidyVersions(append(p.result.ProtocolVersions, version))
	}
	p.session, p.result.Stateful = r.session, r.session != ""
	p.identify(f[3], f[1], f[2])
	p.unconfirmed = true
	return nil
}

// confirm sends notifications/initialized, without which a server that was
// initialized answers no other request.
func (p *prober) confirm(ctx context.Context) error {
	if !p.unconfirmed {
		return nil
	}
	const step = "notifications/initialized"
	r, err := p.notify(ctx, step, p.result.ProtocolVersion)
	if err != nil {
		return err
	}
	switch {
	case isSuccess(r.status):
		return nil
	case r.status == http.StatusNotFound:
		return failure(ProtocolError, nil, "%s", p.lostSession(step))
	}
	if err := p.judge(step, r); err != nil {
		return err
	}
	return failure(ProtocolError, nil, "The server answers %s with HTTP %d.", step, r.status)
}

// identify fills the result with what a server says about itself.
func (p *prober) identify(info, capabilities, instructions json.RawMessage) {
	limit := p.limits.IdentityBytes
	line := func(v json.RawMessage) string { return cleanLine(wire.Text(v, 4*limit), limit) }
	p.result.Server = ServerInfo{
		Name: line(wire.Field(info, "name")), Title: line(wire.Field(info, "title")), Version: line(wire.Field(info, "version")),
	}
	p.result.Instructions = cleanText(wire.Text(instructions, 2*p.limits.InstructionsBytes), p.limits.InstructionsBytes)
	tools, resources, prompts := wire.Field(capabilities, "tools"), wire.Field(capabilities, "resources"), wire.Field(capabilities, "prompts")
	p.result.Capabilities = Capabilities{
		Tools: wire.IsObject(tools), Resources: wire.IsObject(resources), Prompts: wire.IsObject(prompts),
		Logging: wire.IsObject(wire.Field(capabilities, "logging")), Completions: wire.IsObject(wire.Field(capabilities, "completions")),
		ToolsListChanged:     isTrue(wire.Field(tools, "listChanged")),
		ResourcesListChanged: isTrue(wire.Field(resources, "listChanged")),
		PromptsListChanged:   isTrue(wire.Field(prompts, "listChanged")),
	}
}

func isTrue(v json.RawMessage) bool { return string(v) == "true" }

func isSuccess(status int) bool { return status >= 200 && status < 300 }

// mayRefuseHost reports whether status is one that guards against DNS rebinding
// answer to a Host header they do not know: 403, or the 421 of the Python SDK.
func mayRefuseHost(status int) bool {
	return status == http.StatusForbidden || status == http.StatusMisdirectedRequest
}

// hostRefused returns an error if the server answers status, one of
// mayRefuseHost, only because of the Host header.
func (p *prober) hostRefused(ctx context.Context, version string, status int) error {
	if p.asLocal {
		return nil
	}
	p.asLocal = true
	if !p.takesLocalHost(ctx, version) {
		return nil
	}
	return p.hostFailure(status)
}

func (p *prober) hostFailure(status int) *Error {
	return failure(HostRefused, nil, "The server refuses the Host header %q (HTTP %d), but accepts %q. %s",
		p.hostHeader(), status, localHost(p.target), hintHost)
}

// takesLocalHost asks as a caller on the server's own machine would, and
// reports whether that one is let in. Servers with sessions may refuse whatever
// comes before initialize by a status that fronts refuse names by.
func (p *prober) takesLocalHost(ctx context.Context, version string) bool {
	refused, letIn := p.askLocalHost(ctx, "server/discover", version, nil)
	if !letIn && !refused {
		_, letIn = p.askLocalHost(ctx, "initialize", "", p.initializeParams(Version20251125))
	}
	return letIn
}

// askLocalHost sends one request with "Host: localhost". Neither result is true
// of an answer that may mean anything.
func (p *prober) askLocalHost(ctx context.Context, step, version string, params map[string]any) (refused, letIn bool) {
	p.lastID++
	body, err := p.encode(map[string]any{"jsonrpc": "2.0", "id": p.lastID, "method": step}, version, params)
	if err != nil {
		return true, false
	}
	r, err := p.send(ctx, exchange{
		step: step, httpMethod: http.MethodPost, body: body, id: p.lastID, version: version, rpcMethod: step, host: localHost(p.target),
	})
	p.remember(r.session)
	refused = err != nil || mayRefuseHost(r.status)
	return refused, !refused && (r.hasRPC || letsIn(r.status))
}

// letsIn reports whether status is the answer of a server to whom it serves, be
// it that it wants credentials. What fronts answer of names that they do not
// know (404, 421, 503) is not.
func letsIn(status int) bool { return isSuccess(status) || status == http.StatusUnauthorized }

// recheck does the handshake of the version that last was spoken, and any
// handshake if that fails.
func (p *prober) recheck(ctx context.Context, last *Result) error {
	p.guarded = last != nil && last.AuthRequired && last.ProtocolVersion == ""
	if p.sse || last == nil || last.ProtocolVersion == "" || Stateless(last.ProtocolVersion) {
		return p.handshake(ctx)
	}
	err := p.initialize(ctx, last.ProtocolVersion)
	if oneOf(err, ProtocolError, NotMCP, NotFound, MethodNotAllowed) {
		return p.handshake(ctx)
	}
	return err
}

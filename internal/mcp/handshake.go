package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
)

// prober is the state of one Probe or Check.
type prober struct {
	limits        Limits
	target        *url.URL
	host          string   // Host header; empty: the URL's
	name, version string   // of ours
	known         []string // protocol versions, newest first
	wire          *wire
	result        *Result

	lastID   int
	body     []byte       // of the last answer; reused
	events   *eventReader // of the last stream; reused
	session  string       // sent with each request once the handshake gave one
	sse      bool         // the server speaks HTTP with SSE
	stream   *sseStream   // then: its event stream, once it is open
	sessions []string     // all that were handed out, to be ended
	refusal  *Error       // how a server refused the newest protocol version
	asLocal  bool         // a 403 was already tried with "Host: localhost"

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
	if done || err != nil {
		return err
	}
	err = p.initialize(ctx, Version20251125)
	if p.refusal != nil && oneOf(err, ProtocolError, NotMCP, NotFound) {
		// The server knew the newer request: its refusal says more.
		return p.refusal
	}
	return err
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
	if r.status == http.StatusForbidden {
		return false, p.hostRefused(ctx, version)
	}
	if oneOf(r.bodyErr, TooLarge) && r.status < 300 {
		return false, r.bodyErr
	}
	if err := p.judge("server/discover", r); err != nil {
		if _, asked := errors.AsType[*authRequiredError](err); asked || oneOf(err, Redirected, Unauthorized) {
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
	case codeHeaderMismatch, codeMissingCapability, codeUnsupportedVersion:
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
func (p *prober) discovered(result jsonValue) (bool, error) {
	f, err := result.pick("supportedVersions", "capabilities", "instructions", "_meta")
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
	p.identify(f[3].member(metaServerInfo), f[1], f[2])
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
	r, err := p.call(ctx, "initialize", "", map[string]any{
		"protocolVersion": version, "capabilities": map[string]any{}, "clientInfo": p.clientInfo(),
	})
	if err != nil {
		return r, err
	}
	p.remember(r.session)
	if r.status == http.StatusForbidden {
		if err := p.hostRefused(ctx, p.known[0]); err != nil {
			return r, err
		}
	}
	return r, p.judge("initialize", r)
}

// initialized takes the result of initialize.
func (p *prober) initialized(r reply) error {
	f, err := r.message.result.pick("protocolVersion", "capabilities", "instructions", "serverInfo")
	if err != nil {
		return notMCP("initialize", "it has a key twice")
	}
	version := f[0].text(64)
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
	switch r.status {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusNotFound:
		return failure(ProtocolError, nil, "%s", p.lostSession(step))
	}
	if err := p.judge(step, r); err != nil {
		return err
	}
	return failure(ProtocolError, nil, "The server answers %s with HTTP %d.", step, r.status)
}

// identify fills the result with what a server says about itself.
func (p *prober) identify(info, capabilities, instructions jsonValue) {
	limit := p.limits.IdentityBytes
	line := func(v jsonValue) string { return cleanLine(v.text(4*limit), limit) }
	p.result.Server = ServerInfo{
		Name: line(info.member("name")), Title: line(info.member("title")), Version: line(info.member("version")),
	}
	p.result.Instructions = cleanText(instructions.text(2*p.limits.InstructionsBytes), p.limits.InstructionsBytes)
	tools, resources, prompts := capabilities.member("tools"), capabilities.member("resources"), capabilities.member("prompts")
	p.result.Capabilities = Capabilities{
		Tools: tools.isObject(), Resources: resources.isObject(), Prompts: prompts.isObject(),
		Logging: capabilities.member("logging").isObject(), Completions: capabilities.member("completions").isObject(),
		ToolsListChanged:     tools.member("listChanged").isTrue(),
		ResourcesListChanged: resources.member("listChanged").isTrue(),
		PromptsListChanged:   prompts.member("listChanged").isTrue(),
	}
}

// hostRefused returns an error if the server answers 403 only because of the
// Host header.
func (p *prober) hostRefused(ctx context.Context, version string) error {
	if p.asLocal {
		return nil
	}
	p.asLocal = true
	if !p.takesLocalHost(ctx, version) {
		return nil
	}
	return p.hostFailure(http.StatusForbidden)
}

func (p *prober) hostFailure(status int) *Error {
	return failure(HostRefused, nil, "The server refuses the Host header %q (HTTP %d), but accepts %q. "+
		"Set spec.hostHeader to a name it accepts, or start it with a flag that allows this one (often --allowed-hosts).",
		p.hostHeader(), status, localHost(p.target))
}

// takesLocalHost asks as a caller on the server's own machine would, and
// reports whether the answer is another one than 403.
func (p *prober) takesLocalHost(ctx context.Context, version string) bool {
	const step = "server/discover"
	p.lastID++
	body, err := p.encode(map[string]any{"jsonrpc": "2.0", "id": p.lastID, "method": step}, version, nil)
	if err != nil {
		return false
	}
	r, err := p.send(ctx, exchange{
		step: step, httpMethod: http.MethodPost, body: body, version: version, rpcMethod: step, host: localHost(p.target),
	})
	p.remember(r.session)
	return err == nil && r.status != http.StatusForbidden
}

// recheck does the handshake of the version that last was spoken, and any
// handshake if that fails.
func (p *prober) recheck(ctx context.Context, last *Result) error {
	if p.sse || last == nil || last.ProtocolVersion == "" || Stateless(last.ProtocolVersion) {
		return p.handshake(ctx)
	}
	err := p.initialize(ctx, last.ProtocolVersion)
	if oneOf(err, ProtocolError, NotMCP, NotFound, MethodNotAllowed) {
		return p.handshake(ctx)
	}
	return err
}

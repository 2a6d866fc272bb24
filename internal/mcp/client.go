package mcp

import (
	"context"
	"errors"
	"strings"
)

// Client probes MCP servers. Its methods may be called concurrently.
type Client struct {
	// Name and Version are told to servers in clientInfo and User-Agent.
	// Empty: "mcp-operator" and "unknown".
	Name, Version string
	// Limits bound each call. The zero value is [DefaultLimits].
	Limits Limits
	// Lenient takes more of a server, as most clients of MCP do: 307 and 308 are
	// followed within its own scheme, host and port, and answers may be
	// compressed with gzip. A 403 to tools/list is Forbidden, and not
	// ToolsListFailed.
	Lenient bool
}

// Probe does the handshake, reads all lists, and ends the session. The error
// is an [*Error]; an answer that asks for credentials is no error, but a Result
// with AuthRequired. Beside Unauthorized and Forbidden after the handshake, the
// Result is what the server told in it.
func (c *Client) Probe(ctx context.Context, t Target) (*Result, error) {
	return c.run(ctx, t, func(ctx context.Context, p *prober) error {
		if err := p.handshake(ctx); err != nil {
			return err
		}
		if err := p.confirm(ctx); err != nil {
			return err
		}
		return p.readLists(ctx)
	})
}

// Check asks a server that was probed before whether it still answers MCP, by
// one cheap request of the protocol version in last: server/discover, or
// initialize (and DELETE where that hands out a session). Where that version no
// longer fits, the version is detected again. A nil last detects as well.
//
// The error is an [*Error] if the server could not be verified, or [ErrStale]
// if it is healthy but last no longer describes it: its name, version,
// capabilities, instructions, or the protocol version it is spoken with.
func (c *Client) Check(ctx context.Context, t Target, last *Result) error {
	now, err := c.run(ctx, t, func(ctx context.Context, p *prober) error { return p.recheck(ctx, last) })
	if err != nil {
		return err
	}
	if last != nil && !sameServer(last, now) {
		return ErrStale
	}
	return nil
}

// run gives steps a prober and cleans up after them, whatever happened.
func (c *Client) run(ctx context.Context, t Target, steps func(context.Context, *prober) error) (*Result, error) {
	limits := c.Limits.withDefaults()
	u, err := t.parse()
	if err != nil {
		return nil, err
	}
	total, cancel := context.WithTimeoutCause(ctx, limits.Total, errTotalTimeout)
	defer cancel()
	p := &prober{
		limits: limits, target: u, host: t.Host, known: knownVersions(),
		name: nameOr(c.Name, "mcp-operator"), version: nameOr(c.Version, "unknown"),
		transport: newTransport(t.Transport, limits), result: &Result{}, sse: t.SSE, lenient: c.Lenient,
	}
	defer p.transport.close()
	defer p.endSessions(context.WithoutCancel(ctx))
	defer p.closeStream()

	err = steps(total, p)
	if asked, ok := errors.AsType[*authRequiredError](err); ok {
		p.result.AuthRequired, p.result.ResourceMetadata = true, asked.resourceMetadata
		err = nil
	}
	if err != nil && (p.result.ProtocolVersion == "" || !oneOf(err, Unauthorized, Forbidden)) {
		return nil, err
	}
	return p.result, err
}

// nameOr returns name as a token that may stand in a header, or other.
func nameOr(name, other string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return other
	}
	return name
}

// sameServer reports whether now, learned from a handshake alone, is what a
// full probe learned before.
func sameServer(last, now *Result) bool {
	if now.AuthRequired {
		return last.AuthRequired && last.ProtocolVersion == now.ProtocolVersion
	}
	// Some servers ask for credentials only after the handshake.
	if last.AuthRequired && last.ProtocolVersion == "" {
		return false
	}
	return last.ProtocolVersion == now.ProtocolVersion && last.Server == now.Server &&
		last.Instructions == now.Instructions && last.Capabilities == now.Capabilities && last.Stateful == now.Stateful
}

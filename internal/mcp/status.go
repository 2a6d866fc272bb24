package mcp

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// authRequiredError ends a probe at a Bearer challenge. It is no failure.
type authRequiredError struct{ resourceMetadata string }

func (*authRequiredError) Error() string { return "the server asks for a Bearer token" }

// judge tells what a reply to step means if it is not a JSON-RPC response: nil
// for one that is.
func (p *prober) judge(step string, r reply) error {
	switch {
	case r.status == http.StatusUnauthorized && r.challenge.bearer:
		return &authRequiredError{resourceMetadata: r.challenge.resourceMetadata}
	case r.status == http.StatusUnauthorized:
		return failure(Unauthorized, nil, "The server refuses %s without credentials (HTTP 401), "+
			"and does not ask for a Bearer token as an MCP server does.", step)
	case r.status == http.StatusForbidden:
		return failure(Forbidden, nil, "The server refuses %s (HTTP 403), whatever the Host header says.", step)
	case r.status == http.StatusMisdirectedRequest:
		// It says that the name is at fault, also of a server that knows neither this one nor localhost.
		return failure(HostRefused, nil, "The server refuses the Host header %q (HTTP 421): it serves no such name. %s", p.hostHeader(), hintHost)
	case r.status == http.StatusMethodNotAllowed:
		return failure(MethodNotAllowed, nil, "The server takes no POST at path %s (HTTP 405): "+
			"spec.path names something else than an MCP endpoint, or the server speaks only the older HTTP+SSE transport: "+
			"then set spec.transport to SSE.", p.path())
	case r.status >= 300 && r.status < 400 && p.followed >= maxRedirects:
		return failure(Redirected, nil, "The server answers %s with one redirect after another (HTTP %d). "+
			"Set spec.path to the path where they end.", step, r.status)
	case r.status >= 300 && r.status < 400 && p.stream != nil:
		return failure(Redirected, nil, "The server answers %s with a redirect (HTTP %d) from the place that its event stream names, "+
			"which is never followed: it has to name the place where it takes messages.", step, r.status)
	case r.status >= 300 && r.status < 400 && r.redirect == nil:
		return failure(Redirected, nil, "The server answers %s with a redirect (HTTP %d) that leads to another server or names no place: "+
			"it is never followed. Check spec.port, and what the server takes for its own address.", step, r.status)
	case r.status >= 300 && r.status < 400:
		return failure(Redirected, nil, "The server answers %s with a redirect (HTTP %d), which is never followed. "+
			"Set spec.path to %s.", step, r.status, cmp.Or(p.pathOf(r.redirect), "the path it redirects to"))
	case r.status >= 500 && r.hasRPC && r.message.err != nil:
		return failure(ServerError, nil, "The server answers %s with HTTP %d: %s", step, r.status, r.message.err.describe())
	case r.status >= 500:
		return failure(ServerError, nil, "The server answers %s with HTTP %d. Look at its log.", step, r.status)
	case r.hasRPC:
		return nil
	case r.status == http.StatusNotFound:
		return failure(NotFound, nil, "There is nothing at path %s (HTTP 404). Set spec.path to the path of the MCP endpoint.", p.path())
	case r.status >= 400:
		return failure(NotMCP, nil, "The server answers %s with HTTP %d and no MCP error. %s", step, r.status, hintNotMCP)
	}
	return r.bodyErr
}

// rpcFailure translates a JSON-RPC error to a step of the handshake.
func rpcFailure(step string, e *rpcError) *Error {
	if child := childFailure(step, e); child != nil {
		return child
	}
	return failure(ProtocolError, nil, "The server refuses %s: %s", step, e.describe())
}

func (e *rpcError) describe() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", e.code, e.message)
}

// challenge is what of a WWW-Authenticate header matters.
type challenge struct {
	bearer           bool
	resourceMetadata string // of the Bearer challenge, cleaned
}

// parseChallenge finds the Bearer challenge among those of a 401 (RFC 9110
// section 11.6.1: several may share a line, and a scheme is a word that no '='
// follows).
func parseChallenge(lines []string, limit int) challenge {
	var c challenge
	for _, line := range lines {
		scheme := ""
		for rest := line; rest != ""; {
			var name, value string
			var isParam bool
			name, value, isParam, rest = nextAuthItem(rest)
			switch {
			case name == "":
			case !isParam:
				scheme = strings.ToLower(name)
				c.bearer = c.bearer || scheme == "bearer"
			case scheme == "bearer" && strings.EqualFold(name, "resource_metadata") && c.resourceMetadata == "":
				c.resourceMetadata = cleanLine(value, limit)
			}
		}
	}
	return c
}

// nextAuthItem takes a scheme or a parameter from the front of a challenge.
func nextAuthItem(s string) (name, value string, isParam bool, rest string) {
	s = strings.TrimLeft(s, " \t,")
	end := strings.IndexAny(s, " \t,=")
	if end < 0 {
		return s, "", false, ""
	}
	name, rest = s[:end], strings.TrimLeft(s[end:], " \t")
	if !strings.HasPrefix(rest, "=") {
		return name, "", false, rest
	}
	rest = strings.TrimLeft(rest[1:], " \t")
	if !strings.HasPrefix(rest, `"`) {
		if end = strings.IndexAny(rest, " \t,"); end < 0 {
			end = len(rest)
		}
		return name, rest[:end], true, rest[end:]
	}
	value, rest = quoted(rest)
	return name, value, true, rest
}

// quoted takes a quoted string from the front of s.
func quoted(s string) (value, rest string) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

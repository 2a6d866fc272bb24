package mcp

import (
	"context"
	"net/http"
	"slices"
)

// remember notes a session to be ended.
func (p *prober) remember(session string) {
	if session == "" || !validSession(session) || slices.Contains(p.sessions, session) {
		return
	}
	p.sessions = append(p.sessions, session)
}

// maxSessionBytes is longer than any session id in use.
const maxSessionBytes = 4 << 10

// validSession reports whether an id may be sent back: visible ASCII, as the
// specification demands.
func validSession(id string) bool {
	if len(id) > maxSessionBytes {
		return false
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return false
		}
	}
	return true
}

// closeStream ends the session of a server with SSE.
func (p *prober) closeStream() {
	if p.stream != nil {
		p.stream.close()
	}
}

// endSessions ends every session that was handed out, also after a failure and
// after the time was up: servers keep them for ever otherwise. What the server
// answers (it may refuse by 405) changes nothing for us.
func (p *prober) endSessions(ctx context.Context) {
	if len(p.sessions) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.limits.SessionEnd)
	defer cancel()
	for _, session := range p.sessions {
		_, _ = p.send(ctx, exchange{
			step: "DELETE", httpMethod: http.MethodDelete,
			version: p.result.ProtocolVersion, session: session, host: p.host,
		})
	}
}

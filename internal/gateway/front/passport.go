package front

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
)

// issue makes a session id of a passport. Of the sessions at backends it takes out those with the longest ids until the rest can be
// sealed, and returns them: a replica that does not know of them opens others.
func (v *visit) issue(p *passport) (id string, left map[string]backend.Handle, err error) {
	raw, left, err := p.pack(seal.MaxPlaintext)
	if err != nil {
		return "", left, err
	}
	if len(left) > 0 {
		v.options.Logger.Warn("sessions at backends whose ids are long are not in the session id: another replica opens others, without their state",
			"backends", namesIn(left), "limit", seal.MaxPlaintext)
	}
	id, err = v.options.Sealer.Seal(purposeSession, v.principal.Subject, raw, time.Now().Add(v.limits.SessionAge))
	return id, left, err
}

// pack writes a passport in at most so many bytes.
func (p *passport) pack(limit int) (raw []byte, left map[string]backend.Handle, err error) {
	left = map[string]backend.Handle{}
	for {
		if raw, err = json.Marshal(p); err != nil || len(raw) <= limit {
			return raw, left, err
		}
		name := p.longest()
		if name == "" {
			return nil, left, fmt.Errorf("what a client says of itself takes %d bytes in a session id, the limit is %d", len(raw), limit)
		}
		left[name] = p.Backends[name]
		delete(p.Backends, name)
	}
}

// longest is the backend whose session takes most of the passport; empty if there is none.
func (p *passport) longest() (longest string) {
	most := 0
	for _, name := range namesIn(p.Backends) {
		raw, err := json.Marshal(p.Backends[name])
		if size := len(name) + len(raw); err == nil && size > most {
			longest, most = name, size
		}
	}
	return longest
}

func namesIn(handles map[string]backend.Handle) []string {
	names := make([]string, 0, len(handles))
	for name := range handles {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

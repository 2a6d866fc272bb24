package front

import (
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Status is how the backend does, without what it offers; see Front.StatusOf.
func (b *Backend) Status() table.BackendStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := table.BackendStatus{Name: b.Config.Name, State: b.state, ErrorClass: b.class, ErrorDetail: b.detail, Since: b.since}
	if b.description != nil {
		s.ProtocolVersions = b.description.Versions
		offer := offerOf(b.description, b.description.Nearest(backend.Modern))
		s.ServerName = backend.Line(wire.Text(wire.Field(offer.Info, "name"), maxNameBytes), maxNameBytes)
		s.ServerVersion = backend.Line(wire.Text(wire.Field(offer.Info, "version"), maxNameBytes), maxNameBytes)
	}
	if s.State == table.BackendReady && b.gate.hangs(time.Now()) {
		s.State, s.ErrorClass, s.ErrorDetail = table.BackendFailed, "Timeout", "" // until a call in trial is answered
	}
	if b.catalog != nil {
		s.Truncated, s.Unread = b.catalog.Truncated, b.catalog.Unread
	}
	if supervisor, ok := b.Server.(interface{ Status() table.ChildStatus }); ok {
		child := supervisor.Status()
		s.Child = &child
	}
	return s
}

// maxNameBytes bounds what is told of a server's name and version.
const maxNameBytes = 128

// StatusOf is how a backend does and what became of what it offers.
func (f *Front) StatusOf(b *Backend) table.BackendStatus {
	s := b.Status()
	for _, offered := range f.view.Load().Backends() {
		if offered.Name == s.Name {
			s.CatalogDigest, s.Tools = offered.CatalogDigest, offered.Tools
			s.PromptCount, s.ResourceCount = offered.PromptCount, offered.ResourceCount
			s.Conflicts, s.ConflictCount = offered.Conflicts, offered.ConflictCount
		}
	}
	return s
}

// maxDetail bounds table.BackendStatus.ErrorDetail, in bytes.
const maxDetail = 256

// detailOf is what an error says to whoever runs the gateway, if its class has more to say than its name.
func detailOf(failure *backend.Error) string {
	switch failure.Class {
	case "Denied", "Definition", "Statement", "Forbidden":
	case "Credential":
		return backend.Line(failure.Told, maxDetail) // a file that is not there yet is what the class says
	default:
		return ""
	}
	detail := failure.Told
	if detail == "" {
		detail = failure.Detail
	}
	return backend.Line(detail, maxDetail)
}
